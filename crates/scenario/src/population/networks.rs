//! Populations of given networks, drawn with equal probability.
//!
//! Object sizes and, unless a network's file names it, the client's acknowledgment behaviour are those of the population that
//! the networks replace the paths of.

use core::time::Duration;

use lastbyte_link::{Capacity, Config, Limit, Loss, Queue, Rate};
use lastbyte_units::Direction;

use super::{
    CrossFact, DATAGRAM, Draw, DrawFacts, Population, QUEUE_MAX, RATE_MAX, UpFacts, microseconds,
    random::{Field, Stream},
};
use crate::scenario::Path;

/// Replaces the path of a draw by one of the networks.
pub(super) fn draw(population: &Population, mut draw: Draw, seed: u64) -> Draw {
    let stream = Stream::new(seed, Field::Network);
    let networks = &population.networks;
    let Some((name, path)) = networks.get(stream.choose(0, networks.iter().map(|_| 1.0))) else {
        return draw;
    };
    let transport = &mut draw.transport;
    transport.ecn = path.down.marks();
    if let Some(acks) = path.client_acks {
        transport.max_ack_delay = acks.max_ack_delay();
        transport.ack_decimation = acks.decimation();
        acks.name().clone_into(&mut draw.facts.ack_policy);
    }
    draw.site.clone_from(name);
    draw.class.clone_from(name);
    draw.facts = facts(path, Direction::Down, &draw);
    // A transfer starts at a random point of a trace.
    let period = match &path.down.bottleneck().1.capacity {
        Capacity::Trace(trace) => trace.period(),
        _ => PERIOD,
    };
    draw.start = period.mul_f64(stream.unit(1));
    draw.cross = Vec::new();
    draw.path = path.clone();
    draw
}

/// The range of start times of transfers on networks without a trace.
const PERIOD: Duration = Duration::from_secs(10);

fn limit(queue: &Queue) -> Limit {
    match queue {
        Queue::DropTail(queue) => queue.limit,
        Queue::CoDel(queue) => queue.limit,
        Queue::FqCoDel(queue) | Queue::Cake(queue) => queue.codel.limit,
        Queue::Pie(queue) => queue.limit,
        Queue::DualPi2(queue) => queue.limit,
    }
}

/// Whether a queue of the link has active queue management.
fn has_aqm(link: &Config) -> bool {
    let mut hops = link.hops();
    hops.any(|hop| !matches!(hop.queue, Queue::DropTail(_)))
}

/// The share of packets that all hops together lose at random.
fn random_loss(link: &Config) -> f64 {
    let losses = link.hops().flat_map(|hop| &hop.loss);
    losses.fold(0.0, |share, loss| match loss {
        Loss::Bernoulli(more) => share + (1.0 - share) * more,
        _ => share,
    })
}

/// The logged values of a path whose data have this direction.
pub(super) fn facts(path: &Path, direction: Direction, draw: &Draw) -> DrawFacts {
    let (data, back) = match direction {
        Direction::Down => (&path.down, &path.up),
        Direction::Up => (&path.up, &path.down),
    };
    let bottleneck = data.bottleneck().1;
    let rate = bottleneck.capacity.nominal();
    let rate = rate.unwrap_or(Rate::from_bits_per_second(RATE_MAX as u64));
    let longest = microseconds(QUEUE_MAX);
    let packet = u64::from(DATAGRAM) + u64::from(path.overhead);
    let queue_bytes = match limit(&bottleneck.queue) {
        Limit::Unlimited => rate.bytes_in(longest),
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => packets.saturating_mul(packet),
        Limit::Time(span) => rate.bytes_in(span),
    };
    DrawFacts {
        rate,
        rtt: path.rtt(),
        queue_bytes,
        queue: rate.time_for(queue_bytes).min(longest),
        has_aqm: has_aqm(data),
        random_loss: random_loss(data),
        has_burst_loss: data
            .hops()
            .flat_map(|hop| &hop.loss)
            .any(|loss| !matches!(loss, Loss::Bernoulli(_))),
        policer: data.hops().find_map(|hop| hop.policer),
        handover: None,
        release: back.hops().find_map(|hop| hop.release),
        jitter: None,
        contention: data.hops().find_map(|hop| hop.contention),
        wake_up: path.up.hops().find_map(|hop| hop.wake_up),
        reordering: data.hops().find_map(|hop| hop.reordering),
        is_rate_variable: !matches!(
            bottleneck.capacity,
            Capacity::Constant(_) | Capacity::Unlimited
        ),
        up_rate: match &path.up.bottleneck().1.capacity {
            Capacity::Constant(rate) => Some(*rate),
            _ => None,
        },
        up: UpFacts {
            queue: None,
            has_aqm: has_aqm(&path.up),
            random_loss: random_loss(&path.up),
            jitter: None,
        },
        is_poor: false,
        cross: CrossFact::None,
        ack_policy: draw.facts.ack_policy.clone(),
        ecn: draw.transport.ecn,
    }
}
