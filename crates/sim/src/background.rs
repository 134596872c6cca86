//! Transfers of cross traffic without endpoints: a sender with congestion control, and a receiver that acknowledges.
//!
//! The measured flows of a scenario are whole connections. Cross traffic only has to load the path as a connection would, at
//! a fraction of the cost.
//!
//! # What is modelled
//!
//! Both ends run the code of `lastbyte_quic`:
//!
//! | what | by | source |
//! |---|---|---|
//! | congestion control, pacing, round-trip time, loss detection by packets and time, probe timeouts, persistent congestion | [`Recovery`] | RFC 9002 |
//! | ECN marks and their validation | [`Recovery`] | RFC 9000 §13.4 |
//! | when the receiver acknowledges: a client by the rule of the scenario's clients, a server each second packet | [`ReceivedPackets`] | RFC 9000 §13.2 |
//! | ACK frames with their ranges and delay, of their real size | [`ReceivedPackets`] | RFC 9000 §19.3 |
//! | flow control of a stream and its connection, whose reader takes all that arrives in order, with windows that grow | [`ReceiveWindow`] | RFC 9000 §4.1 |
//!
//! Data and acknowledgments pass the same links as those of the measured flows. Lost data is retransmitted, oldest
//! first.
//!
//! # What is not modelled
//!
//! - The handshake and the request. The sender starts when they would be complete, and its first round-trip sample is the
//!   round-trip time without queues.
//! - Packet protection, connection IDs and HTTP/3. Each packet of data fills its datagram.
//! - Round-trip time samples of the receiver, which uses those of the sender.
//! - Skipped packet numbers (RFC 9000 §21.4), which cost a sender nothing.
//! - Acknowledgments of ACK frames, and loss of `MAX_STREAM_DATA`. Each packet of data names the newest ACK that the sender
//!   received, so the receiver does not repeat older ranges (RFC 9000 §13.2.4); each ACK names the newest limit.
//!
//! `a_background_transfer_loads_the_path_like_a_connection` compares it with the full stack; [`CrossKind::Stack`] keeps the
//! full stack.
//!
//! [`CrossKind::Stack`]: crate::CrossKind::Stack

use core::{ops::RangeInclusive, time::Duration};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lastbyte_congestion::{ControllerFactory, Environment, Rtt, Spec, Time};
use lastbyte_quic::{
    ack::{AckPolicy, Ecn, Received, ReceivedPackets, Urgency},
    flow::{ReceiveWindow, WindowSize},
    receipt::Receipt,
    recovery::{
        EcnValidation, Expired, IncomingAck, LossThresholds, Outgoing, ReceiptSink, Recovery,
        TimerContext,
    },
    space::Space,
};
use lastbyte_scenario::{Transport, arrivals::Sizes, cross::Pages};
use lastbyte_units::{Direction, Rate, SplitMix64};
use lastbyte_wire::{Reader, StreamId, VarInt, Writer, frame::Frame, packet::PacketNumber};

use crate::{
    node::receive_windows,
    outcome::{ArrivalsOutcome, Completion},
    server::server_windows,
};

/// A packet of a background transfer on a link.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// The number of the transfer, counted for each source.
    generation: u32,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// From the sender to the receiver.
    Data {
        number: u64,
        /// Offset of the data, in full datagrams.
        offset: u64,
        /// Largest Acknowledged of the newest ACK frame received.
        largest_acked: Option<u64>,
    },
    /// From the receiver to the sender.
    Ack {
        /// An encoded ACK frame.
        frame: Vec<u8>,
        /// The flow control limit, in full datagrams.
        limit: u64,
    },
}

/// A packet to send.
pub(crate) struct Transmit {
    /// The hops that it passes.
    pub(crate) hops: RangeInclusive<u8>,
    pub(crate) direction: Direction,
    /// UDP payload, in bytes.
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
    pub(crate) packet: Packet,
}

/// Parameters of a source of background transfers.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) congestion: Spec,
    /// The direction of the data.
    pub(crate) direction: Direction,
    /// The hops that data pass.
    pub(crate) hops: RangeInclusive<u8>,
    /// The round-trip time without queues.
    pub(crate) rtt: Duration,
    /// From the client's first datagram to the first data: the handshake, and the request of a download.
    pub(crate) handshake: Duration,
    /// The way of the data without queues.
    pub(crate) delay: Duration,
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
}

