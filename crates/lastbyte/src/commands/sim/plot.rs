//! Pictures of one transfer, arm by arm.

use core::time::Duration;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_congestion::{Phase, Time};
use lastbyte_link::{self as link, Capacity, DropReason, Limit, Queue};
use lastbyte_quic::{
    anatomy::Anatomy,
    trace::{Event, Trace},
};
use lastbyte_report::transfer::{
    Arm, Guides, Picture, Point,
    flow::{Data, Flow},
    named::Named,
    parts::{self, Part},
    play,
};
use lastbyte_scenario::{Handshake, Scenario};
use lastbyte_sim::{
    Listener, Outcome, SenderOutcome,
    listener::Listeners,
    recorder::{Life, Recorder, Recording, Sample},
    row::Row,
};
use lastbyte_units::{self as units, Direction};
use lastbyte_wire::{
    Side,
    frame::{Frame, Frames},
};

use super::{Job, described};
use crate::{
    commands::figure::FigureArguments, failure::Failure, files, jobs::Interrupt, terminal::save,
};

/// The format of a chart, by the file's extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Svg,
}

fn kind(option: &str, path: &Path) -> Result<Kind, Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("html") => Ok(Kind::Html),
        Some("svg") => Ok(Kind::Svg),
        _ => Err(Failure::Usage(format!(
            "{option}: unknown format `{}` (expected a name that ends in .html or .svg)",
            path.display()
        ))),
    }
}

/// Whether pictures can be written to these files, which `option` names.
pub(crate) fn check_files(option: &str, plots: &[PathBuf]) -> Result<(), Failure> {
    for file in plots {
        if let Kind::Html = kind(option, file)? {
            files::check_is_page(file)?;
        }
        files::check_folder_of(file)?;
    }
    Ok(())
}

/// Writes a picture to each of these files.
pub(crate) fn write(files: &[PathBuf], picture: &Picture) -> Result<(), Failure> {
    for file in files {
        let bytes = match kind("--plot", file)? {
            Kind::Html => picture.html().into_bytes(),
            Kind::Svg => picture.svg().into_bytes(),
        };
        save(file, &bytes)?;
    }
    Ok(())
}

/// Whether these jobs can be drawn: one transfer, by each arm.
pub(super) fn check_one(plots: &[PathBuf], jobs: &[Job]) -> Result<(), Failure> {
    let Some(first) = jobs.first().filter(|_| !plots.is_empty()) else {
        return Ok(());
    };
    let is_same = |job: &Job| {
        job.label.network == first.label.network && job.label.size_bytes == first.label.size_bytes
    };
    if jobs.iter().all(is_same) {
        Ok(())
    } else {
        Err(Failure::Usage(
            "--plot draws one transfer per arm (expected one --network and one --size)".to_owned(),
        ))
    }
}

/// Draws the flows of each arm and kind of handshake, with the first seed.
pub(super) fn draw(
    files: &[PathBuf],
    figure: &FigureArguments,
    jobs: &[Job],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let Some(first) = jobs.first() else {
        return Ok(());
    };
    let mut columns = Vec::new();
    for job in jobs.iter().filter(|job| job.label.seed == first.label.seed) {
        columns.extend(arms(job, interrupt)?);
    }
    let label = &first.label;
    let picture = Picture {
        title: format!(
            "{} over {}",
            units::show_bytes(label.size_bytes),
            label.network
        ),
        subtitle: subtitle(jobs),
        origin: String::new(),
        arms: columns,
        guides: guides(&first.scenario),
    };
    if figure.is_given() {
        return figure.write(files, &[picture.figure()]);
    }
    write(files, &picture)
}

/// The path, and which of several transfers are drawn.
fn subtitle(jobs: &[Job]) -> String {
    let Some(first) = jobs.first() else {
        return String::new();
    };
    let mut words = described(&first.scenario);
    let flows = first.scenario.flows.len();
    if flows > FLOWS_MAX {
        words.push(format!("flows 1 to {FLOWS_MAX} of {flows}"));
    }
    let is_run = |job: &&Job| {
        job.label.arm == first.label.arm && job.label.handshake == first.label.handshake
    };
    let runs = jobs.iter().filter(is_run).count();
    if runs > 1 {
        words.push(format!("run 1 of {runs}"));
    }
    words.push(format!("seed {}", first.label.seed));
    words.join(" · ")
}

