//! Builds the two links from the values of a draw.

use core::time::Duration;

use lastbyte_link::{
    self as link, Capacity, CoDel, DropTail, DualPi2, FqCoDel, GilbertElliott, Jitter, Limit, Loss,
    Pie, Queue, Rate, Schedule, Spacing, Spread,
};

use super::{
    Bursts, Class, CrossFact, DATAGRAM, Discipline, Draw, DrawFacts, Population, RATE_MIN, Sketch,
    random::{Field, Stream},
};
use crate::{
    cross::{CrossKind, CrossTraffic, Pages},
    scenario::{Path, Transport},
};

/// Builds the draw from its sketch.
pub(super) fn draw(population: &Population, sketch: Sketch, seed: u64) -> Draw {
    let class = &population.classes[sketch.class];
    let policy = &population.acks[sketch.acks];
    let facts = &sketch.facts;
    let path = Path {
        cross: Vec::new(),
        moves: Vec::new(),
        down: down(population, class, &sketch, seed),
        up: up(population, facts),
        overhead: population.overhead,
        client_acks: None,
    };
    let transport = Transport {
        ecn: facts.ecn,
        saved_path: population.saved_path(facts, seed),
        max_ack_delay: policy
            .max_ack_delay
            .unwrap_or_else(|| policy.rule.max_ack_delay()),
        ack_decimation: policy.rule.decimation(),
        ack_frequency: policy.ack_frequency,
        ..Transport::default()
    };
    let (start, cross) = cross(population, &sketch, seed);
    Draw {
        site: population.sites[sketch.site].name.clone(),
        class: class.name.clone(),
        path,
        size_bytes: sketch.size_bytes,
        cross,
        start,
        transport,
        neighbour: None,
        facts: sketch.facts,
    }
}

fn down(population: &Population, class: &Class, sketch: &Sketch, seed: u64) -> link::Config {
    let facts = &sketch.facts;
    let mut loss = Vec::new();
    if facts.random_loss > 0.0 {
        loss.push(Loss::Bernoulli(facts.random_loss));
    }
    if let Some(bursts) = sketch.bursts {
        loss.push(Loss::GilbertElliott(gilbert(bursts, facts.rate)));
    }
    if let (Some(handover), Some(interval)) = (class.handover, facts.handover) {
        loss.push(Loss::Bursts(link::Bursts {
            spacing: Spacing::Fixed(interval),
            probability: handover.drop_share,
            length: handover.drop_packets,
        }));
    }
    link::Config {
        policer: facts.policer,
        loss,
        queue: queue(population, facts.queue_bytes, facts.has_aqm, facts.ecn),
        capacity: capacity(class, facts, Stream::new(seed, Field::Variation)),
        contention: facts.contention,
        reordering: facts.reordering,
        delay: facts.rtt / 2,
        jitter: facts.jitter.map(jitter),
        ..link::Config::default()
    }
}

/// A queue of this many bytes, managed as the population says.
fn queue(population: &Population, bytes: u64, has_aqm: bool, ecn: bool) -> Queue {
    let limit = Limit::Bytes(bytes);
    let codel = CoDel {
        limit,
        ecn,
        ..CoDel::default()
    };
    let fq_codel = FqCoDel {
        codel,
        ..FqCoDel::default()
    };
    if !has_aqm {
        return Queue::DropTail(DropTail {
            limit,
            mark_above: None,
        });
    }
    match population.aqm {
        Discipline::CoDel => Queue::CoDel(codel),
        Discipline::FqCoDel => Queue::FqCoDel(fq_codel),
        Discipline::Cake => Queue::Cake(fq_codel),
        Discipline::Pie => Queue::Pie(Pie {
            limit,
            ecn,
            ..Pie::default()
        }),
        Discipline::DualPi2 => Queue::DualPi2(DualPi2 {
            limit,
            ..DualPi2::default()
        }),
    }
}

fn jitter(mean: Duration) -> Jitter {
    Jitter {
        spread: Spread::Exponential(mean),
        may_reorder: false,
    }
}

/// A Gilbert-Elliott model with this rate of bursts while the line is full. Its states change by packets, not by time: otherwise
/// rare probes on an idle line would each meet a new burst.
fn gilbert(bursts: Bursts, rate: Rate) -> GilbertElliott {
    let datagrams = rate.bytes_in(bursts.every) as f64 / f64::from(DATAGRAM);
    GilbertElliott {
        to_bad: (1.0 / datagrams.max(1.0)).min(1.0),
        to_good: 1.0 / bursts.packets,
        loss_in_bad: 1.0,
        loss_in_good: 0.0,
    }
}

fn up(population: &Population, facts: &DrawFacts) -> link::Config {
    let limits = &facts.up;
    let bytes = match facts.up_rate.zip(limits.queue) {
        Some((rate, depth)) => rate.bytes_in(depth).max(population.queue_least()),
        None => population.up_queue,
    };
    let mut loss = Vec::new();
    if limits.random_loss > 0.0 {
        loss.push(Loss::Bernoulli(limits.random_loss));
    }
    link::Config {
        loss,
        queue: queue(population, bytes, limits.has_aqm, facts.ecn),
        capacity: facts
            .up_rate
            .map_or(Capacity::Unlimited, Capacity::Constant),
        contention: facts.contention,
        // The client sends first, so the radio is awake when packets arrive on the downlink.
        wake_up: facts.wake_up,
        delay: facts.rtt.saturating_sub(facts.rtt / 2),
        jitter: limits.jitter.map(jitter),
        release: facts.release,
        ..link::Config::default()
    }
}