/// Which transfers a source has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One that does not end.
    Endless,
    /// Consecutive ones of one size.
    Pages(Pages),
    /// Transfers that arrive at random.
    Arrivals {
        /// Their sizes.
        sizes: Sizes,
        /// The mean interval.
        interval: Duration,
        /// The rate of the bottleneck.
        rate: Rate,
        /// None arrives from then on.
        until: Option<Time>,
    },
}

/// A source of transfers, with both ends of those that are not complete.
pub(crate) struct Background {
    plan: Plan,
    transport: Transport,
    /// Number of the next transfer.
    next: u32,
    transfers: BTreeMap<u32, Transfer>,
    /// When the next transfer arrives; `None` unless they arrive at random.
    arrives_at: Option<Time>,
    random: SplitMix64,
    outcome: ArrivalsOutcome,
    /// Buffers of processed ACK frames, for reuse.
    spare: Vec<Vec<u8>>,
    /// ACK frames are written here; most are short.
    scratch: Vec<u8>,
}

/// A transfer.
struct Transfer {
    started_at: Time,
    /// Its size in bytes; `None` if it does not end.
    bytes: Option<u64>,
    has_arrived: bool,
    sender: Sender,
    receiver: Receiver,
}

/// At most so many transfers that arrived at random are open; further ones are refused.
const OPEN_MAX: usize = 1000;

impl Background {
    /// Creates a source whose first transfer starts at `start`, or arrives after it.
    pub(crate) fn new(plan: Plan, transport: &Transport, start: Time) -> Self {
        let mut source = Self {
            random: SplitMix64::new(plan.seed),
            plan,
            transport: transport.clone(),
            next: 0,
            transfers: BTreeMap::new(),
            arrives_at: None,
            outcome: ArrivalsOutcome::default(),
            spare: Vec::new(),
            scratch: vec![0; transport.datagram_size.into()],
        };
        match source.plan.kind {
            Kind::Endless => source.start(start, None),
            Kind::Pages(pages) => source.start(start, Some(pages.bytes)),
            Kind::Arrivals { .. } => source.next_arrival(start),
        }
        source
    }

    fn start(&mut self, at: Time, bytes: Option<u64>) {
        let transfer = Transfer {
            started_at: at,
            bytes,
            has_arrived: false,
            sender: Sender::new(&self.plan, &self.transport, at, self.next, bytes),
            receiver: Receiver::new(self.plan.direction, &self.transport),
        };
        self.transfers.insert(self.next, transfer);
        self.next = self.next.wrapping_add(1);
    }