/// The columns of a job: one per flow. Their times count from the start of the first flow that starts.
fn arms(job: &Job, interrupt: &Interrupt) -> Result<Vec<Arm>, Failure> {
    let scenario = &job.scenario;
    let flows = &scenario.flows;
    let base = flows.iter().map(|flow| flow.start).min();
    let base = Time::ZERO + base.unwrap_or(Duration::ZERO);
    let mut recorders: Vec<Recorder> = (0..flows.len().min(FLOWS_MAX))
        .map(|flow| {
            let overhead = scenario.path.overhead;
            let recorder = Recorder::new(flow, scenario.direction(), base, overhead);
            if flows.len() > 1 {
                recorder.one_of_several()
            } else {
                recorder
            }
        })
        .collect();
    let sender_side = match scenario.direction() {
        Direction::Down => Side::Server,
        Direction::Up => Side::Client,
    };
    let mut limits: Vec<Limits> = (0..recorders.len())
        .map(|flow| Limits {
            flow,
            sender: sender_side,
            base,
            counted: Arc::default(),
        })
        .collect();
    let traces = limits.iter_mut().map(|one| one as &mut dyn Listener);
    let listeners = recorders.iter_mut().map(|one| one as &mut dyn Listener);
    let listeners = listeners.chain(traces).collect();
    let outcome = job.run(interrupt, &mut Listeners(listeners))?;
    let rows = Row::all(&job.label, &outcome);
    let end = outcome.ended_at.since(base);
    let mut name = job.label.arm.clone();
    if job.label.handshake != Handshake::Full {
        name = format!("{name}, {}", job.label.handshake.name());
    }
    let is_shared =
        flows.len() > 1 || !scenario.cross.is_empty() || !scenario.path.cross.is_empty();
    let rtt = scenario.path.rtt();
    let recorders = recorders.into_iter().zip(limits).enumerate();
    let columns = recorders.map(|(flow, (recorder, limits))| {
        let recording = recorder.into_recording();
        let label = if flows.len() > 1 {
            format!("{name}, flow {}", flow + 1)
        } else {
            name.clone()
        };
        let mut arm = arm(label, &recording, end);
        limits.draw(ms(end), &mut arm);
        let sent = sender(&outcome, flow);
        let acked = sent.and_then(|sender| sender.acked_at);
        let anatomy = sent.and_then(|sender| sender.snapshot.anatomy());
        arm.summary = anatomy
            .and_then(|anatomy| summary(&anatomy, acked.is_some()))
            .unwrap_or_default();
        let ended = acked.map(|acked| ms(acked.since(base)));
        arm.ended = ended.filter(|ended| *ended < ms(end));
        if let Some(row) = rows.get(flow) {
            let started = flows.get(flow).map_or(Duration::ZERO, |flow| flow.start);
            let started = (Time::ZERO + started).since(base);
            arm.note = note(row);
            let (mut named, idle) = named(&recording, started, row);
            let mut drops = outcome
                .flows
                .get(flow)
                .into_iter()
                .flat_map(|one| &one.drops);
            if let Some(drop) = drops.find(|drop| drop.reason == DropReason::QueueFull) {
                named.queue_overflowed(ms(drop.at.since(base)));
            }
            arm.events = events(row, &named, started);
            arm.phases = phases(&recording, &idle, sender(&outcome, flow), base);
        }
        if is_shared {
            arm.rate = rates(&recording.served, rtt, end);
            if let Some(ended) = arm.ended {
                arm.rate.retain(|point| point.ms <= ended);
            }
            arm.others = rates(&recording.served_others, rtt, end);
        }
        arm
    });
    Ok(columns.collect())
}

/// Where the time went, as for a qlog file.
fn summary(anatomy: &Anatomy, is_complete: bool) -> Option<String> {
    let mut times = parts::Times::default();
    for (part, time) in [
        (
            Part::Window,
            anatomy.window + anatomy.idle + anatomy.queueing,
        ),
        (Part::FlowControl, anatomy.flow_control),
        (Part::Repair, anatomy.repair),
        (Part::Pacing, anatomy.pacing),
        (Part::Application, anatomy.application),
        (Part::LastAck, anatomy.last_ack),
    ] {
        times[part as usize] = ms(time);
    }
    if is_complete {
        parts::sentence(&times)
    } else {
        parts::sentence_incomplete(&times)
    }
}

/// Follows the limits of flow control of a flow.
struct Limits {
    flow: usize,
    sender: Side,
    base: Time,
    counted: Arc<Mutex<Counted>>,
}

