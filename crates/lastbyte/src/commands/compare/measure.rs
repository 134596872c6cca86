//! Transfers over real stacks for `compare loss --real`: `lastbyte get` fetches from `lastbyte serve` over a network device with the
//! emulated path, in a network namespace of its own.
//!
//! HTTP/1.1 and 2 run over this kernel's TCP. The route of the device sets the congestion control of the arm, and the server's log
//! names the one that each connection had.

#![expect(
    clippy::disallowed_methods,
    reason = "this module starts programs and reads what they write"
)]

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    num::NonZeroUsize,
    os::unix::process::CommandExt as _,
    path::{Path as FilePath, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use lastbyte_emulate::{Lateness, Plan, Tunnel, TunnelError, tunnel};
use lastbyte_link::Loss as LinkLoss;
use lastbyte_scenario::{HttpVersion, Path};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};

use super::{arms::Arm, run::seed_of};
use crate::{
    commands::path::refuse_cross,
    failure::Failure,
    files,
    jobs::{Interrupt, progress_bar, run_with_bar},
    terminal::notice,
};

#[cfg(test)]
mod tests;

/// Set in the network namespace of a measurement.
const OWN_NETWORK: &str = "LASTBYTE_OWN_NETWORK";
const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const METRICS: &str = "/proc/sys/net/ipv4/tcp_no_metrics_save";
const KERNEL: &str = "/proc/sys/kernel/osrelease";

/// What to measure.
pub(super) struct Measurement<'a> {
    pub(super) arms: &'a [Arm],
    pub(super) network: &'a str,
    pub(super) path: &'a Path,
    pub(super) sizes: &'a [u64],
    pub(super) losses: &'a [f64],
    pub(super) runs: u32,
    pub(super) seed: u64,
    /// Transfers at a time.
    pub(super) jobs: Option<NonZeroUsize>,
    /// Seconds after which a transfer is given up.
    pub(super) limit: u64,
    /// The folder of the files.
    pub(super) out: &'a FilePath,
}

/// What a measurement reports beside its rows.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) facts: Vec<(String, String)>,
    pub(super) warnings: Vec<String>,
}

/// Starts this command again in a network namespace of its own, unless it runs in one.
pub(super) fn isolate() -> Result<(), Failure> {
    if env::var_os(OWN_NETWORK).is_some() {
        ip(&["link", "set", "lo", "up"])?;
        // A connection does not start with what an earlier one has measured.
        return files::write_in_place(METRICS.as_ref(), b"1\n");
    }
    let cannot = |error| Failure::Run(format!("cannot run `unshare`: {error}"));
    let is_root = geteuid().is_root();
    let mut command = Command::new("unshare");
    command.args(if is_root { &["-n"][..] } else { &["-r", "-n"] });
    command.arg("--").arg(env::current_exe().map_err(cannot)?);
    command.args(env::args_os().skip(1)).env(OWN_NETWORK, "1");
    // Returns only if it fails.
    Err(cannot(command.exec()))
}

fn ip(words: &[&str]) -> Result<(), Failure> {
    let output = Command::new("ip").args(words).output();
    let why = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Failure::Run(format!("`ip {}`: {why}", words.join(" "))))
}

/// The kernel's congestion control of an arm; `None` for HTTP/3.
fn control(arm: &Arm) -> Option<String> {
    let spec = arm.spec.as_ref().map(ToString::to_string);
    (arm.version != HttpVersion::Http3).then(|| match spec.as_deref() {
        None => "cubic".to_owned(),
        Some("newreno") => "reno".to_owned(),
        Some(name) => name.to_owned(),
    })
}

/// The name of a measured arm.
pub(super) fn name(arm: &Arm) -> String {
    match (arm.version, control(arm)) {
        (HttpVersion::Http2, Some(control)) => format!("Linux {control}"),
        (version, Some(control)) => format!("Linux {control} {version}"),
        (_, None) => format!("{} measured", arm.name),
    }
}

/// A transfer: the indices of its size and arm, and its number.
type Job = (u32, usize, usize);

