use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use lastbyte_wire::Direction;

use super::*;

const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 5555);

const fn to(local: SocketAddr, remote: SocketAddr) -> NetworkPath {
    NetworkPath { local, remote }
}

/// In the middle of a transfer to the client.
fn midway(seed: u64, faults: Faults) -> (Pair, lastbyte_wire::StreamId) {
    midway_of(Pair::new(seed, faults))
}

fn midway_of(mut pair: Pair) -> (Pair, lastbyte_wire::StreamId) {
    pair.shake_hands();
    pair.pass(DELAY * 4);
    let id = pair.start_transfer(b"please");
    let mut answered = false;
    pair.run_until("half", |pair| {
        if !answered && let Some(id) = pair.server.streams().accept(Direction::Bidirectional) {
            let streams = pair.server.streams();
            streams
                .send_source(id, Box::new(body(1_000_000, 2)))
                .expect("open");
            streams.finish(id).expect("open");
            answered = true;
        }
        pair.arrived
            .get(&(false, id))
            .is_some_and(|bytes| bytes.len() > 200_000)
    });
    (pair, id)
}

fn finish(pair: &mut Pair, id: lastbyte_wire::StreamId) {
    pair.run_until("the rest", |pair| pair.ended == 2);
    assert_eq!(
        pair.arrived.get(&(false, id)).map(Vec::as_slice),
        Some(&body(1_000_000, 2)[..])
    );
}

#[test]
fn rfc9000_9_a_client_migrates_during_a_transfer() {
    for seed in 1..=10 {
        let faults = if seed > 3 {
            BAD_PATH
        } else {
            Faults::default()
        };
        let (mut pair, id) = midway(seed, faults);
        let (before, used) = (
            *pair.server.sources.peer_ids.current(),
            *pair.client.sources.peer_ids.current(),
        );
        let now = pair.now;
        pair.client
            .migrate(now, to(ELSEWHERE, SERVER))
            .expect("allowed");
        finish(&mut pair, id);
        assert_eq!(pair.client.network(), to(ELSEWHERE, SERVER));
        assert_eq!(pair.server.network(), to(SERVER, ELSEWHERE));
        // §9.5: other connection IDs on the other path, both ways.
        assert_ne!(*pair.server.sources.peer_ids.current(), before);
        assert_ne!(*pair.client.sources.peer_ids.current(), used);
        // §9.3.2: where all challenges were lost, it returned and migrated again.
        let paths = pair.server.statistics().paths;
        assert!(paths.promoted == 1 || paths.validation_failed > 0);
        assert!(paths.promoted == 1 || seed > 3);
        assert!(events(&mut pair.client).contains(&Event::Moved(to(ELSEWHERE, SERVER))));
    }
}

#[test]
fn rfc9000_9_4_a_new_address_resets_congestion_control_and_a_new_port_does_not() {
    let (mut pair, id) = midway(1, Faults::default());
    let window = pair.server.recovery().congestion().window;
    let now = pair.now;
    let other_port = SocketAddr::new(CLIENT.ip(), 4001);
    pair.nat.insert(CLIENT, other_port);
    pair.run_until("rebinding", |pair| {
        pair.server.network() == to(SERVER, other_port)
    });
    assert!(pair.server.recovery().congestion().window >= window);
    assert!(pair.now > now);
    let far = SocketAddr::new(ELSEWHERE.ip(), 4002);
    pair.nat.insert(CLIENT, far);
    pair.run_until("new address", |pair| {
        pair.server.network() == to(SERVER, far)
    });
    let state = pair.server.recovery().congestion();
    assert_eq!(state.statistics.window_max, state.statistics.initial_window);
    assert!(!pair.server.recovery().rtt().has_sample());
    finish(&mut pair, id);
}

