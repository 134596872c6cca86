use core::net::SocketAddrV4;

use super::*;
use crate::{Encode, Side, TransportError, Writer};
use TransportParameterErrorKind as Kind;

mod remembered;
mod round_trip;

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).expect("20 bytes at most")
}

/// Encodes parameters from pairs of ID and value.
fn bytes(parameters: &[(u64, &[u8])]) -> Vec<u8> {
    let mut buffer = vec![0; 2000];
    let mut writer = Writer::new(&mut buffer);
    for (id, value) in parameters {
        writer
            .varint(VarInt::new(*id).expect("in range"))
            .and_then(|()| writer.varint_prefixed(value))
            .expect("fits");
    }
    writer.written().to_vec()
}

fn error_kind(parameters: &[(u64, &[u8])], sender: Side) -> Kind {
    let error = TransportParameters::decode(&bytes(parameters), sender).expect_err("is invalid");
    assert_eq!(
        error.transport_error(),
        TransportError::TRANSPORT_PARAMETER_ERROR
    );
    assert_eq!(
        error.id.map(ParameterId::get),
        parameters.last().map(|last| last.0)
    );
    error.kind
}

fn accepts(parameters: &[(u64, &[u8])], sender: Side) -> bool {
    TransportParameters::decode(&bytes(parameters), sender).is_ok()
}

#[test]
fn rfc9001_a_2_the_parameters_of_the_client_hello() {
    let extension = [
        0x04, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x05, 0x04, 0x80, 0x00, 0xff,
        0xff, 0x07, 0x04, 0x80, 0x00, 0xff, 0xff, 0x08, 0x01, 0x10, 0x01, 0x04, 0x80, 0x00, 0x75,
        0x30, 0x09, 0x01, 0x10, 0x0f, 0x08, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0x06,
        0x04, 0x80, 0x00, 0xff, 0xff,
    ];
    let sixteen = StreamCount::new(16).expect("in range");
    let expected = TransportParameters {
        initial_max_data: VarInt::MAX,
        initial_max_stream_data_bidi_local: VarInt::from_u32(65_535),
        initial_max_stream_data_bidi_remote: VarInt::from_u32(65_535),
        initial_max_stream_data_uni: VarInt::from_u32(65_535),
        initial_max_streams_bidi: sixteen,
        initial_max_streams_uni: sixteen,
        max_idle_timeout_ms: VarInt::from_u32(30_000),
        initial_source_connection_id: Some(id(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08])),
        ..TransportParameters::default()
    };
    let decoded = TransportParameters::decode(&extension, Side::Client);
    assert_eq!(decoded.as_ref(), Ok(&expected));
    // The same parameters in another order.
    assert_eq!(expected.encoded_len(), extension.len());
}

#[test]
fn rfc9000_18_2_defaults_are_not_sent() {
    assert!(TransportParameters::default().to_vec().is_empty());
    let decoded = TransportParameters::decode(&[], Side::Server).expect("is valid");
    assert_eq!(decoded, TransportParameters::default());
    assert_eq!(decoded.max_udp_payload_size.get(), 65_527);
    assert_eq!(decoded.ack_delay_exponent, 3);
    assert_eq!(decoded.max_ack_delay_ms.get(), 25);
    assert_eq!(decoded.active_connection_id_limit.get(), 2);
}

#[test]
fn rfc9000_7_4_duplicates_are_errors() {
    assert_eq!(
        error_kind(&[(0x04, &[1]), (0x04, &[1])], Side::Client),
        Kind::Duplicate
    );
    // This also applies to unknown parameters.
    assert_eq!(
        error_kind(&[(0x77, &[]), (0x04, &[1]), (0x77, &[])], Side::Client),
        Kind::Duplicate
    );
}

