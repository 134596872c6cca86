//! Pairs of connections in memory. Larger topics have files of their own.

mod amplification;
mod congestion;
mod ecn;
mod idle;
mod limits;
mod migration;
mod mtu;
pub(super) mod pair;
mod reordering;
mod retry;
mod small_initials;
mod version;
mod zero_rtt;

use core::cmp::Reverse;

use self::pair::*;
use super::*;
use crate::{
    crypto::{
        ClientCrypto, OneRttKeys,
        plain::{PlainClient, PlainServer},
    },
    statistics::FrameKind,
};

#[test]
fn handshake_takes_a_round_trip_and_is_confirmed_in_the_next() {
    let mut pair = Pair::new(1, Faults::default());
    let start = pair.now;
    pair.run_until("client", |pair| pair.client.stage() >= Stage::Complete);
    assert_eq!(pair.now.since(start), DELAY * 2);
    pair.run_until("server", |pair| pair.server.stage() == Stage::Confirmed);
    assert_eq!(pair.now.since(start), DELAY * 3);
    pair.run_until("client", |pair| pair.client.stage() == Stage::Confirmed);
    assert_eq!(pair.now.since(start), DELAY * 4);
    assert_eq!(pair.client.session().alpn(), Some(&b"bulk"[..]));
    assert_eq!(pair.client.recovery().rtt().min(), DELAY * 2);
    assert_eq!(
        pair.client.recovery_statistics().packets_lost
            + pair.server.recovery_statistics().packets_lost,
        0
    );
}

#[test]
fn rfc9000_14_1_datagrams_with_initial_packets_are_1200_bytes() {
    let mut pair = Pair::new(1, Faults::default());
    pair.transmit();
    assert_eq!(pair.trace.len(), 1);
    assert_eq!(pair.trace[0].2, 1200);
}

#[test]
fn rfc9000_8_1_a_server_sends_at_most_three_times_the_bytes_received() {
    let mut pair = Pair::new(1, Faults::default());
    pair.transmit();
    pair.step();
    pair.transmit();
    let from_server: usize = pair
        .trace
        .iter()
        .filter(|(_, to_server, _)| !to_server)
        .map(|(.., len)| len)
        .sum();
    assert!((1200..=3600).contains(&from_server), "{from_server}");
}

#[test]
fn a_megabyte_each_way() {
    let mut pair = Pair::new(2, Faults::default());
    pair.shake_hands();
    let (up, down) = (body(1_000_000, 1), body(1_000_000, 2));
    pair.transfer(&up, &down);
    assert!(
        pair.now.since(Time::ZERO) < Duration::from_secs(3),
        "{:?}",
        pair.now
    );
}

#[test]
fn every_transfer_completes_over_a_lossy_path() {
    let kinds = [
        Faults {
            lose: 10,
            ..Faults::default()
        },
        Faults {
            double: 5,
            ..Faults::default()
        },
        Faults {
            delay: 4,
            ..Faults::default()
        },
        Faults {
            flip: 10,
            ..Faults::default()
        },
        Faults {
            cut: 10,
            ..Faults::default()
        },
        BAD_PATH,
        Faults {
            lose: 4,
            ..Faults::default()
        },
    ];
    for seed in 1..=20 {
        for (index, faults) in kinds.into_iter().enumerate() {
            let mut pair = Pair::new(seed * 100 + index as u64, faults);
            pair.shake_hands();
            pair.transfer(&body(60_000, seed as u8), &body(90_000, 7));
        }
    }
}

/// A `ServerHello` was declared lost while the window was full of packets that the client could not acknowledge without
/// it.
#[test]
fn rfc9002_6_2_4_probes_carry_data_lost_in_another_space() {
    let faults = Faults {
        lose: 3,
        ..Faults::default()
    };
    let mut pair = Pair::new(13_405, faults);
    pair.shake_hands();
}

/// The acknowledgment of the client's Handshake packets is lost, but `HANDSHAKE_DONE` is not: the probe timer has
/// backed off, and must return to its base once something is acknowledged.
#[test]
fn rfc9002_6_2_2_1_handshake_confirmation_resets_the_pto_count() {
    let mut pair = Pair::new(1, Faults::default());
    pair.shake_hands();
    pair.client.handshake.unconfirm();
    pair.client.confirm(pair.now);
    let id = pair.start_transfer(&body(5000, 1));
    // Three flights are lost.
    let before = pair.client.recovery_statistics().probe_timeouts;
    pair.run_until("probes", |pair| {
        pair.flying.clear();
        pair.client.recovery_statistics().probe_timeouts - before == 3
    });
    pair.finish_transfer(id, &body(5000, 1), &body(1000, 2));
    let first = pair
        .client
        .recovery()
        .rtt()
        .probe_timeout(pair.client.peer.max_ack_delay());
    pair.start_transfer(b"more");
    pair.transmit();
    let after = pair
        .client
        .deadline()
        .expect("a probe timeout")
        .since(pair.now);
    assert!(after <= first, "{after:?} in place of {first:?}");
}

