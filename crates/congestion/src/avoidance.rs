//! How a connection goes on once it has found the path's capacity: congestion avoidance.
//!
//! An avoidance answers ACKs with the next window, says by which factor a window shrinks at congestion, and receives
//! each reduction, from which it learns where the path was full. Recovery periods, the minimum window, application
//! limits and undoing are the business of [`WindowController`](crate::WindowController), the same for all.

mod cubic;
mod new_reno;
mod pico;

use core::fmt;

pub use cubic::Cubic;
pub use new_reno::NewReno;
pub use pico::Pico;

use lastbyte_units::Time;

use crate::rtt::Rtt;

/// A rule for the window in congestion avoidance.
pub trait Avoidance: fmt::Debug + Send {
    /// The name in specs and logs.
    fn name(&self) -> &'static str;

    /// The factor by which the window shrinks at congestion.
    fn beta(&self, cause: Cause) -> f64;

    /// The window was reduced. Avoidance goes on from [`Reduction::after`] when recovery is over. What
    /// [`Avoidance::undo`] needs is put aside here.
    fn on_congestion(&mut self, reduction: &Reduction<'_>);

    /// Slow start ended at `window` without a new congestion event: HyStart++ found the path full, or the window came
    /// back up to the slow start threshold.
    fn on_slow_start_exit(&mut self, window: u64);

    /// The next window, in bytes, after an ACK of packets that the window let go. Not less than the present one.
    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64;

    /// The window is not in full use, so it must not grow (RFC 9002 §7.8). A rule that counts time stops its clock
    /// until the next [`Avoidance::on_ack`].
    fn on_app_limited(&mut self, now: Time);

    /// Persistent congestion was established: what is known of the path is void.
    fn on_persistent_congestion(&mut self);

    /// A congestion was none: every loss in it was spurious. Takes back what [`Avoidance::on_congestion`] changed if it was
    /// the latest, `age` 0. If `age` more have come since, all is left as it is, and undoing the one after it goes back to
    /// what was before both. At most the latest four are undone.
    fn undo(&mut self, age: usize);

    /// How many windows the pacer lets go in a round trip; RFC 9002 §7.7 suggests 1.25.
    fn pacing_gain(&self) -> f64 {
        1.25
    }
}

/// What made a window shrink.
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
    /// When it happened.
    pub now: Time,
    /// The window at which the path proved to be full, in bytes.
    pub full: u64,
    /// Whether `full` is a measurement of what the path and its queue hold, as Rapid Start's recovery makes it, rather
    /// than the window that overflowed them.
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

/// An ACK frame, as an avoidance sees it.
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
