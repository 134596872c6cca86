//! One end of a connection: the handshakes, and the dispatch of segments to sender and receiver.

use core::time::Duration;

use lastbyte_units::Time;
use lastbyte_wire::Side;

use super::{
    acks::{Acks, Received},
    config::Config,
    incoming::Incoming,
    rto::{RTO_INITIAL, RTO_MAX, timer},
    segment::{Flags, Progress, Segment},
    sender::Sender,
    statistics::Statistics,
    window::Window,
};

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Endpoint {
    side: Side,
    config: Config,
    state: State,
    sender: Sender,
    incoming: Incoming,
    acks: Acks,
    window: Window,
    /// Flights of the TLS handshake that this end has written.
    flights: u8,
    /// The timestamp to echo (RFC 7323 §4.3).
    recent: Option<Time>,
    /// All bytes below were acknowledged with the latest segment sent.
    acked: u64,
    pub(super) statistics: Statistics,
}

/// The states of RFC 9293 §3.3.2, without those of closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not opened (`CLOSED`, `LISTEN`).
    Closed,
    /// A SYN must be sent, or was (`SYN-SENT`, `SYN-RECEIVED`).
    Opening(Opening),
    Established,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    /// When the SYN was sent first.
    sent_at: Option<Time>,
    /// When to retransmit it.
    retry_at: Time,
    timeout: Duration,
    attempts: u32,
}

