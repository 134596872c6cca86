use super::*;

const START: Time = Time::from_nanos(1_000_000_000);

fn request(is_measured: bool, status: u16) -> InFlight {
    InFlight {
        due: START,
        sent: START + Duration::from_millis(3),
        is_measured,
        status,
        request: 7,
        is_retry: false,
    }
}

/// Latency counts from when the request was due, service time from when it was sent.
#[test]
fn latency_counts_from_when_a_request_was_due() {
    let mut recorder = Recorder::default();
    recorder.on_done(&request(true, 200), START + Duration::from_millis(5));
    let latency = recorder.latency.summary().expect("a value");
    let service = recorder.service.summary().expect("a value");
    assert_eq!((latency.max, service.max), (5e6, 2e6));
}

#[test]
fn responses_are_counted_like_h2load() {
    let mut recorder = Recorder::default();
    for status in [200, 204, 304, 404, 503] {
        recorder.on_started(&request(true, 0));
        recorder.on_done(&request(true, status), START + Duration::from_secs(1));
    }
    recorder.on_failed(&request(true, 0), Cause::Error, "reset");
    recorder.on_failed(&request(true, 200), Cause::Timeout, "slow");
    recorder.on_abandoned(3, Cause::Error, "reset");
    recorder.on_unfinished(&request(true, 0));
    let expected = Counts {
        started: 5,
        done: 5,
        succeeded: 3,
        failed: 7,
        errored: 5,
        timed_out: 1,
        unfinished: 1,
        statuses: [0, 0, 2, 1, 1, 1],
        ..Counts::default()
    };
    assert_eq!(recorder.counts, expected);
    let errors: Vec<(&str, u64)> = recorder
        .errors
        .iter()
        .map(|(why, times)| (why.as_str(), *times))
        .collect();
    assert_eq!(errors, [("reset", 4), ("slow", 1)]);
}

#[test]
fn warm_up_requests_are_not_recorded() {
    let mut recorder = Recorder::default();
    recorder.on_started(&request(false, 0));
    recorder.on_done(&request(false, 200), START + Duration::from_secs(1));
    recorder.on_failed(&request(false, 0), Cause::Error, "reset");
    recorder.on_unfinished(&request(false, 0));
    assert_eq!(recorder, Recorder::default());
}

#[test]
fn the_list_of_errors_is_bounded() {
    let mut recorder = Recorder::default();
    for number in 0..1000 {
        recorder.on_error(1, &format!("error {number}"));
    }
    assert_eq!(recorder.errors.len(), ERRORS_MAX + 1);
    assert_eq!(recorder.errors.values().sum::<u64>(), 1000);
}

#[test]
fn merged_recorders_equal_one_recorder_of_all_results() {
    let mut whole = Recorder::default();
    let mut parts = [Recorder::default(), Recorder::default()];
    for number in 0..100_u16 {
        let request = request(true, 200 + number);
        let end = START + Duration::from_millis(u64::from(number) + 4);
        for recorder in [&mut whole, &mut parts[usize::from(number % 2)]] {
            recorder.on_started(&request);
            recorder.on_done(&request, end);
            recorder.on_error(1, "why");
            recorder.counts.data_bytes += 7;
        }
    }
    let [mut first, second] = parts;
    first.merge(&second);
    assert_eq!(first, whole);
}

/// A request that was refused is sent once more, is one request, and its times count from the first time.
#[test]
fn a_refused_request_is_retried_once() {
    let mut recorder = Recorder::default();
    let first = request(true, 0);
    recorder.on_started(&first);
    let due = first.retry().expect("a retry");
    assert_eq!((due.request, due.at, due.handshake), (7, START, None));
    let again = InFlight::new(&due, START + Duration::from_secs(1));
    assert_eq!((again.sent, again.due), (first.sent, first.due));
    assert_eq!(again.retry(), None);
    recorder.on_started(&again);
    recorder.on_unsent(&again);
    recorder.on_started(&again);
    let counts = recorder.counts;
    assert_eq!((counts.started, counts.retried, counts.failed), (1, 1, 0));
    // It was started, so it is not one that was not.
    recorder.on_not_sent(&due);
    let counts = recorder.counts;
    assert_eq!((counts.unfinished, counts.not_started), (1, 0));
    // The server has started to process it.
    assert_eq!(request(true, 200).retry(), None);
}

/// Before an open loop starts, and over threads: ten a second, whatever the time of the requests.
#[test]
fn the_rate_of_handshakes_counts_from_the_first_to_the_last() {
    let at = |millis| START + Duration::from_millis(millis);
    let mut threads = [Recorder::default(), Recorder::default()];
    for number in 0..20 {
        let started = at(number * 100);
        threads[number as usize % 2].on_connected(
            started,
            started + Duration::from_millis(100),
            Some(false),
        );
    }
    threads[0].on_connected(at(9000), at(9001), None);
    let [mut all, other] = threads;
    all.merge(&other);
    assert!((all.handshake_rate() - 10.0).abs() < 1e-9);
    assert!(Recorder::default().handshake_rate().abs() < 1e-9);
}
