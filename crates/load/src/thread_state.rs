//! State that the engines of all HTTP versions share within a thread: schedule, recorder, CPU time and the end of the run.

use core::{sync::atomic::Ordering, time::Duration};
use std::sync::Arc;

use lastbyte_emulate::Report;
use lastbyte_quic::Time;

use crate::{
    dispatcher::{Dispatcher, Share},
    recorder::Recorder,
    settings::{Control, Settings},
};

/// Interval between checks of time limits, progress and the end of the run.
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// Interval between updates of the published progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The longest pause between attempts to connect again.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Attempts to connect again in a run of a fixed number of requests.
const RECONNECTS_MAX: u32 = 3;

/// The state of a thread.
pub(crate) struct ThreadState {
    pub(crate) settings: Arc<Settings>,
    pub(crate) control: Arc<Control>,
    pub(crate) share: Share,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) recorder: Recorder,
    /// Whether requests may be sent: an open loop waits for its connections.
    pub(crate) is_started: bool,
    start: Time,
    /// Start of the CPU time measurement, and the CPU time at that point.
    cpu_from: Option<(Time, Duration)>,
    progress_at: Time,
}

/// How busy a thread was during the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// CPU time, user and system.
    pub cpu: Duration,
    /// Elapsed time.
    pub wall: Duration,
}

impl ThreadUse {
    /// The share of a CPU core.
    pub fn share(self) -> f64 {
        if self.wall.is_zero() {
            return 0.0;
        }
        self.cpu.as_secs_f64() / self.wall.as_secs_f64()
    }
}

/// The result of a thread.
pub(crate) struct ThreadResult {
    pub(crate) recorder: Recorder,
    pub(crate) usage: ThreadUse,
    /// When the measured time started.
    pub(crate) from: Time,
    /// When it ended.
    pub(crate) until: Time,
    /// Statistics of the model paths.
    pub(crate) paths: Option<Report>,
}

impl ThreadState {
    pub(crate) fn new(
        settings: Arc<Settings>,
        control: Arc<Control>,
        share: Share,
        now: Time,
    ) -> Self {
        let weights: Vec<u32> = settings.requests.iter().map(|it| it.weight).collect();
        let dispatcher = Dispatcher::new(
            now,
            &share,
            settings.arrivals,
            settings.amount,
            &weights,
            settings.seed,
        )
        .with_mix(settings.mix);
        Self {
            is_started: !dispatcher.is_open_loop(),
            recorder: Recorder::new(share.own_connections()),
            settings,
            control,
            share,
            dispatcher,
            start: now,
            cpu_from: None,
            progress_at: now,
        }
    }

    /// When one of its connections is established first.
    pub(crate) fn connects_at(&self, connection: usize) -> Time {
        let number = self.share.threads * connection + self.share.thread;
        let rate = self.settings.connect_rate;
        let wait = rate.map_or(0.0, |rate| number as f64 / rate);
        self.start + Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
    }

    /// All connections are established, or have failed: an open loop starts.
    pub(crate) fn on_settled(&mut self, now: Time) {
        if !self.is_started {
            self.is_started = true;
            self.dispatcher.start_at(self.start, now);
        }
    }

    /// Whether no more requests are to be sent.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.control.is_stopped() || (self.is_started && self.dispatcher.is_over(now))
    }

    /// Whether requests in progress are given up: the time is over, or the run was interrupted.
    pub(crate) fn is_cut_off(&self, now: Time) -> bool {
        let is_late = self.dispatcher.end().is_some_and(|end| now >= end);
        self.control.is_stopped() || (self.is_started && is_late)
    }

    /// Whether received data counts.
    pub(crate) fn is_measuring(&self, now: Time) -> bool {
        self.is_started && now >= self.dispatcher.measured_from()
    }

    /// Called every [`TICK`].
    pub(crate) fn on_tick(&mut self, now: Time) {
        self.recorder.timeline.on_tick(now);
        if self.cpu_from.is_none() && self.is_measuring(now) {
            self.cpu_from = Some((now, cpu_time()));
        }
        if now >= self.progress_at {
            self.progress_at = now + PROGRESS_INTERVAL;
            self.publish();
        }
    }

    fn publish(&mut self) {
        let (_, recent_p99) = self.recorder.timeline.take_recent();
        let Some(progress) = self.control.threads.get(self.share.thread) else {
            return;
        };
        let counts = &self.recorder.counts;
        progress.done.store(counts.done, Ordering::Relaxed);
        progress.failed.store(counts.failed, Ordering::Relaxed);
        if recent_p99 > 0 {
            progress.recent_p99.store(recent_p99, Ordering::Relaxed);
        }
        for (at, share) in [(&progress.p50, 0.5), (&progress.p99, 0.99)] {
            let value = self.recorder.latency.supported_quantile(share);
            at.store(value.unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// The pause before a connection is established again, after this number of failures in a row; `None` if it is not.
    pub(crate) fn pause(&self, failures: u32, was_open: bool) -> Option<Duration> {
        let is_timed = self.dispatcher.end().is_some();
        if !was_open || (!is_timed && failures > RECONNECTS_MAX) {
            return None;
        }
        let pause = Duration::from_millis(50) * 2_u32.saturating_pow(failures.min(10));
        Some(if failures == 0 {
            Duration::ZERO
        } else {
            pause.min(PAUSE_MAX)
        })
    }

    /// The results, at the end.
    pub(crate) fn finish(&mut self, now: Time) -> ThreadResult {
        self.publish();
        let from = self.dispatcher.measured_from();
        let until = match self.dispatcher.end() {
            Some(end) => now.min(end),
            None => self.recorder.last.unwrap_or(now),
        };
        self.recorder.counts.not_started += self.dispatcher.take_backlog(now);
        let usage = self.cpu_from.map(|(since, before)| ThreadUse {
            cpu: cpu_time().saturating_sub(before),
            wall: now.since(since),
        });
        ThreadResult {
            recorder: core::mem::take(&mut self.recorder),
            usage: usage.unwrap_or_default(),
            from,
            until,
            paths: None,
        }
    }
}

/// The CPU time of the calling thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