#[test]
fn rfc9000_7_4_2_unknown_and_reserved_parameters_are_ignored() {
    let many: Vec<(u64, &[u8])> = (0x100..0x180).map(|id| (id, &[9, 9][..])).collect();
    let decoded = TransportParameters::decode(&bytes(&many), Side::Client);
    assert_eq!(decoded, Ok(TransportParameters::default()));
}

#[test]
fn rfc9000_18_2_four_parameters_are_server_only() {
    let address = [&[127, 0, 0, 1, 0, 80][..], &[0; 18], &[1, 7], &[0; 16]].concat();
    let server_only: [(u64, &[u8]); 4] = [
        (0x00, &[1]),
        (0x02, &[0; 16]),
        (0x0d, &address),
        (0x10, &[1]),
    ];
    for parameter in server_only {
        assert!(accepts(&[parameter], Side::Server));
        assert_eq!(
            error_kind(&[parameter], Side::Client),
            Kind::NotPermittedFromClient
        );
        assert!(ParameterId::from(VarInt::saturating(parameter.0)).is_server_only());
    }
    assert!(accepts(&[(0x0f, &[1])], Side::Client));
}

#[test]
fn rfc9000_18_2_numbers_out_of_range() {
    let cases: [(u64, &[u8], &[u8]); 6] = [
        (0x03, &[0x44, 0xb0], &[0x44, 0xaf]),
        (0x0a, &[20], &[21]),
        (0x0b, &[0x7f, 0xff], &[0x80, 0, 0x40, 0]),
        (0x0e, &[2], &[1]),
        (
            0x08,
            &[0xd0, 0, 0, 0, 0, 0, 0, 0],
            &[0xd0, 0, 0, 0, 0, 0, 0, 1],
        ),
        (
            0x09,
            &[0xd0, 0, 0, 0, 0, 0, 0, 0],
            &[0xd0, 0, 0, 0, 0, 0, 0, 1],
        ),
    ];
    for (id, good, bad) in cases {
        assert!(accepts(&[(id, good)], Side::Client), "{id:#x}");
        assert_eq!(error_kind(&[(id, bad)], Side::Client), Kind::OutOfRange);
    }
    assert_eq!(
        error_kind(&[(0x0a, &[0xff; 8])], Side::Client),
        Kind::OutOfRange
    );
}

#[test]
fn values_of_invalid_length() {
    let cases: [(u64, &[u8]); 9] = [
        (0x00, &[0; 21]),
        (0x02, &[0; 15]),
        (0x02, &[0; 17]),
        (0x04, &[]),
        (0x04, &[1, 1]),
        (0x04, &[0x40]),
        (0x0c, &[0]),
        // RFC 9287 §3: the value is empty.
        (0x2ab2, &[0]),
        // RFC 9368 §4: a multiple of four.
        (0x11, &[0, 0, 0, 1, 0, 0]),
    ];
    for (id, value) in cases {
        assert_eq!(
            error_kind(&[(id, value)], Side::Server),
            Kind::Length,
            "{id:#x}"
        );
    }
}

#[test]
fn rfc9000_18_2_a_preferred_address_has_a_connection_id() {
    let address = |id: &[u8]| {
        let len = [id.len() as u8];
        [&[10, 0, 0, 1, 1, 0xbb][..], &[0; 18], &len, id, &[5; 16]].concat()
    };
    let legal = TransportParameters::decode(&bytes(&[(0x0d, &address(&[7]))]), Side::Server);
    let address_of = legal
        .expect("is valid")
        .preferred_address
        .expect("is there");
    assert_eq!(
        address_of.ipv4,
        Some(SocketAddrV4::new([10, 0, 0, 1].into(), 443))
    );
    assert_eq!(address_of.ipv6, None);
    // The address is absent only if both the IP address and the port are zero.
    let mut port_only = address(&[7]);
    port_only[..4].fill(0);
    let legal = TransportParameters::decode(&bytes(&[(0x0d, &port_only)]), Side::Server);
    let address_of = legal
        .expect("is valid")
        .preferred_address
        .expect("is there");
    assert_eq!(address_of.ipv4, Some(SocketAddrV4::new([0; 4].into(), 443)));
    for id in [&[][..], &[0; 21]] {
        assert_eq!(
            error_kind(&[(0x0d, &address(id))], Side::Server),
            Kind::OutOfRange
        );
    }
}