/// What was in flight is sent again, and nothing else changes: on a path without loss, window, startup and RTT stay.
#[test]
fn rfc9000_9_4_a_rebinding_is_no_congestion_for_any_startup_and_avoidance() {
    let startups = [
        "slow-start",
        "jumpstart",
        "rapid-no-jump",
        "rapid-start",
        "hystart",
        "search",
    ];
    let specs = startups.into_iter().flat_map(|startup| {
        ["newreno", "cubic", "pico", "prague"]
            .map(|avoidance| format!("{startup}:congestion={avoidance}"))
    });
    for spec in specs {
        let config = || Config::new(spec.parse().expect("a spec"));
        let pair = Pair::with_configs(1, Faults::default(), config(), config());
        let (mut pair, id) = midway_of(pair);
        let (before, rtt) = (
            pair.server.recovery().congestion(),
            pair.server.recovery().rtt().clone(),
        );
        assert_eq!(before.statistics.window_exiting_startup, None, "{spec}");
        let other_port = SocketAddr::new(CLIENT.ip(), 4001);
        pair.nat.insert(CLIENT, other_port);
        pair.run_until("the rest", |pair| {
            let window = pair.server.recovery().congestion().window;
            assert!(window >= before.window, "{spec}: {window} of {before:?}");
            pair.ended == 2
        });
        assert_eq!(pair.server.network(), to(SERVER, other_port));
        let recovery = pair.server.recovery();
        let after = recovery.congestion();
        assert!(recovery.statistics().packets_lost > 10, "{spec}");
        assert_eq!(after.statistics.loss_episodes, 0, "{spec}");
        assert_eq!(after.statistics.window_exiting_startup, None, "{spec}");
        assert!(
            recovery.rtt().smoothed() <= rtt.smoothed() + DELAY,
            "{spec}"
        );
        assert_eq!(
            pair.arrived.get(&(false, id)).map(Vec::as_slice),
            Some(&body(1_000_000, 2)[..])
        );
    }
}

/// 36 MB over 100 Mb/s and 20 ms. The path is validated after each change, which takes about a round trip; the previous ports do
/// not respond, and must not keep new ones out.
#[test]
fn rfc9000_9_4_a_port_that_changes_each_300_ms_does_not_slow_a_transfer_down_much() {
    let specs = [
        "slow-start",
        "jumpstart",
        "rapid-start",
        "hystart",
        "newreno",
        "bbr",
    ];
    for spec in specs {
        let run = |interval: Duration| {
            let config = || Config::new(spec.parse().expect("a spec"));
            let mut pair = Pair::with_configs(1, Faults::default(), config(), config());
            pair.rate = Some(100_000_000);
            pair.delay = DELAY / 2;
            pair.shake_hands();
            let start = pair.now;
            let id = pair.start_transfer(b"please");
            let (mut answered, mut port) = (false, CLIENT.port());
            pair.run_until("the response", |pair| {
                if !answered
                    && let Some(id) = pair.server.streams().accept(Direction::Bidirectional)
                {
                    let streams = pair.server.streams();
                    let response = Box::new(body(36_000_000, 2));
                    streams.send_source(id, response).expect("open");
                    streams.finish(id).expect("open");
                    answered = true;
                }
                let changes = pair.now.since(start).as_nanos() / interval.as_nanos();
                let next = CLIENT.port() + u16::try_from(changes).expect("few changes");
                if next != port {
                    pair.removed.push(SocketAddr::new(CLIENT.ip(), port));
                    port = next;
                    pair.nat.insert(CLIENT, SocketAddr::new(CLIENT.ip(), port));
                }
                pair.ended == 2
            });
            assert_eq!(
                pair.arrived.get(&(false, id)).map(Vec::len),
                Some(36_000_000)
            );
            let moves = pair.server.statistics().paths.promoted;
            (pair.now.since(start), moves)
        };
        let (still, _) = run(Duration::from_secs(3600));
        let (moved, promoted) = run(Duration::from_millis(300));
        assert!(promoted >= 9, "{spec}: {promoted}");
        assert!(
            moved <= still * 13 / 10,
            "{spec}: {moved:?}, {still:?} without"
        );
    }
}

