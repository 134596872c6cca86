use std::sync::{Arc, Mutex};

use lastbyte_congestion::{ControllerFactory, Environment, Rtt, Spec};

use super::*;
use crate::recovery::{EcnValidation, LossThresholds};

/// Counts events of metrics, and all others.
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<(u32, u32)>>);

impl Trace for Counter {
    fn on_event(&mut self, _: Time, event: &Event<'_>) {
        let mut counts = self.0.lock().expect("no panic elsewhere");
        match event {
            Event::Metrics(_) => counts.0 += 1,
            _ => counts.1 += 1,
        }
    }
}

fn recovery() -> Recovery {
    let spec: Spec = "cubic".parse().expect("a spec");
    let controller = spec.build(&Environment {
        max_datagram_size: 1200,
        seed: 1,
    });
    Recovery::new(
        controller,
        Rtt::default(),
        LossThresholds::fixed(),
        EcnValidation::disabled(),
    )
}

#[test]
fn metrics_are_reported_when_they_change() {
    let counter = Counter::default();
    let mut tracer = Tracer::default();
    tracer.set_listener(Box::new(counter.clone()));
    let mut recovery = recovery();
    tracer.metrics(Time::ZERO, &recovery);
    tracer.metrics(Time::ZERO, &recovery);
    assert_eq!(*counter.0.lock().expect("no panic"), (1, 0));
    recovery.on_mtu(1400);
    tracer.metrics(Time::ZERO, &recovery);
    assert_eq!(*counter.0.lock().expect("no panic"), (2, 0));
}

#[test]
fn without_a_trace_listener_nothing_is_recorded() {
    let mut tracer = Tracer::default();
    tracer.metrics(Time::ZERO, &recovery());
    tracer.packet_dropped(Time::ZERO, None, 20, DropReason::Malformed);
    assert!(tracer.last_metrics.is_none());
    let counter = Counter::default();
    tracer.set_listener(Box::new(counter.clone()));
    tracer.packet_dropped(Time::ZERO, None, 20, DropReason::Malformed);
    assert_eq!(*counter.0.lock().expect("no panic"), (0, 1));
}
