//! The components of a link, and that they do not influence each other's random decisions.

use core::time::Duration;

use crate::{
    BlackHole, Capacity, Config, Count, Departure, DropReason, DropTail, Event, Jitter, Limit,
    Link, Loss, Packet, Policer, Queue, Rate, Reordering, Spread, Time, Trace,
    testing::{BYTE_A_MICROSECOND, Bench, at_ms, at_us, drop_tail, ms},
};

#[test]
fn rfc8899_3_large_packets_are_dropped_from_a_given_time() {
    let config = Config {
        black_hole: Some(BlackHole {
            mtu: 1400,
            from: at_ms(5),
        }),
        ..Config::default()
    };
    let mut bench = Bench::new(&config, 1);
    for (at, bytes) in [(0, 1500), (5, 1400), (5, 1401), (9, 9000), (9, 20)] {
        bench.send(at_ms(at), Packet::new(bytes, ()));
    }
    bench.run();
    assert_eq!(bench.arrivals_ms(), [(0, 0), (5, 1), (9, 4)]);
    let dropped = bench.link.statistics().dropped(DropReason::BlackHole);
    assert_eq!((dropped.packets, dropped.bytes), (2, 10_401));
}

#[test]
fn a_copy_follows_its_original_into_the_queue() {
    let config = Config {
        duplication: 1.0,
        ..drop_tail(BYTE_A_MICROSECOND, Limit::Packets(2))
    };
    let mut bench = Bench::new(&config, 1);
    bench.send(Time::ZERO, Packet::new(1000, 'a'));
    bench.send(Time::ZERO, Packet::new(1000, 'b'));
    bench.run();
    // The first is in service; its copy and the second are queued; the copy of the second does not fit.
    let arrived: Vec<(u64, char)> = bench
        .arrived
        .iter()
        .map(|delivery| (delivery.number, delivery.packet.payload))
        .collect();
    assert_eq!(arrived, [(0, 'a'), (0, 'a'), (1, 'b')]);
    assert_eq!(bench.link.statistics().duplicated.packets, 2);
    assert_eq!(
        bench.events.of(|e| e == Event::Duplicated),
        [(Time::ZERO, 0), (Time::ZERO, 1)]
    );
    let full = bench.link.statistics().dropped(DropReason::QueueFull);
    assert_eq!(full.packets, 1);
}

#[test]
fn copies_are_delayed_independently() {
    let config = Config {
        duplication: 1.0,
        jitter: Some(Jitter {
            spread: Spread::Uniform(ms(8)),
            may_reorder: true,
        }),
        ..Config::default()
    };
    let mut bench = Bench::new(&config, 1);
    bench.send(Time::ZERO, Packet::new(1000, ()));
    bench.run();
    assert_ne!(bench.arrived[0].at, bench.arrived[1].at);
}

/// The outcome of packets sent 1 ms apart: which are dropped for a given reason, which are duplicated, and how long the
/// others are in transit.
#[derive(PartialEq, Debug)]
struct Outcomes {
    lost: Vec<u64>,
    doubled: Vec<u64>,
    extra: Vec<(u64, Duration)>,
}

fn outcomes(config: &Config, seed: u64) -> Outcomes {
    let mut bench = Bench::new(config, seed);
    for number in 0..2000 {
        bench.send(at_ms(number), Packet::new(1000, ()));
    }
    bench.run();
    let numbers = |event| -> Vec<u64> {
        let events = bench.events.of(|e| e == event);
        events.into_iter().map(|(_, number)| number).collect()
    };
    let mut extra: Vec<(u64, Duration)> = bench
        .arrived
        .iter()
        .map(|delivery| (delivery.number, delivery.at.since(at_ms(delivery.number))))
        .collect();
    extra.sort();
    Outcomes {
        lost: numbers(Event::Dropped(DropReason::Loss)),
        doubled: numbers(Event::Duplicated),
        extra,
    }
}

fn chance() -> Config {
    Config {
        loss: vec![Loss::Bernoulli(0.05)],
        duplication: 0.05,
        jitter: Some(Jitter {
            spread: Spread::Exponential(ms(3)),
            may_reorder: true,
        }),
        reordering: Some(Reordering {
            probability: 0.05,
            extra: ms(700),
        }),
        ..Config::default()
    }
}

#[test]
fn same_seed_same_outcomes() {
    assert_eq!(outcomes(&chance(), 7), outcomes(&chance(), 7));
    assert_ne!(outcomes(&chance(), 7), outcomes(&chance(), 8));
}

