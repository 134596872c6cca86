//! Compatible version negotiation (RFC 9368 §2.3, RFC 9369 §4.1).

use lastbyte_wire::{
    packet::{DecodeConfig, Packet, PacketType, Packets},
    transport_parameters::VersionInformation,
};

use super::*;
use crate::crypto::{
    self,
    tls::testing::{Party, party},
};

const BOTH_WAYS: [[Version; 2]; 2] = [[Version::V1, Version::V2], [Version::V2, Version::V1]];

fn speaking(versions: &[Version]) -> Config {
    let mut config = config();
    config.versions = versions.to_vec();
    config
}

/// A client that starts with the first of these versions, and a server that prefers them in reverse order.
fn opposed(
    client: &Arc<dyn ClientCrypto>,
    server: &dyn crypto::ServerCrypto,
    versions: [Version; 2],
    seed: u64,
    faults: Faults,
) -> Pair {
    let [first, second] = versions;
    let (ours, theirs) = (speaking(&[first, second]), speaking(&[second, first]));
    Pair::configured(client, server, ours, theirs, seed, faults)
}

fn versions_of(pair: &Pair) -> [Version; 2] {
    [&pair.client, &pair.server].map(Connection::version)
}

fn said(by: &Connection) -> VersionInformation {
    let parameters = by.peer_parameters().expect("the handshake is done");
    parameters.version_information.clone().expect("it is sent")
}

#[test]
fn rfc9368_2_3_a_server_switches_to_its_preferred_version_without_a_round_trip() {
    for [first, second] in BOTH_WAYS {
        let (client, server) = plain(1);
        let mut pair = opposed(&client, &server, [first, second], 1, Faults::default());
        pair.run_until("client", |pair| pair.client.stage() >= Stage::Complete);
        assert_eq!(pair.now.since(START), DELAY * 2);
        pair.shake_hands();
        assert_eq!(versions_of(&pair), [second; 2]);
        pair.transfer(&body(60_000, 1), &body(90_000, 2));
        // §3: a client reports the version of its first packets, a server the negotiated one.
        let client_said = said(&pair.server);
        assert_eq!(client_said.chosen, first.number());
        assert_eq!(client_said.available, [first, second].map(Version::number));
        let server_said = said(&pair.client);
        assert_eq!(server_said.chosen, second.number());
        assert_eq!(server_said.available, [second, first].map(Version::number));
    }
}

#[test]
fn rfc9368_2_3_no_change_if_the_server_prefers_the_first_or_no_other_is_listed() {
    let (client, server) = plain(1);
    let both = [Version::V1, Version::V2];
    for (ours, theirs) in [(&both[..], &both[..]), (&both[..1], &[both[1], both[0]])] {
        let (ours, theirs) = (speaking(ours), speaking(theirs));
        let mut pair = Pair::configured(&client, &server, ours, theirs, 1, Faults::default());
        pair.shake_hands();
        assert_eq!(versions_of(&pair), [Version::V1; 2]);
    }
}

#[test]
fn the_version_changes_over_a_lossy_path_too() {
    let (client, server) = plain(1);
    for seed in 1..=60 {
        let versions = BOTH_WAYS[seed as usize % 2];
        let mut pair = opposed(&client, &server, versions, seed, BAD_PATH);
        pair.shake_hands();
        assert_eq!(versions_of(&pair), [versions[1]; 2], "seed {seed}");
        pair.transfer(&body(20_000, 1), &body(20_000, 2));
    }
}

#[test]
fn tls_changes_to_the_other_version_and_updates_its_keys_there() {
    let Party { client, server, .. } = party();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    for (seed, versions) in (1..=10).zip(BOTH_WAYS.into_iter().cycle()) {
        let mut pair = opposed(&client, &server, versions, seed, BAD_PATH);
        pair.shake_hands();
        assert_eq!(versions_of(&pair), [versions[1]; 2]);
        pair.transfer(&body(60_000, 1), &body(90_000, 2));
        pair.run_until("update", |pair| {
            pair.client.sender.request_probes(Space::Application, 1);
            let keys = pair.client.handshake.one_rtt_mut().expect("1-RTT keys");
            keys.generation() > 0 || keys.update(pair.now).is_ok()
        });
        pair.transfer(&body(30_000, 3), &body(30_000, 4));
        let generation = |end: &Connection| end.handshake.one_rtt().map(OneRttKeys::generation);
        assert_eq!(generation(&pair.server), Some(1));
    }
}

