use crate::{
    Capacity, Config, Count, DropReason, DropTail, Ecn, Event, Limit, Packet, Queue, Rate,
    Schedule, Time, Trace,
    testing::{BYTE_A_MICROSECOND, Bench, at_ms, drop_tail, ms},
};

/// The packets dropped out of this number of packets of 1000 bytes sent at once.
fn dropped(config: &Config, packets: u64) -> Vec<u64> {
    let mut bench = Bench::new(config, 1);
    for _ in 0..packets {
        bench.send(Time::ZERO, Packet::new(1000, ()));
    }
    let full = Event::Dropped(DropReason::QueueFull);
    let dropped = bench.events.of(|event| event == full);
    dropped.into_iter().map(|(_, number)| number).collect()
}

#[test]
fn limits_include_the_arriving_packet_but_not_the_one_in_service() {
    let of = |limit| dropped(&drop_tail(BYTE_A_MICROSECOND, limit), 5);
    assert_eq!(of(Limit::Unlimited), []);
    assert_eq!(of(Limit::Bytes(3000)), [4]);
    assert_eq!(of(Limit::Bytes(2999)), [3, 4]);
    assert_eq!(of(Limit::Packets(2)), [3, 4]);
    assert_eq!(of(Limit::Time(ms(2))), [3, 4]);
    assert_eq!(of(Limit::Packets(0)), [1, 2, 3, 4]);
}

#[test]
fn limits_in_milliseconds_use_the_nominal_rate() {
    let with = |capacity| Config {
        capacity,
        ..drop_tail(BYTE_A_MICROSECOND, Limit::Time(ms(2)))
    };
    // The rate alternates between zero and twice the mean of one byte per microsecond.
    let steps = [
        (ms(0), Rate::ZERO),
        (ms(10), Rate::from_bits_per_second(16_000_000)),
    ];
    let schedule = |period| Schedule::new(&steps, period).expect("valid steps");
    let repeated = Capacity::Schedule(schedule(Some(ms(20))));
    assert_eq!(dropped(&with(repeated), 5), [3, 4]);
    let once = Capacity::Schedule(schedule(None));
    assert_eq!(dropped(&with(once), 5), [1, 2, 3, 4]);
    // 1500 bytes per millisecond. No packet is in service before the first opportunity.
    let trace = Trace::from_millis(&[1]).expect("valid trace");
    assert_eq!(dropped(&with(Capacity::Trace(trace)), 5), [3, 4]);
}

#[test]
fn a_packet_that_finds_the_link_idle_passes_however_large() {
    let mut bench = Bench::new(&drop_tail(BYTE_A_MICROSECOND, Limit::Bytes(10)), 1);
    bench.send(Time::ZERO, Packet::new(9000, ()));
    bench.send(at_ms(1), Packet::new(11, ()));
    bench.send(at_ms(1), Packet::new(10, ()));
    bench.send(at_ms(2), Packet::new(1, ()));
    // The last bits of the packets in service and in the queue have left.
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
fn rfc8257_3_1_ecn_capable_packets_above_the_threshold_are_marked() {
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
    // One packet is in service and two are below the threshold; ECN-capable packets above it are marked. The last
    // packet does not fit, whether marked or not.
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
    assert_eq!(bench.events.of(|e| e == Event::Marked), [(Time::ZERO, 4)]);
    assert_eq!(bench.link.statistics().marked.packets, 1);
}

#[test]
fn events_carry_the_depth_after_the_event() {
    let mut bench = Bench::new(&drop_tail(BYTE_A_MICROSECOND, Limit::Packets(1)), 1);
    for _ in 0..3 {
        bench.send(Time::ZERO, Packet::new(1000, ()));
    }
    bench.run();
    let depth = |packets| Count {
        packets,
        bytes: packets * 1000,
    };
    let started = |waited| Event::ServiceStarted { waited: ms(waited) };
    let ended = |started| Event::ServiceEnded {
        started: at_ms(started),
    };
    assert_eq!(
        bench.events.0,
        [
            (at_ms(0), 0, Event::Queued, depth(1)),
            (at_ms(0), 0, started(0), depth(0)),
            (at_ms(0), 1, Event::Queued, depth(1)),
            (at_ms(0), 2, Event::Dropped(DropReason::QueueFull), depth(1)),
            (at_ms(1), 0, ended(0), depth(1)),
            (at_ms(1), 1, started(1), depth(0)),
            (at_ms(2), 1, ended(1), depth(0)),
        ]
    );
}