#[derive(Default)]
struct Counted {
    flow: Flow,
    /// Bytes of packets sent.
    packets: u64,
}

impl Limits {
    fn draw(self, end: f64, arm: &mut Arm) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let Counted { flow, packets } = std::mem::take(&mut *counted);
        flow.draw(end, packets, arm);
    }
}

impl Listener for Limits {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        let is_sender = flow == self.flow && side == self.sender;
        is_sender.then(|| {
            Box::new(LimitsTrace {
                sender: self.sender,
                base: self.base,
                counted: Arc::clone(&self.counted),
            }) as Box<dyn Trace>
        })
    }
}

struct LimitsTrace {
    sender: Side,
    base: Time,
    counted: Arc<Mutex<Counted>>,
}

impl Trace for LimitsTrace {
    fn on_event(&mut self, now: Time, event: &Event<'_>) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let Counted { flow, packets } = &mut *counted;
        let now = ms(now.since(self.base));
        let is_client = Some(self.sender == Side::Client);
        let (packet, is_sent) = match event {
            Event::PacketSent(packet) => {
                *packets += packet.len as u64;
                (packet, true)
            }
            Event::PacketReceived(packet) => (packet, false),
            Event::Parameters {
                is_local: false,
                parameters: of,
            } => {
                let streams = [
                    of.initial_max_stream_data_bidi_remote,
                    of.initial_max_stream_data_bidi_local,
                    of.initial_max_stream_data_uni,
                ];
                let data = Some(of.initial_max_data.get());
                flow.start(now, data, streams.map(|limit| Some(limit.get())), *packets);
                return;
            }
            _ => return,
        };
        let by = if is_sent {
            self.sender
        } else {
            self.sender.peer()
        };
        let frames = Frames::new(packet.payload, packet.packet_type, by);
        for frame in frames.into_iter().flatten().flatten() {
            match frame {
                Frame::Stream(frame) if is_sent => {
                    let data = Data {
                        id: frame.header.id.get(),
                        offset: frame.header.offset.get(),
                        length: frame.data.len() as u64,
                        is_last: frame.header.fin,
                    };
                    flow.stream(now, data, is_client, *packets);
                }
                Frame::MaxData(frame) if !is_sent => {
                    flow.raise(now, None, frame.maximum.get(), is_client, *packets);
                }
                Frame::MaxStreamData(frame) if !is_sent => {
                    let id = Some(frame.stream_id.get());
                    flow.raise(now, id, frame.maximum.get(), is_client, *packets);
                }
                Frame::DataBlocked(frame) if is_sent => {
                    flow.report(now, None, frame.limit.get(), is_client, *packets);
                }
                Frame::StreamDataBlocked(frame) if is_sent => {
                    let id = Some(frame.stream_id.get());
                    flow.report(now, id, frame.limit.get(), is_client, *packets);
                }
                _ => {}
            }
        }
    }
}

/// An arm with what was recorded of a flow.
fn arm(label: String, recording: &Recording, end: Duration) -> Arm {
    let mut arm = Arm::new(label);
    arm.sent = bytes(&recording.sent);
    arm.acked = bytes(&recording.acked);
    arm.lost = bytes(&recording.lost);
    arm.queue = bytes(&recording.queue);
    arm.drops = bytes(&recording.drops);
    arm.marks = bytes(&recording.marks);
    arm.window = bytes(&recording.window);
    arm.in_flight = bytes(&recording.in_flight);
    // No pacing is no rate to be drawn.
    arm.pacing = bytes(&recording.pacing);
    arm.pacing.retain(|point| point.value > 0.0);
    arm.packets = recording.lives.iter().map(packet).collect();
    arm.rtt = spans(&recording.rtt);
    arm.rtt_smoothed = spans(&recording.rtt_smoothed);
    let recovery = recording.recovery.iter();
    arm.recovery = recovery
        .map(|(from, to)| (ms(*from), ms(to.unwrap_or(end))))
        .collect();
    arm
}

