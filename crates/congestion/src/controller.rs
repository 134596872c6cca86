//! The interface between a transport and a congestion controller.
//!
//! A controller is informed of every packet sent, acknowledged or lost; it decides how much may be in flight
//! ([`Controller::window`]) and how fast it is sent ([`Controller::pacing`]). It has no clock, stores no packets and
//! does not count the bytes in flight: the transport does (RFC 9002 §2, §7), and passes the count.
//!
//! # What to call, and when
//!
//! | when | call |
//! |---|---|
//! | a packet that counts as in flight was sent | [`on_sent`](Controller::on_sent); keep its [`Receipt`] with the packet |
//! | nothing is left to send, although window and pacer would permit it | [`on_app_limited`](Controller::on_app_limited) |
//! | the path is that of an earlier connection, before the first packet | [`on_saved_path`](Controller::on_saved_path) |
//! | about to send, with nothing in flight since the sender ran out of data | [`on_idle_restart`](Controller::on_idle_restart) |
//! | the path's datagram size changed | [`on_mtu`](Controller::on_mtu) |
//! | the peer's port changed, and what was in flight is forgotten | [`on_rebind`](Controller::on_rebind) |
//!
//! An ACK frame is reported in the order of RFC 9002 Appendix A.7, losses before growth:
//!
//! 1. [`on_packet_acked`](Controller::on_packet_acked) for each newly acknowledged packet that was in flight, or
//!    [`on_spurious_loss`](Controller::on_spurious_loss) for one that had been declared lost,
//! 2. [`on_packet_lost`](Controller::on_packet_lost) for each packet now declared lost,
//! 3. [`on_ecn_ce`](Controller::on_ecn_ce) if the peer's CE count rose,
//! 4. [`on_lost`](Controller::on_lost) once, if there were losses,
//! 5. [`on_ack`](Controller::on_ack) once.
//!
//! When the loss timer fires, only steps 2 and 4. A new path gets a new controller (RFC 9000 §9.4); packets sent on the
//! old path are not reported to the new one. If only the peer's port changes, the controller stays, and packets sent
//! before are no longer counted as in flight and not reported. Packets dropped with their keys (RFC 9002 §6.4) are no longer counted as
//! in flight and not reported at all. Probes (RFC 9002 §7.5), and one packet on entering recovery (§7.3.2), may be sent
//! beyond the window; they are reported like all others.

use alloc::boxed::Box;
use core::{fmt, time::Duration};

use lastbyte_units::Time;

use crate::{
    bandwidth::Bandwidth, rtt::Rtt, sampler::DeliverySnapshot, saved_path::SavedPath, state::State,
};

/// The path of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    /// UDP payload of the datagrams the path carries, in bytes.
    pub max_datagram_size: u64,
    /// Seed of controllers that use randomness (BBR). The same seed gives the same behaviour.
    pub seed: u64,
}

/// Creates a [`Controller`] for each new path. A transport accepts any factory; a [`Spec`](crate::Spec) is one.
pub trait ControllerFactory: fmt::Debug + Send + Sync {
    /// Creates a controller for a new path.
    fn build(&self, environment: &Environment) -> Box<dyn Controller>;
}

