//! `lastbyte compare loss`: time to last byte of objects against packet loss, over TCP and QUIC with several congestion controls.

use core::{fmt::Write as _, num::NonZeroUsize, time::Duration};
use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::Args;
use lastbyte_congestion::Registry;
use lastbyte_link::Loss as LinkLoss;
use lastbyte_page::{Host, Kind, Page, Resource};
use lastbyte_report::{figure::Figure, loss::LossStudy};
use lastbyte_scenario::{ClientAcks, Path, Transport};
use lastbyte_sim::{PageLoad, load_page};
use lastbyte_units as units;
use serde_json::json;

use super::{
    arms::{self, Arm},
    measure::{self, Measurement, Notes},
    networks,
    run::seed_of,
};
use crate::{
    commands::{figure::FigureArguments, report, values},
    failure::Failure,
    files,
    jobs::{Interrupt, run_all},
    terminal::{notice, print, save},
};

const EXAMPLES: &str = "\
Examples:
  # TCP and QUIC with their controllers, 400 kB and 10 MB, 0 to 8 % loss.
  lastbyte compare loss
  # HTTP/2 over Linux's CUBIC beside HTTP/3, simulated and measured.
  sudo lastbyte compare loss --real --size 400kB --out real
  # Two arms over a longer path.
  lastbyte compare loss --network 20mbit/200ms --arm 2 --arm '3 bbr' \\
    --size 1MB --loss 0%,2% --runs 20 --out long

Model and columns: docs/compare.md.";

/// Compare times to last byte over TCP and QUIC against packet loss.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Sizes of objects
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "400kB,10MB", value_parser = size)]
    size: Vec<u64>,
    /// Shares of the packets towards the client that are lost, by chance
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0%,0.5%,1%,2%,3%,4%,6%,8%", value_parser = loss)]
    loss: Vec<f64>,
    /// Path: named network, file, or RATE[:UP]/RTT
    #[arg(long, value_name = "NAME|FILE", default_value = "50mbit/40ms")]
    network: String,
    /// Arm: "[NAME=][VERSION] [SPEC]", VERSION 1.1, 2 or 3; repeatable [default: six]
    ///
    /// The default is `2`, `2 bbr`, `3 newreno`, `3 cubic`, `3 bbr` and `3 rapid-start`. Versions 1.1 and 2 are TCP with TLS 1.3,
    /// without SPEC with Linux's CUBIC.
    #[arg(long, value_name = "ARM")]
    arm: Vec<String>,
    /// Transfers of each size with each arm and loss
    #[arg(long, value_name = "N", default_value = "40", value_parser = values::count::<u32>(1..=100_000))]
    runs: u32,
    /// Measure the same transfers over this kernel's TCP and over QUIC; with FILE, show measured ones
    ///
    /// Requires root or an unprivileged user namespace, and /dev/net/tun. Server, client and an emulated path run in a network
    /// namespace of their own. The arms are at most four, by default `2` and `3 cubic`; over TCP, SPEC is a congestion control of
    /// the kernel. FILE has rows like those of runs.ndjson: a measurement writes real.ndjson.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "an option whose value is optional")]
    real: Option<Option<PathBuf>>,
    /// Measured transfers of each size with each arm and loss
    #[arg(long, value_name = "N", default_value = "5", value_parser = values::count::<u32>(1..=100_000))]
    real_runs: u32,
    /// Random seed
    #[arg(long, default_value = "1", value_parser = units::seed)]
    seed: u64,
    /// Parallel simulations [default: CPU cores], and measured transfers [default: 1]
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    jobs: Option<NonZeroUsize>,
    /// Directory for runs.ndjson, report.html, summary.json, and SIZE.svg for each size
    #[arg(long, value_name = "DIR", default_value = "loss")]
    out: PathBuf,
    #[command(flatten)]
    figure: FigureArguments,
    /// Overwrite the files of an earlier run
    #[arg(long)]
    force: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = units::bytes(text).map_err(|error| error.to_string())?;
    if (1..=Page::BODY_MAX).contains(&bytes) {
        return Ok(bytes);
    }
    Err(format!("{text} (expected 1 byte to 1 GiB)"))
}

