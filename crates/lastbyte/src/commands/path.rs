//! Path options, shared by `lastbyte sim` and `lastbyte emulate`.

use std::{path::Path, time::Duration};

use clap::Args;
use lastbyte_link::{self as link, Capacity, Limit, Loss, Queue};
use lastbyte_scenario::{
    self as scenario, Direction,
    network::{LinkText, NAMED, PathText},
};
use lastbyte_units as units;

use crate::{failure::Failure, files};

/// One path or several.
#[derive(Debug, Args)]
pub(crate) struct PathArguments {
    /// Named network, or a TOML file (docs/network.md); repeatable
    #[arg(long, value_name = "NAME|FILE", help_heading = "Path")]
    pub(crate) network: Vec<String>,
    /// Bottleneck rate from server to client: 55Mb/s, 55mbit
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = setting(|path| &mut path.down.rate), help_heading = "Path")]
    rate: Option<String>,
    /// File of delivery opportunities (mahimahi) in place of a rate
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "rate",
        help_heading = "Path"
    )]
    rate_trace: Option<String>,
    /// Round-trip time without queues: 39ms
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true, value_parser = setting(|path| &mut path.rtt), help_heading = "Path")]
    rtt: Option<String>,
    /// Bottleneck queue: 50ms at its rate, 64kB, 100p (packets), unlimited
    ///
    /// Default, with --rate or --rate-trace and --rtt: one round trip, or 20 packets if the round trip is below 10ms; with --aqm,
    /// the discipline's own: 1000 packets for codel and pie, 10240 for fq-codel and cake, 10000 for dualpi2.
    #[arg(long, value_name = "DEPTH", allow_hyphen_values = true, value_parser = setting(|path| &mut path.down.queue), help_heading = "Path")]
    queue: Option<String>,
    /// Queue discipline: drop-tail, codel, fq-codel, pie, dualpi2, cake
    #[arg(long, value_name = "NAME", allow_hyphen_values = true, value_parser = setting(|path| &mut path.down.discipline), help_heading = "Path")]
    aqm: Option<String>,
    /// Mark ECN-capable packets above this queue depth: 5ms, 30kB, 20p
    ///
    /// For other disciplines than drop-tail: `on`, their default, or `off`.
    #[arg(long, value_name = "DEPTH", allow_hyphen_values = true, value_parser = mark, help_heading = "Path")]
    mark: Option<String>,
    /// Random loss: 1%
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = setting(|path| &mut path.down.loss), help_heading = "Path")]
    loss: Option<String>,
    /// Rate from client to server [default: unlimited]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = setting(|path| &mut path.up.rate), help_heading = "Path")]
    up_rate: Option<String>,
}

impl PathArguments {
    /// Whether --mark asks for marks.
    pub(crate) fn marks(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark != "off")
    }

    /// The settings on the command line.
    fn text(&self) -> PathText {
        PathText {
            rtt: self.rtt.clone(),
            down: LinkText {
                rate: self.rate.clone(),
                trace: self.rate_trace.clone(),
                queue: self.queue.clone(),
                discipline: self.aqm.clone(),
                mark: self.mark.clone(),
                loss: self.loss.clone(),
                ..LinkText::default()
            },
            up: LinkText {
                rate: self.up_rate.clone(),
                ..LinkText::default()
            },
            ..PathText::default()
        }
    }

    /// The paths, with their names.
    pub(crate) fn paths(&self) -> Result<Vec<(String, scenario::Path)>, Failure> {
        let settings = self.text();
        let mut bases = Vec::new();
        for name in &self.network {
            bases.push(named(name)?);
        }
        if bases.is_empty() {
            bases.push(base_of(&settings)?);
        }
        let mut paths: Vec<(String, scenario::Path)> = Vec::new();
        for (name, base) in bases {
            if paths.iter().any(|(other, _)| *other == name) {
                return Err(Failure::Usage(format!(
                    "--network: two networks are named `{name}` (expected different names)"
                )));
            }
            let text = base.overridden_by(settings.clone());
            let path = text.path(&mut |file| files::read_text(Path::new(file)));
            let path = path.map_err(|error| match error.key.as_str() {
                "down.trace" if self.rate_trace.is_some() => {
                    Failure::Usage(format!("--rate-trace: {}", error.problem()))
                }
                _ => Failure::usage(error),
            })?;
            paths.push((name, path));
        }
        Ok(paths)
    }
}

