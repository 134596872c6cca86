//! Properties that hold for any configuration, any packets and any way of driving a link.

use core::time::Duration;

use proptest::{collection::vec, option, prelude::*};

use crate::{
    BlackHole, Bursts, Capacity, CoDel, Config, Contention, Delivery, Departure, DropTail, DualPi2,
    Ecn, FqCoDel, GilbertElliott, Jitter, Limit, Link, Loss, Packet, PathChange, Pie, Policer,
    Queue, Rate, Reordering, Schedule, Shaper, Spacing, Spread, Time, Trace, WakeUp, Wifi,
    testing::{EventLog, LogEntry},
};

/// Values from zero to the maximum, most of them of realistic magnitude.
fn number(usual: u64) -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..usual, 1 => Just(0), 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn span(usual: u64) -> impl Strategy<Value = Duration> {
    number(usual).prop_map(Duration::from_nanos)
}

fn positive(usual: u64) -> impl Strategy<Value = Duration> {
    span(usual).prop_map(|span| span.max(Duration::from_nanos(1)))
}

fn rate() -> impl Strategy<Value = Rate> {
    number(1_000_000_000).prop_map(Rate::from_bits_per_second)
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        number(20_000).prop_map(Limit::Bytes),
        number(20).prop_map(Limit::Packets),
        span(100_000_000).prop_map(Limit::Time),
    ]
}

fn codel() -> impl Strategy<Value = CoDel> {
    (
        span(10_000_000),
        positive(50_000_000),
        any::<bool>(),
        limit(),
    )
        .prop_map(|(target, interval, ecn, limit)| CoDel {
            target,
            interval,
            ecn,
            limit,
        })
}

fn queue() -> impl Strategy<Value = Queue> {
    let drop_tail = (limit(), option::of(limit()));
    let fq = (codel(), 1u32..50, 256u32..4000);
    prop_oneof![
        drop_tail.prop_map(|(limit, mark_above)| Queue::DropTail(DropTail { limit, mark_above })),
        codel().prop_map(Queue::CoDel),
        (fq, any::<bool>()).prop_map(|((codel, flows, quantum), is_cake)| {
            let config = FqCoDel {
                codel,
                flows,
                quantum,
            };
            if is_cake {
                Queue::Cake(config)
            } else {
                Queue::FqCoDel(config)
            }
        }),
        (span(20_000_000), span(50_000_000), any::<bool>(), limit()).prop_map(
            |(target, burst, ecn, limit)| Queue::Pie(Pie {
                target,
                burst,
                ecn,
                limit
            })
        ),
        (span(20_000_000), limit())
            .prop_map(|(target, limit)| Queue::DualPi2(DualPi2 { target, limit })),
    ]
}

fn schedule() -> impl Strategy<Value = Schedule> {
    (
        vec((positive(5_000_000), rate()), 1..5),
        option::of(positive(5_000_000)),
    )
        .prop_filter_map("times must not overflow", |(steps, rest)| {
            let mut from = Duration::ZERO;
            let mut table = Vec::new();
            for (length, rate) in steps {
                table.push((from, rate));
                from += length;
            }
            let period = rest.map(|rest| from + rest);
            Schedule::new(&table, period).ok()
        })
}

fn trace() -> impl Strategy<Value = Trace> {
    vec(0u64..20, 1..8).prop_map(|mut timestamps| {
        timestamps.sort_unstable();
        timestamps.push(20);
        Trace::from_millis(&timestamps).expect("valid trace")
    })
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        Just(Capacity::Unlimited),
        rate().prop_map(Capacity::Constant),
        schedule().prop_map(Capacity::Schedule),
        (rate(), number(20_000), rate()).prop_map(|(rate, burst, peak)| Capacity::Shaper(Shaper {
            rate,
            burst,
            peak
        })),
        trace().prop_map(Capacity::Trace),
        (rate(), 0u16..8, span(1_000_000)).prop_map(|(rate, packets, airtime)| {
            Capacity::Wifi(Wifi {
                rate,
                packets,
                airtime,
            })
        }),
    ]
}

