//! Returning clients: tokens of a Retry or an earlier connection, tickets, and 0-RTT.

use lastbyte_congestion::SavedPath;
use lastbyte_wire::{
    Writer,
    packet::{LongHeader, LongKind, PacketNumber, PacketNumberLen, Version},
};

use super::*;
use crate::{
    connection::{Config, Event},
    crypto::{
        ClientCrypto, ServerCrypto, TAG_LEN, tickets::testing::client_and_servers, token::TokenPath,
    },
};

fn asks_always(config: &mut EndpointConfig) {
    policy(config, RetryPolicy::Always);
}

#[test]
fn rfc9000_8_1_2_transfers_complete_where_every_client_gets_a_retry() {
    for lose in [0, 15] {
        let mut world = World::new(server_with(asks_always), 30);
        world.lose = lose;
        for index in 0..30 {
            world.begin(index);
        }
        world.run();
        for index in 0..30 {
            let salt = usize::from(body(index)[0]) + 1;
            assert!(world.down[&index] == body(salt), "client {index}");
        }
        let statistics = world.server.statistics();
        assert_eq!(statistics.accepted, 30);
        assert_eq!(statistics.accepted_after_retry, 30);
        assert!(statistics.retries >= 30);
    }
}

#[test]
fn rfc9000_8_1_3_the_token_of_the_first_connection_saves_the_second_the_retry() {
    let mut world = World::new(server_with(asks_always), 1);
    world.closes = false;
    world.begin(0);
    assert_eq!(world.run_until_answered(0), DELAY * 6);
    world.run_for(DELAY * 4);
    let mut newest = world.events.iter().rev();
    let token = newest.find_map(|(_, event)| match event {
        Event::NewToken(token) => Some(token.clone()),
        _ => None,
    });
    let token = token.expect("a token");
    world.close(0);
    let crypto: Arc<dyn ClientCrypto> = Arc::new(client_crypto(9));
    // A used token counts no more.
    for (delays, retries) in [(4, 1), (6, 2)] {
        world.begin_with(0, &crypto, token.clone());
        assert_eq!(world.run_until_answered(0), DELAY * delays);
        world.close(0);
        let statistics = world.server.statistics();
        assert_eq!(statistics.accepted_with_token, 1);
        assert_eq!(statistics.retries, retries);
    }
}

fn serving(crypto: impl ServerCrypto + 'static) -> Endpoint {
    server_with(|config| config.server.as_mut().expect("a server").crypto = Arc::new(crypto))
}

/// A world whose client has a ticket; the other server, which refuses 0-RTT, and the client's sessions.
fn with_ticket() -> (World, Endpoint, Arc<dyn ClientCrypto>) {
    let (client, [server, forbidding]) = client_and_servers();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    let mut world = World::new(serving(server), 1);
    world.closes = false;
    world.begin_with(0, &client, Vec::new());
    assert_eq!(world.run_until_answered(0), DELAY * 4);
    world.run_for(DELAY * 4);
    assert_eq!(session(&world), (Some(false), None));
    world.close(0);
    (world, serving(forbidding), client)
}

/// Whether the client's session is resumed, and whether its 0-RTT was accepted.
fn session(world: &World) -> (Option<bool>, Option<bool>) {
    let handle = world.handles[0].expect("began");
    let connection = world.clients[0].peek(handle).expect("lives");
    let mut newest = world.events.iter().rev();
    let answer = newest.find_map(|(_, event)| match event {
        Event::ZeroRtt { is_accepted } => Some(*is_accepted),
        _ => None,
    });
    (connection.session().is_resumed(), answer)
}

#[test]
fn rfc9001_4_6_a_ticket_permits_0_rtt_in_the_second_connection() {
    let (mut world, _, client) = with_ticket();
    world.begin_with(0, &client, Vec::new());
    assert_eq!(world.run_until_answered(0), DELAY * 2, "one round trip");
    assert_eq!(session(&world), (Some(true), Some(true)));
}