/// Describes a path: rate, round-trip time, queue, and the other settings.
pub(crate) fn describe(path: &scenario::Path) -> Vec<String> {
    describe_data(path, Direction::Down)
}

/// Describes a path whose data go this way.
pub(crate) fn describe_data(path: &scenario::Path, direction: Direction) -> Vec<String> {
    let (data, back, back_name) = match direction {
        Direction::Down => (&path.down, &path.up, "up"),
        Direction::Up => (&path.up, &path.down, "down"),
    };
    let (bottleneck, down) = data.bottleneck();
    let mut words = vec![
        rate_words(&down.capacity),
        format!("round trip {}", units::show_span(path.rtt())),
        match &down.queue {
            Queue::DropTail(queue) => format!("queue {}", depth(queue.limit)),
            Queue::CoDel(queue) => format!("CoDel, queue {}", depth(queue.limit)),
            Queue::FqCoDel(queue) => format!("FQ-CoDel, queue {}", depth(queue.codel.limit)),
            Queue::Cake(queue) => format!("CAKE, queue {}", depth(queue.codel.limit)),
            Queue::Pie(queue) => format!("PIE, queue {}", depth(queue.limit)),
            Queue::DualPi2(queue) => format!("DualPI2, queue {}", depth(queue.limit)),
        },
    ];
    match &down.queue {
        Queue::DropTail(queue) => {
            words.extend(
                queue
                    .mark_above
                    .map(|mark| format!("marks above {}", depth(mark))),
            );
        }
        managed => words.extend(managed.marks().then(|| "marks".to_owned())),
    }
    words.extend(hazards(down));
    for (hop, number) in data.hops().zip(1..) {
        if number != bottleneck + 1 {
            let others = limits(hop).into_iter();
            words.extend(others.map(|what| format!("hop {number}: {what}")));
        }
    }
    let others = back.hops().flat_map(limits);
    words.extend(others.map(|what| format!("{back_name}: {what}")));
    words.extend(
        path.client_acks
            .map(|acks| format!("client ACKs {}", acks.name())),
    );
    words
}

/// Describes the rate, if there is one, and impairments other than the queue.
fn limits(hop: &link::Config) -> Vec<String> {
    let mut words = hazards(hop);
    if !matches!(hop.capacity, Capacity::Unlimited) {
        words.insert(0, rate_words(&hop.capacity));
    }
    words
}

/// Describes impairments other than the queue.
fn hazards(link: &link::Config) -> Vec<String> {
    let share = units::show_share;
    let mut words: Vec<String> = Vec::new();
    words.extend(link.loss.iter().map(|loss| match loss {
        Loss::Bernoulli(p) => format!("loss {}", share(*p)),
        Loss::GilbertElliott(_) | Loss::Bursts(_) => "burst loss".to_owned(),
        Loss::Packets(packets) => format!("{} chosen packets lost", packets.len()),
    }));
    if let Some(policer) = &link.policer {
        words.push(format!(
            "policer {} {}",
            units::show_rate(policer.rate),
            units::show_bytes(policer.burst)
        ));
    }
    words.extend(
        link.contention
            .map(|contention| format!("medium in use {}", share(contention.share))),
    );
    words.extend(
        link.wake_up
            .map(|wake_up| format!("wake-up {}", units::show_span(wake_up.delay))),
    );
    words.extend(link.jitter.map(|_| "jitter".to_owned()));
    if let Some(reordering) = link.reordering {
        words.push(format!("reordering {}", share(reordering.probability)));
    }
    if link.duplication > 0.0 {
        words.push(format!("duplicates {}", share(link.duplication)));
    }
    words.extend(link.release.map(|_| "released in batches".to_owned()));
    words
}

fn rate_words(capacity: &Capacity) -> String {
    match capacity {
        Capacity::Unlimited => "unlimited rate".to_owned(),
        Capacity::Constant(rate) => units::show_rate(*rate),
        Capacity::Shaper(shaper) => format!(
            "{} after {} at {}",
            units::show_rate(shaper.rate),
            units::show_bytes(shaper.burst),
            units::show_rate(shaper.peak)
        ),
        Capacity::Wifi(wifi) => format!(
            "{} in aggregates of {} packets",
            units::show_rate(wifi.rate),
            wifi.packets
        ),
        Capacity::Schedule(_) => "rate in steps".to_owned(),
        Capacity::Trace(_) => "rate of a trace".to_owned(),
    }
}

