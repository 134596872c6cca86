//! Time series of a transfer, for charts.
//!
//! [`Recorder`] is a listener that records the sender of one flow and the link of its data; the result is a [`Recording`].

use core::time::Duration;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_congestion::{Phase, Time};
use lastbyte_link::Event as LinkHappening;
use lastbyte_quic::{
    space::Space,
    trace::{Event, Trace},
};
use lastbyte_units::Direction;
use lastbyte_wire::{Side, packet::PacketType};

use crate::listener::{LinkEvent, Listener};

/// A value at a time, counted from the start of the flow.
pub type Sample<T> = (Duration, T);

/// Time series of the sender of one flow and of the link of its data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Bytes of UDP payload sent, including retransmissions.
    pub sent: Vec<Sample<u64>>,
    /// Bytes of UDP payload acknowledged.
    pub acked: Vec<Sample<u64>>,
    /// When packets were declared lost, with their value of `sent`.
    pub lost: Vec<Sample<u64>>,
    /// Bytes in the bottleneck queue, of all flows.
    pub queue: Vec<Sample<u64>>,
    /// Drops on any hop of the link, with the bytes in the bottleneck queue: of any flow, or of this one of several.
    pub drops: Vec<Sample<u64>>,
    /// CE marks, with the bytes in the queue, likewise.
    pub marks: Vec<Sample<u64>>,
    /// Bytes of this flow that the bottleneck transmitted until then, with the path's overhead.
    pub served: Vec<Sample<u64>>,
    /// The same of all other traffic.
    pub served_others: Vec<Sample<u64>>,
    /// The congestion window, in bytes.
    pub window: Vec<Sample<u64>>,
    /// Bytes in flight.
    pub in_flight: Vec<Sample<u64>>,
    /// The pacing rate, in bits per second; 0 without pacing.
    pub pacing: Vec<Sample<u64>>,
    /// The latest round-trip time.
    pub rtt: Vec<Sample<Duration>>,
    /// The smoothed round-trip time.
    pub rtt_smoothed: Vec<Sample<Duration>>,
    /// Recovery periods; the last may not have an end.
    pub recovery: Vec<(Duration, Option<Duration>)>,
    /// Changes of the controller's phase.
    pub phases: Vec<Sample<Phase>>,
    /// The packets of the sender, in the order of sending.
    pub lives: Vec<Life>,
}

/// The life of a packet. Times count from the start of the flow; those that never come are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Bytes of UDP payload.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Duration,
    /// When it entered the queue of the bottleneck.
    pub queued: Option<Duration>,
    /// When it left that queue.
    pub served: Option<Duration>,
    /// When the path dropped it.
    pub dropped: Option<Duration>,
    /// When the receiver opened it.
    pub arrived: Option<Duration>,
    /// When the receiver sent the packet whose arrival acknowledged it.
    pub ack_sent: Option<Duration>,
    /// When that packet arrived.
    pub acked: Option<Duration>,
    /// When it was declared lost. It can arrive later.
    pub lost: Option<Duration>,
}

/// What happened to a datagram on the path.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    bytes: u64,
    queued: Option<Duration>,
    served: Option<Duration>,
    dropped: Option<Duration>,
}

/// A packet number and its space, in the order of both.
type PacketId = (usize, u64);

fn packet_id(packet_type: PacketType, number: u64) -> PacketId {
    let space = match packet_type {
        PacketType::Initial => Space::Initial,
        PacketType::Handshake => Space::Handshake,
        _ => Space::Application,
    };
    (space as usize, number)
}

#[derive(Debug, Default)]
struct State {
    recording: Recording,
    started_at: Time,
    sent: u64,
    acked: u64,
    /// `sent` after each packet of the Application space, by packet number.
    sent_after: Vec<u64>,
    first_number: u64,
    /// Bytes that the path adds to each datagram.
    overhead: u64,
    /// The place of each packet in [`Recording::lives`].
    packets: BTreeMap<PacketId, usize>,
    /// Datagrams on the link, by number.
    passages: BTreeMap<u64, Passage>,
    /// When the receiver sent each of its packets.
    answers: BTreeMap<PacketId, Duration>,
    /// When the packet that is being read was sent by the receiver.
    answer: Option<Duration>,
}

