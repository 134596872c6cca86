//! Display on the terminal during a run: counters, and rate and latency of the last seconds as bars of characters.

use core::{fmt::Write as _, sync::atomic::Ordering, time::Duration};
use std::collections::VecDeque;

use lastbyte_load::Control;

#[cfg(test)]
mod tests;

/// Interval at which [`Live::update`] must be called.
pub(super) const INTERVAL: Duration = Duration::from_millis(200);
/// The updates of a bar: one second.
const UPDATES: u32 = 5;
/// The most bars: a line fits 80 columns.
const BARS_MAX: usize = 50;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The state of the view.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Responses at the last update, and at the start of the second.
    done: u64,
    second_from: u64,
    updates: u32,
    /// Of each second, the last of them last: responses, and the highest P99 of a tenth of a second in ns, if known.
    seconds: VecDeque<(u64, Option<u64>)>,
    highest: u64,
}

impl Live {
    /// Reads the progress of all threads. Returns the text to show.
    pub(super) fn update(&mut self, control: &Control) -> String {
        let (mut done, mut failed, mut p50, mut p99, mut recent) = (0, 0, 0, 0, 0);
        for thread in &control.threads {
            done += thread.done.load(Ordering::Relaxed);
            failed += thread.failed.load(Ordering::Relaxed);
            p50 = thread.p50.load(Ordering::Relaxed).max(p50);
            p99 = thread.p99.load(Ordering::Relaxed).max(p99);
            recent = thread.recent_p99.swap(0, Ordering::Relaxed).max(recent);
        }
        let rate = done.saturating_sub(self.done) as f64 / INTERVAL.as_secs_f64();
        self.done = done;
        self.highest = self.highest.max(recent);
        self.updates += 1;
        if self.updates == UPDATES {
            let p99 = (self.highest > 0).then_some(self.highest);
            let responses = done.saturating_sub(self.second_from);
            self.seconds.push_back((responses, p99));
            if self.seconds.len() > BARS_MAX {
                self.seconds.pop_front();
            }
            (self.second_from, self.updates, self.highest) = (done, 0, 0);
        }
        let mut text = format!(
            "{done} responses, {rate:.0}/s, P50 {}, P99 {}, {failed} failed",
            time(p50),
            time(p99)
        );
        if self.seconds.len() > 1 {
            self.bars(&mut text);
        }
        text
    }

    fn bars(&self, text: &mut String) {
        let rates = self.seconds.iter().map(|(responses, _)| Some(*responses));
        let most = rates.clone().flatten().max().unwrap_or(0);
        let _ = write!(text, "\nrate  {}  up to {most}/s", bars(rates, most));
        let p99s = self.seconds.iter().map(|(_, p99)| *p99);
        if let Some(most) = p99s.clone().flatten().max() {
            let _ = write!(text, "\nP99   {}  up to {}", bars(p99s, most), time(most));
        }
    }
}

/// A character for each value, by its share of the highest; a blank where there is none.
fn bars(values: impl Iterator<Item = Option<u64>>, most: u64) -> String {
    let bar = |value: u64| {
        let step = (value as f64 / most.max(1) as f64 * BARS.len() as f64).ceil() as usize;
        BARS[step.clamp(1, BARS.len()) - 1]
    };
    values.map(|value| value.map_or(' ', bar)).collect()
}

/// A time in nanoseconds; a dash for 0, which stands for too few responses.
fn time(nanos: u64) -> String {
    match nanos {
        0 => "–".to_owned(),
        _ => format!("{:.2} ms", nanos as f64 / 1e6),
    }
}