/// A congestion controller for one path. See the [module](self) for what is called when.
///
/// Sizes are bytes of UDP payload. Every size and time of the arguments may be arbitrary: implementations saturate,
/// and never panic. Eight methods are required; the others have defaults that suit a controller without a use for them.
pub trait Controller: fmt::Debug + Send {
    /// A packet that counts as in flight was sent. The receipt must be kept with the packet and passed back when it is
    /// acknowledged or lost.
    fn on_sent(&mut self, sent: &Sent<'_>) -> Receipt;

    /// The sender stopped because nothing was left to send, while window and pacer would have permitted it (RFC 9002
    /// §7.8). Waiting for the pacer is not this. How long it counts is up to the controller. Default: ignored, so the
    /// window may grow while it is not used.
    fn on_app_limited(&mut self, now: Time, in_flight: u64) {
        let _ = (now, in_flight);
    }

    /// A newly acknowledged packet, before the [`on_ack`](Controller::on_ack) that ends the ACK frame.
    fn on_packet_acked(&mut self, now: Time, packet: &Packet);

    /// A packet declared lost, before the [`on_lost`](Controller::on_lost) that ends the batch. Lost path MTU probes
    /// are not a signal of congestion (RFC 9000 §14.4) and not reported.
    fn on_packet_lost(&mut self, now: Time, packet: &Packet);

    /// Ends a batch of losses.
    fn on_lost(&mut self, loss: &Loss<'_>);

    /// The peer reports more packets marked with ECN-CE than before. Default: handled like a loss (RFC 9002 §7.1), by
    /// [`on_lost`](Controller::on_lost) without persistent congestion.
    fn on_ecn_ce(&mut self, ce: &EcnCe<'_>) {
        self.on_lost(&Loss {
            now: ce.now,
            in_flight: ce.in_flight,
            rtt: ce.rtt,
            persistent: false,
        });
    }

    /// Ends an ACK frame.
    fn on_ack(&mut self, ack: &Ack<'_>);

    /// A packet declared lost before is acknowledged after all. Controllers that can, undo the effect of that loss. The
    /// packet is not passed to [`on_packet_acked`](Controller::on_packet_acked) as well. Default: ignored.
    fn on_spurious_loss(&mut self, now: Time, packet: &Packet) {
        let _ = (now, packet);
    }

    /// The path now carries datagrams of `max_datagram_size` bytes of UDP payload. Default: ignored.
    fn on_mtu(&mut self, max_datagram_size: u64) {
        let _ = max_datagram_size;
    }

    /// The peer's port changed: what was in flight no longer is, and will be reported neither as acknowledged nor as lost (RFC 9000
    /// §9.4). Default: ignored.
    fn on_rebind(&mut self) {}

    /// The sender is about to send again, with nothing in flight, after a pause that
    /// [`on_app_limited`](Controller::on_app_limited) reported. Default: ignored, so the window stays.
    fn on_idle_restart(&mut self, restart: &IdleRestart<'_>) {
        let _ = restart;
    }

    /// An earlier connection to the same endpoint saved these parameters, and no other connection uses them (RFC 9959). To be
    /// called before the first packet is sent. Default: ignored.
    fn on_saved_path(&mut self, saved: &SavedPath) {
        let _ = saved;
    }

    /// Whether [`on_saved_path`](Controller::on_saved_path) has an effect, so that saving parameters is worth it. Default: no.
    fn uses_saved_path(&self) -> bool {
        false
    }

    /// Whether packets may be marked ECT(1), as the response to marks is scalable (RFC 9331 §4). Asked once for a path. Default:
    /// no, so they are marked ECT(0).
    fn is_scalable(&self) -> bool {
        false
    }

    /// The congestion window, in bytes.
    fn window(&self) -> u64;

    /// How fast to send. A transport may cache the result until it calls another `on_` method or the round-trip time
    /// changes. [`on_sent`](Controller::on_sent) changes it only with the first packet in flight, or together with
    /// [`window`](Controller::window), so that one call is sufficient for a train of packets.
    fn pacing(&self, rtt: &Rtt) -> Pacing;

    /// The current state, for logs and plots.
    fn state(&self) -> State;
}

/// A packet was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// When it is sent. With a kernel or pacer that delays it, the time of departure.
    pub now: Time,
    /// Its size: UDP payload, or its share of a coalesced datagram.
    pub bytes: u64,
    /// Bytes in flight, including this packet.
    pub in_flight: u64,
    /// The path's round-trip time.
    pub rtt: &'a Rtt,
}

/// What a controller needs to know about a packet when it is acknowledged or lost. The transport keeps it with the
/// packet and returns it unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    send_index: u64,
    delivery: DeliverySnapshot,
}

impl Receipt {
    /// The receipt of a controller that does not sample delivery rates. See [`Receipt::send_index`].
    #[must_use]
    pub const fn new(send_index: u64) -> Self {
        Self {
            send_index,
            delivery: DeliverySnapshot::NONE,
        }
    }

    /// A receipt that also carries what [`DeliveryRateSampler::on_sent`](crate::DeliveryRateSampler::on_sent)
    /// returned for the packet.
    #[must_use]
    pub const fn with_delivery(send_index: u64, delivery: DeliverySnapshot) -> Self {
        Self {
            send_index,
            delivery,
        }
    }

    /// The number of packets sent before this one, over all packet number spaces of the path. Rounds and recovery
    /// periods are delimited by it: several packets can be sent at the same instant, and packet numbers restart in each
    /// space.
    pub const fn send_index(&self) -> u64 {
        self.send_index
    }

    /// The snapshot of the delivery-rate sampler; all zero if the controller does not sample.
    pub const fn delivery(&self) -> &DeliverySnapshot {
        &self.delivery
    }
}

/// A packet that was acknowledged or lost.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its size, as passed to [`Controller::on_sent`].
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Time,
    /// What [`Controller::on_sent`] returned for it.
    pub receipt: Receipt,
}

