//! What happens in a simulation, one JSON object a line: for `lastbyte query`, jq, and whatever reads lines.
//!
//! Owns: the keys. Times are milliseconds from the start of the simulation, sizes bytes of UDP payload, on links with the
//! path's overhead. Never: opens a file.

use core::fmt;
use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_congestion::Time;
use lastbyte_link::Event as LinkHappening;
use lastbyte_quic::{
    connection::Stage,
    space::Space,
    trace::{Event, LossTrigger, Trace},
};
use lastbyte_record::json::Object;
use lastbyte_wire::{Side, packet::PacketType};

use crate::{
    listener::{LinkEvent, Listener, Way},
    scenario::Handshake,
};

/// What each line says about the simulation as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The arm's spec.
    pub arm: String,
    /// The network's name.
    pub network: String,
    /// The size of the first response, in bytes.
    pub size_bytes: u64,
    /// The seed.
    pub seed: u64,
    /// How client and server shook hands.
    pub handshake: Handshake,
}

struct Sheet<W> {
    writer: W,
    text: String,
    error: Option<io::Error>,
}

impl<W: Write> Sheet<W> {
    fn line(&mut self, label: &Label, now: Time, event: &str, fill: impl FnOnce(&mut Object<'_>)) {
        if self.error.is_some() {
            return;
        }
        self.text.clear();
        {
            let mut object = Object::new(&mut self.text);
            object
                .text("arm", &label.arm)
                .text("network", &label.network)
                .integer("size_bytes", label.size_bytes)
                .integer("seed", label.seed)
                .text("handshake", label.handshake.name())
                .number("time_ms", now.as_nanos() as f64 / 1e6, 6)
                .text("event", event);
            fill(&mut object);
        }
        self.text.push('\n');
        if let Err(error) = self.writer.write_all(self.text.as_bytes()) {
            self.error = Some(error);
        }
    }
}

/// Writes lines about all that happens.
pub struct Lines<W> {
    label: Arc<Label>,
    sheet: Arc<Mutex<Sheet<W>>>,
}

impl<W> fmt::Debug for Lines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Lines<W> {
    /// Writes to a writer, which had better have a buffer.
    pub fn new(label: Label, writer: W) -> Self {
        let sheet = Sheet {
            writer,
            text: String::new(),
            error: None,
        };
        Self {
            label: Arc::new(label),
            sheet: Arc::new(Mutex::new(sheet)),
        }
    }

    /// Lines about another simulation from now on.
    pub fn relabel(&mut self, label: Label) {
        self.label = Arc::new(label);
    }

    /// Writes what is still in the buffer.
    ///
    /// # Errors
    ///
    /// Returns the first error of the writer, of this or an earlier call. Nothing is written after it.
    pub fn finish(self) -> io::Result<()> {
        let mut sheet = self.sheet.lock().unwrap_or_else(PoisonError::into_inner);
        match sheet.error.take() {
            Some(error) => Err(error),
            None => sheet.writer.flush(),
        }
    }
}

impl<W: Write + Send + 'static> Listener for Lines<W> {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        Some(Box::new(Pen {
            label: Arc::clone(&self.label),
            sheet: Arc::clone(&self.sheet),
            flow,
            side: match side {
                Side::Client => "client",
                Side::Server => "server",
            },
        }))
    }

    fn listens_to_links(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        let mut sheet = self.sheet.lock().unwrap_or_else(PoisonError::into_inner);
        let name = match event.event {
            LinkHappening::Duplicated => "link-duplicated",
            LinkHappening::Queued => "link-queued",
            LinkHappening::Marked => "link-marked",
            LinkHappening::Dropped(_) => "link-dropped",
            LinkHappening::ServiceStarted { .. } => "link-began",
            LinkHappening::ServiceEnded { .. } => "link-ended",
        };
        sheet.line(&self.label, event.at, name, |line| {
            line.text(
                "link",
                match event.way {
                    Way::Down => "down",
                    Way::Up => "up",
                },
            );
            if let Some(flow) = event.flow {
                line.integer("flow", flow as u64);
            }
            line.integer("bytes", event.bytes)
                .integer("queue_bytes", event.queue.bytes)
                .integer("queue_packets", event.queue.packets);
            if let LinkHappening::Dropped(reason) = event.event {
                line.text("reason", reason.name());
            }
        });
    }
}