/// A copy of each of the client's datagrams arrives from another port, before or after it. The client waits for the response, as
/// clients do: its PINGs bring back a server whose last packets all went to the forged address.
#[test]
fn rfc9000_9_4_an_attacker_who_alternates_ports_does_not_hide_congestion() {
    let faults = Faults {
        lose: 10,
        ..Faults::default()
    };
    for seed in 2..=13 {
        let (mut pair, id) = midway(seed, faults);
        pair.client.set_awaiting(true);
        let episodes = |pair: &Pair| pair.server.recovery().congestion().statistics.loss_episodes;
        let before = episodes(&pair);
        let forged = SocketAddr::new(CLIENT.ip(), 4001);
        let mut is_forged = false;
        pair.run_until("the rest", |pair| {
            // Each datagram of the client arrives from the other port than the one before.
            is_forged = !is_forged;
            if is_forged {
                pair.nat.insert(CLIENT, forged);
            } else {
                pair.nat.remove(&CLIENT);
            }
            let recovery = pair.server.recovery();
            let window = recovery.congestion().window;
            assert!(recovery.in_flight() <= window + 4 * 1472, "{seed}");
            pair.ended == 2
        });
        assert!(episodes(&pair) > before, "{seed}");
        assert!(pair.arrived.contains_key(&(false, id)));
    }
}

/// Behind a load balancer, the server sees another network of the client as another port of the balancer.
#[test]
fn rfc9000_9_4_a_new_port_with_a_new_connection_id_resets_congestion_control() {
    let (mut pair, id) = midway(1, Faults::default());
    let window = pair.server.recovery().congestion().window;
    assert!(
        window
            > pair
                .server
                .recovery()
                .congestion()
                .statistics
                .initial_window
    );
    let network = to(SocketAddr::new(CLIENT.ip(), 4001), SERVER);
    let now = pair.now;
    pair.client.migrate(now, network).expect("allowed");
    pair.run_until("the new port", |pair| {
        pair.server.network() == to(SERVER, network.local)
    });
    let state = pair.server.recovery().congestion();
    assert_eq!(state.statistics.window_max, state.statistics.initial_window);
    assert!(!pair.server.recovery().rtt().has_sample());
    finish(&mut pair, id);
    // The client knows that its own address is the same.
    assert!(pair.client.recovery().rtt().has_sample());
}

#[test]
fn rfc9000_9_3_a_nat_rebinding_is_survived_with_the_same_connection_ids() {
    for seed in 1..=10 {
        let (mut pair, id) = midway(seed, Faults::default());
        let before = *pair.server.sources.peer_ids.current();
        pair.nat.insert(CLIENT, ELSEWHERE);
        finish(&mut pair, id);
        assert_eq!(pair.server.network(), to(SERVER, ELSEWHERE));
        assert_eq!(*pair.server.sources.peer_ids.current(), before);
        assert_eq!(pair.client.network(), CLIENT_PATH);
        assert!(pair.server.statistics().paths.validated >= 1);
    }
}

#[test]
fn rfc9000_8_2_1_an_unvalidated_address_gets_three_times_the_bytes_received() {
    let (mut pair, _) = midway(1, Faults::default());
    pair.transmit();
    // One datagram of the client arrives from another address, whose responses are all lost.
    let flying = pair.flying.drain().map(|flying| flying.0);
    let mut to_server = flying.filter(|flying| flying.to_server);
    let mut datagram = to_server.next().expect("an acknowledgment").bytes;
    drop(to_server);
    let came = datagram.len();
    let ecn = crate::ack::Ecn::NotEct;
    let now = pair.now;
    pair.server.handle_datagram(
        now,
        &to(SERVER, ELSEWHERE),
        ecn,
        &mut datagram,
        &mut stream::KeepAll,
    );
    assert_eq!(pair.server.network().remote, ELSEWHERE);
    let mut sent = 0;
    let mut buffer = vec![0; 65_535];
    while let Some(transmit) = pair.server.poll_transmit(now, &mut buffer) {
        if transmit.path.remote == ELSEWHERE {
            sent += transmit.len;
        }
    }
    assert!(sent <= 3 * came, "{sent} for {came}");
}

