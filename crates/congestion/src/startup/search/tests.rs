use alloc::vec::Vec;

use super::*;
use crate::{rtt::Rtt, spec::Value};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A path of 100 ms. Each 10 ms, `rate` bytes are sent and at most `capacity` bytes leave the bottleneck.
struct Flow {
    search: Search,
    rtt: Rtt,
    now: Time,
    sent: u64,
    delivered: u64,
    /// Bytes that leave the bottleneck's queue in each later step, if there is capacity.
    way: [u64; 10],
    queue: u64,
    /// In the step before.
    last_delivered: u64,
    /// When how many bytes had been sent.
    log: Vec<(Time, u64)>,
}

impl Flow {
    fn new() -> Self {
        Self::with(&Settings::default())
    }

    fn with(settings: &Settings) -> Self {
        Self {
            search: Search::new(settings),
            rtt: Rtt::default(),
            now: Time::ZERO,
            sent: 0,
            delivered: 0,
            way: [0; 10],
            queue: 0,
            last_delivered: 0,
            log: Vec::new(),
        }
    }

    fn ack(&mut self, rtt: Option<Duration>) -> Growth {
        if let Some(sample) = rtt {
            self.rtt.update(self.now, sample, Duration::ZERO, None);
        }
        self.search.on_ack(&StartupAck {
            now: self.now,
            bytes: 7,
            delivered: self.delivered,
            sent: self.sent,
            in_flight: self.sent - self.delivered,
            rate: None,
            window: 1000,
            largest_acked: 0,
            next: 0,
            rtt: &self.rtt,
            rtt_sample: rtt,
        })
    }

    /// 10 ms pass.
    fn step(&mut self, rate: u64, capacity: u64) -> Growth {
        self.now = self.now + ms(10);
        self.sent += rate;
        self.queue += self.way[0];
        self.way.rotate_left(1);
        self.way[9] = rate;
        let delivered = self.queue.min(capacity);
        self.queue -= delivered;
        self.delivered += delivered;
        self.log.push((self.now, self.sent));
        // The round trip of the last byte delivered.
        let is_sent = |(_, sent): &(Time, u64)| *sent >= self.delivered;
        let place = self.log.iter().position(is_sent).unwrap_or(0);
        let sample = (delivered > 0).then(|| self.now.since(self.log[place].0));
        self.ack(sample)
    }

    /// Slow start: twice the bytes delivered are sent, so that the rate doubles each 100 ms until the path is full. Returns the
    /// number of round trips from then to the end of startup, and the growth at its end.
    fn slow_start(&mut self, capacity: u64) -> Option<(f64, Growth)> {
        let mut full_at = None;
        for step in 0..300 {
            let before = self.delivered;
            let rate = if step < 10 {
                100
            } else {
                self.last_delivered * 2
            };
            let growth = self.step(rate, capacity);
            self.last_delivered = self.delivered - before;
            if self.last_delivered == capacity {
                full_at.get_or_insert(self.now);
            }
            if growth.done {
                let late = self.now.since(full_at?);
                return Some((late.as_secs_f64() / 0.1, growth));
            }
        }
        None
    }

    fn history(&self) -> &History {
        self.search.history.as_ref().expect("a sample was given")
    }
}

#[test]
fn a_path_that_is_never_full_does_not_end_startup() {
    assert_eq!(Flow::new().slow_start(u64::MAX >> 8), None);
    // A sender at a constant rate that pauses does not either: what it does not send is not missing.
    let mut flow = Flow::new();
    for step in 0..1000 {
        let rate = if step % 40 < 20 { 1000 } else { 0 };
        assert_eq!(flow.step(rate, u64::MAX), Growth::by(7), "step {step}");
    }
}

#[test]
fn a_full_path_ends_startup_within_five_round_trips() {
    for capacity in [6400, 25_600, 102_400] {
        let (late, growth) = Flow::new().slow_start(capacity).expect("full");
        assert!((2.0..=5.0).contains(&late), "{capacity}: {late}");
        assert_eq!(growth, Growth::end_at(u64::MAX), "the window is kept");
    }
}

