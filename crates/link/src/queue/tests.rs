use crate::{
    Capacity, Config, Count, DropReason, DropTail, Ecn, Event, Limit, Packet, Queue, Rate,
    Schedule, Time, Trace,
    testing::{BYTE_A_MICROSECOND, Bench, at_ms, drop_tail, ms},
};

/// Of so many packets of 1000 bytes at once, which are dropped.
fn dropped(config: &Config, packets: u64) -> Vec<u64> {
    let mut bench = Bench::new(config, 1);
    for _ in 0..packets {
        bench.send(Time::ZERO, Packet::new(1000, ()));
    }
    let full = Event::Dropped(DropReason::QueueFull);
    let dropped = bench.notes.of(|event| event == full);
    dropped.into_iter().map(|(_, number)| number).collect()
}

#[test]
fn limits_count_what_waits_with_the_newcomer_and_without_what_is_in_service() {
    let of = |limit| dropped(&drop_tail(BYTE_A_MICROSECOND, limit), 5);
    assert_eq!(of(Limit::Unlimited), []);
    assert_eq!(of(Limit::Bytes(3000)), [4]);
    assert_eq!(of(Limit::Bytes(2999)), [3, 4]);
    assert_eq!(of(Limit::Packets(2)), [3, 4]);
    assert_eq!(of(Limit::Time(ms(2))), [3, 4]);
    assert_eq!(of(Limit::Packets(0)), [1, 2, 3, 4]);
}

#[test]
fn milliseconds_are_bytes_at_the_nominal_rate() {
    let with = |capacity| Config {
        capacity,
        ..drop_tail(BYTE_A_MICROSECOND, Limit::Time(ms(2)))
    };
    // Zero, and the double, in turns: the mean is a byte a microsecond.
    let steps = [
        (ms(0), Rate::ZERO),
        (ms(10), Rate::from_bits_per_second(16_000_000)),
    ];
    let schedule = |period| Schedule::new(&steps, period).expect("steps");
    let repeated = Capacity::Schedule(schedule(Some(ms(20))));
    assert_eq!(dropped(&with(repeated), 5), [3, 4]);
    let once = Capacity::Schedule(schedule(None));
    assert_eq!(dropped(&with(once), 5), [1, 2, 3, 4]);
    // 1500 bytes each millisecond; nothing is in service before the first opportunity.
    let trace = Trace::from_millis(&[1]).expect("a trace");
    assert_eq!(dropped(&with(Capacity::Trace(trace)), 5), [3, 4]);
}

#[test]
fn a_packet_that_finds_the_link_idle_passes_however_large() {
    let mut bench = Bench::new(&drop_tail(BYTE_A_MICROSECOND, Limit::Bytes(10)), 1);
    bench.send(Time::ZERO, Packet::new(9000, ()));
    bench.send(at_ms(1), Packet::new(11, ()));
    bench.send(at_ms(1), Packet::new(10, ()));
    bench.send(at_ms(2), Packet::new(1, ()));
    // The last bit of the one in service, and of the one that waited, have left.
    bench.send(at_ms(10), Packet::new(9000, ()));
    bench.run();
    let numbers: Vec<u64> = bench.arrived.iter().map(|d| d.number).collect();
    assert_eq!(numbers, [0, 2, 4]);
    let full = bench.link.statistics().dropped(DropReason::QueueFull);
    assert_eq!(
        full,
        Count {
            packets: 2,
            bytes: 12
        }
    );
    assert_eq!(bench.link.statistics().queue_peak_bytes, 10);
    assert_eq!(bench.link.statistics().queue_peak_packets, 1);
}

#[test]
fn rfc8257_3_1_packets_above_the_step_are_marked_if_they_can_be() {
    let config = Config {
        queue: Queue::DropTail(DropTail {
            limit: Limit::Packets(5),
            mark_above: Some(Limit::Packets(2)),
        }),
        ..drop_tail(BYTE_A_MICROSECOND, Limit::Unlimited)
    };
    let mut bench = Bench::new(&config, 1);
    let ecn = [
        Ecn::Ect0,
        Ecn::Ect0,
        Ecn::Ect0,
        Ecn::NotEct,
        Ecn::Ect1,
        Ecn::Ce,
        Ecn::Ect0,
    ];
    for ecn in ecn {
        bench.send(Time::ZERO, Packet::new(1000, ()).with_ecn(ecn));
    }
    bench.run();
    // One in service, two below the step; then those that are capable. The last has no room, marked or not.
    let arrived: Vec<Ecn> = bench.arrived.iter().map(|d| d.packet.ecn).collect();
    assert_eq!(
        arrived,
        [
            Ecn::Ect0,
            Ecn::Ect0,
            Ecn::Ect0,
            Ecn::NotEct,
            Ecn::Ce,
            Ecn::Ce
        ]
    );
    assert_eq!(bench.notes.of(|e| e == Event::Marked), [(Time::ZERO, 4)]);
    assert_eq!(bench.link.statistics().marked.packets, 1);
}

#[test]
fn depths_are_told_as_they_are_after_each_event() {
    let mut bench = Bench::new(&drop_tail(BYTE_A_MICROSECOND, Limit::Packets(1)), 1);
    for _ in 0..3 {
        bench.send(Time::ZERO, Packet::new(1000, ()));
    }
    bench.run();
    let depth = |packets| Count {
        packets,
        bytes: packets * 1000,
    };
    let began = |waited| Event::ServiceBegan { waited: ms(waited) };
    let ended = |began| Event::ServiceEnded {
        began: at_ms(began),
    };
    assert_eq!(
        bench.notes.0,
        [
            (at_ms(0), 0, Event::Queued, depth(1)),
            (at_ms(0), 0, began(0), depth(0)),
            (at_ms(0), 1, Event::Queued, depth(1)),
            (at_ms(0), 2, Event::Dropped(DropReason::QueueFull), depth(1)),
            (at_ms(1), 0, ended(0), depth(1)),
            (at_ms(1), 1, began(1), depth(0)),
            (at_ms(2), 1, ended(1), depth(0)),
        ]
    );
}