/// A client that only receives may have nothing longer to send than an acknowledgment, and nothing at all once its new
/// address receives no data.
#[test]
fn rfc9000_8_2_1_the_shortest_ack_from_a_new_address_permits_a_path_challenge() {
    let (mut pair, id) = midway(1, Faults::default());
    let (now, there) = (pair.now, to(SERVER, ELSEWHERE));
    let mut buffer = vec![0; 65_535];
    // All else is said, an acknowledgment with the first PING, and it has arrived, so that the second goes alone.
    pair.client.sender.request_probes(Space::Application, 1);
    while pair.client.poll_transmit(now, &mut buffer).is_some() {}
    let received = pair.client.received.get_mut(Space::Application);
    let largest = received.largest().expect("packets of the server").get();
    received.on_ack_acknowledged(largest);
    pair.client.sender.request_probes(Space::Application, 1);
    let transmit = pair.client.poll_transmit(now, &mut buffer);
    let len = transmit.expect("a PING").len;
    assert!(3 * len < 100, "{len} bytes");
    let ecn = crate::ack::Ecn::NotEct;
    let datagram = &mut buffer[..len];
    pair.server
        .handle_datagram(now, &there, ecn, datagram, &mut stream::KeepAll);
    assert_eq!(pair.server.network(), there);
    let mut sent = 0;
    let mut buffer = vec![0; 65_535];
    while let Some(transmit) = pair.server.poll_transmit(now, &mut buffer) {
        sent += transmit.len * usize::from(transmit.path == there);
    }
    assert!(sent <= 3 * len, "{sent} for {len}");
    let challenged = pair
        .server
        .statistics()
        .frames_sent
        .of(FrameKind::PathChallenge);
    assert_eq!(challenged, 2, "at both addresses");
    pair.nat.insert(CLIENT, ELSEWHERE);
    finish(&mut pair, id);
}

/// A NAT has restarted: what the server sends is lost until the client has sent something, and the client only waits.
#[test]
fn a_client_that_waits_finds_out_by_its_ping_that_a_nat_has_restarted() {
    let stall = |is_awaiting| {
        let mut pair = Pair::new(1, Faults::default());
        pair.shake_hands();
        let id = pair.start_transfer(b"please");
        pair.client.set_awaiting(is_awaiting);
        pair.pass(DELAY * 10);
        pair.nat.insert(CLIENT, ELSEWHERE);
        let start = pair.now;
        let streams = pair.server.streams();
        streams
            .send_source(id, Box::new(body(1000, 2)))
            .expect("open");
        pair.run_until("the response, or a long silence", |pair| {
            let is_long = pair.now.since(start) > crate::idle::AWAITING_MAX;
            is_long || pair.arrived.contains_key(&(false, id))
        });
        pair.now.since(start)
    };
    assert!(stall(true) < crate::idle::AWAITING_MIN + DELAY * 10);
    assert!(stall(false) > crate::idle::AWAITING_MAX);
}

/// The client's last acknowledgment was sent before the NAT restarted, so nothing tells the server the new port.
#[test]
fn a_client_that_only_receives_reports_its_new_port_within_three_probe_timeouts() {
    let (mut pair, id) = midway(1, Faults::default());
    pair.client.set_awaiting(true);
    pair.run_until("nothing of the client in flight", |pair| {
        pair.transmit();
        let sent = pair.client.recovery().sent(Space::Application);
        !sent.has_ack_eliciting()
    });
    pair.flying.clear();
    // The acknowledgments that are still due are lost as well.
    let max_ack_delay = Duration::from_millis(25);
    pair.now = pair.now + max_ack_delay;
    let now = pair.now;
    pair.client.on_timeout(now);
    let mut buffer = vec![0; 65_535];
    while pair.client.poll_transmit(now, &mut buffer).is_some() {}
    let other_port = SocketAddr::new(CLIENT.ip(), 4001);
    pair.nat.insert(CLIENT, other_port);
    let probe_timeout = pair.client.recovery().rtt().probe_timeout(max_ack_delay);
    pair.run_until("the new port", |pair| {
        pair.server.network() == to(SERVER, other_port)
    });
    let passed = pair.now.since(now);
    assert!(passed <= probe_timeout * 3, "{passed:?}, {probe_timeout:?}");
    finish(&mut pair, id);
}

