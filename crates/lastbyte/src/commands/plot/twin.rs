//! The twin of a connection: a transfer over the simulated path that is most like it, and where the two part.
//!
//! Paths are those of the bank of `lastbyte replay`. They are found for the whole connection and for its first parts, since what
//! happens late, such as an outage, hides what the path was before. The transfer is simulated over all of them.

use core::time::Duration;
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_congestion::{Registry, Time};
use lastbyte_quic::trace::Trace;
use lastbyte_record::qlog::{Header, Qlog};
use lastbyte_replay::{Column, Effort, KEYS, Line, Parting, Posterior, parting, posteriors};
use lastbyte_report::{
    qlog::{self, Moment, Sender},
    transfer::{Arm, Point},
};
use lastbyte_scenario::{Arm as Control, Draw, scenario::Request};
use lastbyte_sim::{Listener, simulate};
use lastbyte_units as units;
use lastbyte_wire::Side;

use crate::{
    commands::replay::{
        bank::{BankArguments, Store},
        log::SIZES,
    },
    failure::Failure,
    jobs::{Interrupt, run_all},
};

/// First parts of a connection that are matched beside the whole, from the largest down: each has 1/√2 of the data of the one before.
const PARTS_MAX: usize = 6;
/// Larger responses would take long to simulate, in bytes.
const SIZE_MAX: f64 = 64e6;
/// Times at which curves are compared.
const TIMES: usize = 512;

/// What is found.
pub(super) enum Found {
    /// A twin is in the picture, and these sentences describe it.
    Twin(Vec<String>),
    /// There is none, for this reason.
    CannotTell(String),
    Interrupted,
}

/// The congestion control of a connection: that of `--spec`, or that in the title of a file of `sim` or `ab`.
pub(super) fn control(
    spec: Option<&str>,
    title: &str,
    file: &str,
    registry: &Registry,
) -> Result<Control, Failure> {
    if let Some(spec) = spec {
        return Control::parse(spec, registry)
            .map_err(|error| Failure::Usage(format!("--spec: {error}")));
    }
    let name = title.split_once(" over ").map_or("", |(name, _)| name);
    Control::parse(name, registry).map_err(|_| {
        let named = if name.is_empty() {
            String::new()
        } else {
            format!(" `{name}`")
        };
        Failure::Usage(format!(
            "the congestion control{named} of `{file}` is unknown (expected --spec SPEC)"
        ))
    })
}

/// Adds its twin to the arm of a connection.
pub(super) fn add(
    arm: &mut Arm,
    sender: Option<&Sender>,
    control: &Control,
    arguments: &BankArguments,
    registry: &Registry,
) -> Result<Found, Failure> {
    let sender = match usable(sender, arm) {
        Ok(sender) => sender,
        Err(why) => return Ok(Found::CannotTell(why)),
    };
    let interrupt = Interrupt::listen();
    let store = Store::new(arguments, registry, &interrupt)?;
    let Some(bank) = arguments.load(&store, core::slice::from_ref(control))? else {
        return Ok(Found::Interrupted);
    };
    let facts: Vec<[f64; 2]> = bank
        .paths()
        .iter()
        .map(|path| {
            let facts = store.draw(path.seed).facts;
            let rate = facts
                .policer
                .map_or(facts.rate, |one| one.rate.min(facts.rate));
            [
                (rate.bits_per_second() as f64).ln(),
                facts.queue.as_secs_f64().ln(),
            ]
        })
        .collect();
    let (whole, parts) = lines(sender);
    let (mut found, mut why) = (Vec::new(), None);
    for lines in [whole, parts] {
        let lines: Vec<&Line> = lines.iter().collect();
        if lines.is_empty() {
            continue;
        }
        let effort = Effort::default();
        match posteriors(&bank, &facts, &control.name, &lines, effort, arguments.seed) {
            Ok(posteriors) => found.extend(posteriors),
            Err(refusal) => why = Some(refusal.to_string()),
        }
    }
    let Some(support) = support(&found) else {
        return Ok(Found::CannotTell(why.unwrap_or_else(|| nearest(&found))));
    };
    let paths = found.iter().flat_map(|one| &one.paths);
    let seeds: BTreeSet<u64> = paths.map(|path| bank.paths()[*path].seed).collect();
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let handshake = sent_before(arm, sender.started);
    let simulated = run_all(&seeds, arguments.jobs, &interrupt, |seed| {
        transfer(&store, control, *seed, sender, handshake)
    });
    if simulated.len() < seeds.len() {
        return Ok(Found::Interrupted);
    }
    let simulated = simulated.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    let twins: Vec<(Draw, Arm)> = simulated.into_iter().flatten().collect();
    let (from, to) = (sender.started, end(sender).at);
    let grid = |points: &[Point]| curve(points, from, to);
    let curves: Vec<Vec<f64>> = twins.iter().map(|(_, twin)| grid(&twin.acked)).collect();
    let shift = shift(sender, to - from);
    let Some(parting) = parting(&grid(&arm.acked), &curves, shift) else {
        return Ok(Found::CannotTell(
            "the transfer was not completed on the paths like it".to_owned(),
        ));
    };
    let (draw, twin) = &twins[parting.twin];
    arm.twin_acked.clone_from(&twin.acked);
    arm.twin_window.clone_from(&twin.window);
    arm.twin_rtt.clone_from(&twin.rtt_smoothed);
    let at = |index: usize| from + (to - from) * index as f64 / (TIMES - 1) as f64;
    if let Some(index) = parting.at {
        arm.events.push((at(index), "the twin parts at".to_owned()));
    }
    let mut sentences = vec![sentence(&parting, at)];
    sentences.push(format!(
        "The twin: {}",
        described(draw, &control.spec.to_string())
    ));
    sentences.push(support);
    Ok(Found::Twin(sentences))
}