#[test]
fn components_draw_independently() {
    let all = outcomes(&chance(), 7);
    let without_duplication = outcomes(
        &Config {
            duplication: 0.0,
            ..chance()
        },
        7,
    );
    assert_eq!(all.lost, without_duplication.lost);
    let is_doubled = |number: &u64| all.doubled.contains(number);
    let singles = |outcomes: &Outcomes| -> Vec<(u64, Duration)> {
        let extra = outcomes.extra.iter();
        extra
            .filter(|(number, _)| !is_doubled(number))
            .copied()
            .collect()
    };
    assert_eq!(singles(&all), singles(&without_duplication));

    let without_loss = outcomes(
        &Config {
            loss: Vec::new(),
            ..chance()
        },
        7,
    );
    let not_lost = |numbers: &[u64]| -> Vec<u64> {
        let numbers = numbers.iter();
        numbers
            .filter(|number| !all.lost.contains(number))
            .copied()
            .collect()
    };
    assert_eq!(not_lost(&without_loss.doubled), all.doubled);
    let kept: Vec<(u64, Duration)> = without_loss
        .extra
        .iter()
        .filter(|(number, _)| !all.lost.contains(number))
        .copied()
        .collect();
    assert_eq!(kept, all.extra);

    // A second loss model drops other packets, and the drops of a policer do not change those of the loss models.
    let two = Config {
        loss: vec![Loss::Bernoulli(0.05), Loss::Bernoulli(0.05)],
        ..chance()
    };
    let two = outcomes(&two, 7);
    assert!(two.lost.len() > all.lost.len() + 50);
    assert!(all.lost.iter().all(|number| two.lost.contains(number)));
    let policed = Config {
        policer: Some(Policer {
            rate: Rate::from_bits_per_second(4_000_000),
            burst: 5000,
        }),
        ..chance()
    };
    let policed = outcomes(&policed, 7);
    assert!(policed.lost.len() < all.lost.len() * 3 / 4);
    assert!(policed.lost.iter().all(|number| all.lost.contains(number)));
}

#[test]
fn a_packet_departs_with_its_first_bit_as_in_quicly() {
    // quicly's `t/simulator.c`: a packet that finds the link idle leaves immediately, and the next one bytes / rate
    // later.
    let config = Config {
        departure: Departure::FirstBit,
        delay: ms(10),
        ..drop_tail(BYTE_A_MICROSECOND, Limit::Time(ms(2)))
    };
    let mut bench = Bench::new(&config, 1);
    for (at, bytes) in [(0, 1000), (0, 500), (0, 1500), (0, 1), (9, 1000), (9, 1000)] {
        bench.send(at_ms(at), Packet::new(bytes, ()));
    }
    bench.run();
    let arrived: Vec<(u64, u64)> = bench
        .arrived
        .iter()
        .map(|delivery| (delivery.at.as_nanos() / 1000, delivery.number))
        .collect();
    assert_eq!(
        arrived,
        [
            (10_000, 0),
            (11_000, 1),
            (11_500, 2),
            (19_000, 4),
            (20_000, 5)
        ]
    );
    assert_eq!(bench.link.inside(), Count::default());
}

#[test]
fn opportunities_carry_parts_of_packets_as_in_mahimahi() {
    // One opportunity of 1500 bytes every 10 ms.
    let config = Config {
        capacity: Capacity::Trace(Trace::from_millis(&[10]).expect("valid trace")),
        ..Config::default()
    };
    let mut bench = Bench::new(&config, 1);
    // At 10 ms: 600, 600, and 300 of 1800 bytes. At 20 ms: the other 1500. At 30 ms: 100, and 1400 are unused.
    for bytes in [600, 600, 1800, 100] {
        bench.send(at_ms(1), Packet::new(bytes, ()));
    }
    // It arrives at 40 ms and therefore misses the opportunity at 40 ms.
    bench.send(at_ms(40), Packet::new(2000, ()));
    bench.send(at_ms(55), Packet::new(1000, ()));
    bench.run();
    assert_eq!(
        bench.arrivals_ms(),
        [(10, 0), (10, 1), (20, 2), (30, 3), (60, 4), (60, 5)]
    );
    let ended = |event| matches!(event, Event::ServiceEnded { started } if started == at_ms(10));
    assert_eq!(
        bench.events.of(ended),
        [(at_ms(10), 0), (at_ms(10), 1), (at_ms(20), 2)]
    );
    // The bottleneck has packets from 1 to 30 ms and from 40 to 60 ms.
    assert_eq!(bench.link.statistics().busy, ms(49));
}

#[test]
fn two_links_form_a_path_with_separate_directions() {
    let mut down = Bench::new(
        &Config {
            delay: ms(5),
            ..drop_tail(BYTE_A_MICROSECOND, Limit::Unlimited)
        },
        1,
    );
    let mut up = Bench::new(
        &Config {
            delay: ms(15),
            ..drop_tail(Rate::from_bits_per_second(800_000), Limit::Unlimited)
        },
        2,
    );
    down.send(Time::ZERO, Packet::new(1000, 'd'));
    down.run();
    up.send(down.arrived[0].at, Packet::new(100, 'a'));
    up.run();
    assert_eq!(up.arrived[0].at, at_ms(1 + 5 + 1 + 15));
}