fn loss(text: &str) -> Result<f64, String> {
    let share = units::probability(text).map_err(|error| error.to_string())?;
    if share < LOSS_END {
        return Ok(share);
    }
    Err(format!("{text} (expected less than 50 %)"))
}

/// Beyond this share, few transfers end.
const LOSS_END: f64 = 0.5;
/// A transfer that takes longer is given up.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// The most transfers of a run.
const TRANSFERS_MAX: usize = 1_000_000;
const ARMS: [&str; 6] = [
    "2",
    "2 bbr",
    "3 newreno",
    "3 cubic",
    "3 bbr",
    "3 rapid-start",
];

/// What `--real` measures and simulates by default.
const MEASURED_ARMS: [&str; 2] = ["2", "3 cubic"];
/// The file of measured transfers.
const REAL: &str = "real.ndjson";

/// A transfer: the indices of its size, loss, arm and run, and its seed.
#[derive(Clone, Copy, Debug)]
struct Job {
    size: usize,
    loss: usize,
    arm: usize,
    run: u32,
    seed: u64,
}

/// The transfers to simulate.
struct Setting<'a> {
    arguments: &'a Arguments,
    arms: Vec<Arm>,
    path: Path,
    pages: Vec<Arc<Page>>,
    losses: Vec<f64>,
    real: Real,
}

/// Measured transfers.
struct Real {
    /// The names of the simulated arms, and then of the measured ones.
    arms: Vec<String>,
    /// Size, arm and loss by index, and the time in microseconds.
    times: Vec<(usize, usize, usize, Option<u64>)>,
    /// Transfers of other sizes or losses.
    ignored: usize,
}

impl Real {
    const fn none(arms: Vec<String>) -> Self {
        Self {
            arms,
            times: Vec::new(),
            ignored: 0,
        }
    }

    /// Reads a file. `measured` are the arms in it, as far as they are known: in this order, not in that of the rows.
    fn read(
        file: &std::path::Path,
        arms: Vec<String>,
        measured: impl Iterator<Item = String>,
        sizes: &[u64],
        losses: &[f64],
    ) -> Result<Self, Failure> {
        let simulated = arms.len();
        let mut real = Self::none(arms);
        real.arms.extend(measured);
        let text = files::read_text(file).map_err(Failure::Usage)?;
        for (line, text) in (1..).zip(text.lines()) {
            let wrong = |what: &str| {
                let file = file.display();
                Err(Failure::Usage(format!("`{file}` line {line}: {what}")))
            };
            let Ok(row) = serde_json::from_str::<serde_json::Value>(text) else {
                return wrong("not a JSON object");
            };
            let (Some(size), Some(share), Some(arm)) = (
                row["size"].as_u64(),
                row["loss"].as_f64(),
                row["arm"].as_str(),
            ) else {
                return wrong("no `size`, `loss` or `arm` (expected a row as in runs.ndjson)");
            };
            let time = match &row["ttlb_ms"] {
                serde_json::Value::Null => None,
                millis => match millis.as_f64() {
                    Some(millis) if millis >= 0.0 => Some((millis * 1e3) as u64),
                    _ => return wrong("`ttlb_ms` is not a time in milliseconds"),
                },
            };
            let arm = match real.arms.iter().position(|known| known == arm) {
                Some(known) if known < simulated => {
                    return wrong(&format!("arm `{arm}` is the name of a simulated arm"));
                }
                Some(known) => known,
                None if real.arms.len() < LossStudy::ARMS_MAX => {
                    real.arms.push(arm.to_owned());
                    real.arms.len() - 1
                }
                None => {
                    return wrong(&format!(
                        "more than {} arms, simulated and measured",
                        LossStudy::ARMS_MAX
                    ));
                }
            };
            let size = sizes.iter().position(|known| *known == size);
            let loss = losses.iter().position(|known| (known - share).abs() < 1e-9);
            match (size, loss) {
                (Some(size), Some(loss)) => real.times.push((size, arm, loss, time)),
                _ => real.ignored += 1,
            }
        }
        Ok(real)
    }
}