/// An ACK frame was processed.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// When the frame was received.
    pub now: Time,
    /// Bytes in flight, excluding what this frame acknowledged and what was declared lost with it.
    pub in_flight: u64,
    /// The path's round-trip time, including this frame's sample.
    pub rtt: &'a Rtt,
    /// Whether this frame gave a sample (RFC 9002 §5.1); then [`Rtt::latest`] and [`Rtt::adjusted`] are of this frame.
    pub has_rtt_sample: bool,
}

/// A batch of packets was declared lost, by one ACK frame or by one expiry of the loss timer.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// When the loss was declared.
    pub now: Time,
    /// Bytes in flight, excluding these losses and what the same ACK frame acknowledged.
    pub in_flight: u64,
    /// The path's round-trip time.
    pub rtt: &'a Rtt,
    /// Whether the losses establish persistent congestion (RFC 9002 §7.6).
    pub persistent: bool,
}

/// The peer's count of CE marks increased.
#[derive(Clone, Copy, Debug)]
pub struct EcnCe<'a> {
    /// When the ACK frame was received.
    pub now: Time,
    /// Increase of the count, in packets.
    pub newly_marked: u64,
    /// The receipt of the largest newly acknowledged packet: by it, RFC 9002 §7.3.2 determines whether the mark belongs
    /// to a congestion event that was already handled.
    pub largest_acked: Receipt,
    /// Bytes in flight, excluding what this frame acknowledged and what was declared lost with it.
    pub in_flight: u64,
    /// The path's round-trip time.
    pub rtt: &'a Rtt,
}

/// Sending starts again after a pause.
#[derive(Clone, Copy, Debug)]
pub struct IdleRestart<'a> {
    /// Now, just before the first packet.
    pub now: Time,
    /// Time since the last packet was sent.
    pub idle: Duration,
    /// The path's round-trip time.
    pub rtt: &'a Rtt,
}

/// The pacing parameters: the input of the [`Pacer`](crate::Pacer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// The rate; [`Bandwidth::MAX`] for no pacing, as window-based controllers request before the first RTT sample.
    pub rate: Bandwidth,
    /// Bytes to accumulate before a release once the pacer has delayed data: one GSO send.
    pub quantum: u64,
    /// Burst after a pause, in bytes. At least the quantum.
    pub burst: u64,
}

impl Pacing {
    /// Maximum bytes of a UDP datagram train in one system call.
    const QUANTUM_MAX: u64 = 64 * 1024;
    /// Datagrams that may be sent back to back: the initial window of RFC 9002 §7.2, by which §7.7 bounds bursts.
    const BURST_DATAGRAMS: u64 = 10;

    /// No pacing.
    pub const UNLIMITED: Self = Self {
        rate: Bandwidth::MAX,
        quantum: Self::QUANTUM_MAX,
        burst: u64::MAX,
    };

    /// Pacing at `rate` with a quantum of one millisecond's worth, at least two datagrams and at most 64 KiB, and a
    /// burst of ten datagrams or a quantum. The rate is at least a byte per second, so that no sender waits forever.
    #[must_use]
    pub fn at(rate: Bandwidth, max_datagram_size: u64) -> Self {
        if rate.is_unlimited() {
            return Self::UNLIMITED;
        }
        let rate = rate.max(Bandwidth::from_bytes_per_second(1));
        let quantum = rate
            .bytes_in(Duration::from_millis(1))
            .min(Self::QUANTUM_MAX)
            .max(max_datagram_size.saturating_mul(2));
        Self {
            rate,
            quantum,
            burst: quantum.max(Self::burst_of(max_datagram_size)),
        }
    }

    /// The same with releases of this span's worth, of two datagrams at least, also after a pause.
    pub(crate) fn in_releases_of(self, span: Duration, max_datagram_size: u64) -> Self {
        let least = max_datagram_size.saturating_mul(2);
        let quantum = self.rate.bytes_in(span).max(least).min(self.quantum);
        Self {
            quantum,
            burst: quantum,
            ..self
        }
    }

    /// The same with a burst of this many bytes, if one is configured.
    pub(crate) fn with_burst(self, burst: Option<u64>) -> Self {
        match burst {
            Some(burst) if !self.rate.is_unlimited() => Self {
                burst: burst.max(self.quantum),
                ..self
            },
            _ => self,
        }
    }

    /// Minimum burst on any path: ten datagrams.
    pub(crate) const fn burst_of(max_datagram_size: u64) -> u64 {
        max_datagram_size.saturating_mul(Self::BURST_DATAGRAMS)
    }
}

/// No window is larger: 1 TiB.
pub(crate) const WINDOW_MAX: u64 = 1 << 40;
/// The largest UDP payload of IPv4 and IPv6 without jumbograms (RFC 9000 §18.2).
pub(crate) const DATAGRAM_SIZE_MAX: u64 = 65_527;

#[cfg(test)]
mod tests;