impl Measurement<'_> {
    /// Checks that the kernel has the congestion controls and that the path can be emulated.
    pub(super) fn check(&self) -> Result<(), Failure> {
        refuse_cross(self.network, self.path)?;
        let known = files::read_text(CONTROLS.as_ref()).map_err(Failure::Run)?;
        for arm in self.arms {
            if let Some(control) = control(arm)
                && known.split_whitespace().all(|one| one != control)
            {
                return Err(Failure::Usage(format!(
                    "--arm: `{}`: this kernel has no congestion control `{control}` (expected one of {})",
                    arm.name,
                    known.trim().replace(' ', ", ")
                )));
            }
        }
        Ok(())
    }

    /// Measures all transfers, and writes a row for each to this file as it ends.
    pub(super) fn run(&self, rows: &FilePath, interrupt: &Interrupt) -> Result<Notes, Failure> {
        let servers: Result<Vec<Server>, Failure> = (0..self.arms.len())
            .map(|arm| {
                Server::start(
                    &self.arms[arm],
                    self.out.join(format!("server-{arm}.ndjson")),
                )
            })
            .collect();
        let servers = servers?;
        let file = Mutex::new(files::create(rows)?);
        let mut controls: Vec<Option<String>> = self.arms.iter().map(control).collect();
        // HTTP/3 does not depend on the kernel's control: it takes turns with the first.
        let first = controls.iter().find(|one| one.is_some()).cloned().flatten();
        for control in &mut controls {
            *control = control.take().or_else(|| first.clone());
        }
        let mut phases = controls.clone();
        phases.sort();
        phases.dedup();
        let cells = self.losses.len() * self.sizes.len() * self.arms.len();
        let bar = progress_bar(cells * self.runs as usize);
        let mut late = Lateness::default();
        for loss in self.losses {
            let tunnel = self.tunnel(*loss)?;
            for phase in &phases {
                if let Some(control) = phase {
                    let route = ["route", "replace", "198.18.0.0/15", "dev", tunnel.name()];
                    ip(&[
                        &route[..],
                        &["src", "198.18.0.1", "congctl", control.as_str()],
                    ]
                    .concat())?;
                }
                let jobs: Vec<Job> = (0..self.runs)
                    .flat_map(|run| (0..self.sizes.len()).map(move |size| (run, size)))
                    .flat_map(|(run, size)| (0..self.arms.len()).map(move |arm| (run, size, arm)))
                    .filter(|(.., arm)| controls[*arm] == *phase)
                    .collect();
                let threads = self.jobs.or(NonZeroUsize::new(1));
                let done = run_with_bar(&jobs, threads, interrupt, &bar, |job| {
                    self.transfer(job, *loss, &servers, interrupt, &file)
                });
                done.into_iter().collect::<Result<(), Failure>>()?;
            }
            let report = tunnel.stop();
            let report =
                report.map_err(|error| Failure::Run(format!("path emulation failed: {error}")))?;
            late.merge(&report.late);
            if interrupt.is_pressed() {
                break;
            }
        }
        bar.finish_and_clear();
        let kernel = files::read_text(KERNEL.as_ref()).map_err(Failure::Run)?;
        let millis = |share: f64| late.quantile(share).as_secs_f64() * 1e3;
        let facts = [
            ("kernel", format!("Linux {}", kernel.trim())),
            (
                "extra delay of measured packets, added by this machine",
                format!("P50 {:.1} ms, P99 {:.1} ms", millis(0.5), millis(0.99)),
            ),
        ];
        let mut notes = Notes {
            facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
            warnings: Vec::new(),
        };
        for (arm, server) in self.arms.iter().zip(servers) {
            let log = server.stop()?;
            if let Some(control) = control(arm) {
                notes
                    .warnings
                    .extend(unexpected(&name(arm), &control, &log));
            }
        }
        for warning in &notes.warnings {
            notice(format!("warning: {warning}"));
        }
        Ok(notes)
    }

    /// A device with a path that loses this share of the packets to the client, for each connection.
    fn tunnel(&self, loss: f64) -> Result<Tunnel, Failure> {
        let mut down = self.path.down.clone();
        if loss > 0.0 {
            down.loss.push(LinkLoss::Bernoulli(loss));
        }
        let plan = Plan {
            // The packets of a device have their headers.
            overhead: self.path.overhead.saturating_sub(HEADERS),
            seed: seed_of(self.seed, &json!(loss)),
            ..Plan::new(down, self.path.up.clone())
        };
        Tunnel::start(tunnel::Settings::new(plan)).map_err(|error| match error {
            TunnelError::Path(_) => Failure::usage(error),
            _ => Failure::run(error),
        })
    }

    fn transfer(
        &self,
        &(run, size, arm): &Job,
        loss: f64,
        servers: &[Server],
        interrupt: &Interrupt,
        file: &Mutex<files::Output>,
    ) -> Result<(), Failure> {
        let (version, server) = (self.arms[arm].version, &servers[arm]);
        let url = format!("https://198.18.0.2:{}/{}", server.port, self.sizes[size]);
        let limit = format!("{}s", self.limit);
        let words = ["get", "-k", "-s", "-S", "--timing=json", "-o", "/dev/null"];
        let output = program()?
            .args(words)
            .args(["--max-time", &limit, "--http", version.name(), &url])
            .output()
            .map_err(|error| Failure::Run(format!("cannot run `lastbyte get`: {error}")))?;
        let millis = match output.status.code() {
            Some(0) => {
                let timing: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
                let total = timing["fetches"][0]["total_ms"].as_f64();
                Some(
                    total
                        .ok_or_else(|| Failure::Run("`lastbyte get` printed no time".to_owned()))?,
                )
            }
            // Not complete in time.
            Some(28) => None,
            _ if interrupt.is_pressed() => return Ok(()),
            _ => {
                let error = String::from_utf8_lossy(&output.stderr);
                return Err(Failure::Run(format!("`{url}`: {}", error.trim())));
            }
        };
        let mut row = json!({
            "size": self.sizes[size],
            "loss": loss,
            "arm": name(&self.arms[arm]),
            "http": version.name(),
            "run": run,
        });
        if let Some(millis) = millis {
            row["ttlb_ms"] = json!(millis);
        }
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // So that the row is there even if this process is killed.
        let written = writeln!(file, "{row}").and_then(|()| file.flush());
        written.map_err(|error| Failure::Run(format!("cannot write a measured transfer: {error}")))
    }
}