impl State {
    fn life(&mut self, id: PacketId) -> Option<&mut Life> {
        let index = *self.packets.get(&id)?;
        self.recording.lives.get_mut(index)
    }

    /// Gives each packet the passage of its datagram. Both are in the order of sending, and a datagram has one packet or more.
    fn join_passages(&mut self) {
        let mut lives = self.recording.lives.iter_mut();
        for passage in self.passages.values() {
            let mut rest = passage.bytes.saturating_sub(self.overhead);
            while rest > 0 {
                let Some(life) = lives.next() else {
                    return;
                };
                rest = rest.saturating_sub(life.bytes);
                life.queued = passage.queued;
                life.served = passage.served;
                // A copy that is dropped does not matter.
                life.dropped = passage.dropped.filter(|_| life.arrived.is_none());
            }
        }
    }

    const fn since_start(&self, now: Time) -> Duration {
        now.since(self.started_at)
    }
}

/// Records one flow.
#[derive(Debug)]
pub struct Recorder {
    flow: usize,
    direction: Direction,
    is_one_of_several: bool,
    state: Arc<Mutex<State>>,
}

impl Recorder {
    /// Records the flow with this number and direction, which starts at `started_at`, over a path that adds `overhead` bytes to each
    /// datagram.
    #[must_use]
    pub fn new(flow: usize, direction: Direction, started_at: Time, overhead: u32) -> Self {
        let state = State {
            started_at,
            overhead: u64::from(overhead),
            ..State::default()
        };
        Self {
            flow,
            direction,
            is_one_of_several: false,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Records drops and marks of this flow only, since others are recorded as well.
    #[must_use]
    pub const fn one_of_several(mut self) -> Self {
        self.is_one_of_several = true;
        self
    }

    /// Returns the recording.
    pub fn into_recording(self) -> Recording {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.join_passages();
        std::mem::take(&mut state.recording)
    }
}

struct SenderTrace(Arc<Mutex<State>>);

struct ReceiverTrace(Arc<Mutex<State>>);

impl Trace for ReceiverTrace {
    fn on_event(&mut self, now: Time, event: &Event<'_>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = state.since_start(now);
        match event {
            Event::PacketReceived(packet) => {
                if let Some(life) = state.life(packet_id(packet.packet_type, packet.number)) {
                    life.arrived.get_or_insert(at);
                }
            }
            Event::PacketSent(packet) => {
                let id = packet_id(packet.packet_type, packet.number);
                state.answers.insert(id, at);
            }
            _ => {}
        }
    }
}

impl Listener for Recorder {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        let sender = match self.direction {
            Direction::Down => Side::Server,
            Direction::Up => Side::Client,
        };
        if flow != self.flow {
            return None;
        }
        let state = Arc::clone(&self.state);
        Some(if side == sender {
            Box::new(SenderTrace(state)) as Box<dyn Trace>
        } else {
            Box::new(ReceiverTrace(state))
        })
    }

    fn wants_link_events(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        if event.direction != self.direction {
            return;
        }
        let is_own = event.flow == Some(self.flow);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = state.since_start(event.at);
        let has_started = event.at >= state.started_at;
        if is_own {
            let passage = state.passages.entry(event.number).or_default();
            passage.bytes = u64::from(event.bytes);
            let time = match event.event {
                LinkHappening::Queued if event.is_bottleneck => Some(&mut passage.queued),
                LinkHappening::ServiceStarted { .. } if event.is_bottleneck => {
                    Some(&mut passage.served)
                }
                LinkHappening::Dropped(_) => Some(&mut passage.dropped),
                _ => None,
            };
            if let Some(time) = time {
                time.get_or_insert(at);
            }
        }
        let recording = &mut state.recording;
        let depth = if event.is_bottleneck {
            event.queue.bytes
        } else {
            recording.queue.last().map_or(0, |(_, depth)| *depth)
        };
        match event.event {
            LinkHappening::ServiceEnded { .. } if has_started && event.is_bottleneck => {
                let series = if is_own {
                    &mut recording.served
                } else {
                    &mut recording.served_others
                };
                let before = series.last().map_or(0, |(_, bytes)| *bytes);
                series.push((at, before + u64::from(event.bytes)));
            }
            LinkHappening::Dropped(_) | LinkHappening::Marked
                if self.is_one_of_several && !is_own => {}
            LinkHappening::Queued | LinkHappening::ServiceStarted { .. } if event.is_bottleneck => {
                recording.queue.push((at, depth));
            }
            LinkHappening::Dropped(_) => recording.drops.push((at, depth)),
            LinkHappening::Marked => recording.marks.push((at, depth)),
            _ => {}
        }
    }
}

/// Appends a value if it differs from the last.
fn push_change<T: PartialEq + Copy>(series: &mut Vec<Sample<T>>, at: Duration, value: T) {
    if series.last().is_none_or(|(_, last)| *last != value) {
        series.push((at, value));
    }
}

impl Trace for SenderTrace {
    fn on_event(&mut self, now: Time, event: &Event<'_>) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let at = state.since_start(now);
        match event {
            Event::PacketSent(packet) => {
                let id = packet_id(packet.packet_type, packet.number);
                state.packets.insert(id, state.recording.lives.len());
                state.recording.lives.push(Life {
                    bytes: packet.len as u64,
                    sent: at,
                    ..Life::default()
                });
            }
            Event::PacketReceived(packet) => {
                let id = packet_id(packet.packet_type, packet.number);
                state.answer = state.answers.get(&id).copied();
            }
            Event::PacketAcked { space, number, .. } => {
                let answer = state.answer;
                if let Some(life) = state.life((*space as usize, *number)) {
                    life.acked.get_or_insert(at);
                    life.ack_sent = life.ack_sent.or(answer);
                }
            }
            Event::PacketLost { space, number, .. } => {
                if let Some(life) = state.life((*space as usize, *number)) {
                    life.lost.get_or_insert(at);
                }
            }
            _ => {}
        }
        let recording = &mut state.recording;
        match event {
            Event::PacketSent(packet) => {
                state.sent += packet.len as u64;
                if packet.packet_type == PacketType::OneRtt {
                    if state.sent_after.is_empty() {
                        state.first_number = packet.number;
                    }
                    // A skipped number has the value of the packet before it.
                    let index = packet.number.saturating_sub(state.first_number) as usize;
                    let before = state.sent_after.last().copied().unwrap_or(state.sent);
                    state.sent_after.resize(index, before);
                    state.sent_after.push(state.sent);
                }
                recording.sent.push((at, state.sent));
            }
            Event::PacketAcked { len, .. } => {
                state.acked += u64::from(*len);
                recording.acked.push((at, state.acked));
            }
            Event::PacketLost { space, number, .. } if *space == Space::Application => {
                let index = number.checked_sub(state.first_number);
                let index = index.and_then(|index| usize::try_from(index).ok());
                if let Some(sent) = index.and_then(|index| state.sent_after.get(index)) {
                    recording.lost.push((at, *sent));
                }
            }
            Event::Metrics(metrics) => {
                push_change(&mut recording.window, at, metrics.window);
                push_change(&mut recording.in_flight, at, metrics.in_flight);
                let rate = metrics.pacing_rate;
                let rate = if rate.is_unlimited() {
                    0
                } else {
                    rate.bits_per_second()
                };
                push_change(&mut recording.pacing, at, rate);
                if let Some(rtt) = metrics.rtt {
                    push_change(&mut recording.rtt, at, rtt.latest);
                    push_change(&mut recording.rtt_smoothed, at, rtt.smoothed);
                }
                let phase = metrics.state.phase;
                let was = recording.phases.last().map(|(_, phase)| *phase);
                if was != Some(phase) {
                    recording.phases.push((at, phase));
                    if was == Some(Phase::Recovery)
                        && let Some((_, end)) = recording.recovery.last_mut()
                    {
                        *end = Some(at);
                    }
                    if phase == Phase::Recovery {
                        recording.recovery.push((at, None));
                    }
                }
            }
            _ => {}
        }
    }
}