/// An acknowledgment is lost. The next probe repeats it, so that the peer does not wait for its own probe timeout, which doubles each
/// time; once the peer is known to have it, probes carry none.
#[test]
fn probes_carry_an_acknowledgment_that_may_have_been_lost() {
    for is_client in [true, false] {
        let mut pair = Pair::new(1, Faults::default());
        pair.shake_hands();
        pair.pass(DELAY * 10);
        let probe = |pair: &mut Pair, is_client: bool| {
            let end = if is_client {
                &mut pair.client
            } else {
                &mut pair.server
            };
            end.sender.request_probes(Space::Application, 1);
            pair.transmit();
        };
        let acks = |pair: &Pair| {
            let end = if is_client {
                &pair.client
            } else {
                &pair.server
            };
            end.statistics().frames_sent.of(FrameKind::Ack)
        };
        probe(&mut pair, !is_client);
        pair.step();
        let before = acks(&pair);
        pair.run_until("acknowledgment", |pair| acks(pair) > before);
        pair.flying.clear();
        probe(&mut pair, is_client);
        pair.step();
        let peer = if is_client {
            &pair.server
        } else {
            &pair.client
        };
        assert!(!peer.recovery.sent(Space::Application).has_ack_eliciting());
        assert_eq!(peer.recovery_statistics().probe_timeouts, 0);
        pair.pass(DELAY * 10);
        let before = acks(&pair);
        probe(&mut pair, is_client);
        assert_eq!(acks(&pair), before);
    }
}

#[test]
fn same_seed_same_datagrams() {
    let run = || {
        let mut pair = Pair::new(42, BAD_PATH);
        pair.shake_hands();
        pair.transfer(&body(50_000, 1), &body(50_000, 2));
        pair.trace
    };
    assert_eq!(run(), run());
}

#[test]
fn rfc9000_10_2_an_application_closes_with_its_code() {
    let mut pair = Pair::new(3, Faults::default());
    pair.shake_hands();
    pair.client.close(pair.now, 77);
    while !(pair.client.is_over() && pair.server.is_over()) {
        assert!(pair.step(), "still open");
    }
    assert_eq!(
        pair.client.close_reason(),
        Some(CloseReason::LocalApplication { code: 77 })
    );
    assert_eq!(
        pair.server.close_reason(),
        Some(CloseReason::PeerApplication { code: 77 })
    );
}

#[test]
fn a_close_after_the_last_byte_acknowledges_it() {
    let mut pair = Pair::new(3, Faults::default());
    pair.shake_hands();
    // The last of these packets alone would be acknowledged later.
    pair.transfer(&[1], &body(20_000, 7));
    let unacknowledged = pair.server.recovery.in_flight();
    assert!(unacknowledged > 0, "all was acknowledged already");
    pair.client.close(pair.now, 0);
    while pair.server.close_reason().is_none() {
        assert!(pair.step(), "still open");
    }
    assert_eq!(pair.server.recovery.in_flight(), 0);
}

#[test]
fn rfc9000_10_1_an_idle_connection_ends_silently() {
    let mut pair = Pair::new(3, Faults::default());
    pair.shake_hands();
    while pair.step() && !(pair.client.is_over() && pair.server.is_over()) {}
    assert_eq!(pair.client.close_reason(), Some(CloseReason::IdleTimeout));
    assert_eq!(pair.server.close_reason(), Some(CloseReason::IdleTimeout));
    let after = pair.now.since(Time::from_nanos(1_000_000_000));
    assert!((30..32).contains(&after.as_secs()), "{after:?}");
}

#[test]
fn rfc9002_6_2_2_1_a_lost_first_flight_is_sent_again() {
    let mut pair = Pair::new(3, Faults::default());
    pair.transmit();
    pair.flying.clear();
    pair.shake_hands();
    // The first probe timeout is 999 ms.
    let client_sends: Vec<u128> = pair
        .trace
        .iter()
        .filter(|(_, to_server, _)| *to_server)
        .map(|(at, ..)| at.since(Time::from_nanos(1_000_000_000)).as_millis())
        .take(2)
        .collect();
    assert_eq!(client_sends, [0, 999]);
}

/// A server that receives only the second of two probes has what it needs.
#[test]
fn rfc9002_6_2_4_both_probes_of_a_handshake_carry_its_data() {
    let mut pair = Pair::new(3, Faults::default());
    let start = pair.now;
    pair.shake_hands();
    let undisturbed = pair.now.since(start);
    let mut pair = Pair::new(3, Faults::default());
    pair.transmit();
    pair.flying.clear();
    pair.now = pair.client.deadline().expect("a probe timeout");
    pair.client.on_timeout(pair.now);
    pair.transmit();
    assert_eq!(pair.flying.len(), 2);
    pair.flying.pop();
    pair.shake_hands();
    let probe_timeout = Duration::from_millis(999);
    assert_eq!(pair.now.since(start), probe_timeout + undisturbed);
}

