use super::*;

const START: Time = Time::from_nanos(5_000_000_000);

fn alone(connections: usize) -> Share {
    Share {
        thread: 0,
        threads: 1,
        connections,
    }
}

fn dispatcher(share: &Share, arrivals: Arrivals, amount: Amount) -> Dispatcher {
    Dispatcher::new(START, share, arrivals, amount, &[1], 7)
}

fn seconds(warm_up: u64, measured: u64) -> Amount {
    Amount::Time {
        warm_up: Duration::from_secs(warm_up),
        measured: Duration::from_secs(measured),
    }
}

/// As with h2load: each of 3 connections sends a third of 10 requests, the first one more.
#[test]
fn a_closed_loop_divides_a_fixed_number_among_the_connections() {
    for threads in 1..=3 {
        let mut counts = [0_u64; 3];
        for thread in 0..threads {
            let share = Share {
                thread,
                threads,
                connections: 3,
            };
            let mut dispatcher = dispatcher(&share, Arrivals::Closed, Amount::Requests(10));
            for connection in 0..share.own_connections() {
                while dispatcher.take(START, connection).is_some() {
                    counts[connection * threads + thread] += 1;
                }
                assert!(dispatcher.is_idle(connection));
            }
            assert!(dispatcher.is_over(START));
        }
        assert_eq!(counts, [4, 3, 3], "{threads} threads");
    }
}

#[test]
fn requests_abandoned_by_a_connection_are_no_longer_due() {
    let mut dispatcher = dispatcher(&alone(2), Arrivals::Closed, Amount::Requests(10));
    assert!(dispatcher.take(START, 0).is_some());
    assert_eq!(dispatcher.abandon(0), 4);
    assert_eq!(dispatcher.take(START, 0), None);
    assert!(!dispatcher.is_over(START));
    for _ in 0..5 {
        assert!(dispatcher.take(START, 1).is_some());
    }
    assert!(dispatcher.is_over(START));
}

#[test]
fn warm_up_requests_are_not_measured() {
    let mut dispatcher = dispatcher(&alone(1), Arrivals::Closed, seconds(1, 2));
    let second = Duration::from_secs(1);
    let first = dispatcher.take(START, 0).expect("a request");
    assert!(!first.is_measured);
    let later = dispatcher.take(START + second, 0).expect("a request");
    assert!(later.is_measured);
    assert!(!dispatcher.is_over(START + second * 2));
    assert!(dispatcher.is_over(START + second * 3));
    assert_eq!(dispatcher.take(START + second * 3, 0), None);
}

/// The intervals are exact on average, and late requests keep the time when they were due.
#[test]
fn constant_arrivals_are_due_at_equal_intervals() {
    let arrivals = Arrivals::Constant { rate: 3.0 };
    let mut dispatcher = dispatcher(&alone(1), arrivals, seconds(0, 1000));
    let end = START + Duration::from_secs(1000);
    let mut due = Vec::new();
    while let Some(next) = dispatcher.take(end, 0) {
        due.push(next.at.nanos_since(START));
    }
    assert_eq!(due.len(), 3000);
    assert_eq!(due[..4], [0, 333_333_333, 666_666_667, 1_000_000_000]);
}

#[test]
fn nothing_is_due_before_its_arrival() {
    let arrivals = Arrivals::Constant { rate: 10.0 };
    let mut dispatcher = dispatcher(&alone(1), arrivals, Amount::Requests(2));
    assert!(dispatcher.take(START, 0).is_some());
    assert_eq!(dispatcher.take(START, 0), None);
    let next = dispatcher.next_arrival().expect("an arrival");
    assert_eq!(next, START + Duration::from_millis(100));
    assert_eq!(dispatcher.take(next, 0).expect("a request").at, next);
    assert_eq!(dispatcher.next_arrival(), None);
}

