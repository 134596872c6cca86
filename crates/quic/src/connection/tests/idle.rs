//! What an idle connection frees, and that it is there again when it is needed.

use super::*;
use crate::{ack::Ecn, crypto::tls::testing::party, idle::RELEASE_AFTER, stream::KeepAll};

fn is_released(connection: &Connection) -> bool {
    let keys = connection.handshake.one_rtt().expect("1-RTT keys");
    keys.is_released()
}

/// Runs until both ends are idle. Returns how long after the last packet that was.
fn rest(pair: &mut Pair) -> Duration {
    let mut idle = [false; 2];
    let mut last = pair.now;
    pair.run_until("idle", |pair| {
        for (idle, end) in idle.iter_mut().zip([&mut pair.client, &mut pair.server]) {
            *idle |= events(end).contains(&Event::Idle);
        }
        if !pair.flying.is_empty() {
            last = pair.now;
        }
        idle == [true; 2]
    });
    pair.now.since(last)
}

#[test]
fn a_server_derives_its_keys_again_after_a_pause() {
    for version in [Version::V1, Version::V2] {
        let party = party();
        let client: Arc<dyn ClientCrypto> = Arc::new(party.client);
        let mut pair = Pair::with(&client, &party.server, version, 1, Faults::default());
        pair.shake_hands();
        for round in 0..3 {
            pair.transfer(&body(3000, round), &body(3000, round + 1));
            assert!(!is_released(&pair.server));
            let pause = rest(&mut pair);
            assert!(
                (RELEASE_AFTER..RELEASE_AFTER + DELAY * 4).contains(&pause),
                "{pause:?}"
            );
            assert!(is_released(&pair.server), "{version:?}");
            assert!(!is_released(&pair.client), "a client keeps no secrets");
            let server = &mut pair.server;
            assert_eq!(server.recovery.sent(Space::Application).memory(), 0);
        }
        // The server sends first.
        pair.server.close(pair.now, 7);
        while pair.client.close_reason().is_none() {
            assert!(pair.step());
        }
        let reason = pair.client.close_reason();
        assert_eq!(reason, Some(CloseReason::PeerApplication { code: 7 }));
    }
}

#[test]
fn keys_that_were_updated_are_kept() {
    let party = party();
    let client: Arc<dyn ClientCrypto> = Arc::new(party.client);
    let mut pair = Pair::with(&client, &party.server, Version::V1, 1, Faults::default());
    pair.shake_hands();
    rest(&mut pair);
    assert!(is_released(&pair.server));
    // The client's update reaches a server without keys.
    pair.run_until("update", |pair| {
        pair.client.sender.request_probes(Space::Application, 1);
        let keys = pair.client.handshake.one_rtt_mut().expect("1-RTT keys");
        keys.update(pair.now).is_ok()
    });
    pair.transfer(&body(3000, 1), &body(3000, 2));
    rest(&mut pair);
    let keys = pair.server.handshake.one_rtt().expect("1-RTT keys");
    assert_eq!((keys.generation(), keys.is_released()), (1, false));
    pair.transfer(&body(3000, 3), &body(3000, 4));
}

#[test]
fn a_connection_is_idle_once_until_the_peer_sends_again() {
    let mut pair = Pair::new(3, Faults::default());
    pair.shake_hands();
    rest(&mut pair);
    let timeout = |connection: &Connection| connection.idle.deadline(connection.probe_timeout());
    for end in [&pair.client, &pair.server] {
        assert_eq!(end.deadline(), timeout(end), "nothing else is due");
    }
    pair.transfer(&body(3000, 1), &body(3000, 2));
    rest(&mut pair);
    while pair.step() && !(pair.client.is_over() && pair.server.is_over()) {}
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(events(end), [Event::Closed(CloseReason::IdleTimeout)]);
    }
}

#[test]
fn nothing_is_freed_while_a_packet_is_in_flight() {
    let mut pair = Pair::new(3, Faults::default());
    pair.shake_hands();
    rest(&mut pair);
    pair.dead.push(CLIENT);
    pair.server.sender.request_probes(Space::Application, 1);
    pair.transmit();
    let until = pair.now + RELEASE_AFTER * 3;
    while pair.now < until {
        assert!(pair.step());
        assert!(!events(&mut pair.server).contains(&Event::Idle));
    }
}

/// Forged packets make the server derive the keys once, not each time.
#[test]
fn keys_stay_after_a_forged_packet_until_the_next_pause() {
    let party = party();
    let client: Arc<dyn ClientCrypto> = Arc::new(party.client);
    let mut pair = Pair::with(&client, &party.server, Version::V1, 1, Faults::default());
    pair.shake_hands();
    rest(&mut pair);
    let before = pair.server.deadline();
    for salt in 0..3 {
        let mut forged = body(60, salt);
        forged[0] = 0x40;
        forged[1..9].copy_from_slice(id(2000).as_slice());
        let (now, server) = (pair.now, &mut pair.server);
        server.handle_datagram(now, &SERVER_PATH, Ecn::NotEct, &mut forged, &mut KeepAll);
        assert!(!is_released(server));
        assert_eq!(server.deadline(), before);
    }
    assert_eq!(pair.server.statistics().packets.decryption_failed, 3);
    pair.transfer(&body(3000, 1), &body(3000, 2));
    rest(&mut pair);
    assert!(is_released(&pair.server));
}
