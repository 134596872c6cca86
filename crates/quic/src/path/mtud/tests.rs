use proptest::prelude::*;

use super::*;

/// Searches on a path that carries `carries`; returns the sizes probed and the size found.
fn search(mtu: &mut MtuDiscovery, carries: u16, now: Time) -> Vec<u16> {
    assert_eq!(mtu.next_probe(now), None, "no datagram was full");
    mtu.on_full_datagram();
    search_on(mtu, carries, now)
}

fn search_on(mtu: &mut MtuDiscovery, carries: u16, now: Time) -> Vec<u16> {
    let mut probed = Vec::new();
    while let Some(size) = mtu.next_probe(now) {
        probed.push(size);
        assert!(probed.len() < 100, "no end: {probed:?}");
        mtu.on_probe_sent();
        assert_eq!(mtu.next_probe(now), None, "one probe at a time");
        if size <= carries {
            assert_eq!(mtu.on_probe_acked(), Some(size));
        } else {
            mtu.on_probe_lost();
        }
    }
    probed
}

fn started(maximum: u16) -> MtuDiscovery {
    let mut mtu = MtuDiscovery::new(MtuConfig {
        maximum,
        ..MtuConfig::default()
    });
    assert_eq!(
        mtu.next_probe(Time::ZERO),
        None,
        "not before the handshake is done"
    );
    mtu.start(65_527);
    mtu
}

#[test]
fn rfc8899_5_3_one_probe_is_enough_on_a_usual_path() {
    let mut mtu = started(1472);
    assert_eq!(search(&mut mtu, 1472, Time::ZERO), [1472]);
    assert_eq!(mtu.current(), 1472);
}

#[test]
fn rfc8899_5_1_2_a_size_is_refused_after_three_lost_probes() {
    let mut mtu = started(1472);
    let probed = search(&mut mtu, 1452, Time::ZERO);
    assert_eq!(probed, [1472, 1472, 1472, 1452, 1462, 1462, 1462]);
    assert_eq!(mtu.current(), 1452);
}

#[test]
fn odd_sizes_are_found_to_within_a_step() {
    for carries in [1200, 1201, 1280, 1337, 1400, 1443] {
        let mut mtu = started(1472);
        search(&mut mtu, carries, Time::ZERO);
        let found = mtu.current();
        assert!(
            found <= carries && carries - found <= 16,
            "{found} of {carries}"
        );
    }
}

#[test]
fn jumbo_frames_are_tried_first_where_allowed() {
    let mut mtu = started(8952);
    assert_eq!(search(&mut mtu, 8952, Time::ZERO), [8952]);
    let mut mtu = started(8952);
    search(&mut mtu, 1472, Time::ZERO);
    assert_eq!(mtu.current(), 1472);
}

#[test]
fn rfc9000_18_2_max_udp_payload_size_of_the_peer_is_a_bound() {
    let mut mtu = MtuDiscovery::new(MtuConfig {
        initial: 1400,
        maximum: 1472,
    });
    mtu.start(1300);
    mtu.on_full_datagram();
    assert_eq!(mtu.current(), 1300);
    assert_eq!(mtu.next_probe(Time::ZERO), None);
}

#[test]
fn rfc8899_5_1_1_the_search_restarts_after_ten_minutes() {
    let mut mtu = started(1472);
    search(&mut mtu, 1300, Time::ZERO);
    let found = mtu.current();
    let later = Time::ZERO + RAISE_AFTER;
    mtu.on_full_datagram();
    assert_eq!(mtu.next_probe(Time::from_nanos(later.as_nanos() - 1)), None);
    search(&mut mtu, 1472, later);
    assert!(found <= 1300);
    assert_eq!(mtu.current(), 1472);
}

