use std::sync::Arc;

use lastbyte_wire::{
    TransportError, Writer,
    packet::{DecodeConfig, Packet, PacketNumber, Packets, Protected},
};

use super::*;
use crate::{
    ack::Ecn,
    connection::{
        Config,
        early::EarlyPackets,
        start::{ClientState, Offer},
        tests::pair::{DELAY, START, config, id, plain},
    },
    crypto::{ClientCrypto, ServerCrypto, TAG_LEN, plain::PlainServer},
    random::Random,
};

const CLIENT_ID: u64 = 1000;
const SERVER_ID: u64 = 2000;
/// The destination connection ID of the client's first packet.
const ORIGINAL: u64 = 99;

fn offer(side: Side, config: &Config) -> Offer {
    let is_server = side == Side::Server;
    Offer {
        side,
        version: Version::V1,
        available: config.versions.clone(),
        local_id: id(if is_server { SERVER_ID } else { CLIENT_ID }),
        reset_token: None,
        original_destination: is_server.then(|| id(ORIGINAL)),
        retry_source: None,
        preferred: None,
    }
}

impl Handshake {
    /// Behaves as if neither `HANDSHAKE_DONE` nor an acknowledgment of a Handshake packet had been received.
    pub(in crate::connection) const fn unconfirm(&mut self) {
        self.stage = Stage::Complete;
        self.is_peer_ahead = false;
    }
}

fn client(crypto: &Arc<dyn ClientCrypto>) -> Handshake {
    let offer = offer(Side::Client, &config());
    let parameters = offer.parameters(&config()).to_vec();
    let session = crypto.start(Version::V1, "localhost", &parameters);
    let keys = crypto.initial_keys(Version::V1, &id(ORIGINAL));
    let state = HandshakeState {
        offer,
        choice: Choice::of_client(vec![Version::V1]),
        original_destination: id(ORIGINAL),
        peer_id: None,
        client: Some(ClientState {
            crypto: Arc::clone(crypto),
            server_name: "localhost".into(),
            token: Vec::new(),
            has_heard: false,
            retry_source: None,
            was_negotiated: false,
        }),
        remembered: None,
        early: EarlyPackets::default(),
        reordered_0rtt: Vec::new(),
    };
    Handshake::new(START, state, session.expect("a session"), keys)
}

fn server(crypto: &PlainServer) -> Handshake {
    let offer = offer(Side::Server, &config());
    let parameters = offer.parameters(&config()).to_vec();
    let session = crypto.start(Version::V1, &parameters);
    let keys = crypto.initial_keys(Version::V1, &id(ORIGINAL));
    let state = HandshakeState {
        offer,
        choice: Choice::of_server(Vec::new()),
        original_destination: id(ORIGINAL),
        peer_id: Some(id(CLIENT_ID)),
        client: None,
        remembered: None,
        early: EarlyPackets::default(),
        reordered_0rtt: Vec::new(),
    };
    Handshake::new(START, state, session.expect("a session"), keys)
}

fn pair() -> (Handshake, Handshake) {
    let (client_crypto, server_crypto) = plain(1);
    (client(&client_crypto), server(&server_crypto))
}

/// Passes CRYPTO data on; returns the types of the keys that the sender installed.
fn pass(from: &mut Handshake, to: &mut Handshake) -> Vec<PacketType> {
    let mut crypto = SpaceStates::new(CryptoStream::new());
    from.write_crypto(&mut crypto);
    let installed = std::iter::from_fn(|| from.install_next_keys(0)).collect();
    for space in Space::ALL {
        let data = std::mem::take(crypto.get_mut(space).outgoing());
        if !data.is_empty() {
            to.read_crypto(space, &data).expect("in order");
        }
    }
    installed
}

