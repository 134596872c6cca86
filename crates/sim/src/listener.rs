//! Callbacks during a simulation.

use lastbyte_congestion::Time;
use lastbyte_link::{Count, Event};
use lastbyte_quic::trace::Trace;
use lastbyte_units::Direction;
use lastbyte_wire::Side;

/// Receives the events of a simulation. `()` ignores them, at no cost.
pub trait Listener {
    /// Called when a connection of a flow starts. Returns a receiver of its events. Flows are numbered in the order of the
    /// scenario; cross traffic follows.
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        let _ = (flow, side);
        None
    }

    /// Whether the simulation is to end with [`SimError::Cancelled`](crate::SimError::Cancelled). It asks again and again.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Whether to call [`Listener::on_link`].
    fn wants_link_events(&self) -> bool {
        false
    }

    /// Called for each event on a link.
    fn on_link(&mut self, event: &LinkEvent) {
        let _ = event;
    }
}

impl Listener for () {}

/// Called for each event on a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkEvent {
    /// When it happened. Times of one link never decrease.
    pub at: Time,
    /// The link.
    pub direction: Direction,
    /// The number of the hop on the link, from 0.
    pub hop: u8,
    /// Whether the hop is the link's bottleneck: the one with the lowest rate.
    pub is_bottleneck: bool,
    /// The packet's flow, numbered as for [`Listener::trace`]; `None` for traffic at a constant rate.
    pub flow: Option<usize>,
    /// Number of the packet, from 0 in the order of sending on the link. Copies have that of the original.
    pub number: u64,
    /// Size of the packet with the path's overhead, in bytes.
    pub bytes: u32,
    /// The event.
    pub event: Event,
    /// The queue of the hop after the event.
    pub queue: Count,
}

/// Passes all events to several listeners.
#[derive(Default)]
pub struct Listeners<'a>(pub Vec<&'a mut dyn Listener>);

impl core::fmt::Debug for Listeners<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Several({})", self.0.len())
    }
}

impl Listener for Listeners<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.iter().any(|listener| listener.is_cancelled())
    }

    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        let listeners = self.0.iter_mut();
        let mut traces: Vec<Box<dyn Trace>> = listeners
            .filter_map(|listener| listener.trace(flow, side))
            .collect();
        match traces.len() {
            0 | 1 => traces.pop(),
            _ => Some(Box::new(Traces(traces))),
        }
    }

    fn wants_link_events(&self) -> bool {
        self.0.iter().any(|listener| listener.wants_link_events())
    }

    fn on_link(&mut self, event: &LinkEvent) {
        for listener in &mut self.0 {
            if listener.wants_link_events() {
                listener.on_link(event);
            }
        }
    }
}

struct Traces(Vec<Box<dyn Trace>>);

impl Trace for Traces {
    fn on_event(&mut self, now: Time, event: &lastbyte_quic::trace::Event<'_>) {
        for trace in &mut self.0 {
            trace.on_event(now, event);
        }
    }
}
