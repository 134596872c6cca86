use super::*;
use crate::statistics::random::Random;

/// A connection's value, by the number of its stratum.
type Draw = fn(&mut Random, usize) -> f64;

/// Two sites of different means; log-normal times have normal logarithms.
fn normal(random: &mut Random, stratum: usize) -> f64 {
    random.normal() + 3.0 * (stratum % 2) as f64
}

/// Shares of lost packets: most have none.
fn losses(random: &mut Random, _: usize) -> f64 {
    if random.unit() < 0.8 {
        0.0
    } else {
        0.02 * random.gamma(1)
    }
}

fn completions(random: &mut Random, _: usize) -> f64 {
    f64::from(u8::from(random.unit() < 0.98))
}

/// The bounds of `looks` looks at growing strata: two sites in each epoch of `shares`, which last equally long. The arm's
/// values have `effect` added.
fn looks(
    random: &mut Random,
    (shares, total, looks): (&[f64], usize, usize),
    draw: Draw,
    effect: f64,
    mut look: impl FnMut(&Difference, u64) -> bool,
) {
    let mut strata = vec![Stratum::default(); 2 * shares.len()];
    let step = total / looks;
    for number in 0..looks * step {
        let epoch = number * shares.len() / (looks * step);
        let stratum = 2 * epoch + usize::from(random.unit() < 0.3);
        // The mean changes with the epoch, as it does over a day.
        let value = draw(random, stratum) + 0.01 * epoch as f64;
        if random.unit() < shares[epoch] {
            strata[stratum].arm.add(value + effect);
        } else {
            strata[stratum].control.add(value);
        }
        let arm: u64 = strata.iter().map(|one| one.arm.count).sum();
        if (number + 1) % step == 0
            && let Some(difference) = difference(strata.iter().copied())
            && look(&difference, arm)
        {
            return;
        }
    }
}

/// The number of experiments without an effect in which a bound of 2.5 % is ever wrong.
fn false_bounds(
    seed: u64,
    experiments: u64,
    plan: (&[f64], usize, usize),
    draw: Draw,
    effect: f64,
) -> u64 {
    (0..experiments)
        .filter(|number| {
            let mut random = Random::new(seed, *number);
            let mut is_wrong = false;
            looks(&mut random, plan, draw, 0.0, |difference, arm| {
                is_wrong = arm >= 500
                    && (difference.below(0.025, effect) > 0.0
                        || difference.above(0.025, effect) < 0.0);
                is_wrong
            });
            is_wrong
        })
        .count() as u64
}

const RAMP: [f64; 4] = [0.01, 0.05, 0.25, 0.5];

#[test]
fn at_200_looks_few_experiments_without_a_difference_have_a_wrong_bound() {
    // 60 experiments with 5 % of errors have 7 or fewer with a probability of 98 %; one fixed interval at as many looks: 30.
    for (draw, effect) in [
        (normal as Draw, 0.05),
        (losses, 0.005),
        (completions, 0.005),
    ] {
        assert!(false_bounds(1, 60, (&[0.5], 20_000, 200), draw, effect) <= 7);
    }
    assert!(false_bounds(2, 60, (&RAMP, 100_000, 200), normal, 0.05) <= 7);
}

#[test]
fn rare_events_that_a_small_arm_did_not_have_are_no_difference() {
    // 150 connections of an arm, of which 3 were expected to fail: none did, as in 5 % of experiments.
    let mut stratum = Stratum::default();
    for number in 0..15_000_u32 {
        stratum.control.add(f64::from(u8::from(number % 50 == 0)));
    }
    for _ in 0..150 {
        stratum.arm.add(0.0);
    }
    let fewer = difference([stratum]).expect("both arms");
    assert!(fewer.above(0.025, 0.005) > 0.0, "{fewer:?}");
}

#[test]
fn a_share_that_changes_with_the_mean_does_not_bias_the_difference() {
    // Later epochs have larger values, and more of the arm: the difference of all connections is far from that of each epoch.
    let mut strata = Vec::new();
    let mut pooled = Stratum::default();
    let mut random = Random::new(3, 0);
    for (epoch, share) in RAMP.iter().enumerate() {
        let mut stratum = Stratum::default();
        for _ in 0..20_000 {
            let value = random.normal() + epoch as f64;
            let is_arm = random.unit() < *share;
            for one in [&mut stratum, &mut pooled] {
                if is_arm {
                    one.arm.add(value);
                } else {
                    one.control.add(value);
                }
            }
        }
        strata.push(stratum);
    }
    let stratified = difference(strata).expect("both arms");
    assert!(stratified.value.abs() < 0.03, "{stratified:?}");
    assert!(difference([pooled]).expect("both arms").value > 0.5);
}