impl Opening {
    const fn at(now: Time) -> Self {
        Self {
            sent_at: None,
            retry_at: now,
            timeout: RTO_INITIAL,
            attempts: 0,
        }
    }
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
        let (initial, max) = (config.receive_window, config.receive_window_max);
        Self {
            side,
            state: State::Closed,
            sender: Sender::new(config),
            incoming: Incoming::default(),
            acks: Acks::new(),
            window: Window::new(initial, max, config.segment_size.into()),
            flights: 0,
            recent: None,
            acked: 0,
            statistics: Statistics::default(),
            config: config.clone(),
        }
    }

    /// Opens the connection: the client's first segment is sent by the next [`Endpoint::poll_transmit`].
    pub fn connect(&mut self, now: Time) {
        if self.side == Side::Client && self.state == State::Closed {
            self.state = State::Opening(Opening::at(now));
        }
    }

    /// Appends application data: one write to the TLS library, which starts a record. The data waits until the handshake permits
    /// sending. See [`Endpoint::write_room`] for the limit of a real application.
    pub fn write(&mut self, bytes: u64) {
        self.sender.outgoing.write(bytes);
    }

    /// Free space in the send buffer, in bytes (`tcp_sndbuf_expand`). A real application writes no more, so that it can still choose the next
    /// data. Larger writes are accepted.
    pub fn write_room(&self) -> u64 {
        let least = 10 * u64::from(self.config.segment_size);
        let buffer = (2 * self.sender.window().max(least)).min(self.config.send_buffer_max);
        buffer.saturating_sub(self.sender.buffered())
    }

    /// Application data of the peer that has arrived in order and in whole records, in bytes, since the start.
    pub const fn received(&self) -> u64 {
        self.incoming.progress().application
    }

    /// Whether application data may be sent: the handshakes of TCP and TLS are over, as far as this end must wait for them.
    pub const fn is_ready(&self) -> bool {
        let ready = match self.side {
            Side::Client => self.config.tls.client_ready,
            Side::Server => self.config.tls.server_ready,
        };
        matches!(self.state, State::Established) && self.flights_done() >= ready
    }

    const fn flights_done(&self) -> usize {
        self.flights as usize + self.incoming.progress().flights as usize
    }

    // ---- sending --------------------------------------------------------------------------------------------------

    /// The next segment to send now. Call it after each call that changes something until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        match &mut self.state {
            State::Closed => return None,
            State::Opening(opening) => {
                if opening.retry_at > now {
                    return None;
                }
                opening.sent_at.get_or_insert(now);
                opening.attempts += 1;
                opening.retry_at = timer(now, opening.timeout);
                opening.timeout = (opening.timeout * 2).min(RTO_MAX);
                let mut segment = self.segment(now);
                segment.flags.syn = true;
                segment.flags.ack = self.side == Side::Server;
                segment.wire_bytes = self.config.ip_header + SYN;
                return Some(segment);
            }
            State::Established => {}
        }
        // An acknowledgment of SYN or of something out of order does not wait for data.
        if !self.acks.is_urgent()
            && let Some(transmit) = self.sender.poll(now, &mut self.statistics)
        {
            let mut segment = self.segment(now);
            segment.sequence = transmit.sequence;
            segment.len = transmit.payload.len;
            segment.progress = transmit.payload.progress;
            segment.flags.push = transmit.payload.push;
            segment.wire_bytes += transmit.payload.len;
            self.acks.on_sent(now, segment.ack, true);
            return Some(segment);
        }
        if !self.acks.is_due() {
            return None;
        }
        let segment = self.segment(now);
        self.acks.on_sent(now, segment.ack, false);
        Some(segment)
    }

    /// A segment without payload.
    fn segment(&mut self, now: Time) -> Segment {
        let next = self.incoming.next();
        let mut segment = Segment {
            sequence: self.sender.next(),
            len: 0,
            wire_bytes: self.config.ip_header + HEADER,
            flags: Flags {
                ack: true,
                ..Flags::default()
            },
            ack: next,
            window: self.window.offer(next, self.incoming.waiting()),
            sack: [(0, 0); Segment::SACK_BLOCKS],
            sack_count: 0,
            is_dsack: false,
            sent_at: now,
            echo: self.recent,
            progress: Progress::default(),
        };
        self.incoming.report(&mut segment);
        if segment.sack_count > 0 {
            segment.wire_bytes += SACK_OPTION + SACK_BLOCK * u32::from(segment.sack_count);
        }
        self.statistics.segments_sent += 1;
        self.acked = next;
        segment
    }

    // ---- receiving ------------------------------------------------------------------------------------------------

    /// Processes a segment of the other end.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        if segment.sequence <= self.acked || segment.flags.syn {
            self.recent = Some(segment.sent_at);
        }
        if segment.flags.syn {
            self.handle_syn(now, segment);
            return;
        }
        if let State::Opening(opening) = self.state {
            if self.side == Side::Client {
                return; // before the SYN-ACK
            }
            self.establish(now, opening, segment);
        }
        if self.state != State::Established {
            return;
        }
        self.sender.on_ack(now, segment, &mut self.statistics);
        if segment.len > 0 {
            self.handle_payload(now, segment);
        }
        self.shake_hands();
    }

    fn handle_syn(&mut self, now: Time, segment: &Segment) {
        match self.state {
            State::Closed if self.side == Side::Server => {
                self.state = State::Opening(Opening::at(now));
            }
            State::Closed => {}
            State::Opening(opening) if self.side == Side::Client => {
                self.establish(now, opening, segment);
                self.acks.demand();
                self.shake_hands();
            }
            // A repeated SYN: the SYN-ACK was lost or is late.
            State::Opening(opening) => {
                self.state = State::Opening(Opening {
                    retry_at: now,
                    ..opening
                });
            }
            State::Established => self.acks.demand(),
        }
    }

    fn establish(&mut self, now: Time, opening: Opening, segment: &Segment) {
        self.state = State::Established;
        // RFC 6298 §3: no sample of a retransmission.
        let first = opening.sent_at.filter(|_| opening.attempts == 1);
        let sample = first.map(|at| now.since(at));
        self.sender
            .on_established(now, sample, segment.ack + segment.window);
        self.window.on_established(now);
    }

    fn handle_payload(&mut self, now: Time, segment: &Segment) {
        let arrival = self.incoming.on_segment(segment);
        let next = self.incoming.next();
        let rtt = segment.echo.map(|at| now.since(at));
        self.window.on_segment(now, segment.len, next, rtt);
        let received = Received {
            arrival,
            next,
            window: self.window.size(),
            rto: self.sender.rto.timeout(),
            smoothed: self.sender.rto.smoothed(),
        };
        self.acks.on_segment(now, segment, &received);
    }

    /// Writes the flights of the TLS handshake that are due.
    fn shake_hands(&mut self) {
        while let Some(flight) = self.config.tls.flights.get(self.flights_done())
            && flight.from == self.side
        {
            self.sender.outgoing.write_flight(flight.bytes);
            self.flights += 1;
        }
        if self.is_ready() {
            self.sender.outgoing.open();
        }
    }

    // ---- timers ---------------------------------------------------------------------------------------------------

    /// When [`Endpoint::handle_timeout`] must be called next.
    pub fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Closed => None,
            State::Opening(opening) => Some(opening.retry_at),
            State::Established => Time::earlier(self.sender.deadline(), self.acks.deadline()),
        }
    }

    /// Handles the timers that have expired. It has no effect before the [deadline](Endpoint::deadline).
    pub fn handle_timeout(&mut self, now: Time) {
        if self.state == State::Established {
            self.sender.on_timeout(now, &mut self.statistics);
            self.acks.on_timeout(now, self.sender.rto.timeout());
        }
    }
}

/// The TCP header with the timestamp option (RFC 7323 §3), in bytes.
const HEADER: u32 = 20 + 12;
/// The TCP header of a SYN: with segment size, SACK, timestamps and window scale.
const SYN: u32 = 40;
/// The SACK option with padding, and a block of it.
const SACK_OPTION: u32 = 4;
const SACK_BLOCK: u32 = 8;
