//! One end of a connection.

use lastbyte_units::Time;
use lastbyte_wire::Side;

use super::{
    config::Config,
    segment::{Progress, Segment},
};

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Endpoint {
    side: Side,
    config: Config,
    received: Progress,
    statistics: Statistics,
}

/// What an end has sent, in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent, including those without payload.
    pub segments_sent: u64,
    /// Payload sent, including retransmissions, in bytes.
    pub bytes_sent: u64,
    /// Payload retransmitted, in bytes.
    pub bytes_retransmitted: u64,
    /// Segments declared lost.
    pub segments_lost: u64,
    /// Expiries of the retransmission timer.
    pub retransmission_timeouts: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
}

impl Endpoint {
    /// The end that opens the connection.
    #[must_use]
    pub fn client(config: &Config) -> Self {
        Self::new(Side::Client, config)
    }

    /// The end that accepts it.
    #[must_use]
    pub fn server(config: &Config) -> Self {
        Self::new(Side::Server, config)
    }

    fn new(side: Side, config: &Config) -> Self {
        Self {
            side,
            config: config.clone(),
            received: Progress::default(),
            statistics: Statistics::default(),
        }
    }

    /// Opens the connection: the client's first segment is sent by the next [`Endpoint::poll_transmit`].
    pub fn connect(&mut self, now: Time) {
        let _ = now;
    }

    /// Appends application data to what is to be sent: one write to the TLS library, which begins a record. It is kept until the handshake
    /// permits to send it. See [`Endpoint::write_room`] for how much a real application could write.
    pub fn write(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// How many bytes the send buffer takes now. A real application writes no more, so that it can still decide what is next.
    #[must_use]
    pub fn write_room(&self) -> u64 {
        self.config.send_buffer_max
    }

    /// Application data of the peer that has arrived in order and in whole records, in bytes, since the start.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received.application
    }

    /// Whether application data may be sent: the handshakes of TCP and TLS are over, as far as this end must wait for them.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self.side, Side::Client)
    }

    /// The next segment to send now. Call it after each call that changes something until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let _ = now;
        None
    }

    /// Receives a segment of the other end.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        let _ = now;
        self.received = self.received.max(segment.progress);
    }

    /// When [`Endpoint::handle_timeout`] must be called next.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        None
    }

    /// Handles the timers that have expired. It has no effect before the [deadline](Endpoint::deadline).
    pub fn handle_timeout(&mut self, now: Time) {
        let _ = now;
    }

    /// What this end has sent.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }
}
