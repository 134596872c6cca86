//! A run: one thread for each share of the connections, and their combined measurements.

use std::{io, sync::Arc, thread, time::Duration};

use lastbyte_client::Tls;
use lastbyte_driver::Clock;
use lastbyte_emulate::Report;
use lastbyte_quic::Time;

use crate::{
    dispatcher::{Amount, Share},
    error::Error,
    http3,
    recorder::Recorder,
    settings::{Control, Settings, Version},
    target::Target,
    tcp,
    thread_state::{ThreadResult, ThreadState, ThreadUse},
    timeline::Timeline,
};

/// The measurements of a run.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Counters and times of all threads.
    pub recorder: Recorder,
    /// The measured time: up to the last response if requests were counted.
    pub elapsed: Duration,
    /// How busy each thread was.
    pub threads: Vec<ThreadUse>,
    /// Whether the run was stopped before its end.
    pub is_interrupted: bool,
    /// Statistics of the model paths.
    pub paths: Option<Report>,
}

impl Measurement {
    /// Responses per second, whatever their status.
    pub fn rate(&self) -> f64 {
        self.per_second(self.recorder.counts.done)
    }

    /// The requests of the run: the given number, or those that were due in the given time.
    pub const fn total(&self, settings: &Settings) -> u64 {
        match settings.amount {
            Amount::Requests(total) => total,
            Amount::Time { .. } => self.recorder.counts.started + self.recorder.counts.not_started,
        }
    }

    /// A count divided by the measured time.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.elapsed.is_zero() {
            return 0.0;
        }
        count as f64 / self.elapsed.as_secs_f64()
    }
}

/// Loads the server until the run is over or `control` stops it. Blocks.
///
/// # Errors
///
/// Returns [`Error::Settings`] if the settings contradict each other, [`Error::Resolve`] if the server has no address,
/// [`Error::Tls`] if there are no trusted roots, and [`Error::Io`] if a thread or a socket fails. Failures of connections
/// and requests are counted instead.
pub fn run(settings: &Settings, control: &Arc<Control>) -> Result<Measurement, Error> {
    if settings.connection_log.is_some() && settings.version != Version::Http3 {
        return Err(Error::Settings(format!(
            "the connection log has connections over QUIC, not {} (expected HTTP/3)",
            settings.version
        )));
    }
    if settings.network.is_some() {
        if settings.version != Version::Http3 {
            return Err(Error::Settings(format!(
                "model paths carry UDP, not {} (expected HTTP/3; `lastbyte emulate --tun` emulates a path for all versions)",
                settings.version
            )));
        }
        if !cfg!(target_os = "linux") {
            return Err(Error::Settings("model paths require Linux".to_owned()));
        }
    }
    let target = Target::find(settings)?;
    let shared = Arc::new(settings.clone());
    let tls = Tls::new(&settings.client).map_err(Error::Tls)?;
    let clock = Clock::new();
    let start = clock.now();
    let results = thread::scope(|scope| {
        let mut running = Vec::new();
        for thread in 0..settings.threads {
            let (target, tls) = (&target, &tls);
            let share = Share {
                thread,
                threads: settings.threads,
                connections: settings.connections,
            };
            let (shared, control) = (Arc::clone(&shared), Arc::clone(control));
            let work = move || {
                let mut state = ThreadState::new(shared, control, share, clock.now());
                state.recorder.timeline = Timeline::new(start);
                match settings.version {
                    Version::Http3 => http3::run(state, target, tls, clock),
                    Version::Http1 | Version::Http2 => tcp::run(state, target, tls, clock),
                }
            };
            let name = format!("load-{thread}");
            running.push(
                thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, work)?,
            );
        }
        let results = running.into_iter().map(|thread| {
            let failed = || Err(io::Error::other("a thread panicked"));
            thread.join().unwrap_or_else(|_| failed())
        });
        results.collect::<io::Result<Vec<ThreadResult>>>()
    })?;
    Ok(merge(start, &results, control.is_stopped()))
}

fn merge(start: Time, results: &[ThreadResult], is_interrupted: bool) -> Measurement {
    let mut recorder = Recorder {
        timeline: Timeline::new(start),
        ..Recorder::default()
    };
    let mut paths: Option<Report> = None;
    for result in results {
        recorder.merge(&result.recorder);
        if let Some(more) = &result.paths {
            paths.get_or_insert_default().merge(more);
        }
    }
    let from = results.iter().map(|result| result.from).min();
    let until = results.iter().map(|result| result.until).max();
    Measurement {
        recorder,
        elapsed: until.unwrap_or(start).since(from.unwrap_or(start)),
        threads: results.iter().map(|result| result.usage).collect(),
        is_interrupted,
        paths,
    }
}