fn program() -> Result<Command, Failure> {
    let exe = env::current_exe();
    let exe = exe.map_err(|error| Failure::Run(format!("cannot find this program: {error}")))?;
    Ok(Command::new(exe))
}

/// A warning if connections of a log had another congestion control.
fn unexpected(arm: &str, control: &str, log: &str) -> Option<String> {
    let rows = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found: Vec<String> = rows
        .filter_map(|row| row["tcp.congestion"].as_str().map(str::to_owned))
        .collect();
    let other = found.iter().find(|one| *one != control)?;
    let count = found.iter().filter(|one| *one != control).count();
    Some(format!(
        "{count} of {} connections of `{arm}` had the kernel's congestion control `{other}` (expected `{control}`).",
        found.len()
    ))
}

/// `lastbyte serve` for an arm. It ends when it is dropped.
struct Server {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl Server {
    fn start(arm: &Arm, log: PathBuf) -> Result<Self, Failure> {
        let mut command = program()?;
        command.args(["serve", "--self-signed", "--listen", "0.0.0.0:0", "--log"]);
        command.arg(&log);
        if arm.version == HttpVersion::Http3 {
            let spec = arm.spec.as_ref().map(ToString::to_string);
            command.args(["--congestion", spec.as_deref().unwrap_or("cubic")]);
        }
        let cannot = |why: String| Failure::Run(format!("cannot start `lastbyte serve`: {why}"));
        // Ctrl-C is for this process, which ends the server.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = command.stderr(Stdio::piped()).spawn();
        let process = process.map_err(|error| cannot(error.to_string()))?;
        let mut server = Self {
            process,
            port: 0,
            log,
        };
        let mut printed = String::new();
        let stderr = server.process.stderr.take().into_iter();
        for line in stderr.flat_map(|stderr| BufReader::new(stderr).lines().map_while(Result::ok)) {
            if let Some(rest) = line.strip_prefix("listening on ") {
                let address = rest.split(' ').next().unwrap_or_default();
                let address: SocketAddr = address
                    .parse()
                    .map_err(|_| cannot(format!("it listens on `{rest}`")))?;
                server.port = address.port();
                return Ok(server);
            }
            printed.push_str(&line);
        }
        Err(cannot(printed))
    }

    /// Ends the server, and returns its log.
    fn stop(mut self) -> Result<String, Failure> {
        let cannot =
            |error: io::Error| Failure::Run(format!("cannot stop `lastbyte serve`: {error}"));
        kill_process(Pid::from_child(&self.process), Signal::TERM)
            .map_err(|error| cannot(error.into()))?;
        self.process.wait().map_err(cannot)?;
        let log = files::read_text(&self.log).map_err(Failure::Run)?;
        fs::remove_file(&self.log).map_err(cannot)?;
        Ok(log)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, or there is no use for what it reports.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Headers of IPv4 and UDP, in bytes.
const HEADERS: u32 = 28;
