use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    Limit, Packet,
    testing::{BYTE_A_MICROSECOND, Bench, at_ms, at_us, drop_tail, ms},
};

/// Sends packets 1 ms apart over a link with delay only, and returns arrival times in microseconds and packet numbers
/// in order of arrival.
fn arrivals(config: &Config, seed: u64, packets: u64) -> Vec<(u64, u64)> {
    let mut bench = Bench::new(config, seed);
    for number in 0..packets {
        bench.send(at_ms(number), Packet::new(100, ()));
    }
    bench.run();
    let arrived = bench.arrived.iter();
    arrived
        .map(|delivery| (delivery.at.as_nanos() / 1000, delivery.number))
        .collect()
}

fn numbers(arrivals: &[(u64, u64)]) -> Vec<u64> {
    arrivals.iter().map(|(_, number)| *number).collect()
}

fn delayed(delay: Duration) -> Config {
    Config {
        delay,
        ..Config::default()
    }
}

#[test]
fn a_fixed_delay_applies_to_every_packet() {
    assert_eq!(
        arrivals(&delayed(ms(20)), 1, 3),
        [(20_000, 0), (21_000, 1), (22_000, 2)]
    );
    assert_eq!(arrivals(&Config::default(), 1, 2), [(0, 0), (1000, 1)]);
}

fn jittered(spread: Spread, may_reorder: bool) -> Config {
    Config {
        jitter: Some(Jitter {
            spread,
            may_reorder,
        }),
        ..delayed(ms(20))
    }
}

#[test]
fn jitter_has_the_configured_mean_and_bounds() {
    for (spread, mean, max) in [
        (Spread::Uniform(ms(8)), 4000.0, 8000),
        (Spread::Exponential(ms(3)), 3000.0, 111_000),
    ] {
        let arrivals = arrivals(&jittered(spread, true), 3, 20_000);
        let extra = |(at, number): &(u64, u64)| at - 20_000 - number * 1000;
        assert!(arrivals.iter().all(|arrival| extra(arrival) <= max));
        let sum: u64 = arrivals.iter().map(extra).sum();
        let found = sum as f64 / arrivals.len() as f64;
        assert!((found / mean - 1.0).abs() < 0.03, "{found}");
        assert!(!numbers(&arrivals).is_sorted());
    }
}

#[test]
fn jitter_without_reordering_waits_for_the_packet_ahead() {
    let spread = Spread::Uniform(ms(8));
    let mut free = arrivals(&jittered(spread, true), 3, 1000);
    let kept = arrivals(&jittered(spread, false), 3, 1000);
    free.sort_by_key(|(_, number)| *number);
    let mut latest = 0;
    let expected: Vec<(u64, u64)> = free
        .iter()
        .map(|(at, number)| {
            latest = latest.max(*at);
            (latest, *number)
        })
        .collect();
    assert_eq!(kept, expected);
}

#[test]
fn packets_held_back_are_overtaken() {
    let config = Config {
        reordering: Some(Reordering {
            probability: 0.1,
            extra: Duration::from_micros(2500),
        }),
        ..delayed(ms(20))
    };
    let arrivals = arrivals(&config, 9, 10_000);
    let mut held = 0;
    for (at, number) in &arrivals {
        let extra = at - 20_000 - number * 1000;
        assert!(extra == 0 || extra == 2500, "{extra}");
        held += u64::from(extra > 0);
    }
    assert!((900..1100).contains(&held), "{held}");
    assert!(!numbers(&arrivals).is_sorted());
    assert!(arrivals.is_sorted_by_key(|(at, _)| *at));
}

#[test]
fn a_path_that_becomes_longer_or_shorter_keeps_the_order() {
    let config = |delay| Config {
        path_change: Some(PathChange {
            at: at_ms(2),
            delay,
        }),
        ..delayed(ms(10))
    };
    assert_eq!(
        arrivals(&config(ms(15)), 1, 4),
        [(10_000, 0), (11_000, 1), (17_000, 2), (18_000, 3)]
    );
    assert_eq!(
        arrivals(&config(ms(5)), 1, 8),
        [
            (10_000, 0),
            (11_000, 1),
            (11_000, 2),
            (11_000, 3),
            (11_000, 4),
            (11_000, 5),
            (11_000, 6),
            (12_000, 7)
        ]
    );
    let free = Config {
        jitter: Some(Jitter {
            spread: Spread::Uniform(Duration::ZERO),
            may_reorder: true,
        }),
        ..config(ms(5))
    };
    assert_eq!(numbers(&arrivals(&free, 1, 5)), [2, 3, 4, 0, 1]);
}