    /// A random number, 0 to 1 exclusive.
    fn unit(&mut self) -> f64 {
        (self.random.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws the time of the next arrival after one at `at`.
    fn next_arrival(&mut self, at: Time) {
        let Kind::Arrivals {
            interval, until, ..
        } = self.plan.kind
        else {
            return;
        };
        let seconds = -(1.0 - self.unit()).ln() * interval.as_secs_f64();
        let next = at + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        self.arrives_at = Some(next).filter(|next| until.is_none_or(|until| *next < until));
    }

    /// Whether all arrivals have been and are complete, if they end at all.
    pub(crate) fn is_over(&self) -> bool {
        self.arrives_at.is_none() && self.transfers.is_empty()
    }

    /// The transfers that are complete, and the number of those that are not.
    pub(crate) fn outcome(&self) -> ArrivalsOutcome {
        let is_open = |transfer: &&Transfer| !transfer.has_arrived;
        ArrivalsOutcome {
            open: self.transfers.values().filter(is_open).count() as u64,
            ..self.outcome.clone()
        }
    }

    /// Whether its transfers arrive at random.
    pub(crate) const fn is_open_loop(&self) -> bool {
        matches!(self.plan.kind, Kind::Arrivals { .. })
    }

    /// When [`Background::on_time`] must be called next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.transfers
            .values()
            .fold(self.arrives_at, |first, transfer| {
                let receiver = transfer.receiver.packets.deadline();
                let own = Time::earlier(transfer.sender.deadline(), receiver);
                Time::earlier(first, own)
            })
    }

    /// Handles the timers that have expired.
    pub(crate) fn on_time(&mut self, now: Time) {
        if let Kind::Arrivals { sizes, .. } = self.plan.kind {
            while let Some(at) = self.arrives_at.filter(|at| *at <= now) {
                self.next_arrival(at);
                if self.transfers.len() < OPEN_MAX {
                    let bytes = sizes.at(self.unit());
                    self.start(at, Some(bytes));
                } else {
                    self.outcome.refused += 1;
                }
            }
        }
        for transfer in self.transfers.values_mut() {
            transfer.sender.on_time(now);
        }
    }

    /// Processes a received packet.
    pub(crate) fn on_packet(&mut self, now: Time, ecn: Ecn, packet: Packet) {
        let Some(transfer) = self.transfers.get_mut(&packet.generation) else {
            return; // of a finished transfer
        };
        match packet.content {
            Content::Data {
                number,
                offset,
                largest_acked,
            } => {
                let rtt = transfer.sender.recovery.rtt();
                transfer.receiver.on_data(now, ecn, number, offset, rtt);
                if let Some(largest) = largest_acked {
                    transfer.receiver.packets.on_ack_acknowledged(largest);
                }
                let has_arrived = transfer.receiver.in_order >= transfer.sender.data.end;
                if has_arrived
                    && !core::mem::replace(&mut transfer.has_arrived, true)
                    && let (Kind::Arrivals { rate, .. }, Some(bytes)) =
                        (self.plan.kind, transfer.bytes)
                {
                    let at_rate = rate.time_for(bytes);
                    self.outcome.completions.push(Completion {
                        bytes,
                        time: now.since(transfer.started_at),
                        alone: self.plan.handshake + self.plan.delay + at_rate,
                    });
                }
            }
            Content::Ack { frame, limit } => {
                transfer.sender.on_ack(now, &frame, limit);
                self.spare.push(frame);
            }
        }
    }

    /// Returns the next packet. When all data of a page is acknowledged, the next page follows.
    pub(crate) fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        let (direction, back) = match self.plan.direction {
            Direction::Down => (Direction::Down, Direction::Up),
            Direction::Up => (Direction::Up, Direction::Down),
        };
        for (generation, transfer) in &mut self.transfers {
            let packet = |content| Packet {
                generation: *generation,
                content,
            };
            if let Some((encoded, limit, bytes)) =
                transfer.receiver.poll_ack(now, &mut self.scratch)
            {
                let mut frame = self.spare.pop().unwrap_or_default();
                frame.clear();
                frame.extend_from_slice(encoded);
                return Some(Transmit {
                    direction: back,
                    hops: 0..=u8::MAX,
                    bytes,
                    ecn: Ecn::NotEct,
                    packet: packet(Content::Ack { frame, limit }),
                });
            }
            if let Some((content, ecn)) = transfer.sender.poll_data(now) {
                return Some(Transmit {
                    direction,
                    hops: self.plan.hops.clone(),
                    bytes: self.transport.datagram_size.into(),
                    ecn,
                    packet: packet(content),
                });
            }
        }
        self.end_transfers(now);
        None
    }

    /// Removes transfers of which all is acknowledged. After a page, the next one follows.
    fn end_transfers(&mut self, now: Time) {
        match self.plan.kind {
            Kind::Endless => {}
            Kind::Pages(pages) => {
                if let Some(page) = self.transfers.first_entry()
                    && page.get().sender.is_done()
                {
                    let at = (page.get().started_at + pages.every).max(now);
                    page.remove();
                    self.start(at, Some(pages.bytes));
                }
            }
            Kind::Arrivals { .. } => self
                .transfers
                .retain(|_, transfer| !transfer.sender.is_done()),
        }
    }
}

struct Sender {
    recovery: Recovery,
    data: Data,
    datagram_size: u16,
    max_ack_delay: Duration,
    /// When the transfer starts; `None` afterwards.
    starts_at: Option<Time>,
    /// When the pacer releases the next packet.
    release_at: Option<Time>,
    /// Probe packets to send regardless of the window (RFC 9002 §6.2.4).
    probes: u8,
}

/// Data to send, in full datagrams.
struct Data {
    next: u64,
    end: u64,
    /// Lost data, to retransmit.
    again: BTreeSet<u64>,
    /// The receiver's flow control limit.
    limit: u64,
}