#[test]
fn rfc9368_4_invalid_version_information() {
    let versions = |versions: &[u32]| -> Vec<u8> {
        versions
            .iter()
            .flat_map(|version| version.to_be_bytes())
            .collect()
    };
    let check = |list: &[u32], sender| {
        let value = versions(list);
        TransportParameters::decode(&bytes(&[(0x11, &value)]), sender)
            .map(|_| ())
            .map_err(|error| error.kind)
    };
    assert_eq!(check(&[1, 0x6b33_43cf, 1], Side::Client), Ok(()));
    assert_eq!(check(&[0, 1], Side::Client), Err(Kind::VersionZero));
    assert_eq!(check(&[1, 1, 0], Side::Server), Err(Kind::VersionZero));
    assert_eq!(
        check(&[1, 2], Side::Client),
        Err(Kind::ChosenVersionNotAvailable)
    );
    assert_eq!(check(&[1, 2], Side::Server), Ok(()));
    assert_eq!(check(&[1], Side::Server), Ok(()));
    assert_eq!(check(&[], Side::Server), Err(Kind::Length));
}

#[test]
fn ack_frequency_3_min_ack_delay_is_at_most_max_ack_delay() {
    const MIN_ACK_DELAY: u64 = 0xff04_de1b;
    // 25 ms by default, in microseconds.
    assert!(accepts(
        &[(MIN_ACK_DELAY, &[0x80, 0, 0x61, 0xa8])],
        Side::Client
    ));
    assert_eq!(
        error_kind(&[(MIN_ACK_DELAY, &[0x80, 0, 0x61, 0xa9])], Side::Client),
        Kind::AboveMaxAckDelay
    );
    // The order does not matter.
    assert_eq!(
        error_kind(
            &[(0x0b, &[1]), (MIN_ACK_DELAY, &[0x43, 0xe9])],
            Side::Client
        ),
        Kind::AboveMaxAckDelay
    );
}

#[test]
fn rfc9000_7_3_connection_ids_are_authenticated() {
    let expected = HandshakeConnectionIds {
        initial_source: id(&[1]),
        original_destination: Some(id(&[2])),
        retry_source: None,
    };
    let sent = TransportParameters {
        initial_source_connection_id: Some(id(&[1])),
        original_destination_connection_id: Some(id(&[2])),
        ..TransportParameters::default()
    };
    let check = |sent: &TransportParameters| sent.authenticate(&expected).map_err(|e| e.kind);
    assert_eq!(check(&sent), Ok(()));
    let missing = TransportParameters {
        initial_source_connection_id: None,
        ..sent.clone()
    };
    assert_eq!(check(&missing), Err(Kind::Missing));
    let other = TransportParameters {
        original_destination_connection_id: Some(id(&[3])),
        ..sent.clone()
    };
    assert_eq!(check(&other), Err(Kind::ConnectionIdMismatch));
    // A retry_source_connection_id without a Retry packet, even if empty.
    let retried = TransportParameters {
        retry_source_connection_id: Some(ConnectionId::EMPTY),
        ..sent.clone()
    };
    assert_eq!(check(&retried), Err(Kind::ConnectionIdMismatch));
}

#[test]
fn an_error_names_its_parameter() {
    let error = TransportParameters::decode(&bytes(&[(0x0a, &[21])]), Side::Client);
    assert_eq!(
        error.expect_err("is out of range").to_string(),
        "ack_delay_exponent: the value is out of range"
    );
    let error = TransportParameters::decode(&[0x40], Side::Client);
    assert_eq!(
        error.expect_err("is truncated").to_string(),
        "transport parameters: the input ends inside the parameter"
    );
}
