use super::*;

/// Uniform between -1 and 1, from a counter.
fn noise(counter: &mut u64) -> f64 {
    *counter += 1;
    let mixed = lastbyte_units::SplitMix64::new(*counter).at(0);
    (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A race in which candidates have these mean times, losses and neighbours' rates.
fn race(seed: u64, candidates: &[(f64, f64, f64)], limits: Limits, rounds: usize) -> Race {
    let mut counter = seed << 32;
    let mut race = Race::new(candidates.len(), rounds, limits);
    for _ in 0..rounds {
        for _ in 0..50 {
            // What a path does to all of them.
            let common = noise(&mut counter);
            for candidate in race.alive() {
                let (time, loss, neighbour) = candidates[candidate];
                let result = PathResult {
                    time: time + common + 0.2 * noise(&mut counter),
                    loss: loss + 0.5 * noise(&mut counter),
                    neighbour: neighbour + 0.1 * noise(&mut counter),
                };
                race.add(candidate, result);
            }
        }
        race.drop_losers();
    }
    race
}

#[test]
fn slow_candidates_are_dropped_and_what_trades_is_kept() {
    let candidates = [
        (-0.2, 0.5, -0.05), // the fastest
        (-0.1, 0.0, 0.0),   // slower, and loses and harms less
        (0.3, 1.5, -0.3),   // worse in everything
    ];
    let race = race(1, &candidates, Limits::default(), 4);
    assert_eq!(race.reason(2), Some(Reason::SlowerThan(0)));
    assert_eq!(race.paths(2), 50);
    assert_eq!(race.front(), [0, 1]);
    let means = race.means(0).expect("means");
    assert!(
        means.time.interval.0 < (-0.2f64).exp_m1() && (-0.2f64).exp_m1() < means.time.interval.1
    );
}

#[test]
fn limits_drop_and_bound_the_front() {
    let limits = Limits {
        loss: Some(1.0),
        harm: Some(0.1),
    };
    let candidates = [(-0.3, 2.0, 0.0), (-0.3, 0.0, -0.3), (-0.1, 0.5, -0.05)];
    let race = race(2, &candidates, limits, 3);
    assert_eq!(
        [0, 1, 2].map(|candidate| race.reason(candidate)),
        [Some(Reason::Loss), Some(Reason::Harm), None]
    );
    assert_eq!(race.front(), [2]);
}

/// Of equal candidates, none is dropped in more than one race in twenty.
#[test]
fn equal_candidates_are_rarely_dropped() {
    let total = 200;
    let wrong = (0..total)
        .filter(|seed| {
            let race = race(100 + seed, &[(0.0, 0.0, 0.0); 6], Limits::default(), 6);
            race.alive().len() < 6
        })
        .count();
    assert!(wrong <= 10, "{wrong} of {total}");
}

/// A candidate that loses and harms exactly as much as the limits permit is rarely dropped for it.
#[test]
fn candidates_at_the_limits_are_rarely_dropped() {
    let limits = Limits {
        loss: Some(1.0),
        harm: Some(1.0 - (-0.1f64).exp()),
    };
    let total = 1000;
    let wrong = (0..total)
        .filter(|seed| {
            let race = race(10_000 + seed, &[(0.0, 1.0, -0.1); 6], limits, 6);
            race.alive().len() < 6
        })
        .count();
    assert!(wrong <= 50, "{wrong} of {total}");
}

#[test]
fn equal_results_leave_the_first() {
    let mut race = Race::new(2, 1, Limits::default());
    for _ in 0..3 {
        race.add(0, PathResult::default());
        race.add(1, PathResult::default());
    }
    race.drop_losers();
    assert_eq!((race.alive(), race.front()), (vec![0, 1], vec![0]));
}