struct Pen<W> {
    label: Arc<Label>,
    sheet: Arc<Mutex<Sheet<W>>>,
    flow: usize,
    side: &'static str,
}

const fn type_name(packet_type: PacketType) -> &'static str {
    match packet_type {
        PacketType::Initial => "initial",
        PacketType::ZeroRtt => "0RTT",
        PacketType::Handshake => "handshake",
        PacketType::OneRtt => "1RTT",
    }
}

const fn space_name(space: Space) -> &'static str {
    match space {
        Space::Initial => "initial",
        Space::Handshake => "handshake",
        Space::Application => "application",
    }
}

impl<W: Write + Send> Trace for Pen<W> {
    fn on_event(&mut self, now: Time, event: &Event<'_>) {
        let mut guard = self.sheet.lock().unwrap_or_else(PoisonError::into_inner);
        let sheet = &mut *guard;
        let (flow, side) = (self.flow as u64, self.side);
        let mut line = |name: &str, fill: &dyn Fn(&mut Object<'_>)| {
            sheet.line(&self.label, now, name, |line| {
                line.integer("flow", flow).text("side", side);
                fill(line);
            });
        };
        match event {
            Event::PacketSent(packet) | Event::PacketReceived(packet) => {
                let is_sent = matches!(event, Event::PacketSent(_));
                let name = if is_sent {
                    "packet-sent"
                } else {
                    "packet-received"
                };
                line(name, &|line| {
                    line.text("packet_type", type_name(packet.packet_type))
                        .integer("packet_number", packet.number)
                        .integer("bytes", packet.len as u64);
                });
            }
            Event::PacketAcked {
                space,
                number,
                len,
                is_late,
            } => line("packet-acked", &|line| {
                line.text("space", space_name(*space))
                    .integer("packet_number", *number)
                    .integer("bytes", *len)
                    .boolean("late", *is_late);
            }),
            Event::PacketLost {
                space,
                number,
                len,
                trigger,
            } => line("packet-lost", &|line| {
                line.text("space", space_name(*space))
                    .integer("packet_number", *number)
                    .integer("bytes", *len)
                    .text(
                        "trigger",
                        match trigger {
                            LossTrigger::ReorderingThreshold => "reordering-threshold",
                            LossTrigger::TimeThreshold => "time-threshold",
                        },
                    );
            }),
            Event::ProbeTimeout(space) => line("probe-timeout", &|line| {
                line.text("space", space_name(*space));
            }),
            Event::Metrics(metrics) => line("metrics", &|line| {
                line.integer("window_bytes", metrics.window)
                    .integer("in_flight_bytes", metrics.in_flight);
                if !metrics.pacing_rate.is_unlimited() {
                    line.integer("pacing_bps", metrics.pacing_rate.bits_per_second());
                }
                if let Some(threshold) = metrics.state.slow_start_threshold {
                    line.integer("ssthresh_bytes", threshold);
                }
                let ms = |span: core::time::Duration| span.as_secs_f64() * 1e3;
                if let Some(rtt) = metrics.rtt {
                    line.number("rtt_ms", ms(rtt.latest), 6)
                        .number("rtt_smoothed_ms", ms(rtt.smoothed), 6)
                        .number("rtt_min_ms", ms(rtt.min), 6);
                }
                line.text("phase", metrics.state.phase.name());
            }),
            Event::Stage(stage) => line("handshake", &|line| {
                line.text(
                    "stage",
                    match stage {
                        Stage::Handshaking => "handshaking",
                        Stage::Complete => "complete",
                        Stage::Confirmed => "confirmed",
                    },
                );
            }),
            Event::Closed(reason) => line("closed", &|line| {
                line.text("reason", &format!("{reason:?}"));
            }),
            // What is of the handshake's keys and of paths is in qlog.
            _ => {}
        }
    }
}