fn depth(limit: Limit) -> String {
    match limit {
        Limit::Unlimited => "unlimited".to_owned(),
        Limit::Bytes(bytes) => units::show_bytes(bytes),
        Limit::Packets(packets) => format!("{packets} packets"),
        Limit::Time(span) => units::show_span(span),
    }
}

/// Settings of a path that only a network file has: the removed option, table and key.
const OF_FILES: [(&str, &str, &str); 8] = [
    ("--burst-loss", "[down]", "burst-loss"),
    ("--duplicate", "[down]", "duplicate"),
    ("--jitter", "[down]", "jitter"),
    ("--overhead", "the file", "overhead"),
    ("--policer", "[down]", "policer"),
    ("--reorder", "[down]", "reorder"),
    ("--up-loss", "[up]", "loss"),
    ("--up-release", "[up]", "release"),
];

/// Why an option of a path is refused; `None` if no network file has it.
pub(super) fn refusal(option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or_default();
    let (_, place, key) = OF_FILES.iter().find(|(name, ..)| *name == option)?;
    Some(format!(
        "`{option}` is not an option (expected `{key} = …` in {place} of a network file: --network FILE)"
    ))
}

/// Checks a setting with the grammar of network files, so that an error names its option.
pub(crate) fn setting(
    place: fn(&mut PathText) -> &mut Option<String>,
) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| {
        let mut path = PathText::default();
        *place(&mut path) = Some(text.to_owned());
        let checked = path.path(&mut |_| Ok(String::new()));
        checked.map_err(|error| {
            // The parser of options has named the value.
            if error.value == format!("`{text}`") {
                format!("expected {}", error.expected)
            } else {
                error.problem()
            }
        })?;
        Ok(text.to_owned())
    }
}

/// Parses `on`, `off` or a depth. Which of them is valid depends on --aqm.
fn mark(text: &str) -> Result<String, String> {
    if matches!(text, "on" | "off") {
        return Ok(text.to_owned());
    }
    setting(|path| &mut path.down.mark)(text)
}

/// The path of a named network, or of a file, with the network's name.
pub(crate) fn network(name: &str) -> Result<(String, scenario::Path), Failure> {
    let (name, text) = named(name)?;
    let path = text.path(&mut |file| files::read_text(Path::new(file)));
    let path = path.map_err(Failure::usage)?;
    refuse_cross(&name, &path)?;
    Ok((name, path))
}

/// The networks of an experiment, with their names: named networks, network files, mahimahi traces, and folders of the last two.
/// A trace has this round-trip time and queue.
pub(crate) fn network_texts(
    names: &[String],
    rtt: Option<&str>,
    queue: Option<&str>,
) -> Result<Vec<(String, PathText)>, Failure> {
    let mut texts = Vec::new();
    for name in names {
        let file = Path::new(name);
        if file.is_dir() {
            let before = texts.len();
            for file in files::list(file).map_err(Failure::Usage)? {
                texts.extend(network_file(&file, rtt, queue)?);
            }
            if texts.len() == before {
                return Err(Failure::Usage(format!(
                    "--network: `{name}` is empty (expected network files or mahimahi traces)"
                )));
            }
        } else if file.is_file() {
            texts.extend(network_file(file, rtt, queue)?);
        } else {
            texts.push(named(name)?);
        }
    }
    Ok(texts)
}

/// The paths of an experiment's networks, with their names.
pub(crate) fn paths_of(
    texts: Vec<(String, PathText)>,
) -> Result<Vec<(String, scenario::Path)>, Failure> {
    if texts.len() > NETWORKS_MAX {
        return Err(Failure::Usage(format!(
            "--network: {} networks (expected at most {NETWORKS_MAX})",
            texts.len()
        )));
    }
    let mut paths: Vec<(String, scenario::Path)> = Vec::new();
    for (name, text) in texts {
        if paths.iter().any(|(other, _)| *other == name) {
            return Err(Failure::Usage(format!(
                "--network: two networks are named `{name}` (expected different names)"
            )));
        }
        let path = text.path(&mut |file| files::read_text(Path::new(file)));
        let path = path.map_err(|error| Failure::Usage(format!("--network: `{name}`: {error}")))?;
        paths.push((name, path));
    }
    Ok(paths)
}

/// Maximum number of networks of an experiment: each keeps its trace in memory.
const NETWORKS_MAX: usize = 1000;