#[test]
fn rfc9369_4_1_0_rtt_uses_the_original_version_and_is_accepted() {
    let Party { client, server, .. } = party();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    let (ours, theirs) = (config(), config());
    let mut before = Pair::configured(&client, &server, ours, theirs, 1, Faults::default());
    before.shake_hands();
    before.pass(DELAY * 4);
    for seed in 1..=2 {
        let [first, second] = BOTH_WAYS[0];
        let faults = Faults::default();
        let mut pair = opposed(&client, &server, [first, second], seed, faults);
        assert!(pair.client.is_zero_rtt(), "a ticket each");
        let id = pair.start_transfer(b"request");
        pair.run_until("request", |pair| pair.arrived.contains_key(&(true, id)));
        assert_eq!(pair.now.since(START), DELAY, "half a round trip");
        pair.finish_transfer(id, b"request", &body(3000, 2));
        assert!(events(&mut pair.client).contains(&Event::ZeroRtt { is_accepted: true }));
        assert!(pair.server.statistics().packets.zero_rtt_received > 0);
        pair.shake_hands();
        assert_eq!(versions_of(&pair), [second; 2]);
    }
}

/// Only the server's Initial packet arrives: the client follows, but has only 0-RTT keys.
#[test]
fn rfc9369_4_1_0_rtt_packets_after_the_change_use_the_original_version() {
    let client = zero_rtt::resuming(&config(), true);
    let (_, server) = plain(1);
    let [first, second] = BOTH_WAYS[0];
    let mut pair = opposed(&client, &server, [first, second], 2, Faults::default());
    let id = pair.start_transfer(b"early");
    pair.run_until("request", |pair| pair.arrived.contains_key(&(true, id)));
    pair.transmit();
    let mut answer = pair.flying.pop().expect("the server's flight").0;
    pair.flying.clear();
    let initial = Packets::new(&mut answer.bytes, CONFIG).next();
    let Some(Ok(Packet::Protected(initial))) = initial else {
        panic!("{initial:?}");
    };
    let len = initial.bytes().len();
    answer.bytes.truncate(len);
    pair.flying.push(Reverse(answer));
    pair.run_until("follow", |pair| pair.client.version() == second);
    pair.start_transfer(&body(500, 1));
    pair.transmit();
    let sent = pair.flying.iter().filter(|flying| flying.0.to_server);
    let versions: Vec<_> = sent
        .flat_map(|flying| versions_in(&flying.0.bytes))
        .collect();
    assert!(
        versions.contains(&(first, PacketType::ZeroRtt)),
        "{versions:?}"
    );
    assert!(
        versions.contains(&(second, PacketType::Initial)),
        "{versions:?}"
    );
    assert_eq!(versions.len(), 2, "{versions:?}");
}

const CONFIG: DecodeConfig = DecodeConfig {
    connection_id_len: 8,
    grease_quic_bit: true,
};

/// The long headers of a datagram.
fn versions_in(datagram: &[u8]) -> Vec<(Version, PacketType)> {
    let mut bytes = datagram.to_vec();
    let mut all = Vec::new();
    for packet in Packets::new(&mut bytes, CONFIG).flatten() {
        if let Packet::Protected(packet) = packet
            && let Some(version) = packet.version()
        {
            all.push((version, packet.packet_type()));
        }
    }
    all
}