#[test]
fn rfc9001_4_6_2_a_server_without_0_rtt_still_resumes() {
    let (mut world, forbidding, client) = with_ticket();
    world.server = forbidding;
    world.accepted.clear();
    world.begin_with(0, &client, Vec::new());
    assert_eq!(world.run_until_answered(0), DELAY * 4);
    assert_eq!(session(&world), (Some(true), Some(false)));
    let handle = *world.accepted.last().expect("accepted");
    let server = world.server.peek(handle).expect("lives");
    assert_eq!(server.statistics().packets.zero_rtt_received, 0);
}

#[test]
fn rfc9000_5_2_2_0_rtt_reordered_before_its_initial_packet_is_buffered() {
    let (mut world, _, client) = with_ticket();
    world.begin_with(0, &client, Vec::new());
    let (now, path) = (world.now, from_client(0));
    let flight = sent(&mut world.clients[0], now);
    let (first, overtaking) = flight.split_first().expect("a flight");
    assert!(overtaking.len() >= 2, "{}", overtaking.len());
    for (_, datagram) in overtaking {
        let route = deliver(&mut world.server, now, &path, datagram);
        assert_eq!(route, Route::Kept);
    }
    let Route::Accepted(handle) = deliver(&mut world.server, now, &path, &first.1) else {
        panic!("not accepted");
    };
    assert_eq!(world.server.early.waiting.len(), 0);
    let kept = overtaking.len() as u64;
    let statistics = world.server.statistics();
    assert_eq!((statistics.early_kept, statistics.early_used), (kept, kept));
    let statistics = world.server.peek(handle).expect("lives").statistics();
    assert!(statistics.packets.zero_rtt_received >= kept);
    assert_eq!(statistics.packets.delayed_used, kept);
    let len = flight.iter().map(|(_, datagram)| datagram.len() as u64);
    assert_eq!(statistics.bytes_received, len.sum::<u64>());
    // None of it has to be sent again.
    world.serve(handle);
    assert_eq!(world.run_until_answered(0), DELAY);
    assert_eq!(session(&world), (Some(true), Some(true)));
    let client = world.handles[0].and_then(|handle| world.clients[0].peek(handle));
    let recovery = client.expect("lives").recovery_statistics();
    assert_eq!(recovery.packets_lost, 0);
}

/// A datagram that looks like a 0-RTT packet.
fn early(destination: &[u8], len: usize) -> Vec<u8> {
    let header = LongHeader {
        kind: LongKind::ZeroRtt,
        version: Version::V1,
        destination: id(destination),
        source: Probe::new().source,
        number: PacketNumber::ZERO.truncate_to(PacketNumberLen::One),
        fixed_bit: true,
    };
    let mut buffer = vec![0; len];
    let mut writer = Writer::new(&mut buffer);
    let packet = header.begin(&mut writer).expect("fits");
    let rest = writer.remaining() - TAG_LEN;
    writer.zeros(rest).expect("fits");
    packet.finish(&mut writer, TAG_LEN).expect("fits");
    buffer
}

#[test]
fn buffered_0_rtt_before_the_initial_packet_is_bounded() {
    const NOT_KEPT: Route = Route::Dropped(DropReason::NotInitial);
    let mut server = server_with(|_| {});
    for index in 0..100 {
        for count in 0..10 {
            let route = deliver(
                &mut server,
                START,
                &from_client(index),
                &early(&[7; 8], 600),
            );
            let is_kept = count < EarlyDatagrams::COUNT_MAX_EACH;
            assert_eq!(route, if is_kept { Route::Kept } else { NOT_KEPT });
            assert!(server.early.waiting.len() <= EarlyDatagrams::COUNT_MAX);
        }
    }
    assert_eq!(server.early.waiting.len(), EarlyDatagrams::COUNT_MAX);
    let mut deliver_one =
        |datagram: &[u8]| deliver(&mut server, START, &from_client(200), datagram);
    assert_eq!(deliver_one(&early(&[7; 8], 1501)), NOT_KEPT);
    assert_eq!(deliver_one(&early(&[7; 7], 600)), NOT_KEPT);
    // Each client's connection receives its own, unless later ones have replaced them. What does not open does no harm.
    for (index, used) in [(0, 0), (98, 8), (99, 16)] {
        let probe = Probe {
            destination: id(&[7; 8]),
            ..Probe::new()
        };
        let route = deliver(&mut server, START, &from_client(index), &probe.datagram());
        assert!(matches!(route, Route::Accepted(_)), "{route:?}");
        assert_eq!(server.statistics().early_used, used);
    }
    server.set_accepting(false);
    let route = deliver(&mut server, START, &from_client(300), &early(&[7; 8], 600));
    assert_eq!(route, NOT_KEPT);
}

