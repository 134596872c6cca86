use std::sync::Arc;

use super::*;

/// A control of two threads, with a response count each.
fn control(done: [u64; 2], recent_p99: u64) -> Control {
    let control = Control::new(2, Arc::default());
    for (thread, done) in control.threads.iter().zip(done) {
        thread.done.store(done, Ordering::Relaxed);
    }
    control.threads[0]
        .recent_p99
        .store(recent_p99, Ordering::Relaxed);
    control.threads[1].failed.store(3, Ordering::Relaxed);
    control
}

#[test]
fn the_line_has_the_rate_since_the_last_update() {
    let mut live = Live::default();
    let first = live.update(&control([100, 100], 0));
    assert_eq!(first, "200 responses, 1000/s, P50 –, P99 –, 3 failed");
    let second = live.update(&control([100, 150], 0));
    assert!(second.starts_with("250 responses, 250/s"), "{second}");
}

#[test]
fn each_second_is_a_bar() {
    let mut live = Live::default();
    let mut text = String::new();
    // 100, 800, 400 and 0 responses in a second; a P99 is known in the second and third.
    let mut done = 0;
    for (responses, p99) in [(100, 0), (800, 2_000_000), (400, 4_000_000), (0, 0)] {
        for update in 1..=u64::from(UPDATES) {
            text = live.update(&control([done + responses * update / 5, 0], p99));
        }
        done += responses;
    }
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "rate  ▁█▄▁  up to 800/s");
    assert_eq!(lines[2], "P99    ▄█   up to 4.00 ms");
}

/// A run of any length keeps a line of the same length.
#[test]
fn old_bars_leave() {
    let mut live = Live::default();
    let mut text = String::new();
    for update in 0..10_000 {
        text = live.update(&control([update * 10, 0], 1_000_000));
    }
    assert_eq!(live.seconds.len(), BARS_MAX);
    for line in text.lines() {
        assert!(line.chars().count() < 80, "{line}");
    }
}