impl Sender {
    fn new(
        plan: &Plan,
        transport: &Transport,
        started_at: Time,
        generation: u32,
        bytes: Option<u64>,
    ) -> Self {
        let controller = plan.congestion.build(&Environment {
            max_datagram_size: transport.datagram_size.into(),
            seed: plan.seed.wrapping_add(generation.into()),
        });
        let starts_at = started_at + plan.handshake;
        let mut rtt = Rtt::default();
        rtt.update(starts_at, plan.rtt, Duration::ZERO, None);
        let thresholds = if transport.adapts_to_reordering {
            LossThresholds::adaptive()
        } else {
            LossThresholds::fixed()
        };
        let ecn = if transport.ecn {
            EcnValidation::for_response(controller.is_scalable())
        } else {
            EcnValidation::disabled()
        };
        let payload = payload(transport);
        Self {
            recovery: Recovery::new(controller, rtt, thresholds, ecn),
            data: Data {
                next: 0,
                end: bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(payload).max(1)),
                again: BTreeSet::new(),
                limit: windows(plan.direction, transport)[0].initial / payload,
            },
            datagram_size: transport.datagram_size,
            max_ack_delay: transport.max_ack_delay,
            starts_at: Some(starts_at),
            release_at: None,
            probes: 0,
        }
    }

    fn deadline(&self) -> Option<Time> {
        let recovery = self.recovery.deadline(&self.timer_context());
        Time::earlier(recovery, Time::earlier(self.starts_at, self.release_at))
    }

    fn on_time(&mut self, now: Time) {
        self.starts_at.take_if(|at| *at <= now);
        self.release_at.take_if(|at| *at <= now);
        let context = self.timer_context();
        if let Expired::Probe(space) =
            self.recovery
                .on_timeout(now, &context, &mut self.data, &mut ())
        {
            self.probes = PROBES;
            if self.data.peek().is_none() {
                self.recovery
                    .repeat_oldest(space, PROBES.into(), &mut self.data);
            }
        }
    }

    fn on_ack(&mut self, now: Time, frame: &[u8], limit: u64) {
        let Ok(Frame::Ack(frame)) = Frame::decode(&mut Reader::new(frame)) else {
            return;
        };
        self.data.limit = self.data.limit.max(limit);
        let delay = frame.delay().get() << ACK_DELAY_EXPONENT;
        let ack = IncomingAck {
            now,
            space: Space::Application,
            frame: &frame,
            ack_delay: Duration::from_micros(delay),
            max_ack_delay: Some(self.max_ack_delay),
            resets_pto_count: true,
        };
        let outcome = self.recovery.on_ack(&ack, &mut self.data, &mut ());
        debug_assert!(outcome.is_ok(), "the receiver reports what it received");
    }

    fn poll_data(&mut self, now: Time) -> Option<(Content, Ecn)> {
        if self.starts_at.is_some() {
            return None;
        }
        let size = u64::from(self.datagram_size);
        if self.probes > 0 {
            self.probes -= 1;
        } else if self.recovery.window_left() < size {
            return None;
        } else if self.recovery.pacer_budget(now) < size {
            self.release_at = self.recovery.next_release(now);
            return None;
        }
        let Some(offset) = self.data.take() else {
            self.recovery.on_app_limited(now);
            return None;
        };
        let sent = self.recovery.sent(Space::Application);
        let content = Content::Data {
            number: sent.next_number(),
            offset,
            largest_acked: sent.largest_acked(),
        };
        let ecn = self.recovery.ecn().codepoint();
        let outgoing = Outgoing {
            space: Space::Application,
            bytes: self.datagram_size,
            is_ack_eliciting: true,
            is_in_flight: true,
            is_mtu_probe: false,
            is_off_path: false,
        };
        let receipt = Receipt::Stream {
            id: StreamId::from(VarInt::ZERO),
            offset,
            len: 1,
            fin: false,
        };
        self.recovery.on_sent(now, &outgoing, [receipt]);
        Some((content, ecn))
    }

    /// Whether all data has been acknowledged.
    fn is_done(&self) -> bool {
        self.data.next == self.data.end
            && self.data.again.is_empty()
            && self.recovery.in_flight() == 0
    }

    const fn timer_context(&self) -> TimerContext {
        TimerContext {
            max_ack_delay: self.max_ack_delay,
            is_handshake_confirmed: true,
            has_handshake_keys: true,
            is_amplification_limited: false,
            must_keep_alive: false,
        }
    }
}

impl Data {
    fn peek(&self) -> Option<u64> {
        let new = (self.next < self.end.min(self.limit)).then_some(self.next);
        self.again.first().copied().or(new)
    }

    fn take(&mut self) -> Option<u64> {
        let offset = self.peek()?;
        if !self.again.remove(&offset) {
            self.next += 1;
        }
        Some(offset)
    }
}

impl ReceiptSink for Data {
    fn acked(&mut self, _: Space, receipt: Receipt) {
        // The packet may have been declared lost, or probed.
        if let Receipt::Stream { offset, len, .. } = receipt
            && !self.again.is_empty()
        {
            for offset in offset..offset + u64::from(len) {
                self.again.remove(&offset);
            }
        }
    }