#[test]
fn decreasing_time_counts_as_the_latest() {
    let mut bench = Bench::new(&drop_tail(BYTE_A_MICROSECOND, Limit::Unlimited), 1);
    bench.send(at_ms(5), Packet::new(1000, ()));
    bench.link.send(at_ms(2), Packet::new(1000, ()), &mut ());
    bench.run();
    assert_eq!(bench.arrivals_ms(), [(6, 0), (7, 1)]);
}

#[test]
fn a_transmission_that_never_ends_has_no_deadline() {
    for capacity in [
        Capacity::Constant(Rate::ZERO),
        Capacity::Constant(Rate::from_bits_per_second(1)),
    ] {
        let config = Config {
            capacity,
            ..Config::default()
        };
        let mut link = Link::new(&config, 1).expect("valid configuration");
        link.send(at_ms(1), Packet::new(u32::MAX, ()), &mut ());
        assert_eq!(link.deadline(), None);
        assert_eq!(link.next_event(), None);
        assert_eq!(link.inside().packets, 1);
    }
}

#[test]
fn next_event_includes_events_before_an_arrival() {
    let config = Config {
        delay: ms(30),
        ..drop_tail(BYTE_A_MICROSECOND, Limit::Unlimited)
    };
    let mut link = Link::new(&config, 1).expect("valid configuration");
    link.send(Time::ZERO, Packet::new(1000, ()), &mut ());
    link.send(Time::ZERO, Packet::new(1000, ()), &mut ());
    assert_eq!(link.deadline(), Some(at_ms(31)));
    for millis in [1, 2, 31, 32] {
        assert_eq!(link.next_event(), Some(at_ms(millis)));
        let delivery = link.poll(at_ms(millis), &mut ());
        assert_eq!(delivery.is_some(), millis > 2);
        assert_eq!(link.queue_packets(), 0);
    }
    assert_eq!(link.next_event(), None);
}

#[test]
fn errors_name_settings_out_of_range() {
    use crate::{CoDel, ConfigError, FqCoDel, GilbertElliott, Spacing};

    let said = |config: Config| {
        let error = Link::<()>::new(&config, 1).expect_err("out of range");
        error.to_string()
    };
    let loss = |loss| Config {
        loss: vec![loss],
        ..Config::default()
    };
    let queue = |queue| Config {
        queue,
        ..Config::default()
    };
    assert_eq!(
        said(loss(Loss::Bernoulli(1.5))),
        "invalid `loss`: 1.5 (expected a probability from 0 to 1)"
    );
    assert_eq!(
        said(loss(Loss::GilbertElliott(GilbertElliott::simple(0.5, 0.5)))),
        "invalid `loss.to_bad`: 2 (expected a probability from 0 to 1)"
    );
    assert_eq!(
        said(Config {
            duplication: f64::NAN,
            ..Config::default()
        }),
        "invalid `duplication`: NaN (expected a probability from 0 to 1)"
    );
    assert_eq!(
        said(Config {
            release: Some(Spacing::Fixed(Duration::ZERO)),
            ..Config::default()
        }),
        "invalid `release`: 0 (expected a duration longer than 0)"
    );
    let codel = CoDel {
        interval: Duration::ZERO,
        ..CoDel::default()
    };
    assert_eq!(
        said(queue(Queue::CoDel(codel))),
        "invalid `queue.interval`: 0 (expected a duration longer than 0)"
    );
    let fq = FqCoDel {
        flows: 0,
        ..FqCoDel::default()
    };
    assert_eq!(
        said(queue(Queue::FqCoDel(fq))),
        "invalid `queue.flows`: 0 (expected 1 to 65536)"
    );
    let fq = FqCoDel {
        quantum: 255,
        ..FqCoDel::default()
    };
    assert_eq!(
        queue(Queue::FqCoDel(fq)).check(),
        Err(ConfigError::Quantum { quantum: 255 })
    );
    assert_eq!(queue(Queue::DropTail(DropTail::default())).check(), Ok(()));
}

#[test]
fn a_policer_drops_before_the_queue() {
    let config = Config {
        policer: Some(Policer {
            rate: BYTE_A_MICROSECOND,
            burst: 2000,
        }),
        ..drop_tail(BYTE_A_MICROSECOND, Limit::Unlimited)
    };
    let mut bench = Bench::new(&config, 1);
    for at in [0, 0, 0, 999, 1000] {
        bench.send(at_us(at), Packet::new(1000, ()));
    }
    let policed = Event::Dropped(DropReason::Policer);
    assert_eq!(
        bench.events.of(|event| event == policed),
        [(at_us(0), 2), (at_us(999), 3)]
    );
}