/// A packet of 20 PADDING frames.
fn seal(from: &mut Handshake, space: Space, number: u32) -> Vec<u8> {
    let mut buffer = vec![0; 100];
    let destination = match from.side() {
        Side::Client => id(SERVER_ID),
        Side::Server => id(CLIENT_ID),
    };
    let number = PacketNumber::from(number);
    let mut writer = Writer::new(&mut buffer);
    let random = &mut Random::new([1; 32]);
    let truncated = number.truncate(None);
    let packet = from
        .begin_packet(space, truncated, &destination, true, random, &mut writer)
        .expect("keys");
    writer.zeros(20).expect("room");
    let end = writer.position();
    let sealed = from.seal(space, number, packet, end, &mut buffer, true);
    let len = sealed.expect("keys").expect("within limits");
    assert_eq!(len, end + TAG_LEN);
    buffer.truncate(len);
    buffer
}

fn parse(bytes: &mut [u8]) -> Protected<'_> {
    let config = DecodeConfig {
        connection_id_len: 8,
        grease_quic_bit: false,
    };
    match Packets::new(bytes, config).next() {
        Some(Ok(Packet::Protected(packet))) => packet,
        other => panic!("{other:?}"),
    }
}

/// Opens a packet; returns its type and number, and the length of its payload.
fn open(to: &mut Handshake, bytes: &[u8]) -> Result<(PacketType, u64, usize), Unopened> {
    let mut bytes = bytes.to_vec();
    let packet = parse(&mut bytes);
    let opened = to.open(START, packet, Ecn::NotEct, None, || DELAY)?;
    assert!(!opened.has_reserved_bits);
    let number = opened.number.get();
    Ok((opened.packet_type, number, opened.payload.len()))
}

#[test]
fn rfc9001_4_1_stages_follow_the_session() {
    let (mut client, mut server) = pair();
    assert!(pass(&mut client, &mut server).is_empty());
    assert!(!server.complete());
    let keys = [PacketType::Handshake, PacketType::OneRtt];
    assert_eq!(pass(&mut server, &mut client), keys);
    assert!(!client.can_send_in(Space::Application));
    assert_eq!(client.packet_type(Space::Application), PacketType::ZeroRtt);
    assert_eq!(pass(&mut client, &mut server), keys);
    assert_eq!(client.packet_type(Space::Application), PacketType::OneRtt);
    assert!(client.can_send_in(Space::Application));
    assert!(client.complete() && !client.complete());
    assert!(server.complete());
    assert_eq!(server.confirm(START + DELAY), Some(DELAY));
    assert_eq!(server.confirm(START + DELAY * 2), None);
    assert_eq!(client.stage(), Stage::Complete);
    assert_eq!(server.stage(), Stage::Confirmed);
}

#[test]
fn rfc9001_4_9_keys_are_discarded_once() {
    let (mut client, mut server) = pair();
    pass(&mut client, &mut server);
    pass(&mut server, &mut client);
    assert_eq!(server.discard(Space::Initial), Some(PacketType::Initial));
    assert_eq!(server.discard(Space::Initial), None);
    let late = seal(&mut client, Space::Initial, 1);
    assert_eq!(open(&mut server, &late), Err(Unopened::NoKeys));
    assert!(!server.has_one_space());
    let discarded = server.discard(Space::Handshake);
    assert_eq!(discarded, Some(PacketType::Handshake));
    assert!(server.has_one_space());
}

#[test]
fn each_side_opens_what_the_other_seals() {
    let (mut client, mut server) = pair();
    let packet = seal(&mut client, Space::Initial, 0);
    assert_eq!(open(&mut server, &packet), Ok((PacketType::Initial, 0, 20)));
    pass(&mut client, &mut server);
    pass(&mut server, &mut client);
    pass(&mut client, &mut server);
    let packet = seal(&mut server, Space::Handshake, 3);
    let opened = open(&mut client, &packet);
    assert_eq!(opened, Ok((PacketType::Handshake, 3, 20)));
    assert!(client.complete() && server.complete());
    let packet = seal(&mut server, Space::Application, 5);
    assert_eq!(open(&mut client, &packet), Ok((PacketType::OneRtt, 5, 20)));
}