#[test]
fn threads_take_turns_with_constant_arrivals() {
    let mut due: Vec<u64> = Vec::new();
    for thread in 0..2 {
        let share = Share {
            thread,
            threads: 2,
            connections: 2,
        };
        let arrivals = Arrivals::Constant { rate: 10.0 };
        let mut dispatcher = dispatcher(&share, arrivals, seconds(0, 1));
        while let Some(next) = dispatcher.take(START + Duration::from_secs(1), 0) {
            due.push(next.at.nanos_since(START) / 1_000_000);
        }
    }
    due.sort_unstable();
    assert_eq!(due, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
}

/// Mean and deviation of exponential intervals are the same; the same seed gives the same arrivals.
#[test]
fn poisson_arrivals_have_exponential_intervals() {
    let arrivals = Arrivals::Poisson { rate: 1000.0 };
    let all = |seed| {
        let amount = Amount::Requests(100_000);
        let mut dispatcher = Dispatcher::new(START, &alone(1), arrivals, amount, &[1], seed);
        let end = START + Duration::from_secs(1_000_000);
        let mut times = vec![START];
        while let Some(due) = dispatcher.take(end, 0) {
            times.push(due.at);
        }
        times
    };
    let times = all(7);
    let intervals: Vec<f64> = times
        .windows(2)
        .map(|pair| pair[1].nanos_since(pair[0]) as f64)
        .collect();
    let summary = crate::histogram::Summary::of(&intervals).expect("intervals");
    assert!((summary.mean / 1e6 - 1.0).abs() < 0.02, "{summary:?}");
    assert!((summary.sd / 1e6 - 1.0).abs() < 0.02, "{summary:?}");
    assert_eq!(times, all(7));
    assert_ne!(times, all(8));
}

/// A server that stalls does not make arrivals disappear: what was due and could not be sent is counted.
#[test]
fn the_backlog_of_an_open_loop_is_counted() {
    let arrivals = Arrivals::Constant { rate: 10.0 };
    let mut dispatcher = dispatcher(&alone(1), arrivals, seconds(1, 2));
    let end = START + Duration::from_secs(3);
    for _ in 0..15 {
        assert!(dispatcher.take(end, 0).is_some());
    }
    assert_eq!(dispatcher.take_backlog(end), 15);
    assert_eq!(dispatcher.take_backlog(end), 0);
}

/// An open loop starts when its connections are established: the whole schedule moves.
#[test]
fn a_schedule_that_starts_later_keeps_its_intervals() {
    let delay = Duration::from_secs(5);
    let arrivals = Arrivals::Constant { rate: 10.0 };
    let mut dispatcher = dispatcher(&alone(1), arrivals, seconds(1, 2));
    dispatcher.start_at(START, START + delay);
    assert_eq!(dispatcher.next_arrival(), Some(START + delay));
    assert_eq!(dispatcher.take(START, 0), None);
    let end = START + delay + Duration::from_secs(3);
    assert_eq!(dispatcher.end(), Some(end));
    let measured_from = START + delay + Duration::from_secs(1);
    assert_eq!(dispatcher.measured_from(), measured_from);
    let due: Vec<Due> = core::iter::from_fn(|| dispatcher.take(end, 0)).collect();
    assert_eq!(due.len(), 30);
    for (due, number) in due.iter().zip(0..) {
        assert_eq!(due.at, START + delay + Duration::from_millis(100) * number);
        assert_eq!(due.is_measured, number >= 10, "{number}");
    }
}

/// Connections with the same draws would open new connections at the same time.
#[test]
fn each_connection_of_each_thread_draws_its_own_mix() {
    let mix = Mix {
        new: 1,
        resumed: 1,
        zero_rtt: 1,
        reused: 1,
    };
    let mut all = Vec::new();
    for thread in 0..2 {
        let share = Share {
            thread,
            threads: 2,
            connections: 6,
        };
        let amount = Amount::Requests(600);
        let mut dispatcher = dispatcher(&share, Arrivals::Closed, amount).with_mix(Some(mix));
        for connection in 0..share.own_connections() {
            let take = || Some(dispatcher.take(START, connection)?.handshake);
            all.push(core::iter::from_fn(take).collect::<Vec<_>>());
        }
    }
    assert!(all.iter().all(|draws| draws.len() == 100));
    for (index, draws) in all.iter().enumerate() {
        assert!(!all[..index].contains(draws), "{index}");
    }
}

#[test]
fn weights_spread_requests_evenly() {
    assert_eq!(*cycle(&[1, 1, 1]), [0, 1, 2]);
    assert_eq!(*cycle(&[20, 10]), [0, 1, 0]);
    assert_eq!(*cycle(&[5, 1, 1]), [0, 0, 1, 0, 2, 0, 0]);
}
