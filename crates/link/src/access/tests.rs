use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    Link, Packet,
    testing::{Bench, at_ms, ms},
};

#[test]
fn packets_after_a_pause_wait_for_the_radio() {
    let config = Config {
        wake_up: Some(WakeUp {
            after: ms(100),
            delay: ms(30),
        }),
        delay: ms(10),
        ..Config::default()
    };
    let mut bench = Bench::new(&config, 1);
    for at in [0, 10, 30, 31, 100, 200, 300, 301, 431] {
        bench.send(at_ms(at), Packet::new(1000, ()));
    }
    bench.run();
    let arrivals: Vec<u64> = bench.arrivals_ms().iter().map(|(at, _)| *at).collect();
    assert_eq!(arrivals, [40, 40, 40, 41, 110, 210, 310, 311, 471]);
}

fn medium(share: f64, busy: Duration, seed: u64) -> Medium {
    Medium::new(
        &Contention { share, busy },
        Random::new(seed, Component::Contention, 0),
    )
}

#[test]
fn contention_delays_isolated_packets_by_share_and_period() {
    let mut medium = medium(0.3, ms(5), 1);
    let count = 50_000;
    let (mut waited, mut total) = (0, 0.0);
    for index in 1..=count {
        let ready = at_ms(index * 1000);
        let wait = medium.idle_from(ready).since(ready);
        waited += u64::from(!wait.is_zero());
        total += wait.as_secs_f64();
    }
    let share = waited as f64 / count as f64;
    assert!((share - 0.3).abs() < 0.01, "{share}");
    let mean = total / waited as f64;
    assert!((mean / 0.005 - 1.0).abs() < 0.03, "{mean}");
}

#[test]
fn adjacent_packets_share_contention_periods() {
    // Every 10 us over 1000 s: the medium changes state as seldom as its periods are long.
    let mut medium = medium(0.25, ms(2), 3);
    let (mut busy, mut periods, mut was_busy) = (0_u64, 0_u64, false);
    let steps = 2_000_000_u64;
    for index in 0..steps {
        let ready = Time::from_nanos(index * 10_000);
        let is_busy = medium.idle_from(ready) > ready;
        busy += u64::from(is_busy);
        periods += u64::from(is_busy && !was_busy);
        was_busy = is_busy;
    }
    let share = busy as f64 / steps as f64;
    assert!((share - 0.25).abs() < 0.02, "{share}");
    // Idle and busy together last 8 ms in the mean.
    let expected = steps as f64 * 10e-6 / 8e-3;
    assert!(
        (periods as f64 / expected - 1.0).abs() < 0.1,
        "{periods} {expected}"
    );
}

proptest! {
    #[test]
    fn any_contention_keeps_the_order_and_only_delays(
        share in 0.0..=1.0,
        busy in 1u64..1 << 40,
        gaps in vec(0u64..1 << 34, 1..100),
        seed: u64,
    ) {
        let config = Config {
            contention: Some(Contention { share, busy: Duration::from_nanos(busy) }),
            wake_up: Some(WakeUp { after: ms(5), delay: ms(1) }),
            ..Config::default()
        };
        let mut link: Link<u64> = Link::new(&config, seed).expect("valid configuration");
        let mut now = Time::ZERO;
        for (gap, index) in gaps.iter().zip(0..) {
            now = now.plus(*gap);
            link.send(now, Packet::new(100, index), &mut ());
        }
        let mut numbers = Vec::new();
        while let Some(delivery) = link.poll(Time::MAX, &mut ()) {
            numbers.push(delivery.number);
        }
        prop_assert_eq!(numbers, (0..gaps.len() as u64).collect::<Vec<_>>());
    }
}
