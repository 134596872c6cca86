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

fn keep() -> Flow {
    let settings = [("search-exit", Value::Choice("keep"))];
    Flow::with(&settings.into_iter().collect())
}

#[test]
fn a_full_path_ends_startup_within_five_round_trips() {
    for capacity in [6400, 25_600, 102_400] {
        let (late, growth) = keep().slow_start(capacity).expect("full");
        assert!((2.0..=5.0).contains(&late), "{capacity}: {late}");
        assert_eq!(growth, Growth::end_at(u64::MAX), "the window is kept");
    }
}

/// A flow with this many bytes in flight whose path was found full with this target.
fn draining(in_flight: u64, target: u64) -> Flow {
    let mut flow = Flow::new();
    flow.delivered = 1_000_000;
    flow.sent = flow.delivered + in_flight;
    flow.search.drain = Some(Drain {
        target,
        in_flight,
        delivered: flow.delivered,
    });
    flow
}

#[test]
fn section_3_2_the_drain_adds_one_segment_for_three_that_are_acknowledged() {
    let mut flow = draining(60_000, 30_000);
    // Each ACK frame of 3000 bytes allows 1000 to be sent, and the sender does.
    for lowered in 1..=14 {
        flow.delivered += 3000;
        let growth = flow.ack(Some(ms(150)));
        assert_eq!(growth.limit, Some(60_000 - 2000 * lowered));
        assert!(!growth.done && growth.bytes == 0);
        flow.sent += 1000;
    }
    // Startup ends at the target, and not below it.
    flow.delivered += 6000;
    assert_eq!(flow.ack(Some(ms(150))), Growth::end_at(30_000));
}

#[test]
fn section_3_2_a_drain_without_round_trip_samples_ends_as_well() {
    let mut flow = draining(60_000, 30_000);
    flow.delivered += 45_000;
    assert_eq!(flow.ack(None), Growth::end_at(30_000));
    // Nothing to drain: the target is above what is in flight.
    let mut flow = draining(20_000, 30_000);
    assert_eq!(flow.ack(None), Growth::end_at(30_000));
}

#[test]
fn section_3_2_the_target_is_the_delivery_of_a_round_trip_and_at_least_the_initial_window() {
    let mut flow = Flow::new();
    // Not yet drained when found full: the limit is above the target, and what is in flight.
    assert_eq!(flow.slow_start(25_600).map(|(_, end)| end.done), Some(true));
    let drain = flow.search.drain.expect("it was drained");
    // 3 bins of 35 ms are 10.5 steps, of 25 600 bytes each, counted to the next step.
    assert!(
        (25_600 * 10..=25_600 * 11).contains(&drain.target),
        "{drain:?}"
    );
    assert!(drain.in_flight > drain.target, "{drain:?}");
    // A window of 1000 bytes is that of the first sample.
    assert_eq!(flow.search.initial, Some(1000));
    let mut slow = Flow::new();
    slow.search.initial = Some(1 << 40);
    let end = slow.slow_start(25_600).expect("full").1;
    assert_eq!(end, Growth::end_at(1 << 40));
}

#[test]
fn a_higher_threshold_ends_startup_later() {
    let late = |threshold: f64| {
        let settings = [
            ("search-threshold", Value::Number(threshold)),
            ("search-exit", Value::Choice("keep")),
        ];
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

/// A NAT rebinding: what was sent in a round trip before it is never delivered, and acknowledgments pause as long.
#[test]
fn rfc9000_9_4_a_flight_that_a_rebinding_forgets_is_no_lower_rate() {
    let is_found = |is_reported: bool| {
        let mut flow = Flow::new();
        let mut is_found = false;
        for step in 0..200 {
            flow.now = flow.now + ms(10);
            flow.sent += 1000;
            let is_forgotten = (100..110).contains(&step);
            if step == 100 && is_reported {
                flow.search.on_rebind();
            }
            if step >= 10 && !is_forgotten {
                flow.delivered += 1000;
                is_found |= flow.ack(Some(ms(100))).limit.is_some();
            }
        }
        is_found
    };
    assert!(is_found(false));
    assert!(!is_found(true));
}
