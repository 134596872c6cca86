//! The listener of a connection and the meter of its transfer, if there are any.
//!
//! Without them nothing is computed.

use lastbyte_congestion::Time;
use lastbyte_wire::packet::PacketType;

use crate::{
    anatomy::{Anatomy, Meter, Pause},
    recovery::Recovery,
    trace::{DropReason, Event, Metrics, RttMetrics, Trace},
};

/// Passes events to listener and meter.
#[derive(Default)]
pub(super) struct Tracer {
    /// Whether there is a listener or a meter.
    is_on: bool,
    listener: Option<Box<dyn Trace>>,
    meter: Option<Box<Meter>>,
    /// The metrics last reported: only changes are reported.
    last_metrics: Option<Box<Metrics>>,
}

impl Tracer {
    /// Sets the listener.
    pub(super) fn set_listener(&mut self, listener: Box<dyn Trace>) {
        self.listener = Some(listener);
        self.is_on = true;
    }

    /// Measures with this meter from now on.
    pub(super) fn set_meter(&mut self, meter: Meter) {
        self.meter = Some(Box::new(meter));
        self.is_on = true;
    }

    /// Whether there is a meter.
    pub(super) const fn is_measuring(&self) -> bool {
        self.meter.is_some()
    }

    /// The result of the meter.
    pub(super) fn anatomy(&self) -> Option<Anatomy> {
        self.meter.as_ref().map(|meter| meter.anatomy())
    }

    /// A turn has ended.
    pub(super) fn pause(&mut self, now: Time, pause: Pause) {
        if let Some(meter) = &mut self.meter {
            meter.on_pause(now, pause);
        }
    }

    /// Whether there is a listener.
    #[inline]
    pub(super) const fn is_listening(&self) -> bool {
        self.listener.is_some()
    }

    /// Whether there is a listener or a meter.
    #[inline]
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Reports an event.
    #[inline]
    pub(super) fn event(&mut self, now: Time, event: &Event<'_>) {
        if self.is_on {
            self.pass(now, event);
        }
    }

    fn pass(&mut self, now: Time, event: &Event<'_>) {
        if let Some(meter) = &mut self.meter {
            match event {
                Event::PacketAcked { space, number, .. } => meter.on_acked(now, *space, *number),
                Event::PacketLost { .. } => meter.on_lost(now),
                Event::ProbeTimeout(_) => meter.on_probe_timeout(now),
                _ => {}
            }
        }
        if let Some(listener) = &mut self.listener {
            listener.on_event(now, event);
        }
    }

    /// Reports a dropped packet.
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
        if self.listener.is_some() {
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
