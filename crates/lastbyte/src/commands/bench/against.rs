//! `--against`: two servers in turn, in rounds, and the ratio of their results with its interval over rounds.
//!
//! A round has a turn of each server. The order changes from round to round (ABBA), so that a machine that becomes slower or
//! faster does so for both. A round before the first one warms up both servers, and is not counted.

use core::fmt::Write as _;
use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

use lastbyte_client::Url;
use lastbyte_load::{
    Control, Measurement, Request, Settings,
    histogram::{BEYOND_MIN, Histogram, PRECISION, needed_for},
    report,
};
use lastbyte_report::load::{Tile, Versus};
use serde_json::{Value, json};

use super::{
    arguments::Arguments,
    compare::millis,
    interval::{Change, Verdict, geometric_mean, over_rounds, verdicts},
    plot,
    watch::{INTERRUPTED, no_response, watched},
};
use crate::{
    commands::report as page,
    failure::Failure,
    jobs::Interrupt,
    terminal::{print, save},
};

#[cfg(test)]
mod tests;

/// The sides, as the output names them: the URL, and that of `--against`.
const SIDES: [&str; 2] = ["URL", "against"];

/// The results of a server in a round.
#[derive(Clone, Debug)]
struct Turn {
    rate: f64,
    /// P50 and P99 of the latency in ns; why there is none otherwise.
    latency: [Result<f64, String>; 2],
    done: u64,
    succeeded: u64,
    failed: u64,
    retried: u64,
}

/// Fewer ratios than this have no interval: two that happen to be alike would have a narrow one.
const ROUNDS_MIN: usize = 3;
/// The exit code if a round is not compared.
const NOT_COMPARED: u8 = 3;

/// The results of both servers in a round, by side.
#[derive(Clone, Debug)]
struct Round {
    /// The side whose turn was first.
    first: usize,
    turns: [Turn; 2],
}

/// All rounds.
#[derive(Debug, Default)]
struct Rounds {
    planned: usize,
    /// The length of a turn.
    turn: String,
    version: String,
    urls: [String; 2],
    done: Vec<Round>,
    is_interrupted: bool,
    errors: [BTreeMap<String, u64>; 2],
    /// Warnings without their figures; one of them, and in how many turns there was one.
    warnings: BTreeMap<String, (String, u32)>,
    settings: Value,
}

/// A line of the result.
struct Line {
    name: &'static str,
    key: &'static str,
    /// Geometric means by side.
    means: [Option<f64>; 2],
    /// The ratio of each round.
    ratios: Vec<Option<f64>>,
    ratio: Option<f64>,
    /// The ratio minus 1, with its interval.
    change: Option<Change>,
    verdict: Option<Verdict>,
    show: fn(f64) -> String,
    /// Why there is no ratio.
    why: Option<String>,
}

/// Runs the command.
pub(super) fn run(
    arguments: &Arguments,
    settings: &Settings,
    against: &Url,
) -> Result<ExitCode, Failure> {
    let [own] = &settings.requests[..] else {
        return Err(Failure::Usage(format!(
            "--against compares one URL with another: {} URLs (expected one)",
            settings.requests.len()
        )));
    };
    let mut other = settings.clone();
    other.requests = vec![Request {
        url: against.clone(),
        weight: own.weight,
    }];
    let sides = [settings.clone(), other];
    let interrupt = Interrupt::listen();
    let mut rounds = Rounds {
        planned: arguments.rounds,
        turn: turn_of(arguments),
        version: settings.version.to_string(),
        urls: sides
            .each_ref()
            .map(|side| side.requests[0].url.to_string()),
        ..Rounds::default()
    };
    for number in 0..=rounds.planned {
        if interrupt.is_pressed() {
            rounds.is_interrupted = true;
            break;
        }
        rounds.round(number, &sides)?;
    }
    let text = if arguments.json {
        format!("{:#}\n", rounds.json())
    } else {
        rounds.text()
    };
    print(&text)?;
    if arguments.figure.is_given() {
        let figures = rounds.page().figures();
        arguments
            .figure
            .write(arguments.plot.as_slice(), &figures)?;
    } else if let Some(path) = &arguments.plot {
        save(path, rounds.page().html().as_bytes())?;
    }
    if rounds.is_interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let succeeded = rounds.sums(|turn| turn.succeeded);
    for (url, succeeded) in rounds.urls.iter().zip(succeeded) {
        if succeeded == 0 {
            return Err(Failure::run(format!("no successful response from {url}")));
        }
    }
    if rounds.done.iter().any(|round| round.failure().is_some()) {
        return Ok(ExitCode::from(NOT_COMPARED));
    }
    Ok(ExitCode::SUCCESS)
}