#[test]
fn the_deadline_anticipates_a_shorter_path() {
    // The packets leave the bottleneck at 1, 2 and 3 ms; from 2 ms on the delay is 5 ms.
    let config = Config {
        path_change: Some(PathChange {
            at: at_ms(2),
            delay: ms(5),
        }),
        jitter: Some(Jitter {
            spread: Spread::Uniform(Duration::ZERO),
            may_reorder: true,
        }),
        delay: ms(10),
        ..drop_tail(BYTE_A_MICROSECOND, Limit::Unlimited)
    };
    let mut bench = Bench::new(&config, 1);
    for _ in 0..3 {
        bench.send(Time::ZERO, Packet::new(1000, ()));
    }
    bench.run();
    assert_eq!(bench.arrivals_ms(), [(7, 1), (8, 2), (11, 0)]);
}

#[test]
fn packets_are_held_until_the_next_release() {
    let config = Config {
        release: Some(Spacing::Fixed(ms(4))),
        ..delayed(ms(2))
    };
    assert_eq!(
        arrivals(&config, 1, 7),
        [
            (4000, 0),
            (4000, 1),
            (4000, 2),
            (8000, 3),
            (8000, 4),
            (8000, 5),
            (8000, 6)
        ]
    );
}

#[test]
fn random_releases_have_the_configured_rate_and_keep_the_order() {
    let config = Config {
        release: Some(Spacing::Random(ms(5))),
        ..Config::default()
    };
    let arrivals = arrivals(&config, 1, 50_000);
    assert!(numbers(&arrivals).is_sorted());
    let mut instants: Vec<u64> = arrivals.iter().map(|(at, _)| *at).collect();
    instants.dedup();
    // A packet waits for the residual interval, whose mean equals that of an interval; intervals without a packet are
    // not observed.
    let wait = arrivals
        .iter()
        .map(|(at, number)| (at - number * 1000) as f64)
        .sum::<f64>()
        / arrivals.len() as f64;
    assert!((wait / 5000.0 - 1.0).abs() < 0.05, "{wait}");
    // A share of 1 − e^(−1/5) of packets is the first of its release.
    let expected = 50_000.0 * (1.0 - (-0.2_f64).exp());
    let found = instants.len() as f64;
    assert!((found / expected - 1.0).abs() < 0.05, "{found}");
}

proptest! {
    #[test]
    fn any_propagation_matches_a_sorted_list(
        packets in vec((0u64..2000, 0u32..2000), 1..200),
        seed: u64,
        delay in 0u64..5000,
        jitter in proptest::option::of((0u64..5000, any::<bool>(), any::<bool>())),
        reordering in proptest::option::of((0.0..=1.0, 0u64..5000)),
        change in proptest::option::of((0u64..100_000, 0u64..5000)),
        release in proptest::option::of((1u64..5000, any::<bool>())),
    ) {
        let us = Duration::from_micros;
        let config = Config {
            delay: us(delay),
            jitter: jitter.map(|(span, may_reorder, is_uniform)| Jitter {
                spread: if is_uniform { Spread::Uniform(us(span)) } else { Spread::Exponential(us(span)) },
                may_reorder,
            }),
            reordering: reordering.map(|(probability, extra)| Reordering { probability, extra: us(extra) }),
            path_change: change.map(|(at, delay)| PathChange { at: at_us(at), delay: us(delay) }),
            release: release.map(|(gap, is_fixed)| if is_fixed { Spacing::Fixed(us(gap)) } else { Spacing::Random(us(gap)) }),
            ..Config::default()
        };
        // `Bench` asserts that packets arrive at deadlines only.
        let mut bench = Bench::new(&config, seed);
        let mut now = 0;
        let mut sent = Vec::new();
        for (gap, bytes) in packets {
            now += gap;
            sent.push(at_us(now));
            bench.send(at_us(now), Packet::new(bytes, ()));
        }
        prop_assert_eq!(bench.link.inside().packets as usize + bench.arrived.len(), sent.len());
        bench.run();
        prop_assert_eq!(bench.link.inside(), Count::default());
        prop_assert!(bench.arrived.is_sorted_by_key(|delivery| delivery.at));
        let least = us(delay.min(change.map_or(delay, |(_, delay)| delay)));
        for delivery in &bench.arrived {
            prop_assert!(delivery.at >= sent[delivery.number as usize] + least);
        }
        if jitter.is_none_or(|(_, may_reorder, _)| !may_reorder) && reordering.is_none() {
            prop_assert!(bench.arrived.is_sorted_by_key(|delivery| delivery.number));
        }
    }
}
