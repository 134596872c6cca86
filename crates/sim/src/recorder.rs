//! What a transfer looked like over time: the series that pictures are made of.
//!
//! Owns: [`Recorder`], a listener that keeps what the sender of one flow and the link of its data did, and [`Recording`], what it kept.

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_congestion::{Phase, Time};
use lastbyte_link::Event as LinkHappening;
use lastbyte_quic::{
    space::Space,
    trace::{Event, Trace},
};
use lastbyte_wire::{Side, packet::PacketType};

use crate::listener::{LinkEvent, Listener, Way};

/// A value at a time, counted from the start of the flow.
pub type Sample<T> = (Duration, T);

/// What the sender of one flow and the link of its data did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Bytes of UDP payload sent until then, with what was sent again.
    pub sent: Vec<Sample<u64>>,
    /// Bytes of UDP payload acknowledged until then.
    pub acked: Vec<Sample<u64>>,
    /// When packets were declared lost, and the value of `sent` that they had.
    pub lost: Vec<Sample<u64>>,
    /// Bytes in the queue before the bottleneck, of all flows.
    pub queue: Vec<Sample<u64>>,
    /// When a packet was dropped on the link, of any flow, and the bytes in the queue then.
    pub drops: Vec<Sample<u64>>,
    /// When a packet was marked CE, and the bytes in the queue then.
    pub marks: Vec<Sample<u64>>,
    /// The congestion window, in bytes.
    pub window: Vec<Sample<u64>>,
    /// Bytes in flight.
    pub in_flight: Vec<Sample<u64>>,
    /// The pacing rate, in bits a second; 0 for none.
    pub pacing: Vec<Sample<u64>>,
    /// The latest round-trip time.
    pub rtt: Vec<Sample<Duration>>,
    /// The smoothed round-trip time.
    pub rtt_smoothed: Vec<Sample<Duration>>,
    /// Recovery periods; the last may not have an end.
    pub recovery: Vec<(Duration, Option<Duration>)>,
    /// When the controller went over to something else, and what.
    pub phases: Vec<Sample<Phase>>,
}

#[derive(Debug, Default)]
struct Notes {
    recording: Recording,
    started_at: Time,
    sent: u64,
    acked: u64,
    /// What `sent` was when each packet of the Application space had been sent, from the first on.
    sent_after: Vec<u64>,
    first_number: u64,
}

impl Notes {
    const fn since_start(&self, now: Time) -> Duration {
        now.since(self.started_at)
    }
}

/// Keeps what one flow did.
#[derive(Debug)]
pub struct Recorder {
    flow: usize,
    way: Way,
    notes: Arc<Mutex<Notes>>,
}

impl Recorder {
    /// Keeps what the flow of this number does, whose data go this way, and which starts then.
    #[must_use]
    pub fn new(flow: usize, way: Way, started_at: Time) -> Self {
        let notes = Notes {
            started_at,
            ..Notes::default()
        };
        Self {
            flow,
            way,
            notes: Arc::new(Mutex::new(notes)),
        }
    }

    /// What it kept.
    #[must_use]
    pub fn into_recording(self) -> Recording {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut notes.recording)
    }
}

struct Pen(Arc<Mutex<Notes>>);

impl Listener for Recorder {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        let sender = match self.way {
            Way::Down => Side::Server,
            Way::Up => Side::Client,
        };
        (flow == self.flow && side == sender)
            .then(|| Box::new(Pen(Arc::clone(&self.notes))) as Box<dyn Trace>)
    }

    fn listens_to_links(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        if event.way != self.way {
            return;
        }
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, depth) = (notes.since_start(event.at), event.queue.bytes);
        let recording = &mut notes.recording;
        match event.event {
            LinkHappening::Queued | LinkHappening::ServiceStarted { .. } => {
                recording.queue.push((at, depth));
            }
            LinkHappening::Dropped(_) => recording.drops.push((at, depth)),
            LinkHappening::Marked => recording.marks.push((at, depth)),
            _ => {}
        }
    }
}

/// Adds a value, if it is another than the last.
fn note<T: PartialEq + Copy>(series: &mut Vec<Sample<T>>, at: Duration, value: T) {
    if series.last().is_none_or(|(_, last)| *last != value) {
        series.push((at, value));
    }
}

impl Trace for Pen {
    fn on_event(&mut self, now: Time, event: &Event<'_>) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let notes = &mut *guard;
        let at = notes.since_start(now);
        let recording = &mut notes.recording;
        match event {
            Event::PacketSent(packet) => {
                notes.sent += packet.len as u64;
                if packet.packet_type == PacketType::OneRtt {
                    if notes.sent_after.is_empty() {
                        notes.first_number = packet.number;
                    }
                    // Numbers that were skipped stand for what was sent before them.
                    let index = packet.number.saturating_sub(notes.first_number) as usize;
                    let before = notes.sent_after.last().copied().unwrap_or(notes.sent);
                    notes.sent_after.resize(index, before);
                    notes.sent_after.push(notes.sent);
                }
                recording.sent.push((at, notes.sent));
            }
            Event::PacketAcked { len, .. } => {
                notes.acked += u64::from(*len);
                recording.acked.push((at, notes.acked));
            }
            Event::PacketLost { space, number, .. } if *space == Space::Application => {
                let index = number.checked_sub(notes.first_number);
                let index = index.and_then(|index| usize::try_from(index).ok());
                if let Some(sent) = index.and_then(|index| notes.sent_after.get(index)) {
                    recording.lost.push((at, *sent));
                }
            }
            Event::Metrics(metrics) => {
                note(&mut recording.window, at, metrics.window);
                note(&mut recording.in_flight, at, metrics.in_flight);
                let rate = metrics.pacing_rate;
                let rate = if rate.is_unlimited() {
                    0
                } else {
                    rate.bits_per_second()
                };
                note(&mut recording.pacing, at, rate);
                if let Some(rtt) = metrics.rtt {
                    note(&mut recording.rtt, at, rtt.latest);
                    note(&mut recording.rtt_smoothed, at, rtt.smoothed);
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