/// Only challenges may be sent to a new address, and a client whose window is full cannot answer one before an
/// acknowledgment arrives; before the handshake is confirmed it has no probes either.
#[test]
fn rfc9002_6_2_1_a_challenge_on_the_current_path_carries_an_ack() {
    let (mut pair, _) = midway(1, Faults::default());
    let (now, there) = (pair.now, to(SERVER, ELSEWHERE));
    let mut buffer = vec![0; 65_535];
    while pair.client.poll_transmit(now, &mut buffer).is_some() {}
    let ecn = crate::ack::Ecn::NotEct;
    pair.client.sender.request_probes(Space::Application, 1);
    let transmit = pair.client.poll_transmit(now, &mut buffer);
    let len = transmit.expect("a PING").len;
    pair.server
        .handle_datagram(now, &there, ecn, &mut buffer[..len], &mut stream::KeepAll);
    let acked = |pair: &Pair| pair.client.recovery_statistics().packets_acked;
    let before = acked(&pair);
    let mut challenges = 0;
    let mut datagram = vec![0; 65_535];
    while let Some(transmit) = pair.server.poll_transmit(now, &mut datagram) {
        if transmit.path == there {
            challenges += 1;
            let bytes = &mut datagram[..transmit.len];
            pair.client
                .handle_datagram(now, &CLIENT_PATH, ecn, bytes, &mut stream::KeepAll);
        }
    }
    assert_eq!(challenges, 1, "more is not allowed");
    assert!(acked(&pair) > before);
}

/// §8.2.3: a response to a challenge that was not full-size validates the address, but not yet the path.
#[test]
fn rfc9000_8_2_1_a_short_path_challenge_is_followed_by_a_full_size_one() {
    let (mut pair, _) = midway(1, Faults::default());
    pair.transmit();
    let mut flying = pair.flying.drain().map(|flying| flying.0);
    let acknowledgment = flying.find(|flying| flying.to_server);
    drop(flying);
    let mut datagram = acknowledgment.expect("one is under way").bytes;
    let (now, there) = (pair.now, to(SERVER, ELSEWHERE));
    let ecn = crate::ack::Ecn::NotEct;
    let mut lens = Vec::new();
    let mut validated = Vec::new();
    for _ in 0..2 {
        pair.server
            .handle_datagram(now, &there, ecn, &mut datagram, &mut stream::KeepAll);
        // The client responds to packets from there. Stream data does not matter here.
        let mut buffer = vec![0; 65_535];
        let challenges = |pair: &Pair| {
            pair.server
                .statistics()
                .frames_sent
                .of(FrameKind::PathChallenge)
        };
        let before = challenges(&pair);
        let transmit = loop {
            let transmit = pair.server.poll_transmit(now, &mut buffer);
            let transmit = transmit.expect("a challenge");
            if challenges(&pair) > before && transmit.path == there {
                break transmit;
            }
        };
        lens.push(transmit.len);
        let challenge = &mut buffer[..transmit.len];
        pair.client
            .handle_datagram(now, &CLIENT_PATH, ecn, challenge, &mut stream::KeepAll);
        let answers = |pair: &Pair| {
            pair.client
                .statistics()
                .frames_sent
                .of(FrameKind::PathResponse)
        };
        let before = answers(&pair);
        let mut buffer = vec![0; 65_535];
        let transmit = loop {
            let transmit = pair.client.poll_transmit(now, &mut buffer);
            let transmit = transmit.expect("an answer");
            if answers(&pair) > before {
                break transmit;
            }
        };
        datagram = buffer[..transmit.len].to_vec();
        validated.push(pair.server.paths.current().amplification.is_validated());
    }
    pair.server
        .handle_datagram(now, &there, ecn, &mut datagram, &mut stream::KeepAll);
    assert!(lens[0] < 1200 && lens[1] == 1200, "{lens:?}");
    assert_eq!(validated, [false, true], "the address is known by then");
    assert_eq!(pair.server.statistics().paths.validated, 1);
}

#[test]
fn rfc9000_9_3_2_migration_to_an_unresponsive_address_is_reverted() {
    let (mut pair, id) = midway(1, Faults::default());
    pair.transmit();
    // An attacker sends a copy of the client's next datagram from another address, ahead of the original.
    let copy = pair
        .flying
        .iter()
        .filter(|flying| flying.0.to_server)
        .map(|flying| flying.0.clone())
        .min()
        .expect("an acknowledgment");
    let ecn = crate::ack::Ecn::NotEct;
    let now = pair.now;
    let mut bytes = copy.bytes;
    pair.server.handle_datagram(
        now,
        &to(SERVER, ELSEWHERE),
        ecn,
        &mut bytes,
        &mut stream::KeepAll,
    );
    assert_eq!(pair.server.network().remote, ELSEWHERE);
    pair.dead.push(ELSEWHERE);
    finish(&mut pair, id);
    assert_eq!(pair.server.network(), SERVER_PATH);
    pair.pass(Duration::from_secs(10));
    assert_eq!(pair.server.paths.others_len(), 0);
}