#[test]
fn rfc8899_4_3_a_black_hole_resets_the_size_to_the_base() {
    let mut mtu = started(1472);
    search(&mut mtu, 1472, Time::ZERO);
    let at = Time::from_nanos;
    assert_eq!(mtu.on_packet_lost(at(5), at(4), 1472), None);
    mtu.on_packet_acked(1472); // it was ordinary loss
    assert_eq!(mtu.on_packet_lost(at(7), at(6), 1472), None);
    mtu.on_packet_acked(60); // says nothing of large ones
    let small = mtu.on_packet_lost(at(9), at(8), 100);
    assert_eq!(small, None, "small ones do not count");
    let before = mtu.on_packet_lost(at(9), at(7), 1472);
    assert_eq!(before, None, "nor what was sent before the last was found");
    let now = at(9);
    assert_eq!(mtu.on_packet_lost(now, at(8), 1472), Some(1200));
    assert_eq!(mtu.current(), 1200);
    assert_eq!(
        search_on(&mut mtu, 1200, now),
        [1472; 6],
        "verified, then given up"
    );
    assert_eq!(mtu.current(), 1200);
    mtu.on_full_datagram();
    assert_eq!(mtu.next_probe(now), None);
    search(&mut mtu, 1472, now + RAISE_AFTER_BLACK_HOLE);
    assert_eq!(mtu.current(), 1472);
}

/// A size that was found below the maximum, too.
#[test]
fn rfc8899_4_3_a_size_that_still_arrives_is_used_again_after_what_looked_like_a_black_hole() {
    for carries in [1472, 1400] {
        let mut mtu = started(1472);
        search(&mut mtu, carries, Time::ZERO);
        let found = mtu.current();
        let at = Time::from_nanos;
        assert_eq!(mtu.on_packet_lost(at(5), at(4), found), None);
        assert_eq!(mtu.on_packet_lost(at(7), at(6), found), Some(1200));
        assert_eq!(mtu.next_probe(at(7)), Some(found));
        mtu.on_probe_sent();
        mtu.on_probe_lost();
        assert_eq!(search_on(&mut mtu, carries, at(8)), [found]);
        assert_eq!(mtu.current(), found);
    }
}

/// RFC 9000 §9.4: what was sent before says nothing of the path, so a probe among it is sent again.
#[test]
fn rfc9000_9_4_a_probe_in_flight_is_sent_again_after_a_rebinding() {
    let mut mtu = started(1472);
    mtu.on_full_datagram();
    assert_eq!(mtu.next_probe(Time::ZERO), Some(1472));
    mtu.on_probe_sent();
    mtu.on_rebinding();
    assert_eq!(search_on(&mut mtu, 1472, Time::ZERO), [1472]);
}

/// A queue that overflows loses the last packets in a row; detected by one acknowledgment, or one by one by the timer.
#[test]
fn rfc8899_4_3_a_burst_of_loss_is_not_a_black_hole() {
    let mut mtu = started(1472);
    search(&mut mtu, 1472, Time::ZERO);
    for round in 0..10 {
        for packet in 0..100 {
            let now = Time::from_nanos(round * 1000 + packet);
            let sent_at = Time::from_nanos(round * 1000);
            assert_eq!(mtu.on_packet_lost(now, sent_at, 1472), None);
        }
        mtu.on_packet_acked(1472);
    }
    assert_eq!(mtu.current(), 1472);
}

proptest! {
    #[test]
    fn the_size_found_is_close_to_the_path_mtu_and_never_above(
        carries in 1200_u16..9500,
        initial in 0_u16..1300,
        maximum in 1000_u16..9500,
    ) {
        let mut mtu = MtuDiscovery::new(MtuConfig { initial, maximum });
        mtu.start(65_527);
        let start = mtu.current();
        search(&mut mtu, carries, Time::ZERO);
        let best = carries.min(maximum).max(start);
        prop_assert!(mtu.current() <= best, "{} of {}", mtu.current(), best);
        prop_assert!(best - mtu.current() <= STEP_MIN, "{} of {}", mtu.current(), best);
    }
}