fn spacing() -> impl Strategy<Value = Spacing> {
    prop_oneof![
        positive(20_000_000).prop_map(Spacing::Fixed),
        positive(20_000_000).prop_map(Spacing::Random),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    let p = || 0.0..=1.0;
    let chain = (p(), p(), p(), p()).prop_map(|(to_bad, to_good, loss_in_bad, loss_in_good)| {
        Loss::GilbertElliott(GilbertElliott {
            to_bad,
            to_good,
            loss_in_bad,
            loss_in_good,
        })
    });
    let bursts = (spacing(), p(), number(5)).prop_map(|(spacing, probability, length)| {
        Loss::Bursts(Bursts {
            spacing,
            probability,
            length,
        })
    });
    prop_oneof![
        (0.0..=0.3).prop_map(Loss::Bernoulli),
        chain,
        vec(0u64..100, 0..10).prop_map(Loss::Packets),
        bursts,
    ]
}

/// Mostly one hop.
fn config() -> impl Strategy<Value = Config> {
    let further = prop_oneof![3 => Just(Vec::new()), 2 => vec(hop(), 1..4)];
    (hop(), further).prop_map(|(first, further)| Config { further, ..first })
}

fn hop() -> BoxedStrategy<Config> {
    let entry = (
        option::of((0u32..3000, number(50_000_000))),
        option::of((rate(), number(20_000))),
        vec(loss(), 0..3),
        prop_oneof![Just(0.0), 0.0..=1.0],
    );
    let way = (
        span(50_000_000),
        option::of((number(50_000_000), span(50_000_000))),
        option::of((span(5_000_000), any::<bool>(), any::<bool>())),
        option::of((0.0..=1.0, span(5_000_000))),
        option::of(spacing()),
        option::of((0.0..=1.0, positive(5_000_000))),
        option::of((span(5_000_000), span(5_000_000))),
    );
    let middle = (queue(), capacity(), any::<bool>());
    (entry, middle, way)
        .prop_map(|(entry, (queue, capacity, is_first_bit), way)| Config {
            black_hole: entry.0.map(|(mtu, from)| BlackHole {
                mtu,
                from: Time::from_nanos(from),
            }),
            policer: entry.1.map(|(rate, burst)| Policer { rate, burst }),
            loss: entry.2,
            duplication: entry.3,
            queue,
            capacity,
            departure: if is_first_bit {
                Departure::FirstBit
            } else {
                Departure::LastBit
            },
            delay: way.0,
            path_change: way.1.map(|(at, delay)| PathChange {
                at: Time::from_nanos(at),
                delay,
            }),
            jitter: way.2.map(|(span, is_uniform, may_reorder)| Jitter {
                spread: if is_uniform {
                    Spread::Uniform(span)
                } else {
                    Spread::Exponential(span)
                },
                may_reorder,
            }),
            reordering: way
                .3
                .map(|(probability, extra)| Reordering { probability, extra }),
            release: way.4,
            contention: way.5.map(|(share, busy)| Contention { share, busy }),
            wake_up: way.6.map(|(after, delay)| WakeUp { after, delay }),
            further: Vec::new(),
        })
        .boxed()
}

/// The time of sending, and the packet.
type Sent = (Time, Packet<u64>);

fn packets(most: u32) -> impl Strategy<Value = Vec<Sent>> {
    let gap = prop_oneof![20 => Just(0), 40 => 0u64..3_000_000, 1 => any::<u64>()];
    let bytes = prop_oneof![40 => 0u32..2000, 1 => 0..=most];
    let hops = prop_oneof![2 => Just((0, u8::MAX)), 1 => (0u8..5, 0u8..5)];
    vec((gap, bytes, 0u8..4, 0u32..4, hops), 1..120).prop_map(|packets| {
        let mut now = Time::ZERO;
        let packets = packets.into_iter().zip(0..);
        packets
            .map(|((gap, bytes, ecn, flow, (enters, leaves)), payload)| {
                now = now.plus(gap);
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn)];
                let packet = Packet::new(bytes, payload);
                let packet = packet.with_ecn(ecn).with_flow(flow);
                (now, packet.through(enters..=leaves))
            })
            .collect()
    })
}

/// Checks that sent + duplicated = delivered + dropped + inside.
fn assert_conserved(link: &Link<u64>) {
    let statistics = link.statistics();
    let (dropped, inside) = (statistics.dropped_total(), link.inside());
    assert_eq!(
        statistics.sent.packets + statistics.duplicated.packets,
        statistics.delivered.packets + dropped.packets + inside.packets
    );
    assert_eq!(
        statistics.sent.bytes + statistics.duplicated.bytes,
        statistics.delivered.bytes + dropped.bytes + inside.bytes
    );
}