#[test]
fn rfc9000_9_1_an_unresponsive_path_is_not_migrated_to() {
    let (mut pair, id) = midway(1, Faults::default());
    pair.dead.push(ELSEWHERE);
    let now = pair.now;
    pair.client
        .migrate(now, to(ELSEWHERE, SERVER))
        .expect("allowed");
    finish(&mut pair, id);
    pair.pass(Duration::from_secs(10));
    assert_eq!(pair.client.network(), CLIENT_PATH);
    assert!(events(&mut pair.client).contains(&Event::PathFailed(to(ELSEWHERE, SERVER))));
    assert_eq!(pair.client.statistics().paths.validation_failed, 1);
    assert_eq!(pair.client.paths.others_len(), 0);
}

#[test]
fn rfc9000_9_2_a_lost_address_is_left_at_once() {
    let (mut pair, id) = midway(1, Faults::default());
    pair.dead.push(CLIENT);
    let now = pair.now;
    pair.client
        .rebind(now, to(ELSEWHERE, SERVER))
        .expect("allowed");
    finish(&mut pair, id);
    assert_eq!(pair.server.network(), to(SERVER, ELSEWHERE));
}

#[test]
fn rfc9000_18_2_disable_active_migration_prevents_migration_but_not_nat_rebinding() {
    let mut server_config = config();
    server_config.allows_migration = false;
    let mut pair = Pair::with_configs(1, Faults::default(), config(), server_config);
    pair.shake_hands();
    let now = pair.now;
    assert_eq!(
        pair.client.migrate(now, to(ELSEWHERE, SERVER)),
        Err(MigrateError::Disabled)
    );
    pair.nat.insert(CLIENT, ELSEWHERE);
    pair.transfer(&body(1000, 1), &body(10_000, 2));
    assert_eq!(pair.server.network(), to(SERVER, ELSEWHERE));
}

#[test]
fn rfc9000_9_no_migration_before_the_handshake_is_confirmed() {
    let mut pair = Pair::new(1, Faults::default());
    let now = pair.now;
    assert_eq!(
        pair.client.migrate(now, to(ELSEWHERE, SERVER)),
        Err(MigrateError::NotConfirmed)
    );
    assert_eq!(
        pair.server.migrate(now, to(ELSEWHERE, SERVER)),
        Err(MigrateError::Server)
    );
    pair.run_until("half a handshake", |pair| {
        pair.client.stage() == Stage::Complete
    });
    let elsewhere = to(SERVER, ELSEWHERE);
    let ecn = crate::ack::Ecn::NotEct;
    let received = pair.server.statistics().packets.received;
    pair.transmit();
    let mut datagram = pair.flying.pop().expect("a datagram").0.bytes;
    pair.server.handle_datagram(
        pair.now,
        &elsewhere,
        ecn,
        &mut datagram,
        &mut stream::KeepAll,
    );
    assert_eq!(pair.server.statistics().packets.received, received);
    pair.shake_hands();
}

#[test]
fn rfc9000_9_6_a_client_follows_the_server_to_its_preferred_address() {
    let preferred = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 3), 8443);
    let mut server_config = config();
    server_config.preferred_address.ipv4 = Some(preferred);
    for follows in [true, false] {
        let mut client_config = config();
        client_config.follows_preferred_address = follows;
        let faults = Faults::default();
        let mut pair = Pair::with_configs(1, faults, client_config, server_config.clone());
        pair.shake_hands();
        pair.transfer(&body(1000, 1), &body(300_000, 2));
        pair.pass(DELAY * 10);
        let there = SocketAddr::V4(preferred);
        let expected = if follows { there } else { SERVER };
        assert_eq!(pair.client.network().remote, expected);
        assert_eq!(pair.server.network().local, expected);
    }
}

