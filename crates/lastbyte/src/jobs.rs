//! Runs jobs on all cores, with a progress bar, until they are done or Ctrl-C is pressed.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastbyte_driver::Clock;
use tokio::signal::unix::{SignalKind, signal};

/// Signals within this time are one: `timeout` sends SIGTERM to a process and to its group, which is the process again.
pub(crate) const ONE_SIGNAL: Duration = Duration::from_millis(250);

/// Whether Ctrl-C was pressed.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs a handler. The first Ctrl-C stops the work after the jobs in progress, one after [`ONE_SIGNAL`] exits at once.
    pub(crate) fn listen() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&flag);
        let clock = Clock::new();
        let mut first = None;
        on_signal(move || {
            let now = clock.now();
            heard.store(true, Ordering::Relaxed);
            if now.since(*first.get_or_insert(now)) > ONE_SIGNAL {
                #[expect(clippy::disallowed_methods, reason = "a second Ctrl-C exits at once")]
                std::process::exit(130);
            }
        });
        Self(flag)
    }

    /// The flag that Ctrl-C sets.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    pub(crate) fn is_pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Calls this for each SIGINT, SIGTERM and SIGHUP, in a thread of its own. Without a handler, since the system has no more
/// descriptors, the first signal ends the process; that is acceptable.
pub(crate) fn on_signal(mut heard: impl FnMut() + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let Ok(runtime) = runtime else { return };
    let guard = runtime.enter();
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        return;
    };
    drop(guard);
    #[expect(clippy::disallowed_methods, reason = "signals need a thread")]
    thread::spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                heard();
            }
        });
    });
}

/// Makes a write beyond the limit of a file's size (`ulimit -f`) an error, in place of a signal that ends the process: errors name the
/// file, and incomplete files are removed.
pub(crate) fn outlive_file_limits() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let Ok(runtime) = runtime else { return };
    let _inside = runtime.enter();
    // The handler stays without its runtime. If there is none, the signal ends the process as before.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

/// A progress bar, shown on a terminal after a second; nothing in a pipe.
pub(crate) fn progress_bar(len: usize) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(len as u64), target);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len}, {per_sec:1}, {eta} left");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}

/// Runs all jobs with a progress bar, `threads` at a time (default: CPU cores). Returns their results in the order of the
/// jobs; after an interrupt, those up to the first job without a result.
pub(crate) fn run_all<J: Sync, R: Send>(
    jobs: &[J],
    threads: Option<NonZeroUsize>,
    interrupt: &Interrupt,
    run: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let bar = progress_bar(jobs.len());
    let results = run_with_bar(jobs, threads, interrupt, &bar, run);
    bar.finish_and_clear();
    results
}

/// Runs all jobs like [`run_all`], with an existing progress bar.
pub(crate) fn run_with_bar<J: Sync, R: Send>(
    jobs: &[J],
    threads: Option<NonZeroUsize>,
    interrupt: &Interrupt,
    bar: &ProgressBar,
    run: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    let threads = threads
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
        .min(jobs.len().max(1));
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !interrupt.is_pressed() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(job), Some(slot)) = (jobs.get(index), results.get(index)) else {
                        return;
                    };
                    let result = run(job);
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                    bar.inc(1);
                }
            });
        }
    });
    let results = results.into_iter();
    results
        .map_while(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}