/// Polls the link at each of its events up to `end`.
fn drain(
    link: &mut Link<u64>,
    events: &mut EventLog,
    arrived: &mut Vec<Delivery<u64>>,
    next: impl Fn(&Link<u64>) -> Option<Time>,
    end: Time,
) {
    let mut before = None;
    while let Some(at) = next(link).filter(|at| *at <= end) {
        assert!(before < Some(at), "stuck at {at:?}");
        before = Some(at);
        while let Some(delivery) = link.poll(at, events) {
            assert_eq!(delivery.at, at);
            arrived.push(delivery);
        }
    }
}

/// Drives a link until some time after its last packet.
fn drive(
    config: &Config,
    seed: u64,
    packets: &[Sent],
    next: impl Fn(&Link<u64>) -> Option<Time>,
) -> (Vec<Delivery<u64>>, Vec<LogEntry>, Link<u64>) {
    let mut link = Link::new(config, seed).expect("valid configuration");
    let mut events = EventLog::default();
    let mut arrived = Vec::new();
    for (at, packet) in packets {
        // Stops just before the packet: the order of polling and sending at the same time makes no difference.
        let before = Time::from_nanos(at.as_nanos().saturating_sub(1));
        drain(&mut link, &mut events, &mut arrived, &next, before);
        link.send(*at, packet.clone(), &mut events);
        assert_conserved(&link);
    }
    let last = packets.last().map_or(Time::ZERO, |(at, _)| *at);
    let end = last.plus(500_000_000);
    drain(&mut link, &mut events, &mut arrived, &next, end);
    while let Some(delivery) = link.poll(end, &mut events) {
        arrived.push(delivery);
    }
    assert_conserved(&link);
    (arrived, events.0, link)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_way_to_drive_a_link_gives_the_same_outcomes(config in config(), packets in packets(3_000_000), seed: u64) {
        let (arrived, events, link) = drive(&config, seed, &packets, Link::deadline);
        // Poll at each event, or only when packets are sent.
        let (each, each_events, _) = drive(&config, seed, &packets, Link::next_event);
        prop_assert_eq!(&arrived, &each);
        prop_assert_eq!(&events, &each_events);
        let (seldom, seldom_events, _) = drive(&config, seed, &packets, |_| None);
        prop_assert_eq!(&arrived, &seldom);
        prop_assert_eq!(&events, &seldom_events);

        prop_assert!(arrived.is_sorted_by_key(|delivery| delivery.at));
        for delivery in &arrived {
            let (at, sent) = &packets[delivery.number as usize];
            prop_assert!(delivery.at >= *at);
            prop_assert_eq!(delivery.packet.payload, delivery.number);
            prop_assert_eq!((delivery.packet.bytes, delivery.packet.flow), (sent.bytes, sent.flow));
            prop_assert!(delivery.packet.ecn == sent.ecn || delivery.packet.ecn == Ecn::Ce && sent.ecn.is_capable());
        }
        let may_overtake = config.hops().any(|hop| hop.reordering.is_some()
            || hop.jitter.is_some_and(|jitter| jitter.may_reorder)
            || matches!(
                hop.queue,
                Queue::FqCoDel(_) | Queue::Cake(_) | Queue::DualPi2(_)
            ));
        let pass_all = packets.iter().all(|(_, packet)| packet.leaves == u8::MAX);
        if !may_overtake && (pass_all || config.further.is_empty()) {
            prop_assert!(arrived.is_sorted_by_key(|delivery| delivery.number));
        }
        prop_assert!(link.statistics().busy <= packets.last().expect("one").0.plus(500_000_000).since(Time::ZERO));
    }

    #[test]
    fn any_link_terminates_at_the_latest_time(config in config(), packets in packets(u32::MAX), seed: u64) {
        let mut link = Link::new(&config, seed).expect("valid configuration");
        for (at, packet) in packets {
            link.send(at, packet, &mut ());
        }
        let mut polled = 0;
        while link.poll(Time::MAX, &mut ()).is_some() {
            polled += 1;
        }
        prop_assert_eq!(link.inside().packets, 0);
        prop_assert_eq!(link.statistics().delivered.packets, polled);
        prop_assert_eq!(link.deadline(), None);
        link.send(Time::MAX, Packet::new(1500, 0), &mut ());
        assert_conserved(&link);
    }
}