impl Setting<'_> {
    /// All transfers, so that those of the first runs of all cells come first.
    fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for run in 0..self.arguments.runs {
            for size in 0..self.pages.len() {
                for loss in 0..self.losses.len() {
                    let names = json!([self.arguments.size[size], self.losses[loss], run]);
                    let seed = seed_of(self.arguments.seed, &names);
                    for arm in 0..self.arms.len() {
                        jobs.push(Job {
                            size,
                            loss,
                            arm,
                            run,
                            seed,
                        });
                    }
                }
            }
        }
        jobs
    }

    /// Simulates a transfer. Its time to last byte in microseconds, if it was complete in time.
    fn transfer(&self, job: &Job) -> Result<Option<u64>, Failure> {
        let arm = &self.arms[job.arm];
        let mut path = self.path.clone();
        let share = self.losses[job.loss];
        if share > 0.0 {
            path.down.loss.push(LinkLoss::Bernoulli(share));
        }
        let acks = path.client_acks.unwrap_or(ClientAcks::Chromium);
        let outcome = load_page(&PageLoad {
            congestion: arm.spec.clone(),
            transport: Transport {
                max_ack_delay: acks.max_ack_delay(),
                ack_decimation: acks.decimation(),
                ..Transport::default()
            },
            seed: job.seed,
            time_limit: TIME_LIMIT,
            ..PageLoad::new(Arc::clone(&self.pages[job.size]), arm.version, path)
        });
        let outcome = outcome.map_err(Failure::usage)?;
        Ok(outcome.loaded.map(|span| span.as_micros() as u64))
    }

    fn row(&self, job: &Job, time: Option<u64>) -> String {
        let arm = &self.arms[job.arm];
        let mut row = json!({
            "size": self.arguments.size[job.size],
            "loss": self.losses[job.loss],
            "arm": arm.name,
            "http": arm.version.name(),
            "run": job.run,
            "seed": job.seed % units::SEED_END,
        });
        if let Some(micros) = time {
            row["ttlb_ms"] = json!(micros as f64 / 1e3);
        }
        format!("{row}\n")
    }
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self, registry: &Registry) -> Result<ExitCode, Failure> {
        let is_measured = matches!(self.real, Some(None));
        let mut setting = self.setting(registry)?;
        if is_measured {
            self.measurement(&setting).check()?;
        }
        let jobs = setting.jobs();
        files::create_folder(&self.out)?;
        let mut names = vec![
            "runs.ndjson".to_owned(),
            "report.html".to_owned(),
            "summary.json".to_owned(),
        ];
        if is_measured {
            names.push(REAL.to_owned());
        }
        let pictures = names.len();
        names.extend(
            self.size
                .iter()
                .map(|size| format!("{}.svg", units::show_bytes(*size))),
        );
        if !self.force {
            for name in &names {
                files::check_absent(&self.out.join(name))?;
            }
        }
        let out = core::slice::from_ref(&self.out);
        self.figure.check("--out", out)?;
        if is_measured {
            measure::isolate()?;
        }
        let interrupt = Interrupt::listen();
        let mut notes = Notes::default();
        if is_measured {
            let rows = self.out.join(REAL);
            notes = self.measurement(&setting).run(&rows, &interrupt)?;
            if interrupt.is_pressed() {
                let rows = rows.display();
                notice(format!("interrupted: what was measured is in `{rows}`"));
                return Ok(ExitCode::from(130));
            }
            let measured = setting.arms.iter().map(measure::name);
            let (arms, losses) = (setting.real.arms, &setting.losses);
            setting.real = Real::read(&rows, arms, measured, &self.size, losses)?;
        }
        let times = run_all(&jobs, self.jobs, &interrupt, |job| setting.transfer(job));
        let times: Result<Vec<Option<u64>>, Failure> = times.into_iter().collect();
        let times = times?;
        let study = self.study(&setting, &jobs, &times, notes);
        let rows: String = jobs
            .iter()
            .zip(&times)
            .map(|(job, time)| setting.row(job, *time))
            .collect();
        let summary = format!("{:#}\n", study.json());
        let texts = [rows, study.html(), summary.clone()].into_iter();
        let texts = names.iter().zip(texts);
        let drawn = (0..self.size.len()).map(|size| study.svg(size));
        for (name, text) in texts.chain(names[pictures..].iter().zip(drawn)) {
            save(&self.out.join(name), text.as_bytes())?;
        }
        let figures: Vec<Figure> = (0..self.size.len())
            .map(|size| study.figure(size))
            .collect();
        self.figure.write(out, &figures)?;
        for warning in &study.warnings {
            notice(format!("warning: {warning}"));
        }
        let text = if self.json {
            summary
        } else {
            Self::table(&study)
        };
        print(text)?;
        Ok(if interrupt.is_pressed() {
            ExitCode::from(130)
        } else {
            ExitCode::SUCCESS
        })
    }

    fn setting(&self, registry: &Registry) -> Result<Setting<'_>, Failure> {
        let is_measured = matches!(self.real, Some(None));
        let arms = match self.arm.as_slice() {
            [] if is_measured => MEASURED_ARMS.map(str::to_owned).to_vec(),
            [] => ARMS.map(str::to_owned).to_vec(),
            arms => arms.to_vec(),
        };
        // Each arm twice: simulated and measured.
        let most = LossStudy::ARMS_MAX / if is_measured { 2 } else { 1 };
        let arms = arms::arms("--arm", &arms, 1..=most, registry).map_err(Failure::Usage)?;
        let [(_, path)] = <[_; 1]>::try_from(networks::networks(std::slice::from_ref(
            &self.network,
        ))?)
        .map_err(|networks| {
            Failure::Usage(format!(
                "--network: {} networks (expected one)",
                networks.len()
            ))
        })?;
        let mut sizes = self.size.clone();
        sizes.sort_unstable();
        if let Some(twice) = sizes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::Usage(format!(
                "--size: {} twice (expected each once)",
                units::show_bytes(twice[0])
            )));
        }
        let mut losses = self.loss.clone();
        losses.sort_by(f64::total_cmp);
        if let Some(twice) = losses
            .windows(2)
            .find(|pair| pair[0].total_cmp(&pair[1]).is_eq())
        {
            return Err(Failure::Usage(format!(
                "--loss: {} twice (expected each once)",
                units::show_share(twice[0])
            )));
        }
        let cells = sizes.len() * losses.len() * arms.len();
        let transfers = cells.saturating_mul(self.runs as usize);
        if transfers > TRANSFERS_MAX {
            return Err(Failure::Usage(format!(
                "{transfers} transfers (expected at most {TRANSFERS_MAX}: fewer --runs, --size or --loss)"
            )));
        }
        let page = |size: &u64| {
            Arc::new(Page {
                name: units::show_bytes(*size),
                hosts: vec![Host::first_party("www.example")],
                resources: vec![Resource::new(0, Kind::Document, *size)],
            })
        };
        let names = arms.iter().map(|arm| arm.name.clone()).collect();
        Ok(Setting {
            arguments: self,
            real: match &self.real {
                Some(Some(file)) => {
                    Real::read(file, names, std::iter::empty(), &self.size, &losses)?
                }
                _ => Real::none(names),
            },
            arms,
            path,
            pages: self.size.iter().map(page).collect(),
            losses,
        })
    }

    fn measurement<'a>(&'a self, setting: &'a Setting<'_>) -> Measurement<'a> {
        Measurement {
            arms: &setting.arms,
            network: &self.network,
            path: &setting.path,
            sizes: &self.size,
            losses: &setting.losses,
            runs: self.real_runs,
            seed: self.seed,
            jobs: self.jobs,
            limit: TIME_LIMIT.as_secs(),
            out: &self.out,
        }
    }

    fn study(
        &self,
        setting: &Setting<'_>,
        jobs: &[Job],
        times: &[Option<u64>],
        notes: Notes,
    ) -> LossStudy {
        let mut warnings = notes.warnings;
        if times.len() < jobs.len() {
            warnings.push(format!(
                "Interrupted after {} of {} transfers.",
                times.len(),
                jobs.len()
            ));
        }
        if setting.real.ignored > 0 {
            warnings.push(format!(
                "{} measured transfers are of other sizes or losses, and are not shown.",
                setting.real.ignored
            ));
        }
        let facts = [
            ("version", report::version()),
            ("command", report::again()),
            ("path", self.network.clone()),
            (
                "measured transfers",
                match &self.real {
                    Some(Some(file)) => {
                        format!("{} of `{}`", setting.real.times.len(), file.display())
                    }
                    Some(None) => format!("{}: {REAL}", setting.real.times.len()),
                    None => "none".to_owned(),
                },
            ),
            ("loss", "random, of packets towards the client".to_owned()),
            ("transfers", format!("{} for each point", self.runs)),
            (
                "clock",
                "from the client's first packet until the last byte, with the handshake".to_owned(),
            ),
            (
                "TCP",
                "model of Linux, TLS 1.3 (docs/sim.md, docs/compare.md)".to_owned(),
            ),
            (
                "interval",
                "95 %, percentile bootstrap of the median".to_owned(),
            ),
        ];
        let facts = facts.into_iter();
        let facts = facts.map(|(name, value)| (name.to_owned(), value));
        let mut study = LossStudy {
            title: "Time to last byte against loss".to_owned(),
            subtitle: format!(
                "{}, simulated{}; {}{} simulated transfers for each point, seed {}",
                self.network,
                if self.real.is_some() {
                    " and measured"
                } else {
                    ""
                },
                if times.len() < jobs.len() {
                    "at most "
                } else {
                    ""
                },
                self.runs,
                self.seed
            ),
            warnings,
            facts: facts.chain(notes.facts).collect(),
            times: vec![
                Vec::new();
                self.size.len() * setting.real.arms.len() * setting.losses.len()
            ],
            arms: setting.real.arms.clone(),
            sizes: self.size.clone(),
            losses: setting.losses.clone(),
            seed: self.seed,
        };
        for (job, time) in jobs.iter().zip(times) {
            let place = study.place(job.size, job.arm, job.loss);
            study.times[place].push(*time);
        }
        for (size, arm, loss, time) in &setting.real.times {
            let place = study.place(*size, *arm, *loss);
            study.times[place].push(*time);
        }
        for (arm, name) in study.arms.iter().enumerate() {
            let cells = (0..study.sizes.len())
                .flat_map(|size| (0..study.losses.len()).map(move |loss| (size, loss)));
            let (incomplete, all) = cells.fold((0, 0), |(incomplete, all), (size, loss)| {
                let times = &study.times[study.place(size, arm, loss)];
                let missing = times.iter().filter(|time| time.is_none()).count();
                (incomplete + missing, all + times.len())
            });
            if incomplete > 0 {
                study.warnings.push(format!(
                    "{name}: {incomplete} of {all} transfers over {} were not complete after {} s; they count as slower than all others.",
                    self.network,
                    TIME_LIMIT.as_secs()
                ));
            }
        }
        study
    }

    /// The medians as text, a line for each cell.
    fn table(study: &LossStudy) -> String {
        let mut text = String::new();
        let width = study.arms.iter().map(String::len).max().unwrap_or_default();
        for (size, bytes) in study.sizes.iter().enumerate() {
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                text,
                "{}: median time to last byte{}",
                units::show_bytes(*bytes),
                if study.has_intervals(size) {
                    ", with its 95 % interval"
                } else {
                    ""
                }
            );
            for (loss, share) in study.losses.iter().enumerate() {
                for (arm, name) in study.arms.iter().enumerate() {
                    let share = if arm == 0 {
                        units::show_share(*share)
                    } else {
                        String::new()
                    };
                    let median = study.median(size, arm, loss).text();
                    let _ = writeln!(text, "  {share:>6}  {name:<width$}  {median}");
                }
            }
        }
        text
    }
}