/// The length of a turn.
fn turn_of(arguments: &Arguments) -> String {
    let span = arguments.load.duration.unwrap_or_default();
    if span.subsec_nanos() == 0 {
        format!("{}s", span.as_secs())
    } else {
        lastbyte_units::show_span(span)
    }
}

impl Rounds {
    /// Runs a round. That with number 0 is not counted, and its servers have to respond.
    fn round(&mut self, number: usize, sides: &[Settings; 2]) -> Result<(), Failure> {
        let order = if number % 2 == 1 { [0, 1] } else { [1, 0] };
        let mut turns = [None, None];
        for side in order {
            let settings = &sides[side];
            let label = match number {
                0 => format!("warm-up, {}: ", self.urls[side]),
                _ => format!("round {number} of {}, {}: ", self.planned, self.urls[side]),
            };
            // Ctrl-C ends the rounds, and not a turn.
            let control = Arc::new(Control::new(settings.threads, Arc::default()));
            let measurement = watched(settings, &control, &label)?;
            if number == 0 {
                if measurement.recorder.counts.done == 0 {
                    let why = no_response(&measurement);
                    return Err(Failure::run(format!("{}: {why}", self.urls[side])));
                }
                if side == 0 {
                    self.settings = report::json(settings, &measurement)["settings"].take();
                }
                continue;
            }
            self.note(side, settings, &measurement);
            turns[side] = Some(Turn::of(settings, &measurement));
        }
        if let [Some(own), Some(other)] = turns {
            self.done.push(Round {
                first: order[0],
                turns: [own, other],
            });
        }
        Ok(())
    }

    /// Keeps the errors and warnings of a turn.
    fn note(&mut self, side: usize, settings: &Settings, measurement: &Measurement) {
        for (why, times) in &measurement.recorder.errors {
            *self.errors[side].entry(why.clone()).or_default() += times;
        }
        for warning in report::warnings(settings, measurement) {
            let kind: String = warning.chars().filter(|c| !c.is_ascii_digit()).collect();
            let kind = format!("{} {kind}", SIDES[side]);
            let warning = format!("{}: {warning}", SIDES[side]);
            self.warnings.entry(kind).or_insert((warning, 0)).1 += 1;
        }
    }

    fn warnings(&self) -> Vec<String> {
        let rounds = self.done.len();
        let all = self.warnings.values();
        let mut all: Vec<String> = all
            .map(|(warning, count)| format!("{warning} (in {count} of {rounds} rounds)"))
            .collect();
        if self.is_interrupted {
            let (done, planned) = (self.done.len(), self.planned);
            all.insert(0, format!("interrupted after {done} of {planned} rounds"));
        }
        let failed = (1..)
            .zip(&self.done)
            .filter_map(|(number, round): (usize, _)| {
                Some(format!(
                    "round {number} is not compared: {}",
                    round.failure()?
                ))
            });
        let mut failed: Vec<String> = failed.collect();
        if !failed.is_empty() && !self.is_comparable() {
            let (failed, rounds) = (failed.len(), self.done.len());
            let most = format!("{failed} of {rounds} rounds failed, so there are no ratios");
            all.insert(0, most);
        }
        failed.extend(all);
        failed
    }

    /// Whether less than half of the rounds failed: the others then are no exception.
    fn is_comparable(&self) -> bool {
        let failed = self.done.iter().filter(|round| round.failure().is_some());
        let failed = failed.count();
        failed == 0 || failed * 2 < self.done.len()
    }

    /// The sums of a counter over the rounds, by side.
    fn sums(&self, of: fn(&Turn) -> u64) -> [u64; 2] {
        [0, 1].map(|side: usize| self.done.iter().map(|round| of(&round.turns[side])).sum())
    }

    fn lines(&self) -> [Line; 3] {
        let rate = |turn: &Turn| Ok(turn.rate);
        let p50 = |turn: &Turn| turn.latency[0].clone();
        let p99 = |turn: &Turn| turn.latency[1].clone();
        let mut lines = [
            self.line("requests/s", "requests_per_second", 0.0, rate, |it| {
                format!("{it:.1}")
            }),
            self.line("latency P50", "latency_p50", PRECISION, p50, millis),
            self.line("latency P99", "latency_p99", PRECISION, p99, millis),
        ];
        let found = verdicts(&lines.each_ref().map(|line| line.change));
        for (line, verdict) in lines.iter_mut().zip(found) {
            line.verdict = verdict;
        }
        lines
    }

