//! Congestion avoidance: window growth once the capacity of the path has been found.
//!
//! An avoidance computes the next window from each ACK, chooses the factor of a reduction at congestion, and is
//! informed of each reduction, from which it learns where the path was full. Recovery periods, the minimum window,
//! application limits and undoing are handled by [`WindowController`](crate::WindowController) for all of them.

mod cubic;
mod new_reno;
mod pico;
mod prague;

use core::fmt;

pub use cubic::Cubic;
pub use new_reno::NewReno;
pub use pico::Pico;
pub use prague::Prague;

use lastbyte_units::Time;

use crate::rtt::Rtt;

/// A rule for the window in congestion avoidance.
pub trait Avoidance: fmt::Debug + Send {
    /// The name in specs and logs.
    fn name(&self) -> &'static str;

    /// The factor by which the window shrinks at congestion.
    fn beta(&self, cause: Cause) -> f64;

    /// The window was reduced. Avoidance continues from [`Reduction::after`] when recovery is over. The state that
    /// [`Avoidance::undo`] needs is saved here.
    fn on_congestion(&mut self, reduction: &Reduction<'_>);

    /// Slow start ended at `window` without a new congestion event: HyStart++ found the path full, or the window
    /// reached the slow start threshold again.
    fn on_slow_start_exit(&mut self, window: u64);

    /// The next window, in bytes, after an ACK of packets sent within the window. Not less than the present one.
    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64;

    /// The window is not fully used, so it must not grow (RFC 9002 §7.8). A rule that depends on time stops its clock
    /// until the next [`Avoidance::on_ack`].
    fn on_app_limited(&mut self, now: Time);

    /// Persistent congestion was established: everything known of the path is invalid.
    fn on_persistent_congestion(&mut self);

    /// A congestion event is undone: every loss in it was spurious. Reverts what [`Avoidance::on_congestion`] changed
    /// if it was the latest, `age` 0. If `age` later events have occurred, nothing changes now, and undoing the event
    /// after it reverts both. At most the latest four can be undone.
    fn undo(&mut self, age: usize);

    /// The largest window that growth for a round trip may reach if `flight` bytes are in flight in it: `limit` of
    /// draft-ietf-ccwg-ratelimited-increase §3. Default: that of Reno, one datagram more.
    fn limit(&self, flight: u64, max_datagram_size: u64) -> u64 {
        flight.saturating_add(max_datagram_size)
    }

    /// Pacing gain: how many windows the pacer releases in a round trip; RFC 9002 §7.7 suggests 1.25.
    fn pacing_gain(&self) -> f64 {
        1.25
    }

    /// Whether it shrinks the window in proportion to the share of marks, so that packets may be marked ECT(1) (RFC 9331 §4).
    /// A reduction by marks then starts no recovery period: the window grows on, by bytes that were not marked. Default: no.
    fn is_scalable(&self) -> bool {
        false
    }

    /// Whether marks of packets sent since the latest reduction reduce the window again. Default: yes.
    fn responds_to_marks(&self, now: Time, rtt: &Rtt) -> bool {
        let _ = (now, rtt);
        true
    }

    /// Every ACK frame of a scalable rule, before growth. Default: ignored.
    fn on_marks(&mut self, marks: &Marks<'_>) {
        let _ = marks;
    }
}

/// The marks reported by an ACK frame.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// When the frame was received.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// Bytes newly reported as marked with ECN-CE.
    pub marked: u64,
    /// The congestion window, in datagrams.
    pub window: f64,
    /// The path's round-trip time.
    pub rtt: &'a Rtt,
}

/// The cause of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Packets were lost.
    Loss,
    /// Packets were marked with ECN-CE, and none lost.
    EcnCe,
}

/// A reduction of the window.
#[derive(Clone, Copy, Debug)]
pub struct Reduction<'a> {
    /// When it occurred.
    pub now: Time,
    /// The window at which the path proved to be full, in bytes.
    pub full: u64,
    /// Whether `full` is a measurement of the capacity of the path and its queue, as Rapid Start's recovery provides,
    /// rather than the window that exceeded it.
    pub is_measured: bool,
    /// The window now, in bytes.
    pub after: u64,
    /// What caused it.
    pub cause: Cause,
    /// The path's round-trip time.
    pub rtt: &'a Rtt,
    /// The datagram size, in bytes of UDP payload.
    pub max_datagram_size: u64,
}

/// The parts of an ACK frame that an avoidance uses.
#[derive(Clone, Copy, Debug)]
pub struct AvoidanceAck<'a> {
    /// When the frame was received.
    pub now: Time,
    /// Bytes newly acknowledged.
    pub bytes: u64,
    /// The congestion window, in bytes; never zero.
    pub window: u64,
    /// The path's round-trip time.
    pub rtt: &'a Rtt,
    /// The datagram size, in bytes of UDP payload.
    pub max_datagram_size: u64,
}