/// The shift in time that is no difference, in steps: 1.5 of the smallest round-trip time.
fn shift(sender: &Sender, span: f64) -> usize {
    let rtt = line(end(sender)).get(Column::RttMinimum).unwrap_or(0.0);
    let steps = 1.5 * rtt / span * (TIMES - 1) as f64;
    (steps.round() as usize).clamp(1, TIMES / 4)
}

/// The sender, or why it has no twin.
fn usable<'a>(sender: Option<&'a Sender>, arm: &Arm) -> Result<&'a Sender, String> {
    let Some(sender) = sender else {
        return Err(
            "the file is that of the receiver, or no data were acknowledged (expected the sender’s)"
                .to_owned(),
        );
    };
    if sender.responses != 1 {
        return Err(format!(
            "it has {} responses (expected one, as on the simulated paths)",
            sender.responses
        ));
    }
    if arm.acked.is_empty() {
        return Err("the file has no sizes of packets".to_owned());
    }
    match line(end(sender)).get(Column::Size) {
        Some(size) if !(SIZES.start..=SIZE_MAX).contains(&size) => Err(format!(
            "{} of data were acknowledged (expected {} to {})",
            units::show_bytes(size as u64),
            units::show_bytes(SIZES.start as u64),
            units::show_bytes(SIZE_MAX as u64)
        )),
        _ => Ok(sender),
    }
}

/// The end of the transfer.
fn end(sender: &Sender) -> &Moment {
    &sender.moments[sender.moments.len() - 1]
}

fn line(moment: &Moment) -> Line {
    let number = |key: &&str| moment.numbers.get(key).copied().unwrap_or(f64::NAN);
    Line::of_numbers(KEYS.iter().map(number))
}

/// The line of the whole transfer if it is complete, and those of its first parts, of sizes that the bank has.
fn lines(sender: &Sender) -> (Vec<Line>, Vec<Line>) {
    let is_in_bank = |line: &Line| {
        line.get(Column::Size)
            .is_none_or(|size| SIZES.contains(&size))
    };
    let mut all: Vec<Line> = sender.moments.iter().map(line).collect();
    let whole = all.pop_if(|_| sender.is_complete);
    all.retain(is_in_bank);
    let parts = all.split_off(all.len().saturating_sub(PARTS_MAX));
    (whole.filter(is_in_bank).into_iter().collect(), parts)
}

/// The support of the part that is most like a simulated path, as a sentence; `None` without one.
fn support(found: &[Posterior]) -> Option<String> {
    let with_paths = found.iter().filter(|one| !one.paths.is_empty());
    let share = |one: &Posterior| one.distance / one.limit;
    let best = with_paths.min_by(|a, b| share(a).total_cmp(&share(b)))?;
    Some(format!(
        "Support: the nearest simulated path is at {:.2} of the largest distance with support",
        share(best)
    ))
}

/// Why there is no support.
fn nearest(found: &[Posterior]) -> String {
    let shares = found.iter().map(|one| one.distance / one.limit);
    let least = shares.fold(f64::INFINITY, f64::min);
    if !least.is_finite() {
        return "the file lacks numbers of the connection".to_owned();
    }
    format!(
        "the connection resembles no simulated path: the nearest is {least:.1} times as far as 99 % of these are from each other"
    )
}

