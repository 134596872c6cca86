use super::*;
use crate::packet::{
    Packet, Packets,
    tests::{CONFIG, hex, id},
};

fn check(packet: &str, version: Version) {
    let packet = hex(packet);
    let mut datagram = packet.clone();
    let Some(Ok(Packet::Retry(retry))) = Packets::new(&mut datagram, CONFIG).next() else {
        panic!("expected a Retry packet");
    };
    let header = RetryHeader {
        version,
        destination: ConnectionId::EMPTY,
        source: id("f067a5502a4262b5"),
        token: b"token",
        unused_bits: 0xf,
        fixed_bit: true,
    };
    assert_eq!(retry.version, version);
    assert_eq!(retry.destination, header.destination);
    assert_eq!(retry.source, header.source);
    assert_eq!(retry.token, header.token);
    assert_eq!(retry.integrity_tag, packet[packet.len() - 16..]);

    let mut buffer = vec![0; header.encoded_len()];
    header
        .encode(&mut Writer::new(&mut buffer))
        .expect("fits exactly");
    assert_eq!(buffer, packet[..packet.len() - 16]);
    assert_eq!(buffer, retry.without_tag);

    let mut pseudo = [0; 64];
    let mut writer = Writer::new(&mut pseudo);
    let original = id("8394c8f03e515708");
    encode_retry_pseudo_packet(&original, retry.without_tag, &mut writer).expect("fits");
    assert_eq!(
        writer.written(),
        [&hex("088394c8f03e515708"), retry.without_tag].concat()
    );
}

#[test]
fn rfc9001_a_4_retry() {
    check(
        "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba",
        Version::V1,
    );
}

#[test]
fn rfc9369_a_4_retry() {
    check(
        "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6",
        Version::V2,
    );
}

#[test]
fn rfc9000_17_2_5_2_a_retry_without_a_token_is_discarded() {
    let mut datagram = hex("ff000000010008f067a5502a4262b504a265ba2eff4d829058fb3f0f2496ba");
    let error = Packets::new(&mut datagram, CONFIG).next();
    let error = error.expect("one packet").expect_err("no token");
    assert_eq!(error.kind, PacketErrorKind::EmptyRetryToken);
    // The tag is the end of the packet, so most truncated packets look like valid packets with another tag.
    for cut in 0..datagram.len() {
        assert!(Retry::decode(&datagram[..cut], CONFIG).is_err(), "{cut}");
    }
}