/// The last packet is lost and nothing is sent after it: the probe carries its data.
#[test]
fn rfc9002_6_2_4_a_probe_retransmits_the_last_bytes() {
    let mut pair = Pair::new(3, Faults::default());
    pair.shake_hands();
    let up = body(5000, 1);
    let id = pair.start_transfer(&up);
    pair.transmit();
    let mut flying = pair
        .flying
        .drain()
        .map(|Reverse(one)| one)
        .collect::<Vec<_>>();
    flying.sort();
    let lost = flying.pop().expect("the last packet");
    assert!(lost.to_server && flying.len() > 3);
    pair.flying.extend(flying.into_iter().map(Reverse));
    let probes = pair.client.recovery_statistics().probe_timeouts;
    pair.run_until("a probe", |pair| {
        pair.client.recovery_statistics().probe_timeouts > probes
    });
    let probed_at = pair.now;
    pair.run_until("all bytes", |pair| {
        pair.arrived
            .get(&(true, id))
            .is_some_and(|arrived| *arrived == up)
    });
    assert_eq!(pair.now.since(probed_at), DELAY);
}

#[test]
fn tls_transfers_complete_over_a_lossy_path_in_both_versions() {
    let (client, server) = crate::crypto::tls::testing::pair();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    for version in [Version::V1, Version::V2] {
        for seed in 1..=5 {
            let mut pair = Pair::with(&client, &server, version, seed, BAD_PATH);
            pair.shake_hands();
            pair.transfer(&body(60_000, 1), &body(90_000, 2));
            let suite = pair.client.session().cipher_suite();
            assert!(
                suite.is_some_and(|suite| suite.starts_with("TLS")),
                "{suite:?}"
            );
        }
    }
}

#[test]
fn keys_are_updated_in_the_middle_of_a_transfer() {
    let (client, server) = crate::crypto::tls::testing::pair();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    for seed in 1..=5 {
        let faults = Faults {
            lose: 12,
            delay: 6,
            ..Faults::default()
        };
        let mut pair = Pair::with(&client, &server, Version::V1, seed, faults);
        pair.shake_hands();
        pair.transfer(&body(20_000, 1), &body(20_000, 2));
        for _ in 0..3 {
            let now = pair.now;
            let generation = pair
                .client
                .handshake
                .one_rtt()
                .map_or(0, OneRttKeys::generation);
            // Not before a packet sealed with the current keys is acknowledged, which a PING ensures.
            pair.run_until("update", |pair| {
                pair.client.sender.request_probes(Space::Application, 1);
                let keys = pair.client.handshake.one_rtt_mut().expect("1-RTT keys");
                keys.generation() > generation || keys.update(pair.now).is_ok()
            });
            pair.transfer(&body(30_000, 3), &body(30_000, 4));
            assert!(pair.now > now);
        }
        let generations = [&pair.client, &pair.server]
            .map(|end| end.handshake.one_rtt().map(OneRttKeys::generation));
        assert_eq!(generations, [Some(3), Some(3)]);
    }
}

#[test]
fn rfc9001_6_6_exhausted_keys_still_seal_the_aead_limit_close() {
    let alpn = || vec![b"bulk".to_vec()];
    let mut client = PlainClient::new(7, alpn());
    let server = PlainServer::new(8, alpn());
    // An update waits for three PTOs from the acknowledgment of the previous one: more packets than this are sent
    // before.
    client.limits.confidentiality = 40;
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    let mut pair = Pair::with(&client, &server, Version::V1, 7, Faults::default());
    pair.shake_hands();
    pair.start_transfer(&body(300_000, 1));
    pair.run_to_the_end();
    let code = TransportError::AEAD_LIMIT_REACHED;
    assert_eq!(violation(&pair.client).0, code);
    assert_eq!(pair.server.close_reason(), Some(CloseReason::Peer { code }));
}

#[test]
fn rfc9001_6_6_keys_are_updated_long_before_their_limit() {
    let alpn = || vec![b"bulk".to_vec()];
    let mut client = PlainClient::new(7, alpn());
    let mut server = PlainServer::new(8, alpn());
    client.limits.confidentiality = 2000;
    server.limits.confidentiality = 2000;
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    let mut pair = Pair::with(&client, &server, Version::V1, 7, Faults::default());
    pair.shake_hands();
    // At least 2600 packets, more than the first keys may seal.
    pair.transfer(&body(3_000_000, 1), &body(1000, 2));
    assert!(pair.client.recovery_statistics().packets_sent > 2000);
    for end in [&pair.client, &pair.server] {
        let generation = end.handshake.one_rtt().map(OneRttKeys::generation);
        assert!(generation >= Some(1), "{generation:?}");
    }
}
