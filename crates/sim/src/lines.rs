//! The events of a simulation as JSON lines, for `lastbyte query`, jq and other tools.
//!
//! Times are milliseconds from the start of the simulation. Sizes are bytes of UDP payload; on links, with the path's overhead.

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
use lastbyte_scenario::Handshake;
use lastbyte_units::Direction;
use lastbyte_wire::{Side, packet::PacketType};

use crate::listener::{LinkEvent, Listener};

/// Keys of the simulation as a whole, repeated on each line.
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
    /// The kind of handshake.
    pub handshake: Handshake,
}

struct LineWriter<W> {
    writer: W,
    text: String,
    error: Option<io::Error>,
}

impl<W: Write> LineWriter<W> {
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

/// A [`Listener`] that writes each event as a line.
pub struct Lines<W> {
    label: Arc<Label>,
    output: Arc<Mutex<LineWriter<W>>>,
}

impl<W> fmt::Debug for Lines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

impl<W: Write> Lines<W> {
    /// Creates a listener that writes to `writer`, which should be buffered.
    pub fn new(label: Label, writer: W) -> Self {
        let output = LineWriter {
            writer,
            text: String::new(),
            error: None,
        };
        Self {
            label: Arc::new(label),
            output: Arc::new(Mutex::new(output)),
        }
    }

    /// Starts another simulation, with this label.
    pub fn relabel(&mut self, label: Label) {
        self.label = Arc::new(label);
    }

    /// Flushes the writer.
    ///
    /// # Errors
    ///
    /// Returns the first error of the writer, in this or an earlier call. Nothing is written after an error.
    pub fn finish(self) -> io::Result<()> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        match output.error.take() {
            Some(error) => Err(error),
            None => output.writer.flush(),
        }
    }
}

impl<W: Write + Send + 'static> Listener for Lines<W> {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        Some(Box::new(LineTrace {
            label: Arc::clone(&self.label),
            output: Arc::clone(&self.output),
            flow,
            side: match side {
                Side::Client => "client",
                Side::Server => "server",
            },
        }))
    }

    fn wants_link_events(&self) -> bool {
        true
    }

    fn on_link(&mut self, event: &LinkEvent) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let name = match event.event {
            LinkHappening::Duplicated => "link-duplicated",
            LinkHappening::Queued => "link-queued",
            LinkHappening::Marked => "link-marked",
            LinkHappening::Dropped(_) => "link-dropped",
            LinkHappening::ServiceStarted { .. } => "link-began",
            LinkHappening::ServiceEnded { .. } => "link-ended",
        };
        output.line(&self.label, event.at, name, |line| {
            line.text(
                "link",
                match event.direction {
                    Direction::Down => "down",
                    Direction::Up => "up",
                },
            );
            if event.hop > 0 {
                line.integer("hop", u64::from(event.hop) + 1);
            }
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

struct LineTrace<W> {
    label: Arc<Label>,
    output: Arc<Mutex<LineWriter<W>>>,
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

impl<W: Write + Send> Trace for LineTrace<W> {
    fn on_event(&mut self, now: Time, event: &Event<'_>) {
        let mut guard = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let output = &mut *guard;
        let (flow, side) = (self.flow as u64, self.side);
        let mut line = |name: &str, fill: &dyn Fn(&mut Object<'_>)| {
            output.line(&self.label, now, name, |line| {
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
                line.text("reason", &reason.to_string());
            }),
            // Events of handshake keys and paths are only in qlog.
            _ => {}
        }
    }
}
