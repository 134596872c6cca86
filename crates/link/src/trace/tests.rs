use std::vec::Vec;

use proptest::{collection::vec, prelude::*};

use super::*;

fn error(text: &str) -> String {
    text.parse::<Trace>().expect_err(text).to_string()
}

#[test]
fn errors_name_the_line_and_the_problem() {
    assert_eq!(error(""), "the trace has no timestamps");
    assert_eq!(
        error("1\n\n2\n"),
        "line 2: empty line (expected a timestamp)"
    );
    for text in ["1\n2.5", "1\n -2", "1\nx", "1\n99999999999999999999"] {
        assert_eq!(
            error(text),
            "line 2: invalid timestamp (expected an integer number of milliseconds)"
        );
    }
    assert_eq!(
        error("18446744073710"),
        "line 1: invalid timestamp (expected an integer number of milliseconds)"
    );
    assert_eq!(
        error("5\n4\n"),
        "line 2: timestamps must not decrease (4 follows 5)"
    );
    assert_eq!(
        error("0\n0\n"),
        "invalid last timestamp: 0 (expected more than 0, the period of the trace)"
    );
}

#[test]
fn text_and_numbers_give_the_same_trace() {
    let trace = Trace::from_millis(&[0, 7, 7, 12]).expect("valid trace");
    assert_eq!("0\n7\r\n7\n12".parse(), Ok(trace.clone()));
    assert_eq!(trace.opportunities.len(), 4);
    assert_eq!(trace.period(), Duration::from_millis(12));
    assert_eq!(trace.nominal(), Rate::from_bits_per_second(4_000_000));
}

/// The times of the first opportunities in milliseconds.
fn first(trace: &Trace, count: usize) -> Vec<u64> {
    let mut cursor = Cursor::new(trace.clone());
    (0..count)
        .map(|_| {
            let at = cursor.peek().as_nanos() / NANOS_PER_MILLI;
            cursor.advance();
            at
        })
        .collect()
}

#[test]
fn the_trace_repeats_after_its_last_timestamp() {
    let trace = Trace::from_millis(&[0, 2, 5]).expect("valid trace");
    assert_eq!(first(&trace, 8), [0, 2, 5, 5, 7, 10, 10, 12]);
}

#[test]
fn the_latest_time_does_not_overflow() {
    let mut cursor = Cursor::new(Trace::from_millis(&[1, 3]).expect("valid trace"));
    cursor.skip_past(Time::MAX);
    for _ in 0..10 {
        assert!(cursor.peek() >= Time::from_nanos(u64::MAX - 3 * NANOS_PER_MILLI));
        cursor.advance();
    }
    cursor.skip_past(Time::MAX);
    assert_eq!(cursor.peek(), Time::MAX);
}

proptest! {
    #[test]
    fn any_skip_matches_single_steps(
        mut timestamps in vec(0u64..40, 1..12),
        skips in vec(0u64..100, 1..20),
    ) {
        timestamps.sort_unstable();
        *timestamps.last_mut().expect("one") += 1;
        let trace = Trace::from_millis(&timestamps).expect("valid trace");
        let mut fast = Cursor::new(trace.clone());
        let mut naive = Cursor::new(trace);
        let mut now = Time::ZERO;
        for skip in skips {
            now = now.plus(skip * NANOS_PER_MILLI);
            fast.skip_past(now);
            while naive.peek() <= now {
                naive.advance();
            }
            prop_assert_eq!(fast.peek(), naive.peek());
            prop_assert_eq!((fast.base, fast.index), (naive.base, naive.index));
        }
    }

    #[test]
    fn any_text_is_a_trace_or_an_error(text in "[0-9\n x]{0,40}") {
        if let Ok(trace) = text.parse::<Trace>() {
            prop_assert_eq!(trace.opportunities.len(), text.lines().count());
        }
    }
}

#[test]
fn the_bytes_of_a_span_are_those_of_its_opportunities() {
    let trace: Trace = "0\n2\n2\n3\n".parse().expect("a trace");
    let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
    let count =
        |trace: &Trace, from: u64, to: u64| trace.bytes_between(at(from), at(to)) as u64 / 1500;
    // 0, 2, 2, 3, 3, 5, 5, 6, 6, …
    for (from, to, expected) in [
        (0, 0, 1),
        (0, 2, 3),
        (1, 2, 2),
        (2, 3, 4),
        (3, 3, 2),
        (0, 6, 9),
        (4, 4, 0),
    ] {
        assert_eq!(count(&trace, from, to), expected, "{from} to {to}");
    }
}