    fn line(
        &self,
        name: &'static str,
        key: &'static str,
        precision: f64,
        of: impl Fn(&Turn) -> Result<f64, String>,
        show: fn(f64) -> String,
    ) -> Line {
        let mut why = None;
        let mut values = [Vec::new(), Vec::new()];
        let mut ratios = Vec::new();
        let is_comparable = self.is_comparable();
        for (number, round) in (1..).zip(&self.done) {
            if !is_comparable || round.failure().is_some() {
                ratios.push(None);
                continue;
            }
            let found = [0, 1].map(|side| {
                let found = of(&round.turns[side]).and_then(|value| {
                    let is_positive = value > 0.0;
                    is_positive
                        .then_some(value)
                        .ok_or_else(|| "is 0".to_owned())
                });
                found
                    .inspect_err(|reason| {
                        let side = SIDES[side];
                        why.get_or_insert_with(|| format!("{reason} (round {number}, {side})"));
                    })
                    .ok()
            });
            let [own, other] = found;
            ratios.push(own.zip(other).map(|(own, other)| own / other));
            for (values, value) in values.iter_mut().zip(found) {
                values.extend(value);
            }
        }
        let known: Vec<f64> = match why {
            None => ratios.iter().copied().flatten().collect(),
            Some(_) => Vec::new(),
        };
        let is_whole = !known.is_empty();
        Line {
            name,
            key,
            means: values.map(|values| geometric_mean(&values).filter(|_| is_whole)),
            ratios,
            ratio: geometric_mean(&known),
            change: over_rounds(&known, precision).filter(|_| known.len() >= ROUNDS_MIN),
            verdict: None,
            show,
            why,
        }
    }

    /// Why a line has no ratio or no interval.
    fn notes(&self) -> Vec<String> {
        let lines = self.lines();
        let unknown = lines.iter().filter_map(|line| {
            let why = line.why.as_ref()?;
            Some(format!("not compared: {} {why}", line.name))
        });
        let mut notes: Vec<String> = unknown.collect();
        let compared = self.done.iter().filter(|round| round.failure().is_none());
        let compared = compared.count();
        if compared < ROUNDS_MIN && self.is_comparable() {
            notes.push(format!(
                "{compared} rounds: no interval (expected {ROUNDS_MIN} or more)"
            ));
        }
        notes
    }