#[test]
fn with_drain_the_window_falls_to_the_delivery_of_a_round_trip() {
    let settings = [("search-exit", Value::Choice("drain"))];
    let mut flow = Flow::with(&settings.into_iter().collect());
    let (_, growth) = flow.slow_start(25_600).expect("full");
    let limit = growth.limit.expect("a limit");
    // Ten steps of 25600 bytes are a round trip. Part of the window may be from before the path was full.
    assert!((180_000..=256_000).contains(&limit), "{limit}");
}

#[test]
fn a_higher_threshold_ends_startup_later() {
    let late = |threshold: f64| {
        let settings = [("search-threshold", Value::Number(threshold))];
        let mut flow = Flow::with(&settings.into_iter().collect());
        flow.slow_start(25_600).expect("full").0
    };
    assert!(late(0.1) < late(0.26));
    assert!(late(0.26) < late(0.4));
}

#[test]
fn section_3_2_a_bin_is_35_percent_of_the_first_round_trip() {
    let mut flow = Flow::new();
    flow.sent = 1000;
    flow.ack(None);
    assert!(flow.search.history.is_none(), "no sample yet");
    flow.ack(Some(ms(200)));
    assert_eq!((flow.history().bin, flow.history().index), (ms(70), 0));
    // The end of a bin belongs to it.
    flow.now = Time::ZERO + ms(70);
    flow.ack(Some(ms(200)));
    assert_eq!(flow.history().index, 0);
    flow.now = flow.now + Duration::from_nanos(1);
    flow.ack(Some(ms(200)));
    assert_eq!(flow.history().index, 1);
    // A skipped bin repeats the one before it.
    flow.sent = 9000;
    flow.now = Time::ZERO + ms(70 * 4) + Duration::from_nanos(1);
    flow.ack(Some(ms(200)));
    let history = flow.history();
    let sent = [1, 2, 3, 4].map(|index| history.at(index).sent);
    assert_eq!((history.index, sent), (4, [1000, 1000, 1000, 9000]));
}

#[test]
fn missed_bins_of_more_than_a_window_discard_the_history() {
    for (bins, is_kept) in [(9, true), (10, true), (11, false)] {
        let mut flow = Flow::new();
        flow.ack(Some(ms(100)));
        flow.now = Time::ZERO + ms(35 * bins);
        flow.ack(Some(ms(100)));
        assert_eq!(flow.search.history.is_some(), is_kept, "{bins}");
    }
}

#[test]
fn section_3_2_without_enough_history_there_is_no_check() {
    let mut flow = Flow::new();
    for _ in 0..200 {
        flow.step(1000, u64::MAX);
    }
    let history = flow.history();
    assert!(history.index > W + EXTRA);
    let bins = |count: u64| ms(35) * count as u32;
    assert!(history.norm_diff(bins(EXTRA - 1)).is_some());
    assert_eq!(history.norm_diff(bins(EXTRA)), None);
    let mut early = Flow::new();
    while early
        .search
        .history
        .as_ref()
        .is_none_or(|history| history.index < W + 3)
    {
        early.step(1000, u64::MAX);
    }
    assert!(early.history().norm_diff(bins(2)).is_some());
    assert_eq!(early.history().norm_diff(bins(3)), None);
}

#[test]
fn the_bytes_sent_are_interpolated_between_bins() {
    let mut history = History::start(Time::ZERO, ms(100), Bin::default()).expect("long enough");
    for index in 0..20 {
        let sent = index * index;
        history.put(
            index,
            Bin {
                sent,
                delivered: 100,
            },
        );
    }
    history.index = 19;
    // The windows that end 2 and 3 bins before: 17² − 7² = 240 and 16² − 6² = 220; nothing was delivered in the latest.
    assert_eq!(history.norm_diff(ms(70)), Some(1.0));
    history.put(
        19,
        Bin {
            sent: 0,
            delivered: 215,
        },
    );
    let rtt = ms(87) + Duration::from_micros(500);
    let difference = history.norm_diff(rtt).expect("a check");
    assert!(
        (difference - (230.0 - 115.0) / 230.0).abs() < 1e-9,
        "{difference}"
    );
}
