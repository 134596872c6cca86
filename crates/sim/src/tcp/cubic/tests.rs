use lastbyte_congestion::Rtt;

use super::*;

const SIZE: u64 = 1448;

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn rtt(millis: u64) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(
        Time::ZERO,
        Duration::from_millis(millis),
        Duration::ZERO,
        None,
    );
    rtt
}

/// Acknowledgments of one segment each at these times, with these samples: the first that ends slow start.
fn found(window: u64, acks: impl Iterator<Item = (u64, u64)>) -> Option<usize> {
    let mut hystart = HyStart::new(SIZE);
    let rtt = rtt(40);
    let mut acks = acks.enumerate();
    let is_found = |(index, (at, sample)): (usize, (u64, u64))| {
        let growth = hystart.on_ack(&StartupAck {
            now: Time::from_nanos(at * 1000),
            bytes: SIZE,
            delivered: 0,
            sent: 0,
            in_flight: 0,
            window: window * SIZE,
            largest_acked: index as u64,
            next: 1000,
            rtt: &rtt,
            rtt_sample: Some(Duration::from_micros(sample)),
        });
        growth.done
    };
    acks.position(is_found)
}

#[test]
fn hystart_ends_at_a_train_of_half_a_round_trip() {
    // An acknowledgment each millisecond: the train is longer than (40 + 1) / 2 ms at the 22nd.
    assert_eq!(
        found(100, (0..100).map(|index| (40_000 + 1000 * index, 40_000))),
        Some(21)
    );
    // 3 ms apart, it is no train.
    assert_eq!(
        found(100, (0..100).map(|index| (40_000 + 3000 * index, 40_000))),
        None
    );
    // Below 16 segments, nothing is looked at.
    assert_eq!(
        found(15, (0..100).map(|index| (40_000 + 1000 * index, 40_000))),
        None
    );
}

#[test]
fn hystart_ends_when_the_smallest_of_eight_samples_shows_a_queue() {
    // 5 ms is an eighth of the minimum.
    let queue = |more: u64| {
        (0..100).map(move |index| {
            (
                40_000 + 5000 * index,
                if index == 0 { 40_000 } else { 40_000 + more },
            )
        })
    };
    assert_eq!(
        found(100, queue(5100)),
        None,
        "the first sample of the round is the smallest"
    );
    let mut hystart = HyStart::new(SIZE);
    hystart.delay_min = Some(Duration::from_millis(40));
    let rtt = rtt(40);
    let mut ends = Vec::new();
    for index in 0..10 {
        let growth = hystart.on_ack(&StartupAck {
            now: ms(100 + 5 * index),
            bytes: SIZE,
            delivered: 0,
            sent: 0,
            in_flight: 0,
            window: 100 * SIZE,
            largest_acked: index,
            next: 1000,
            rtt: &rtt,
            rtt_sample: Some(Duration::from_micros(45_100)),
        });
        ends.push(growth.done);
    }
    assert_eq!(ends.iter().position(|done| *done), Some(8));
}

fn grow(cubic: &mut Cubic, window: &mut u64, rtt: &Rtt, round_trips: u64, start: u64) {
    for round in 0..round_trips {
        let acks = *window / SIZE;
        for index in 0..acks {
            let now = ms(start + 40 * round) + Duration::from_micros(40_000 * index / acks);
            let ack = AvoidanceAck {
                now,
                bytes: SIZE,
                window: *window,
                rtt,
                max_datagram_size: SIZE,
            };
            *window = cubic.on_ack(&ack);
        }
    }
}

#[test]
fn before_the_first_loss_the_window_grows_by_a_twentieth_each_round_trip() {
    let (mut cubic, mut window) = (Cubic::default(), 100 * SIZE);
    grow(&mut cubic, &mut window, &rtt(40), 1, 0);
    assert_eq!(window / SIZE, 105);
}

#[test]
fn after_a_loss_the_window_returns_to_its_maximum_after_k() {
    let (mut cubic, rtt) = (Cubic::default(), rtt(40));
    let reduction = |full: u64| Reduction {
        now: ms(0),
        full: full * SIZE,
        is_measured: false,
        after: 700 * SIZE,
        cause: Cause::Loss,
        rtt: &rtt,
        max_datagram_size: SIZE,
    };
    cubic.on_congestion(&reduction(1000));
    let mut window = 700 * SIZE;
    // K = cbrt(300 / 0.4) = 9.1 s, 227 round trips.
    grow(&mut cubic, &mut window, &rtt, 227, 0);
    assert!((980..=1010).contains(&(window / SIZE)), "{}", window / SIZE);
    // Fast convergence.
    cubic.on_congestion(&reduction(800));
    let max = cubic.last_max.expect("a maximum");
    assert!((max - 800.0 * (1.0 + BETA) / 2.0).abs() < 1e-9);
    cubic.on_persistent_congestion();
    assert!(cubic.last_max.is_none() && cubic.epoch.is_none());
}

#[test]
fn the_threshold_is_a_whole_number_of_segments() {
    let mut cubic = Cubic::default();
    for (segments, threshold) in [(10, 7.0), (7, 4.0), (5, 3.0), (3, 2.0)] {
        cubic.segments = segments;
        assert!((cubic.beta(Cause::Loss) * segments as f64 - threshold).abs() < 1e-9);
    }
}
