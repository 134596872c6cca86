use lastbyte_wire::{
    Encode, Writer,
    packet::{RetryHeader, VersionNegotiation, VersionNumber},
};

use super::*;
use crate::crypto::{ServerCrypto as _, retry};

fn retry_packet(version: Version, token: &[u8], original: u64) -> Vec<u8> {
    let header = RetryHeader {
        version,
        destination: id(1000),
        source: id(555),
        token,
        unused_bits: 3,
        fixed_bit: true,
    };
    let mut buffer = [0; 500];
    let mut writer = Writer::new(&mut buffer);
    header.encode(&mut writer).expect("room");
    let mut packet = writer.written().to_vec();
    let tag = retry::tag(version, &id(original), &packet).expect("a tag");
    packet.extend(tag);
    packet
}

fn hand_to_client(client: &mut Connection, now: Time, mut packet: Vec<u8>) {
    let ecn = crate::ack::Ecn::NotEct;
    client.handle_datagram(now, &CLIENT_PATH, ecn, &mut packet, &mut stream::KeepAll);
}

/// A client that has sent its first flight, with that flight.
fn begun(versions: Vec<Version>) -> (Connection, Arc<dyn ClientCrypto>, PlainServer) {
    let (client_crypto, server_crypto) = plain(1);
    let mut config = config();
    config.versions = versions;
    let mut client = client(config, &client_crypto, START, 1);
    let mut buffer = [0; 1500];
    assert!(client.poll_transmit(START, &mut buffer).is_some());
    (client, client_crypto, server_crypto)
}

fn server_after_retry(crypto: &PlainServer, retry_source: u64) -> Connection {
    let start = ServerStart {
        crypto,
        version: Version::V1,
        path: SERVER_PATH,
        local_id: id(2000),
        peer_id: id(1000),
        destination: id(555),
        initial_keys: crypto.initial_keys(Version::V1, &id(555)),
        retry: Some(RetryIds {
            original_destination: id(99),
            retry_source: id(retry_source),
        }),
        is_address_validated: true,
        ids: Box::new(Counter(2000)),
        seed: seed_bytes(9),
    };
    Connection::server(START, &Arc::new(config()), start).expect("a server")
}

#[test]
fn rfc9000_8_1_2_a_client_retries_with_the_token() {
    {
        let version = Version::V1;
        let (mut client, _, crypto) = begun(vec![version]);
        hand_to_client(&mut client, START, retry_packet(version, b"a token", 99));
        let mut pair = Pair::of(
            client,
            server_after_retry(&crypto, 555),
            1,
            Faults::default(),
        );
        pair.transmit();
        let first = pair.flying.peek().expect("a datagram").0.bytes.clone();
        // Type and version, IDs of 8 bytes each after their length, then the token after its length.
        assert_eq!(first[6..14], *id(555).as_slice());
        assert_eq!(first[23], 7);
        assert_eq!(&first[24..31], b"a token");
        pair.shake_hands();
        pair.transfer(&body(10_000, 1), &body(10_000, 2));
        // RFC 9000 §17.2.5.3: packet numbers continue.
        assert!(pair.client.recovery_statistics().packets_lost == 0);
    }
}

#[test]
fn rfc9000_17_2_5_2_a_forged_or_second_retry_is_dropped() {
    let (mut client, ..) = begun(vec![Version::V1]);
    // For another original destination: the tag is wrong.
    hand_to_client(&mut client, START, retry_packet(Version::V1, b"bad", 98));
    let mut buffer = [0; 1500];
    assert!(client.poll_transmit(START, &mut buffer).is_none());
    hand_to_client(&mut client, START, retry_packet(Version::V1, b"good", 99));
    assert!(client.poll_transmit(START, &mut buffer).is_some());
    assert_eq!(&buffer[24..28], b"good");
    hand_to_client(&mut client, START, retry_packet(Version::V1, b"more", 99));
    assert!(client.poll_transmit(START, &mut buffer).is_none());
}

#[test]
fn rfc9000_7_3_a_missing_retry_source_connection_id_is_an_error() {
    let (mut client, _, crypto) = begun(vec![Version::V1]);
    hand_to_client(&mut client, START, retry_packet(Version::V1, b"token", 99));
    let mut pair = Pair::of(
        client,
        server_after_retry(&crypto, 556),
        1,
        Faults::default(),
    );
    pair.run_to_the_end();
    assert_eq!(
        violation(&pair.client).0,
        TransportError::TRANSPORT_PARAMETER_ERROR
    );
}

fn negotiation(versions: &[VersionNumber], source: u64) -> Vec<u8> {
    let mut buffer = [0; 200];
    let mut writer = Writer::new(&mut buffer);
    let (destination, source) = (id(1000), id(source));
    VersionNegotiation::encode(
        &mut writer,
        0x55,
        destination.as_slice(),
        source.as_slice(),
        versions,
    )
    .expect("room");
    writer.written().to_vec()
}

#[test]
fn rfc9368_2_1_a_client_restarts_with_the_best_common_version() {
    let (mut client, _, crypto) = begun(vec![Version::V1, Version::V2]);
    let reserved = VersionNumber::reserved(7);
    hand_to_client(
        &mut client,
        START,
        negotiation(&[reserved, Version::V2.number()], 99),
    );
    assert_eq!(client.version(), Version::V2);
    let mut config = config();
    config.versions = vec![Version::V2];
    let server = server(config, &crypto, Version::V2, START, 1);
    let mut pair = Pair::of(client, server, 1, Faults::default());
    pair.shake_hands();
    pair.transfer(&body(10_000, 1), &body(10_000, 2));
}

#[test]
fn rfc9368_4_a_version_downgrade_is_detected() {
    let (mut client, _, crypto) = begun(vec![Version::V1, Version::V2]);
    // An attacker on the path claims that the server supports only version 2, although it supports both.
    hand_to_client(&mut client, START, negotiation(&[Version::V2.number()], 99));
    let server = server(config(), &crypto, Version::V2, START, 1);
    let mut pair = Pair::of(client, server, 1, Faults::default());
    pair.run_to_the_end();
    assert_eq!(
        violation(&pair.client).0,
        TransportError::VERSION_NEGOTIATION_ERROR
    );
}

#[test]
fn rfc9000_6_2_version_negotiation_that_lists_our_version_or_other_ids_is_dropped() {
    let (mut client, ..) = begun(vec![Version::V1, Version::V2]);
    let both = [Version::V1.number(), Version::V2.number()];
    hand_to_client(&mut client, START, negotiation(&both, 99));
    assert_eq!(client.version(), Version::V1);
    hand_to_client(&mut client, START, negotiation(&both[1..], 98));
    assert_eq!(client.version(), Version::V1);
    assert!(!client.is_closing());
}

#[test]
fn rfc9000_6_2_no_common_version_ends_the_attempt() {
    let (mut client, ..) = begun(vec![Version::V1]);
    hand_to_client(&mut client, START, negotiation(&[Version::V2.number()], 99));
    assert_eq!(client.close_reason(), Some(CloseReason::NoCommonVersion));
    assert!(client.is_over());
}