#[test]
fn rfc9001_5_7_a_server_keeps_1_rtt_packets_until_the_handshake_is_complete() {
    let (mut client, mut server) = pair();
    pass(&mut client, &mut server);
    pass(&mut server, &mut client);
    let mut finished = SpaceStates::new(CryptoStream::new());
    client.write_crypto(&mut finished);
    while client.install_next_keys(0).is_some() {}
    for waiting in 1..=2 {
        let packet = seal(&mut client, Space::Application, waiting);
        let kept = Unopened::Kept(waiting as usize);
        assert_eq!(open(&mut server, &packet), Err(kept));
    }
    // The keys installed since then are those of Handshake packets.
    assert_eq!(server.take_early().expect("new keys").len(), 2);
    assert!(server.take_early().is_none());
    let data = finished.get_mut(Space::Handshake).outgoing();
    server
        .read_crypto(Space::Handshake, data)
        .expect("in order");
    assert!(server.complete());
    assert!(server.take_early().is_some());
    let packet = seal(&mut client, Space::Application, 3);
    assert_eq!(open(&mut server, &packet), Ok((PacketType::OneRtt, 3, 20)));
}

#[test]
fn rfc9001_5_2_a_changed_packet_is_not_opened() {
    let (mut client, mut server) = pair();
    let mut packet = seal(&mut client, Space::Initial, 0);
    *packet.last_mut().expect("a tag") ^= 1;
    assert_eq!(
        open(&mut server, &packet),
        Err(Unopened::NotAuthentic(None))
    );
    assert_eq!(Option::<Fatal>::from(Unopened::NotAuthentic(None)), None);
    let code = TransportError::AEAD_LIMIT_REACHED;
    let fatal = Option::<Fatal>::from(Unopened::NotAuthentic(Some(code)));
    assert_eq!(fatal.map(|fatal| fatal.code), Some(code));
}

#[test]
fn rfc9000_7_2_packets_from_another_source_id_are_invalid_once_it_is_known() {
    let (mut client, mut server) = pair();
    pass(&mut client, &mut server);
    pass(&mut server, &mut client);
    assert!(client.on_first_initial(id(SERVER_ID)));
    assert!(!client.on_first_initial(id(1)));
    let packet = seal(&mut server, Space::Initial, 0);
    assert!(open(&mut client, &packet).is_ok());
    let mut other = self::server(&plain(1).1);
    other.local_id = id(1);
    let packet = seal(&mut other, Space::Initial, 0);
    assert_eq!(open(&mut client, &packet), Err(Unopened::Invalid));
}

#[test]
fn rfc9001_4_9_3_a_server_drops_0_rtt_keys_when_their_time_is_over() {
    let (_, mut server) = pair();
    let keys = plain(1).1.initial_keys(Version::V1, &id(ORIGINAL));
    server.zero_rtt = Some(Box::new(keys.open));
    server.keep_zero_rtt_until(START + DELAY);
    assert_eq!(server.deadline(), Some(START + DELAY));
    server.on_timeout(START);
    assert!(server.zero_rtt.is_some());
    server.on_timeout(START + DELAY);
    assert!(server.zero_rtt.is_none());
    assert_eq!(server.deadline(), None);
}

#[test]
fn rfc9000_5_2_2_reordered_0_rtt_waits_with_other_early_packets() {
    let (_, mut server) = pair();
    server.set_reordered_0rtt(vec![vec![1; 100], vec![2; 50]]);
    assert_eq!(server.replay_reordered_0rtt(Ecn::Ect0), 150);
    assert_eq!(server.replay_reordered_0rtt(Ecn::Ect0), 0);
    server.has_new_keys = true;
    let early = server.take_early().expect("new keys");
    assert_eq!(early.len(), 2);
    assert!(early.iter().all(|packet| packet.ecn == Ecn::Ect0));
}

#[test]
fn handshake_state_is_freed_when_the_handshake_is_confirmed() {
    let (_, mut server) = pair();
    server.free_if_confirmed();
    assert!(server.state.is_some());
    server.confirm(START);
    server.free_if_confirmed();
    assert!(server.state.is_none());
    assert!(server.take_early().is_none());
}
