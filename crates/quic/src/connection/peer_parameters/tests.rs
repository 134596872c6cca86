use super::*;
use crate::connection::tests::pair::id;

fn ids() -> HandshakeConnectionIds {
    HandshakeConnectionIds {
        initial_source: id(1),
        original_destination: None,
        retry_source: None,
    }
}

/// What a server expects of a client in version 1.
fn expected() -> Expected<'static> {
    Expected {
        side: Side::Server,
        ids: Some(ids()),
        remembered: None,
        first_version: Version::V1,
        version: Version::V1,
        versions: &[Version::V1, Version::V2],
        was_negotiated: false,
    }
}

fn parameters() -> TransportParameters {
    TransportParameters {
        initial_source_connection_id: Some(id(1)),
        max_ack_delay_ms: VarInt::from_u32(40),
        ack_delay_exponent: 10,
        max_udp_payload_size: VarInt::from_u32(1300),
        active_connection_id_limit: VarInt::from_u32(7),
        disable_active_migration: true,
        grease_quic_bit: true,
        ..TransportParameters::default()
    }
}

fn accept(parameters: &TransportParameters, expected: &Expected<'_>) -> Result<(), Fatal> {
    let mut peer = PeerParameters::default();
    peer.accept(&parameters.to_vec(), expected).map(drop)
}

fn version_information(chosen: Version, available: &[Version]) -> VersionInformation {
    VersionInformation {
        chosen: chosen.number(),
        available: available.iter().map(|version| version.number()).collect(),
    }
}

#[test]
fn rfc9000_18_2_defaults_hold_until_the_parameters_are_known() {
    let mut peer = PeerParameters::default();
    let delay = VarInt::from_u32(100);
    let before = (
        peer.max_ack_delay(),
        peer.ack_delay(Space::Application, delay),
        peer.max_udp_payload_size(),
        peer.active_connection_id_limit(),
        peer.disable_active_migration() || peer.grease_quic_bit(),
    );
    let micros = Duration::from_micros;
    assert_eq!(before, (Duration::ZERO, micros(800), 1200, 2, false));
    let accepted = peer.accept(&parameters().to_vec(), &expected());
    assert!(accepted.is_ok());
    let after = (
        peer.max_ack_delay(),
        peer.ack_delay(Space::Application, delay),
        peer.max_udp_payload_size(),
        peer.active_connection_id_limit(),
        peer.disable_active_migration() && peer.grease_quic_bit(),
    );
    assert_eq!(after, (micros(40_000), micros(102_400), 1300, 7, true));
    assert_eq!(peer.ack_delay(Space::Initial, delay), Duration::ZERO);
    assert_eq!(peer.preferred_address(), None);
}

#[test]
fn rfc9000_7_3_parameters_that_contradict_the_handshake_are_rejected() {
    let code =
        |expected: &Expected<'_>| accept(&parameters(), expected).map_err(|fatal| fatal.code);
    let error = Err(TransportError::TRANSPORT_PARAMETER_ERROR);
    assert_eq!(code(&expected()), Ok(()));
    let early = Expected {
        ids: None,
        ..expected()
    };
    assert_eq!(code(&early), error);
    let other = HandshakeConnectionIds {
        initial_source: id(2),
        ..ids()
    };
    let of_other = Expected {
        ids: Some(other),
        ..expected()
    };
    assert_eq!(code(&of_other), error);
}

#[test]
fn rfc9000_7_4_1_parameters_below_those_of_0_rtt_are_rejected() {
    let mut remembered = parameters().remembered();
    let fits = Expected {
        remembered: Some(&remembered.clone()),
        ..expected()
    };
    assert_eq!(accept(&parameters(), &fits), Ok(()));
    remembered.initial_max_data = VarInt::from_u32(1);
    let reduced = Expected {
        remembered: Some(&remembered),
        ..expected()
    };
    let refused = accept(&parameters(), &reduced).expect_err("reduced");
    assert_eq!(refused.code, TransportError::PROTOCOL_VIOLATION);
}

#[test]
fn rfc9368_4_a_version_chosen_by_a_third_party_is_rejected() {
    let error = TransportError::VERSION_NEGOTIATION_ERROR;
    let at_server = |chosen, available: &[Version], version| {
        let mut parameters = parameters();
        parameters.version_information = Some(version_information(chosen, available));
        let expected = Expected {
            version,
            ..expected()
        };
        accept(&parameters, &expected).map_err(|fatal| fatal.code)
    };
    let both = [Version::V1, Version::V2];
    assert_eq!(at_server(Version::V1, &both, Version::V2), Ok(()));
    assert_eq!(at_server(Version::V2, &both, Version::V2), Err(error));
    let one = [Version::V1];
    assert_eq!(at_server(Version::V1, &one, Version::V2), Err(error));
}

#[test]
fn rfc9368_4_a_client_checks_the_version_negotiation_it_followed() {
    let error = TransportError::VERSION_NEGOTIATION_ERROR;
    let at_client = |information: Option<VersionInformation>| {
        let mut parameters = parameters();
        parameters.original_destination_connection_id = Some(id(9));
        parameters.version_information = information;
        let expected = Expected {
            side: Side::Client,
            ids: Some(HandshakeConnectionIds {
                original_destination: Some(id(9)),
                ..ids()
            }),
            first_version: Version::V2,
            version: Version::V2,
            was_negotiated: true,
            ..expected()
        };
        accept(&parameters, &expected).map_err(|fatal| fatal.code)
    };
    assert_eq!(at_client(None), Err(error));
    let only_second = version_information(Version::V2, &[Version::V2]);
    assert_eq!(at_client(Some(only_second)), Ok(()));
    // The server supports a version that this client prefers.
    let both = version_information(Version::V2, &[Version::V1, Version::V2]);
    assert_eq!(at_client(Some(both)), Err(error));
}