/// A buffer that a trace writes and the caller reads.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Listener for Buffer {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        let header = Header {
            title: String::new(),
            vantage_point: side,
            group_id: String::new(),
        };
        let is_sender = flow == 0 && side == Side::Server;
        is_sender
            .then(|| Box::new(Qlog::new(&header, Time::ZERO, self.clone()).0) as Box<dyn Trace>)
    }
}

/// The bytes sent until a time, in ms.
fn sent_before(arm: &Arm, ms: f64) -> f64 {
    let sent = arm.sent.iter().take_while(|point| point.ms <= ms);
    sent.map(|point| point.value).fold(0.0, f64::max)
}

/// Simulates the transfer over a path, and reads its qlog as that of the connection. Times are moved so that the requests arrive at the
/// same time, and bytes so that as many, `handshake`, were sent until then: certificate chains differ in length. `None` if no data
/// arrive.
fn transfer(
    store: &Store<'_>,
    control: &Control,
    seed: u64,
    recorded: &Sender,
    handshake: f64,
) -> Result<Option<(Draw, Arm)>, Failure> {
    let (draw, mut scenario) = store.scenario(&control.spec, seed);
    let last = end(recorded);
    let size = line(last).get(Column::Size).unwrap_or(0.0);
    for flow in &mut scenario.flows {
        flow.requests = vec![Request::of(size as u64)];
    }
    let limit = Duration::from_secs_f64((last.at * 1.5 + 1000.0) / 1000.0);
    scenario.time_limit = scenario.time_limit.min(draw.start + limit);
    let mut buffer = Buffer::default();
    simulate(&scenario, &mut buffer).map_err(Failure::run)?;
    let bytes = std::mem::take(&mut *buffer.0.lock().unwrap_or_else(PoisonError::into_inner));
    let open = || Ok(Box::new(io::Cursor::new(bytes.clone())) as _);
    let Ok(mut reading) = qlog::read(open, "") else {
        return Ok(None);
    };
    let (Some(mut arm), Some(Some(sender))) = (reading.arms.pop(), reading.senders.pop()) else {
        return Ok(None);
    };
    let later = recorded.started - sender.started;
    let more = handshake - sent_before(&arm, sender.started);
    for series in [&mut arm.acked, &mut arm.window, &mut arm.rtt_smoothed] {
        for point in &mut *series {
            point.ms += later;
        }
        series.retain(|point| point.ms >= 0.0);
    }
    // A line does not fall when a late acknowledgment comes.
    let mut most = 0.0;
    for point in &mut arm.acked {
        most = f64::max(most, point.value + more);
        point.value = most;
    }
    Ok(Some((draw, arm)))
}

/// The values of a series at equal steps of time.
fn curve(points: &[Point], from: f64, to: f64) -> Vec<f64> {
    let mut rest = points.iter().peekable();
    let mut value = 0.0;
    let times = (0..TIMES).map(|index| from + (to - from) * index as f64 / (TIMES - 1) as f64);
    times
        .map(|time| {
            while let Some(point) = rest.next_if(|point| point.ms <= time) {
                value = f64::max(value, point.value);
            }
            value
        })
        .collect()
}

fn sentence(parting: &Parting, at: impl Fn(usize) -> f64) -> String {
    let bytes = |bytes: f64| units::show_bytes(bytes.abs() as u64);
    let (difference, spread) = (bytes(parting.difference), bytes(parting.spread));
    let seen_at = time(at(parting.seen_at));
    let more = if parting.difference < 0.0 {
        "less"
    } else {
        "more"
    };
    match parting.at {
        Some(index) => format!(
            "The twin parts at {}: at {seen_at}, {difference} {more} is acknowledged, and similar paths differ by up to {spread}",
            time(at(index)),
        ),
        None if parting.difference == 0.0 => "The twin does not part".to_owned(),
        None => format!(
            "The twin does not part: at {seen_at}, {difference} {more} is acknowledged, and similar paths differ by up to {spread}"
        ),
    }
}

fn time(ms: f64) -> String {
    if ms >= 1000.0 {
        format!("{:.2} s", ms / 1000.0)
    } else {
        format!("{ms:.0} ms")
    }
}

fn described(draw: &Draw, spec: &str) -> String {
    let facts = &draw.facts;
    format!(
        "{spec} over {}, {}, round trip {}, queue {}",
        draw.class,
        units::show_rate(facts.rate),
        time(facts.rtt.as_secs_f64() * 1000.0),
        time(facts.queue.as_secs_f64() * 1000.0)
    )
}

#[cfg(test)]
mod tests;
