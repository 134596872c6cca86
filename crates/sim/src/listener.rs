//! Who wants to know what happens in a world while it happens.

use lastbyte_congestion::Time;
use lastbyte_link::{Count, Event};
use lastbyte_quic::trace::Trace;
use lastbyte_wire::Side;

/// Hears of a simulation. `()` hears nothing, and costs nothing.
pub trait Listener {
    /// A connection of a flow begins: what is to hear of it, if anything. Flows count in the order of the scenario, cross
    /// traffic behind them.
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        let _ = (flow, side);
        None
    }

    /// Whether [`Listener::on_link`] is to be called.
    fn listens_to_links(&self) -> bool {
        false
    }

    /// Something happened on a link.
    fn on_link(&mut self, event: &LinkEvent) {
        let _ = event;
    }
}

impl Listener for () {}

/// One of the two links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the server to the clients.
    Down,
    /// From the clients to the server.
    Up,
}

/// Something happened on a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkEvent {
    /// When. Of one link, never before the event before.
    pub at: Time,
    /// Where.
    pub way: Way,
    /// Whose packet it was, as [`Listener::trace`] counts; `None` for traffic at a constant rate.
    pub flow: Option<usize>,
    /// How many bytes the packet has, with the path's overhead.
    pub bytes: u32,
    /// What happened to it.
    pub event: Event,
    /// What waits in the queue after it.
    pub queue: Count,
}

/// Several listeners as one: each hears all.
#[derive(Default)]
pub struct Several<'a>(pub Vec<&'a mut dyn Listener>);

impl core::fmt::Debug for Several<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Several({})", self.0.len())
    }
}

impl Listener for Several<'_> {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        let listeners = self.0.iter_mut();
        let mut traces: Vec<Box<dyn Trace>> = listeners
            .filter_map(|listener| listener.trace(flow, side))
            .collect();
        match traces.len() {
            0 | 1 => traces.pop(),
            _ => Some(Box::new(Fan(traces))),
        }
    }

    fn listens_to_links(&self) -> bool {
        self.0.iter().any(|listener| listener.listens_to_links())
    }

    fn on_link(&mut self, event: &LinkEvent) {
        for listener in &mut self.0 {
            if listener.listens_to_links() {
                listener.on_link(event);
            }
        }
    }
}

struct Fan(Vec<Box<dyn Trace>>);

impl Trace for Fan {
    fn on_event(&mut self, now: Time, event: &lastbyte_quic::trace::Event<'_>) {
        for trace in &mut self.0 {
            trace.on_event(now, event);
        }
    }
}