fn resuming(config: &mut EndpointConfig) {
    let spec = "careful-resume:initial-window=10p,resume-max=1MB";
    let server = config.server.as_mut().expect("a server");
    server.connection = Arc::new(Config::new(spec.parse().expect("a spec")));
}

const SAVED: SavedPath = SavedPath {
    window: 400_000,
    rtt: Duration::from_millis(20),
};

/// Starts a connection of this client with `token`. Returns what its congestion control received.
fn saved_path(world: &mut World, client: usize, token: Vec<u8>) -> Option<SavedPath> {
    let crypto: Arc<dyn ClientCrypto> = Arc::new(client_crypto(9));
    world.begin_with(client, &crypto, token);
    world.run_until_answered(client);
    let handle = *world.accepted.last().expect("accepted");
    let server = world.server.peek(handle).expect("lives");
    let statistics = server.recovery().congestion().statistics;
    world.close(client);
    statistics.saved_path
}

#[test]
fn rfc9959_3_2_a_saved_path_is_used_once_from_its_own_address_and_while_it_is_recent() {
    let mut world = World::new(server_with(resuming), 2);
    world.closes = false;
    let address = from_client(0).remote;
    let issue = |world: &mut World| {
        let now = world.now;
        let token = world.server.new_token(now, address, Some(SAVED));
        token.expect("a server")
    };
    assert_eq!(saved_path(&mut world, 0, Vec::new()), None);
    let token = issue(&mut world);
    assert_eq!(saved_path(&mut world, 1, token.clone()), None, "foreign");
    assert_eq!(saved_path(&mut world, 0, token.clone()), Some(SAVED));
    assert_eq!(saved_path(&mut world, 0, token), None, "used");
    let mut forged = issue(&mut world);
    *forged.last_mut().expect("a tag") ^= 1;
    assert_eq!(saved_path(&mut world, 0, forged), None, "forged");

    let token = issue(&mut world);
    world.now = world.now + Duration::from_millis(3_599_980);
    assert_eq!(saved_path(&mut world, 0, token), Some(SAVED), "recent");
    let token = issue(&mut world);
    world.now = world.now + Duration::from_secs(3601);
    let accepted = world.server.statistics().accepted_with_token;
    assert_eq!(saved_path(&mut world, 0, token), None, "old");
    let statistics = world.server.statistics();
    assert_eq!(statistics.accepted_with_token, accepted + 1, "the address");
}

#[test]
fn rfc9959_3_2_a_second_token_of_the_same_connection_validates_the_address_only() {
    let mut world = World::new(server_with(resuming), 1);
    world.closes = false;
    let address = from_client(0).remote;
    let [first, second, other] = [7, 7, 8].map(|connection| {
        let path = TokenPath {
            saved: SAVED,
            connection,
        };
        let token = world.server.seal_token(START, address, Some(path));
        token.expect("a server")
    });
    assert_eq!(saved_path(&mut world, 0, first), Some(SAVED));
    let accepted = world.server.statistics().accepted_with_token;
    assert_eq!(saved_path(&mut world, 0, second), None);
    let statistics = world.server.statistics();
    assert_eq!(statistics.accepted_with_token, accepted + 1, "the address");
    assert_eq!(saved_path(&mut world, 0, other), Some(SAVED));
}

#[test]
fn rfc9959_3_1_a_token_without_a_path_changes_nothing() {
    let mut world = World::new(server_with(resuming), 1);
    world.closes = false;
    let token = world.server.new_token(START, from_client(0).remote, None);
    assert_eq!(saved_path(&mut world, 0, token.expect("short")), None);
}