/// The network of a file: its settings if its name ends in `.toml`, else a trace of the downlink. A name in `.up` is the uplink
/// of the `.down` beside it, and no network of its own.
fn network_file(
    file: &Path,
    rtt: Option<&str>,
    queue: Option<&str>,
) -> Result<Option<(String, PathText)>, Failure> {
    let ends_in = |wanted: &str| {
        file.extension()
            .is_some_and(|extension| extension == wanted)
    };
    if ends_in("toml") {
        return named(&file.to_string_lossy()).map(Some);
    }
    if ends_in("up") && file.with_extension("down").is_file() {
        return Ok(None);
    }
    let Some(rtt) = rtt else {
        return Err(Failure::Usage(format!(
            "--network: `{}` is a trace, which has no round-trip time (expected --rtt SPAN)",
            file.display()
        )));
    };
    let name = if ends_in("down") {
        file.file_stem()
    } else {
        file.file_name()
    };
    let name = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let trace = |file: &Path| LinkText {
        trace: Some(file.to_string_lossy().into_owned()),
        ..LinkText::default()
    };
    let up = file.with_extension("up");
    let text = PathText {
        rtt: Some(rtt.to_owned()),
        down: LinkText {
            queue: Some(queue.unwrap_or(rtt).to_owned()),
            ..trace(file)
        },
        up: if ends_in("down") && up.is_file() {
            trace(&up)
        } else {
            LinkText::default()
        },
        ..PathText::default()
    };
    Ok(Some((name, text)))
}

/// Refuses a path with cross traffic or moves, which only a simulation can have.
pub(crate) fn refuse_cross(name: &str, path: &scenario::Path) -> Result<(), Failure> {
    if !path.moves.is_empty() {
        return Err(Failure::Usage(format!(
            "network `{name}` has `moves` (expected none: `emulate --rebind` changes ports of real clients)"
        )));
    }
    if path.cross.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "network `{name}` has `cross` (expected none: only `lastbyte sim` and `ab` have cross traffic)"
    )))
}

/// A named network, or one from a file.
fn named(name: &str) -> Result<(String, PathText), Failure> {
    let file = Path::new(name);
    if file.extension().is_none_or(|extension| extension != "toml") {
        let base = PathText::named(name).map_err(|error| {
            let known = NAMED.iter().map(|(known, _)| *known);
            let hint = match super::nearest(name, known) {
                Some(near) => format!("; did you mean `{near}`?"),
                None if name.contains(',') => "; --network can be repeated".to_owned(),
                None if file.is_file() => {
                    format!("; `{name}` is a file, but its name does not end in .toml")
                }
                None => String::new(),
            };
            Failure::Usage(format!("{error}{hint}"))
        })?;
        return Ok((name.to_owned(), base));
    }
    let text = files::read_text(file).map_err(Failure::Usage)?;
    let mut base =
        PathText::parse(&text).map_err(|error| Failure::Usage(format!("`{name}`: {error}")))?;
    // The path of a trace is relative to the network file.
    let folder = file.parent().unwrap_or(Path::new(""));
    let traces = [&mut base.down.trace, &mut base.up.trace];
    for trace in traces.into_iter().flatten() {
        *trace = folder.join(&*trace).to_string_lossy().into_owned();
    }
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    Ok((stem.unwrap_or_else(|| name.to_owned()), base))
}

/// The path without --network: a custom one if --rate and --rtt are given, else `vdsl`.
fn base_of(settings: &PathText) -> Result<(String, PathText), Failure> {
    let has_rate = settings.down.rate.is_some() || settings.down.trace.is_some();
    match (has_rate, &settings.rtt) {
        (false, None) => named("vdsl"),
        (true, Some(rtt)) => {
            let mut base = PathText::default();
            // The default queue is one round trip, or twenty packets if the round trip is short; that of a managed queue is
            // the discipline's, so that tail drops do not hide it.
            let discipline = settings.down.discipline.as_deref();
            if discipline.is_none_or(|name| name == "drop-tail") {
                let is_short = units::span(rtt).is_ok_and(|rtt| rtt < SHORT_RTT);
                let queue = if is_short { "20p" } else { rtt };
                base.down.queue = Some(queue.to_owned());
            }
            Ok(("custom".to_owned(), base))
        }
        (true, None) => Err(Failure::Usage(
            "--rate and --rate-trace require --rtt or --network".to_owned(),
        )),
        (false, Some(_)) => Err(Failure::Usage(
            "--rtt requires --rate, --rate-trace or --network".to_owned(),
        )),
    }
}

const SHORT_RTT: Duration = Duration::from_millis(10);
