//! Lastbyte's congestion control in quinn: [`Controllers`] is a `quinn::congestion::ControllerFactory`.
//!
//! What quinn's trait lets through, and what it does not:
//!
//! - quinn paces by 1.25 windows a round trip, whatever the controller: [`Controller::pacing`] is not asked. Rapid Start's
//!   growth and recovery work as designed; its first flight and its 3× growth leave at quinn's pace.
//! - A batch of packets is reported as one packet sent, so its packets share a receipt. Losses come as a sum of bytes with
//!   the time of the newest, after the ACK that revealed them has been processed.
//! - The peer's acknowledgment delay and late acknowledgments are not reported: RTT samples contain the delay, and no
//!   congestion event is undone.

use std::{
    any::Any,
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use lastbyte_congestion::{
    Ack, Controller, ControllerFactory, EcnCe, Environment, Loss, Packet, Receipt, Rtt, Sent, Time,
};
use quinn::congestion;

/// Controllers of a Lastbyte factory, such as a `Spec`, for quinn's `TransportConfig`.
#[derive(Clone, Debug)]
pub struct Controllers(pub Arc<dyn ControllerFactory>);

impl congestion::ControllerFactory for Controllers {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(Adapter::new(self.0.clone(), now, current_mtu))
    }
}

struct Adapter {
    factory: Arc<dyn ControllerFactory>,
    /// Behind a lock only because quinn wants controllers that are `Sync`.
    controller: Mutex<Box<dyn Controller>>,
    epoch: Instant,
    mtu: u16,
    initial_window: u64,
    rtt: Rtt,
    in_flight: u64,
    /// When batches were sent, the oldest first, and their receipts.
    batches: VecDeque<(Instant, Receipt)>,
    /// When the newest packet acknowledged by the present frame was sent.
    newest_acked: Option<Instant>,
    /// When the newest packet acknowledged by any frame was sent.
    newest_sampled: Option<Instant>,
}

/// Acknowledgments of older packets are ignored.
const MEMORY: Duration = Duration::from_secs(30);

impl Adapter {
    fn new(factory: Arc<dyn ControllerFactory>, now: Instant, mtu: u16) -> Self {
        let controller = factory.build(&Environment {
            max_datagram_size: mtu.into(),
            seed: 1,
        });
        Self {
            factory,
            initial_window: controller.window(),
            controller: Mutex::new(controller),
            epoch: now,
            mtu,
            rtt: Rtt::default(),
            in_flight: 0,
            batches: VecDeque::new(),
            newest_acked: None,
            newest_sampled: None,
        }
    }

    fn time(&self, at: Instant) -> Time {
        let since = at.saturating_duration_since(self.epoch);
        Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The packet of so many bytes in the batch that was sent at this time.
    fn packet(&self, sent: Instant, bytes: u64) -> Option<Packet> {
        let index = self.batches.partition_point(|(at, _)| *at <= sent);
        let (at, receipt) = self.batches.get(index.checked_sub(1)?)?;
        (*at == sent).then(|| Packet {
            bytes,
            sent_at: self.time(sent),
            receipt: *receipt,
        })
    }
}

fn exclusive(controller: &mut Mutex<Box<dyn Controller>>) -> &mut dyn Controller {
    let controller = controller.get_mut();
    controller.unwrap_or_else(PoisonError::into_inner).as_mut()
}

impl congestion::Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _: u64) {
        self.in_flight += bytes;
        let at = self.time(now);
        let receipt = exclusive(&mut self.controller).on_sent(&Sent {
            now: at,
            bytes,
            in_flight: self.in_flight,
            rtt: &self.rtt,
        });
        let is_old = |at: &Instant| now.saturating_duration_since(*at) > MEMORY;
        while self.batches.front().is_some_and(|(at, _)| is_old(at)) {
            self.batches.pop_front();
        }
        self.batches.push_back((now, receipt));
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _: bool,
        _: &quinn_proto::RttEstimator,
    ) {
        self.newest_acked = self.newest_acked.max(Some(sent));
        if let Some(packet) = self.packet(sent, bytes) {
            let now = self.time(now);
            exclusive(&mut self.controller).on_packet_acked(now, &packet);
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        if app_limited {
            // It was, before this frame: quinn counts bytes down as it reads the frame.
            let now = self.time(now);
            exclusive(&mut self.controller).on_app_limited(now, self.in_flight);
        }
        self.in_flight = in_flight;
        let newest = self.newest_acked.take();
        let has_rtt_sample = newest > self.newest_sampled;
        if let (true, Some(sent)) = (has_rtt_sample, newest) {
            self.newest_sampled = newest;
            let sample = now.saturating_duration_since(sent);
            self.rtt
                .update(self.time(now), sample, Duration::ZERO, None);
        }
        let now = self.time(now);
        exclusive(&mut self.controller).on_ack(&Ack {
            now,
            in_flight,
            rtt: &self.rtt,
            has_rtt_sample,
        });
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        let Some(packet) = self.packet(sent, lost_bytes) else {
            return;
        };
        let now = self.time(now);
        if lost_bytes == 0 {
            exclusive(&mut self.controller).on_ecn_ce(&EcnCe {
                now,
                newly_marked: 1,
                largest_acked: packet.receipt,
                in_flight: self.in_flight,
                rtt: &self.rtt,
            });
            return;
        }
        exclusive(&mut self.controller).on_packet_lost(now, &packet);
        exclusive(&mut self.controller).on_lost(&Loss {
            now,
            in_flight: self.in_flight,
            rtt: &self.rtt,
            persistent: is_persistent_congestion,
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        exclusive(&mut self.controller).on_mtu(new_mtu.into());
    }

    fn window(&self) -> u64 {
        let controller = self.controller.lock();
        controller.unwrap_or_else(PoisonError::into_inner).window()
    }

    /// quinn asks for this when the client's port changes, and so starts with a new controller.
    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(Self::new(self.factory.clone(), self.epoch, self.mtu))
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.controller.fmt(f)
    }
}