/// The rate over time. The drawn steps repeat; in a class with handovers, after a whole number of them, so that handovers
/// coincide with the loss bursts.
fn capacity(class: &Class, facts: &DrawFacts, stream: Stream) -> Capacity {
    let period = match (class.variation, facts.handover) {
        (None, None) => return Capacity::Constant(facts.rate),
        (Some(variation), None) => nanos(variation.step) * STEPS,
        (None, Some(interval)) => nanos(interval),
        (Some(variation), Some(interval)) => {
            let least = nanos(variation.step) * STEPS_MIN;
            let interval = nanos(interval).max(1);
            interval * least.div_ceil(interval)
        }
    };
    let step = class
        .variation
        .map_or(period, |variation| nanos(variation.step));
    let rates = rates(class, facts, stream, period.div_ceil(step).min(STEPS));
    let rate_at = |at: u64| {
        let index = (at / step) as usize % rates.len();
        rates.get(index).copied().unwrap_or(facts.rate)
    };
    let mut steps: Vec<(u64, Rate)> = Vec::new();
    let begins = (0..period).step_by(step as usize);
    match (class.handover, facts.handover) {
        (Some(handover), Some(interval)) => {
            let (stall, interval) = (nanos(handover.stall), nanos(interval).max(1));
            let mut instants: Vec<u64> = begins.collect();
            for begin in (0..period).step_by(interval as usize) {
                instants.extend([begin, begin + stall]);
            }
            instants.sort_unstable();
            instants.dedup();
            for at in instants.into_iter().filter(|at| *at < period) {
                let is_stalled = at % interval < stall;
                steps.push((at, if is_stalled { Rate::ZERO } else { rate_at(at) }));
            }
        }
        _ => steps.extend(begins.map(|at| (at, rate_at(at)))),
    }
    let steps: Vec<(Duration, Rate)> = steps
        .into_iter()
        .map(|(at, rate)| (Duration::from_nanos(at), rate))
        .collect();
    Schedule::new(&steps, Some(Duration::from_nanos(period)))
        .map_or(Capacity::Constant(facts.rate), Capacity::Schedule)
}

/// Draws `count` rates: a first-order autoregression of the logarithm.
pub(super) fn rates(class: &Class, facts: &DrawFacts, stream: Stream, count: u64) -> Vec<Rate> {
    let Some(variation) = class.variation else {
        return vec![facts.rate];
    };
    let variance = (1.0 + variation.cv * variation.cv).ln();
    let innovation = (1.0 - variation.memory * variation.memory).max(0.0).sqrt();
    let mut z = stream.normal(0);
    (1..=count)
        .map(|index| {
            let factor = (variance.sqrt() * z - variance / 2.0).exp();
            z = variation.memory * z + innovation * stream.normal(index);
            let bits = facts.rate.bits_per_second() as f64 * factor;
            Rate::from_bits_per_second((bits.max(RATE_MIN / 4.0) / 1e3).round() as u64 * 1000)
        })
        .collect()
}

/// Builds the cross traffic. Also returns when the transfer starts.
fn cross(population: &Population, sketch: &Sketch, seed: u64) -> (Duration, Vec<CrossTraffic>) {
    let facts = &sketch.facts;
    let pages = match (&facts.cross, &population.cross.bursts_spec) {
        (CrossFact::Bursts { bytes, every }, Some(congestion)) => Some((
            congestion,
            Pages {
                bytes: *bytes,
                every: *every,
            },
        )),
        _ => None,
    };
    let lead = match (sketch.bulk, pages) {
        (Some((_, lead)), _) => lead,
        // One page is complete, and the transfer starts at any time until the next but one.
        (None, Some((_, pages))) => {
            let phase = Stream::new(seed, Field::CrossLead).unit(0);
            pages.every.mul_f64(1.0 + phase)
        }
        (None, None) => Duration::ZERO,
    };
    let start = match facts.handover {
        // The phase is given: traffic that would start before the simulation starts with it.
        Some(_) => sketch.handover_age,
        None => lead,
    };
    let kind = match (&facts.cross, sketch.bulk, pages) {
        (CrossFact::Bulk(_), Some((which, _)), _) => population.cross.kinds[which].clone(),
        (_, _, Some((congestion, pages))) => CrossKind::Pages(congestion.clone(), pages),
        (CrossFact::Bursts { bytes, every }, _, None) => {
            let mean = *bytes as f64 * 8.0 / every.as_secs_f64();
            let most =
                facts.long_term_rate().bits_per_second() as f64 * population.cross.bursts_at_most;
            let bits = mean.min(most).max(1.0);
            CrossKind::Constant(Rate::from_bits_per_second(bits as u64))
        }
        _ => return (start, Vec::new()),
    };
    let cross = CrossTraffic {
        start: start.saturating_sub(lead),
        ..kind.into()
    };
    (start, vec![cross])
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// The number of drawn rates before they repeat.
const STEPS: u64 = 512;
/// The minimum number of steps in a period of handovers.
const STEPS_MIN: u64 = 16;