/// Mean rates in bit/s over equal parts of the time until `end`: of a round trip at least, and at most [`PARTS_MAX`].
fn rates(served: &[Sample<u64>], rtt: Duration, end: Duration) -> Vec<Point> {
    if served.is_empty() || end.is_zero() {
        return Vec::new();
    }
    let (end, rtt) = (ms(end), ms(rtt));
    let parts = (end / rtt.max(1e-3)).clamp(1.0, PARTS_MAX as f64) as usize;
    let width = end / parts as f64;
    let mut bytes = vec![0; parts];
    let mut before = 0;
    for (at, total) in served {
        let part = ((ms(*at) / width) as usize).min(parts - 1);
        bytes[part] += total - before;
        before = *total;
    }
    let points = bytes
        .into_iter()
        .enumerate()
        .map(|(part, bytes): (usize, u64)| {
            Point::new(part as f64 * width, bytes as f64 * 8000.0 / width)
        });
    points.collect()
}

fn note(row: &Row) -> String {
    let time = row.ttlb.map_or_else(
        || "did not arrive".to_owned(),
        |ttlb| format!("{:.1} ms", ms(ttlb)),
    );
    let share = if row.packets_sent > 0 {
        row.packets_lost as f64 / row.packets_sent as f64 * 100.0
    } else {
        0.0
    };
    format!(
        "{time}, {} of {} packets lost ({share:.1} %)",
        row.packets_lost, row.packets_sent
    )
}

/// The life of a packet, as the page plays it.
fn packet(life: &Life) -> play::Packet {
    let time = |at: Option<Duration>| at.map(ms);
    play::Packet {
        sent: ms(life.sent),
        queued: time(life.queued),
        served: time(life.served),
        dropped: time(life.dropped),
        arrived: time(life.arrived),
        ack_sent: time(life.ack_sent),
        acked: time(life.acked),
        lost: time(life.lost),
    }
}

/// The events of a flow that started this long after the times of the picture.
fn events(row: &Row, named: &Named, started: Duration) -> Vec<(f64, String)> {
    let mut events = named.events();
    for (at, what) in [(row.ttfb, "first byte"), (row.ttlb, "last byte")] {
        events.extend(at.map(|at| (ms(started + at), what.to_owned())));
    }
    events
}

/// The last value of a series at a time.
fn at<T: Copy>(series: &[Sample<T>], time: Duration) -> Option<T> {
    let after = series.partition_point(|(at, _)| *at <= time);
    series[..after].last().map(|(_, value)| *value)
}

/// What has a name, as for a qlog file, and all periods in which the path was idle though the sender had data.
fn named(recording: &Recording, started: Duration, row: &Row) -> (Named, Vec<(f64, f64)>) {
    let mut named = Named::default();
    let mut idle = Vec::new();
    let mut before: Option<Duration> = None;
    let mut rtt_min: Option<Duration> = None;
    let mut samples = recording.rtt.iter().peekable();
    for life in &recording.lives {
        while let Some((_, rtt)) = samples.next_if(|(at, _)| *at <= life.sent) {
            rtt_min = Some(rtt_min.map_or(*rtt, |least| least.min(*rtt)));
        }
        // The window was full if no other packet of this size fitted. In recovery it waits for the repair.
        let was_full = before.is_some_and(|before| {
            let periods = recording
                .recovery
                .partition_point(|(from, _)| *from <= life.sent);
            let last = recording.recovery[..periods].last();
            let was_recovering = last.is_some_and(|(_, to)| to.is_none_or(|to| to > before));
            let used = at(&recording.in_flight, before).unwrap_or(0) + life.bytes;
            let window = at(&recording.window, before);
            !was_recovering && window.is_some_and(|window| used > window)
        });
        idle.extend(named.sent(ms(life.sent), was_full, rtt_min.map(ms)));
        before = Some(life.sent);
    }
    for (time, _) in &recording.lost {
        // The sample of the acknowledgment that shows the loss does not count yet.
        let before = time.saturating_sub(Duration::from_nanos(1));
        let round_trip = at(&recording.rtt_smoothed, before).unwrap_or_default();
        named.lost(ms(*time), 1, ms(round_trip));
    }
    for (time, phase) in &recording.phases {
        match phase {
            Phase::ConservativeSlowStart => named.conservative(ms(*time)),
            Phase::Recovery => named.recovery(ms(*time)),
            _ => {}
        }
    }
    let left = recording
        .phases
        .iter()
        .find(|(_, phase)| !phase.is_startup());
    let exit = row.startup_exit.map(|at| started + at);
    if let Some(exit) = exit.or(left.map(|(at, _)| *at)) {
        named.startup_ends(ms(exit));
    }
    (named, idle)
}