    fn lost(&mut self, _: Space, receipt: Receipt) {
        if let Receipt::Stream { offset, .. } = receipt {
            self.again.insert(offset);
        }
    }
}

struct Receiver {
    packets: ReceivedPackets,
    /// All data below has arrived.
    in_order: u64,
    /// Whether each datagram from `in_order` on has arrived.
    beyond: VecDeque<bool>,
    /// Windows of the stream and of the connection.
    windows: [ReceiveWindow; 2],
    payload: u64,
}

/// Receive windows of the receiver: of a stream, and of the connection.
fn windows(direction: Direction, transport: &Transport) -> [WindowSize; 2] {
    match direction {
        Direction::Down => receive_windows(transport),
        Direction::Up => server_windows(),
    }
}

impl Receiver {
    fn new(direction: Direction, transport: &Transport) -> Self {
        let decimation = transport
            .ack_decimation
            .filter(|_| direction == Direction::Down);
        let policy = AckPolicy::delayed(transport.max_ack_delay, decimation);
        Self {
            packets: ReceivedPackets::new(policy),
            in_order: 0,
            beyond: VecDeque::new(),
            windows: windows(direction, transport).map(ReceiveWindow::new),
            payload: payload(transport),
        }
    }

    fn on_data(&mut self, now: Time, ecn: Ecn, number: u64, offset: u64, rtt: &Rtt) {
        let Some(number) = PacketNumber::new(number) else {
            return;
        };
        if self.packets.is_duplicate(number) {
            return;
        }
        self.packets.on_received(&Received {
            now,
            number,
            is_ack_eliciting: true,
            ecn,
            min_rtt: Some(rtt.min()),
        });
        let Some(index) = offset.checked_sub(self.in_order) else {
            return;
        };
        let index = index as usize;
        if let Some(new) = (index + 1).checked_sub(self.beyond.len()) {
            self.beyond.resize(index + 1, false);
            for window in &mut self.windows {
                let received = window.on_received(new as u64 * self.payload, now);
                debug_assert!(received.is_ok(), "the sender keeps to the limit");
            }
        }
        if let Some(has_arrived) = self.beyond.get_mut(index) {
            *has_arrived = true;
        }
        let mut taken = 0;
        while self.beyond.front() == Some(&true) {
            self.beyond.pop_front();
            taken += 1;
        }
        self.in_order += taken;
        for window in &mut self.windows {
            window.on_consumed(taken * self.payload, now, rtt.smoothed());
        }
    }

    /// Writes an ACK frame into a buffer of the size of a datagram. Returns it, the flow control limit in full datagrams, and
    /// the size of the packet in bytes.
    fn poll_ack<'a>(&mut self, now: Time, buffer: &'a mut [u8]) -> Option<(&'a [u8], u64, u32)> {
        let is_raised = self.windows.iter().any(ReceiveWindow::is_due);
        if self.packets.urgency(now) != Urgency::Due && !is_raised {
            return None;
        }
        let mut writer = Writer::new(buffer);
        let room = writer.remaining();
        self.packets
            .write_ack(now, &mut writer, room, ACK_DELAY_EXPONENT)
            .ok()??;
        let len = writer.position();
        let mut bytes = len as u32 + PACKET_OVERHEAD;
        let mut limit = u64::MAX;
        for window in &mut self.windows {
            if window.is_due() {
                window.on_limit_sent();
                bytes += MAX_DATA;
            }
            limit = limit.min(window.limit() / self.payload);
        }
        Some((buffer.get(..len)?, limit, bytes))
    }
}

/// Stream data in a full datagram, in bytes.
fn payload(transport: &Transport) -> u64 {
    u64::from(transport.datagram_size) - u64::from(PACKET_OVERHEAD + STREAM_OVERHEAD)
}

/// The default of connections (RFC 9000 §18.2).
const ACK_DELAY_EXPONENT: u8 = 3;
/// Short header with an 8-byte connection ID and a 2-byte packet number, and the AEAD tag, in bytes.
const PACKET_OVERHEAD: u32 = 1 + 8 + 2 + 16;
/// Type, stream ID, offset and length of a STREAM frame, in bytes.
const STREAM_OVERHEAD: u32 = 1 + 1 + 4 + 2;
/// Type, stream ID and limit of a `MAX_STREAM_DATA` frame, in bytes.
const MAX_DATA: u32 = 1 + 1 + 4;
/// Probe packets of a probe timeout (RFC 9002 §6.2.4: one or two).
const PROBES: u8 = 2;
