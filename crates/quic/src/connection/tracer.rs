//! The listener of a connection, if there is one.
//!
//! Without a listener nothing is computed for it.

use lastbyte_congestion::Time;
use lastbyte_wire::packet::PacketType;

use crate::{
    recovery::Recovery,
    trace::{DropReason, Event, Metrics, RttMetrics, Trace},
};

/// Passes events to the listener.
#[derive(Default)]
pub(super) struct Tracer {
    listener: Option<Box<dyn Trace>>,
    /// The metrics last reported: only changes are.
    last_metrics: Option<Box<Metrics>>,
}

impl Tracer {
    /// Reports to this listener from now on.
    pub(super) fn set_listener(&mut self, listener: Box<dyn Trace>) {
        self.listener = Some(listener);
    }

    /// Whether there is a listener.
    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.listener.is_some()
    }

    /// Reports an event.
    #[inline]
    pub(super) fn event(&mut self, now: Time, event: &Event<'_>) {
        if let Some(listener) = &mut self.listener {
            listener.on_event(now, event);
        }
    }

    /// Reports a packet that was not used.
    pub(super) fn packet_dropped(
        &mut self,
        now: Time,
        packet_type: Option<PacketType>,
        len: usize,
        reason: DropReason,
    ) {
        let event = Event::PacketDropped {
            packet_type,
            len,
            reason,
        };
        self.event(now, &event);
    }

    /// Reports the metrics of recovery and congestion control if they have changed.
    #[inline]
    pub(super) fn metrics(&mut self, now: Time, recovery: &Recovery) {
        if self.is_on() {
            self.changed_metrics(now, recovery);
        }
    }

    fn changed_metrics(&mut self, now: Time, recovery: &Recovery) {
        let (rtt, state) = (recovery.rtt(), recovery.congestion());
        let metrics = Metrics {
            window: state.window,
            in_flight: recovery.in_flight(),
            pacing_rate: recovery.pacing().rate,
            rtt: rtt.has_sample().then(|| RttMetrics {
                smoothed: rtt.smoothed(),
                min: rtt.min(),
                latest: rtt.latest(),
                variance: rtt.variance(),
            }),
            state,
        };
        if self.last_metrics.as_deref() != Some(&metrics) {
            self.event(now, &Event::Metrics(&metrics));
            self.last_metrics = Some(Box::new(metrics));
        }
    }
}

#[cfg(test)]
mod tests;