/// The server's first flight is lost, and the client, which does not know of the change, retransmits.
#[test]
fn rfc9369_4_1_a_server_opens_the_original_version_until_the_client_changes() {
    let (client, server) = plain(1);
    let mut pair = opposed(&client, &server, BOTH_WAYS[0], 1, Faults::default());
    pair.run_until("server", |pair| pair.server.version() == Version::V2);
    pair.transmit();
    pair.flying.clear();
    // Its own probes are lost too.
    pair.run_until("again", |pair| {
        pair.flying.retain(|flying| flying.0.to_server);
        pair.server.statistics().packets.initial_received >= 2
    });
    assert_eq!(pair.client.version(), Version::V1);
    pair.shake_hands();
    assert_eq!(versions_of(&pair), [Version::V2; 2]);
}

#[test]
fn rfc9369_5_tickets_are_of_the_version_that_was_negotiated() {
    let party = party();
    let [first, second] = BOTH_WAYS[0];
    let client: Arc<dyn ClientCrypto> = Arc::new(party.client);
    let mut pair = opposed(
        &client,
        &party.server,
        [first, second],
        1,
        Faults::default(),
    );
    pair.shake_hands();
    pair.pass(DELAY * 4);
    assert!(party.sessions.take("localhost", first).is_none());
    let saved = party.sessions.take("localhost", second).expect("saved");
    assert_eq!(saved.version(), second);
    party.sessions.put(saved);
    // Started in that version, it is resumed.
    let config = speaking(&[second, first]);
    let mut pair = Pair::configured(
        &client,
        &party.server,
        config.clone(),
        config,
        2,
        Faults::default(),
    );
    pair.shake_hands();
    assert_eq!(pair.client.session().is_resumed(), Some(true));
}

#[test]
fn rfc9368_2_3_a_client_that_cannot_change_lists_no_other_version() {
    let (client, server) = crypto::tls::testing::pair();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    let mut pair = opposed(&client, &server, BOTH_WAYS[0], 1, Faults::default());
    pair.shake_hands();
    assert_eq!(versions_of(&pair), [Version::V1; 2]);
    assert_eq!(said(&pair.server).available, [Version::V1.number()]);
}

#[test]
fn a_forged_packet_of_another_version_has_no_effect() {
    let (client, server) = plain(1);
    let mut pair = opposed(&client, &server, BOTH_WAYS[0], 1, Faults::default());
    pair.transmit();
    // The client's packet, reflected: of the other version, and sealed with keys that are not its own.
    let mut forged = pair
        .flying
        .peek()
        .expect("an Initial packet")
        .0
        .bytes
        .clone();
    assert_eq!(versions_in(&forged), [(Version::V1, PacketType::Initial)]);
    forged[1..5].copy_from_slice(&Version::V2.number().get().to_be_bytes());
    forged[0] = forged[0] & 0xcf | 0x10;
    forged[6..14].copy_from_slice(id(1000).as_slice());
    let ecn = crate::ack::Ecn::NotEct;
    let client = &mut pair.client;
    client.handle_datagram(START, &CLIENT_PATH, ecn, &mut forged, &mut stream::KeepAll);
    assert_eq!(client.statistics().packets.decryption_failed, 1);
    assert_eq!(client.version(), Version::V1);
    pair.shake_hands();
    assert_eq!(versions_of(&pair), [Version::V2; 2]);
}

#[test]
fn rfc9369_4_1_each_packet_has_the_required_version() {
    let (client, server) = plain(1);
    let mut pair = opposed(&client, &server, BOTH_WAYS[0], 1, Faults::default());
    let (mut by_client, mut by_server) = (Vec::new(), Vec::new());
    while pair.client.stage() < Stage::Confirmed {
        pair.transmit();
        for flying in &pair.flying {
            let seen = if flying.0.to_server {
                &mut by_client
            } else {
                &mut by_server
            };
            for (version, _) in versions_in(&flying.0.bytes) {
                if seen.last() != Some(&version) {
                    seen.push(version);
                }
            }
        }
        assert!(pair.step());
    }
    let [first, second] = BOTH_WAYS[0];
    assert_eq!(by_client, [first, second]);
    assert_eq!(by_server, [second]);
}