    fn headline(&self) -> String {
        format!(
            "{} rounds of 2 turns of {} over {}, after one that is not counted",
            self.done.len(),
            self.turn,
            self.version
        )
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for warning in self.warnings() {
            let _ = writeln!(text, "warning: {warning}");
        }
        let [own, other] = &self.urls;
        let _ = writeln!(text, "URL:     {own}\nagainst: {other}");
        let _ = writeln!(text, "{}\n", self.headline());
        let _ = writeln!(
            text,
            "{:<14}{:>12}{:>12}{:>9}   95 % interval over rounds",
            "", SIDES[0], SIDES[1], "ratio"
        );
        for line in self.lines() {
            let [own, other] = line.means.map(|mean| mean.map_or_else(absent, line.show));
            let (ratio, interval) = (ratio(line.ratio), line.interval());
            let _ = writeln!(
                text,
                "{:<14}{own:>12}{other:>12}{ratio:>9}   {interval}",
                line.name
            );
        }
        let counters = [
            ("responses", self.sums(|turn| turn.done)),
            ("failed", self.sums(|turn| turn.failed)),
            ("retried", self.sums(|turn| turn.retried)),
        ];
        for (name, [own, other]) in counters {
            let _ = writeln!(text, "{name:<14}{own:>12}{other:>12}");
        }
        for (side, errors) in SIDES.iter().zip(&self.errors) {
            for (why, times) in errors {
                let _ = writeln!(text, "error: {side}: {why} ({times} times)");
            }
        }
        for note in self.notes() {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// docs/bench.md lists the keys.
    fn json(&self) -> Value {
        let ratios = self.lines().map(|line| {
            let value = line.ratio.map(|ratio| {
                json!({
                    "ratio": ratio,
                    "low": line.change.map(|change| 1.0 + change.low),
                    "high": line.change.map(|change| 1.0 + change.high),
                    "is_significant": line.verdict.map(|it| it == Verdict::Significant),
                })
            });
            (line.key.to_owned(), json!(value))
        });
        let turn = |turn: &Turn| {
            let micros = |place: usize| turn.latency[place].as_ref().ok().map(|it| it / 1e3);
            json!({
                "requests_per_second": turn.rate,
                "p50_us": micros(0),
                "p99_us": micros(1),
                "done": turn.done,
                "succeeded": turn.succeeded,
                "failed": turn.failed,
                "retried": turn.retried,
            })
        };
        let rounds = self.done.iter().map(|round| {
            let first = if round.first == 0 { "url" } else { "against" };
            json!({
                "first": first,
                "failure": round.failure(),
                "url": turn(&round.turns[0]),
                "against": turn(&round.turns[1]),
            })
        });
        json!({
            "format": 1,
            "generator": page::version(),
            "settings": self.settings,
            "against": self.urls[1],
            "is_interrupted": self.is_interrupted,
            "rounds_planned": self.planned,
            "ratios": ratios.into_iter().collect::<serde_json::Map<String, Value>>(),
            "rounds": rounds.collect::<Vec<Value>>(),
            "errors": { "url": self.errors[0], "against": self.errors[1] },
            "notes": self.notes(),
            "warnings": self.warnings(),
        })
    }

    fn page(&self) -> Versus {
        let lines = self.lines();
        let tiles = lines.iter().map(|line| Tile {
            name: format!("{} ratio", line.name),
            value: ratio(line.ratio),
            note: line.interval(),
        });
        let [own, other] = self.sums(|turn| turn.failed);
        let failed = Tile {
            name: "failed requests".to_owned(),
            value: format!("{own} : {other}"),
            note: "URL : against".to_owned(),
        };
        let header = ["round", "first", "requests/s", "P50", "P99", "failed"];
        let rows = (1..)
            .zip(&self.done)
            .flat_map(|(number, round): (usize, _)| {
                [0, 1].map(|side| {
                    let turn = &round.turns[side];
                    let latency = |place: usize| {
                        turn.latency[place]
                            .clone()
                            .map_or_else(|_| absent(), millis)
                    };
                    vec![
                        format!("{number}, {}", SIDES[side]),
                        if round.first == side {
                            "first"
                        } else {
                            "second"
                        }
                        .to_owned(),
                        format!("{:.1}", turn.rate),
                        latency(0),
                        latency(1),
                        turn.failed.to_string(),
                    ]
                })
            });
        Versus {
            title: format!("Two servers over {}", self.version),
            subtitle: format!(
                "{} against {}: {}",
                self.urls[0],
                self.urls[1],
                self.headline()
            ),
            command: plot::command(),
            tiles: tiles.chain([failed]).collect(),
            warnings: self.warnings(),
            notes: self.notes(),
            ratios: lines
                .into_iter()
                .map(|line| (line.name.to_owned(), line.ratios))
                .collect(),
            header: header.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }
}

impl Round {
    /// Why the round is not compared: a server had no response, or most of its responses are errors.
    fn failure(&self) -> Option<String> {
        SIDES.iter().zip(&self.turns).find_map(|(side, turn)| {
            let requests = turn.succeeded + turn.failed;
            if turn.done == 0 {
                Some(format!("{side} had no response"))
            } else if turn.failed > turn.succeeded {
                Some(format!(
                    "{side}: {} of {requests} requests failed",
                    turn.failed
                ))
            } else {
                None
            }
        })
    }
}

impl Turn {
    fn of(settings: &Settings, measurement: &Measurement) -> Self {
        let recorder = &measurement.recorder;
        let counts = &recorder.counts;
        // In a closed loop, the requests in progress at the end are as many as there are streams, and no slower than others.
        let is_open = settings.arrivals.rate().is_some();
        let unfinished = if is_open { counts.unfinished } else { 0 };
        let missing = counts.errored + counts.not_started + unfinished;
        Self {
            rate: measurement.rate(),
            latency: [0.5, 0.99].map(|share| percentile(&recorder.latency, missing, share)),
            done: counts.done,
            succeeded: counts.succeeded,
            failed: counts.failed,
            retried: counts.retried,
        }
    }
}

impl Line {
    fn interval(&self) -> String {
        let both = self.change.zip(self.verdict);
        both.map_or_else(absent, |(change, verdict)| {
            let (low, high) = (1.0 + change.low, 1.0 + change.high);
            format!("{low:.3} to {high:.3}: {verdict}")
        })
    }
}

/// The percentile of latencies and of requests without a response, which are slower than all others.
fn percentile(latency: &Histogram, missing: u64, share: f64) -> Result<f64, String> {
    let (count, total) = (latency.count(), latency.count() + missing);
    if (1.0 - share) * total as f64 * 1.000_001 < BEYOND_MIN as f64 {
        let needed = needed_for(share);
        return Err(format!("needs {needed} requests in each turn: {total}"));
    }
    let rank = (share * total as f64).ceil();
    // Half a rank less, so that no rounding error leads to the next one.
    let found = (rank <= count as f64).then(|| latency.quantile((rank - 0.5) / count as f64));
    let found = found.flatten().map(|nanos| nanos as f64);
    found.ok_or_else(|| format!("is unknown: {missing} of {total} requests have no response"))
}

fn absent() -> String {
    "–".to_owned()
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(absent, |ratio| format!("{ratio:.3}"))
}