/// What the sender is doing: handshake, the phases of its control, pauses in which the path is idle, and the last acknowledgment.
fn phases(
    recording: &Recording,
    idle: &[(f64, f64)],
    sender: Option<&SenderOutcome>,
    base: Time,
) -> Vec<(f64, String)> {
    let since_base = |at: Time| ms(at.since(base));
    let requested = sender
        .and_then(|sender| sender.requested_at)
        .map(since_base);
    let acked = sender.and_then(|sender| sender.acked_at).map(since_base);
    let tail = sender.and_then(|sender| sender.snapshot.anatomy());
    let last_ack = acked
        .zip(tail)
        .map(|(acked, parts)| acked - ms(parts.last_ack));
    let control = recording.phases.iter().map(|(at, _)| ms(*at));
    let mut times: Vec<f64> = [Some(0.0), requested, last_ack, acked]
        .into_iter()
        .flatten()
        .chain(control)
        .chain(idle.iter().flat_map(|(from, to)| [*from, *to]))
        .collect();
    times.sort_by(f64::total_cmp);
    let is_past = |at: Option<f64>, now: f64| at.is_some_and(|at| at <= now);
    let name = |now: f64| {
        if !is_past(requested, now) {
            return "handshake";
        }
        if is_past(acked, now) {
            return "complete";
        }
        if is_past(last_ack, now) {
            return "last acknowledgment";
        }
        let pauses = idle.partition_point(|(from, _)| *from <= now);
        if idle[..pauses].last().is_some_and(|(_, to)| now < *to) {
            return "idle";
        }
        let after = recording.phases.partition_point(|(at, _)| ms(*at) <= now);
        let phase = recording.phases[..after].last();
        phase.map_or("startup", |(_, phase)| match phase {
            Phase::ConservativeSlowStart => "conservative slow start",
            Phase::SlowStart => "slow start",
            Phase::Avoidance => "congestion avoidance",
            phase => phase.name(),
        })
    };
    let mut phases: Vec<(f64, String)> = Vec::new();
    for now in times {
        let name = name(now);
        if phases.last().is_none_or(|(_, last)| last != name) {
            phases.push((now, name.to_owned()));
        }
    }
    phases
}

/// The end of a flow that sends its data.
fn sender(outcome: &Outcome, flow: usize) -> Option<&SenderOutcome> {
    outcome.flows.get(flow)?.server.as_ref()
}

fn rate(link: &link::Config) -> Option<lastbyte_link::Rate> {
    match &link.capacity {
        Capacity::Constant(rate) => Some(*rate),
        _ => None,
    }
}

fn guides(scenario: &Scenario) -> Guides {
    let link = scenario.bottleneck();
    let rate = rate(link);
    let queue_limit = match link.queue {
        Queue::DropTail(queue) => match queue.limit {
            Limit::Bytes(bytes) => Some(bytes as f64),
            Limit::Time(span) => rate.map(|rate| rate.bytes_in(span) as f64),
            _ => None,
        },
        _ => None,
    };
    Guides {
        rate: rate.map(|rate| rate.bits_per_second() as f64),
        queue_limit,
        rtt: Some(ms(scenario.path.rtt())),
    }
}

fn bytes(series: &[Sample<u64>]) -> Vec<Point> {
    let points = series.iter();
    points
        .map(|(at, value)| Point::new(ms(*at), *value as f64))
        .collect()
}

fn spans(series: &[Sample<Duration>]) -> Vec<Point> {
    let points = series.iter();
    points
        .map(|(at, value)| Point::new(ms(*at), ms(*value)))
        .collect()
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Flows of an arm that are drawn.
const FLOWS_MAX: usize = 8;
/// Parts of the time in which rates are taken.
const PARTS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_equal_parts_of_a_round_trip_or_more() {
        let at = Duration::from_millis;
        let served = [(at(5), 1000), (at(15), 3000), (at(39), 4000)];
        let points = rates(&served, at(10), at(40));
        let expected = [(0.0, 0.8e6), (10.0, 1.6e6), (20.0, 0.0), (30.0, 0.8e6)];
        let expected = expected.map(|(ms, value)| Point::new(ms, value));
        assert_eq!(points, expected);
        // What is transmitted at the end counts in the last part.
        assert_eq!(
            rates(&[(at(40), 500)], at(30), at(40)),
            [Point::new(0.0, 1e5)]
        );
        assert_eq!(rates(&served, Duration::ZERO, at(40)).len(), PARTS_MAX);
        assert!(rates(&[], at(10), at(40)).is_empty());
    }
}