#[test]
fn bounds_contain_the_difference_and_shrink() {
    let mut widths = Vec::new();
    looks(
        &mut Random::new(4, 0),
        (&[0.5], 40_000, 20),
        normal,
        -0.2,
        |difference, _| {
            let bounds = (difference.below(0.025, 0.05), difference.above(0.025, 0.05));
            assert!(bounds.0 < -0.2 && -0.2 < bounds.1, "{difference:?}");
            widths.push(bounds.1 - bounds.0);
            false
        },
    );
    assert!(widths.is_sorted_by(|a, b| a > b), "{widths:?}");
    // A stricter bound is wider.
    let of = |error| {
        let mut last = None;
        looks(
            &mut Random::new(4, 0),
            (&[0.5], 4000, 2),
            normal,
            0.0,
            |difference, _| {
                last = Some(*difference);
                false
            },
        );
        last.expect("a look").below(error, 0.05)
    };
    assert!(of(0.001) < of(0.01) && of(0.01) < of(0.1));
}

#[test]
fn an_effect_is_found_with_about_the_connections_of_a_fixed_design() {
    // Two-sided 5 %, power 80 %: 4 × 7.849 / effect² connections of variance one.
    let effect = 0.1;
    let fixed = 4.0 * 7.849 / (effect * effect);
    let mut needed = Vec::new();
    for number in 0..40 {
        let mut count = 0.0;
        looks(
            &mut Random::new(5, number),
            (&[0.5], 12_000, 120),
            normal,
            -effect,
            |difference, _| {
                count += 100.0;
                difference.above(0.02, 0.1) < 0.0
            },
        );
        needed.push(count / fixed);
    }
    let mean = needed.iter().sum::<f64>() / 40.0;
    assert!(
        (1.0..1.5).contains(&mean),
        "{mean} of the fixed design: {needed:?}"
    );
}

#[test]
fn what_cannot_be_known_is_absent() {
    assert_eq!(difference([]), None);
    let mut stratum = Stratum::default();
    stratum.control.add(1.0);
    assert_eq!(difference([stratum]), None);
    stratum.arm.add(2.0);
    // One value each: no variance.
    assert_eq!(difference([stratum]), None);
    stratum.control.add(1.0);
    stratum.arm.add(2.0);
    // The variance is that around the common mean, if an arm has none.
    let apart = difference([stratum]).expect("a difference");
    assert!((apart.value - 1.0).abs() < 1e-12, "{}", apart.value);
    assert!((-100.0..0.0).contains(&apart.below(0.05, 0.1)));
    // No variance was seen: no bound.
    let equal = Stratum {
        arm: stratum.control,
        ..stratum
    };
    let equal = difference([equal]).expect("a difference");
    assert_eq!(
        (equal.value, equal.below(0.05, 0.1)),
        (0.0, f64::NEG_INFINITY)
    );
    assert_eq!(sample_ratio(&[0, 0], &[0.5, 0.5]), None);
    assert_eq!(sample_ratio(&[1, 0], &[0.5]), None);
    assert_eq!(sample_ratio(&[1, 1], &[1.0, 0.0]), None);
}

#[test]
fn equal_values_have_no_bounds_in_whatever_order_they_are_added() {
    for part in [1, 3, 1000, 100_000] {
        let mut stratum = Stratum::default();
        for (sums, part) in [(&mut stratum.control, part), (&mut stratum.arm, 7)] {
            let mut sum = Sums::default();
            for number in 1..=100_000 {
                sum.add(0.1);
                if number % part == 0 {
                    sums.merge(&core::mem::take(&mut sum));
                }
            }
            sums.merge(&sum);
        }
        let equal = difference([stratum]).expect("a difference");
        assert!(equal.value.abs() < 1e-6, "{}", equal.value);
        assert!(equal.below(0.05, 0.1).is_infinite(), "in parts of {part}");
    }
    // All transfers of one arm are complete, and none of the other.
    let mut apart = Stratum::default();
    for _ in 0..1000 {
        apart.control.add(0.0);
        apart.arm.add(1.0);
    }
    let apart = difference([apart]).expect("a difference");
    let bounds = (apart.below(0.01, 0.005), apart.above(0.01, 0.005));
    assert!((0.5..1.0).contains(&bounds.0), "{bounds:?}");
    assert!((1.0..1.5).contains(&bounds.1), "{bounds:?}");
    // One value that differs is a variance.
    let mut stratum = Stratum::default();
    for _ in 0..100_000 {
        stratum.control.add(0.1);
        stratum.arm.add(0.1);
    }
    stratum.arm.add(0.2);
    let one = difference([stratum]).expect("a difference");
    assert!(one.below(0.05, 0.1).is_finite());
}

#[test]
fn a_sample_ratio_is_rejected_when_it_is_wrong_and_rarely_when_it_is_right() {
    let alarm = 1000.0_f64.ln();
    let first_alarm = |seed: u64, share: f64, true_share: f64| {
        let mut random = Random::new(6, seed);
        let mut counts = [0, 0];
        (0..200).find(|_| {
            for _ in 0..250 {
                counts[usize::from(random.unit() < true_share)] += 1;
            }
            sample_ratio(&counts, &[1.0 - share, share]).is_some_and(|factor| factor > alarm)
        })
    };
    for seed in 0..100 {
        assert_eq!(first_alarm(seed, 0.05, 0.05), None, "{seed}");
    }
    // A tenth of the arm's connections are missing.
    for seed in 0..20 {
        let look = first_alarm(seed, 0.5, 0.45 / 0.95).expect("an alarm");
        assert!(look < 100, "{seed}: {look}");
    }
}
