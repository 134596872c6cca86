use super::*;

#[test]
fn rfc9000_14_3_datagrams_grow_to_the_mtu_of_the_path() {
    for (mtu, expected) in [
        (65_535, 1472..=1472),
        (1400, 1380..=1400),
        (1200, 1200..=1200),
    ] {
        let mut pair = Pair::new(1, Faults::default());
        pair.mtu = mtu;
        pair.shake_hands();
        for salt in 0..10 {
            pair.transfer(&body(100, salt), &body(300_000, salt));
        }
        let size = usize::from(pair.server.paths.datagram_size());
        assert!(expected.contains(&size), "{mtu}: {size}");
        let episodes = pair.server.recovery().congestion().statistics.loss_episodes;
        assert_eq!(episodes, 0, "a probe's loss is no congestion");
        assert!(pair.trace.iter().all(|(.., len)| *len <= 1472));
    }
}

#[test]
fn a_connection_that_fills_no_datagram_sends_no_probe() {
    let mut pair = Pair::new(1, Faults::default());
    pair.shake_hands();
    for salt in 0..10 {
        pair.transfer(&body(100, salt), &body(500, salt));
    }
    assert!(pair.trace.iter().all(|(.., len)| *len <= 1200));
    // The server's first datagrams with more are preceded by a probe, and the client never has more.
    pair.transfer(&body(100, 0), &body(30_000, 0));
    let grown = |side: &Connection| side.paths.datagram_size() > 1200;
    assert!(grown(&pair.server) && !grown(&pair.client));
}

#[test]
fn rfc9000_18_2_max_udp_payload_size_of_the_peer_is_respected() {
    let mut server_config = config();
    server_config.mtu.maximum = 9000;
    let mut pair = Pair::with_configs(1, Faults::default(), config(), server_config);
    // As if the client had announced it.
    pair.server.paths.mtu_mut().limit(1300);
    pair.shake_hands();
    pair.transfer(&body(100, 1), &body(1_000_000, 2));
    assert_eq!(pair.server.paths.datagram_size(), 1300);
}

#[test]
fn rfc8899_4_4_a_black_hole_is_detected_and_the_transfer_continues() {
    let mut pair = Pair::new(1, Faults::default());
    pair.shake_hands();
    pair.transfer(&body(100, 1), &body(1_000_000, 2));
    assert_eq!(pair.server.paths.datagram_size(), 1472);
    pair.mtu = 1300;
    pair.transfer(&body(100, 3), &body(500_000, 4));
    assert_eq!(pair.server.paths.datagram_size(), 1200);
}

#[test]
fn rfc8899_4_3_a_black_hole_that_drops_a_whole_flight_is_detected() {
    let mut pair = Pair::new(1, Faults::default());
    pair.shake_hands();
    pair.transfer(&body(100, 1), &body(1_000_000, 2));
    assert_eq!(pair.server.paths.datagram_size(), 1472);
    pair.mtu = 1250;
    let began = pair.now;
    // Only probes are in small datagrams.
    pair.transfer(&body(100, 3), &body(20 * 1446, 4));
    assert_eq!(pair.server.paths.datagram_size(), 1200);
    assert!(pair.now.since(began) < Duration::from_secs(5));
}

/// Where a probe timeout follows most losses, only small datagrams arrive between those of full size that are lost.
#[test]
fn rfc8899_4_3_random_loss_of_13_to_20_percent_is_not_a_black_hole() {
    for (seed, lose) in [(1, 8), (2, 8), (3, 6), (4, 5), (5, 5)] {
        let mut pair = Pair::new(seed, Faults::default());
        pair.shake_hands();
        pair.transfer(&body(100, 1), &body(1_000_000, 2));
        pair.faults.lose = lose;
        let before = pair.trace.len();
        pair.transfer(&body(100, 3), &body(3_000_000, 4));
        assert_eq!(pair.server.paths.datagram_size(), 1472, "1 of {lose} lost");
        let sent = pair.trace[before..].iter().filter(|sent| !sent.1);
        let full = sent.clone().filter(|(.., len)| *len > 1200).count();
        let small = sent.clone().filter(|(.., len)| *len == 1200).count();
        assert!(
            small < full / 4,
            "1 of {lose} lost: {small} small, {full} full"
        );
    }
}