#[test]
fn many_migrations_leave_no_state() {
    let (mut pair, id) = midway(1, Faults::default());
    for round in 0..20_u16 {
        let address = SocketAddr::new(ELSEWHERE.ip(), 6000 + round);
        let now = pair.now;
        let network = to(address, SERVER);
        if pair.client.migrate(now, network).is_ok() {
            pair.run_until("move", |pair| pair.client.network() == network);
        }
        pair.pass(DELAY * 3);
    }
    finish(&mut pair, id);
    pair.pass(Duration::from_secs(5));
    assert!(pair.client.statistics().paths.promoted > 10);
    assert_eq!(
        (
            pair.client.paths.others_len(),
            pair.server.paths.others_len()
        ),
        (0, 0)
    );
    assert!(!pair.client.is_closing() && !pair.server.is_closing());
}

/// Records path events.
struct PathLog(Arc<std::sync::Mutex<Vec<(NetworkPath, trace::PathEvent)>>>);

impl Trace for PathLog {
    fn on_event(&mut self, _: Time, event: &trace::Event<'_>) {
        if let trace::Event::Path(network, event) = event {
            self.0.lock().expect("one thread").push((*network, *event));
        }
    }
}

#[test]
fn a_path_used_without_validation_is_traced_as_created_and_promoted() {
    let (mut pair, _) = midway(1, Faults::default());
    let log = Arc::default();
    pair.client.set_trace(Box::new(PathLog(Arc::clone(&log))));
    let now = pair.now;
    let there = to(ELSEWHERE, SERVER);
    pair.client.rebind(now, there).expect("allowed");
    let log = log.lock().expect("one thread");
    let expected = [trace::PathEvent::Created, trace::PathEvent::Promoted];
    assert_eq!(*log, expected.map(|event| (there, event)));
}

#[test]
fn rfc9000_9_5_a_path_without_a_spare_id_is_counted_once() {
    let (mut pair, _) = midway(1, Faults::default());
    let now = pair.now;
    while pair.server.sources.peer_ids.reserve().is_some() {}
    let moved = pair.client.sources.peer_ids.move_on();
    assert!(moved.expect("few to retire").is_some(), "a spare one");
    pair.client.sender.request_probes(Space::Application, 1);
    let mut buffer = [0; 1500];
    let transmit = pair.client.poll_transmit(now, &mut buffer);
    let len = transmit.expect("a probe").len;
    let ecn = crate::ack::Ecn::NotEct;
    let from = to(SERVER, ELSEWHERE);
    pair.server
        .handle_datagram(now, &from, ecn, &mut buffer[..len], &mut stream::KeepAll);
    assert_eq!(pair.server.statistics().paths.closed_without_id, 1);
    assert_eq!(pair.server.paths.others_len(), 0);
    assert_eq!(pair.server.network(), SERVER_PATH);
}

#[test]
fn rfc9000_19_15_a_path_whose_id_is_retired_by_the_peer_is_reported_as_failed() {
    let (mut pair, _) = midway(1, Faults::default());
    let there = to(ELSEWHERE, SERVER);
    let now = pair.now;
    pair.client.migrate(now, there).expect("allowed");
    // The challenge is in flight when the server retires the ID it was sent to.
    pair.transmit();
    let path = pair.client.paths.get(paths::PathRef::Other(0));
    let path_cid = path.and_then(|path| path.cid).expect("an ID");
    let number = lastbyte_wire::VarInt::saturating;
    let token = StatelessResetToken::new([9; 16]);
    let frame = lastbyte_wire::frame::NewConnectionId::new(
        number(50),
        number(path_cid + 1),
        id(777),
        token,
    );
    let ids = &mut pair.client.sources.peer_ids;
    ids.on_new(&frame.expect("a frame")).expect("taken");
    // As receiving the frame would do. A path that stayed would have a challenge due forever.
    pair.client.forget_paths_without_id();
    assert!(pair.client.paths.others_len() == 0);
    assert!(events(&mut pair.client).contains(&Event::PathFailed(there)));
    pair.transmit();
    assert!(pair.client.deadline().is_none_or(|at| at > now));
    assert_eq!(pair.client.statistics().paths.closed_without_id, 1);
    assert_eq!(pair.client.network(), CLIENT_PATH);
}
