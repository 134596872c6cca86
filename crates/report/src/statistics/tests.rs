//! Known answers (those of `SciPy`), properties against ten naive lines, and what intervals promise.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::{
    Counts, Z_95,
    bootstrap::{self, BaselineComparison, Measure, Member, Pairs},
    random::Random,
    special,
    tests_of::{self, Estimate, MeanPair},
};

/// Computed by `tests/scipy/answers.py`.
const ANSWERS: &str = include_str!("../../tests/scipy/answers.json");

fn answers() -> Value {
    serde_json::from_str(ANSWERS).expect("the answers are JSON")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

fn times(value: &Value) -> Vec<Option<u64>> {
    list(value).map(Value::as_u64).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value)
        .map(|one| one.as_f64().expect("a number"))
        .collect()
}

fn whole(value: &Value) -> Vec<u64> {
    list(value)
        .map(|one| one.as_u64().expect("a whole number"))
        .collect()
}

fn near(ours: f64, theirs: f64, what: &str) {
    let off = (ours - theirs).abs();
    assert!(
        off <= 1e-9 * theirs.abs().max(1e-12),
        "{what}: {ours} is not {theirs}"
    );
}

fn near_interval(ours: Option<Estimate>, theirs: &Value, what: &str) {
    let (ours, theirs) = (ours.expect(what), numbers(theirs));
    near(ours.value, theirs[0], what);
    near(ours.interval.0, theirs[1], what);
    near(ours.interval.1, theirs[2], what);
}

/// An end that is `null` is infinite.
fn near_change(ours: Option<MeanPair>, theirs: &Value, what: &str) {
    let Estimate { value, interval } = ours.expect(what).change(Z_95);
    for (ours, theirs) in [value, interval.0, interval.1]
        .into_iter()
        .zip(list(theirs))
    {
        match theirs.as_f64() {
            // A sum of many values, of which little is left.
            Some(theirs) => assert!(
                (ours - theirs).abs() < 1e-8 * (1.0 + theirs.abs()),
                "{what}: {ours} {theirs}"
            ),
            None => assert!(ours.is_infinite(), "{what}: {ours}"),
        }
    }
}

/// The changes of groups against the first, for one look.
fn changes<'a>(groups: &'a [&'a Counts], shares: &'a [f64]) -> BaselineComparison<'a> {
    BaselineComparison {
        groups,
        baseline: 0,
        shares,
        measure: Measure::Change,
        looks: 1,
    }
}

#[test]
fn simultaneous_intervals_widen_with_their_number() {
    // scipy.stats.norm.isf(0.025 / n) for n of 1, 9 and 100.
    for (intervals, wanted) in [(1, 1.959_963_984_5), (9, 2.772_921_4), (100, 3.480_756_4)] {
        let z = tests_of::simultaneous(intervals);
        assert!((z - wanted).abs() < 1e-6, "{intervals}: {z}");
    }
    assert!((tests_of::simultaneous(1) - Z_95).abs() < 1e-12);
}

#[test]
fn quantiles_of_students_distribution_agree_with_scipy() {
    // scipy.stats.t.isf(tail, degrees).
    for (tail, degrees, wanted) in [
        (0.025, 10.0, 2.228_138_9),
        (0.025 / 3.0, 10.0, 2.870_0),
        (0.025 / 3.0, 26.0, 2.559_0),
        (0.025 / 3.0, 269.0, 2.408_9),
        (0.001, 100.0, 3.173_7),
    ] {
        let quantile = special::student_quantile(tail, degrees);
        assert!(
            (quantile / wanted - 1.0).abs() < 1e-3,
            "{tail} {degrees}: {quantile}"
        );
    }
}

/// Four arms that are the same, over few paths. Quantiles of resamples leave out zero in 10 % of such experiments.
#[test]
fn the_mean_of_changes_is_false_in_at_most_5_percent_of_experiments_of_few_pairs() {
    let shares: Vec<f64> = (1..=19).map(|step| f64::from(step) / 20.0).collect();
    let experiments = 1000;
    let mut wrong = 0;
    for experiment in 0..experiments {
        let mut random = Random::new(experiment, 80);
        let mut pairs = Pairs::new(4);
        let mut arms: [Vec<Option<u64>>; 4] = Default::default();
        for _ in 0..24 {
            let path = random.normal();
            let values: [u64; 4] = core::array::from_fn(|_| {
                (6e6 * (0.7 * path + 0.2 * random.normal()).exp()).round() as u64
            });
            pairs.push(&values.map(Member::Value));
            for (arm, value) in arms.iter_mut().zip(values) {
                arm.push(Some(value));
            }
        }
        let counts = arms.map(Counts::of);
        let groups: Vec<&Counts> = counts.iter().collect();
        let comparison = changes(&groups, &shares);
        let overall = comparison.overall(&comparison.paired(&pairs, 400, experiment));
        let is_wrong = |one: &bootstrap::Overall| one.estimate.excludes_zero();
        wrong += u32::from(overall.iter().flatten().any(is_wrong));
    }
    // At 5 %, 50 are expected, and more than 64 in 2.5 % of all choices of seeds.
    assert!(wrong <= 64, "{wrong} of {experiments}");
}

#[test]
fn distributions_and_tests_of_two_groups_agree_with_scipy() {
    let answers = answers();
    let mut cases = 0;
    for case in list(&answers["cases"]) {
        let (a, b) = (times(&case["a"]), times(&case["b"]));
        let (ours, theirs) = (Counts::of(a.clone()), Counts::of(b.clone()));
        for (share, percentile) in list(&case["shares"]).zip(list(&case["percentiles"])) {
            let share = share.as_f64().expect("a share");
            let expected = percentile.as_f64().map(|value| value as u64);
            assert_eq!(ours.percentile(share), expected, "percentile {share}");
        }
        near(
            ours.mean().expect("a mean"),
            case["mean"].as_f64().expect("a mean"),
            "mean",
        );
        near(
            ours.variance().expect("a variance"),
            case["variance"].as_f64().expect("one"),
            "variance",
        );
        let pairs: Vec<_> = a.iter().copied().zip(b.iter().copied()).collect();
        for (name, test) in [
            ("mann_whitney", tests_of::mann_whitney(&ours, &theirs)),
            ("wilcoxon", tests_of::wilcoxon(pairs.iter().copied())),
        ] {
            let test = test.expect(name);
            near(test.p, case[name]["p"].as_f64().expect("a p"), name);
            near(
                test.share_less,
                case[name]["share_less"].as_f64().expect("a share"),
                name,
            );
        }
        near_change(
            MeanPair::apart(&ours, &theirs),
            &case["mean_change"],
            "mean change",
        );
        near_interval(
            tests_of::mean_difference(&ours, &theirs, Z_95),
            &case["mean_difference"],
            "mean difference",
        );
        near_change(
            MeanPair::paired(pairs.iter().copied()),
            &case["mean_change_paired"],
            "mean change of pairs",
        );
        cases += 1;
    }
    assert_eq!(cases, 7);
}

#[test]
fn chi_squared_agrees_with_scipy() {
    let answers = answers();
    for case in list(&answers["chi_squared"]) {
        let counts = whole(&case["counts"]);
        let (statistic, p) =
            tests_of::chi_squared(&counts, &numbers(&case["shares"])).expect("a test");
        near(
            statistic,
            case["statistic"].as_f64().expect("one"),
            "statistic",
        );
        near(
            p,
            case["p"].as_f64().expect("one"),
            &format!("p of {counts:?}"),
        );
    }
    assert_eq!(tests_of::chi_squared(&[], &[]), None);
    assert_eq!(tests_of::chi_squared(&[0, 0], &[1.0, 1.0]), None);
    // A count where the share is zero.
    assert_eq!(
        tests_of::chi_squared(&[5, 5], &[1.0, 0.0]),
        Some((f64::INFINITY, 0.0))
    );
}

#[test]
fn intervals_of_shares_and_holm_agree_with_scipy() {
    let answers = answers();
    for case in list(&answers["wilson"]) {
        let of = |key: &str| case[key].as_u64().expect("a count");
        near_interval(
            tests_of::share(of("count"), of("total"), Z_95),
            &case["answer"],
            "Wilson",
        );
    }
    for case in list(&answers["newcombe"]) {
        let (first, second) = (whole(&case["first"]), whole(&case["second"]));
        let ours = tests_of::share_difference((first[0], first[1]), (second[0], second[1]), Z_95);
        near_interval(ours, &case["answer"], "Newcombe");
    }
    let holm = tests_of::holm(&numbers(&answers["holm"]["p"]));
    for (ours, theirs) in holm.iter().zip(numbers(&answers["holm"]["answer"])) {
        near(*ours, theirs, "Holm");
    }
}

#[test]
fn empty_and_single_groups_have_no_variance() {
    let (empty, one, lost) = (Counts::default(), Counts::of([Some(7)]), Counts::of([None]));
    assert_eq!(
        (empty.percentile(0.5), empty.mean(), empty.variance()),
        (None, None, None)
    );
    assert_eq!(
        (
            one.percentile(0.0),
            one.percentile(1.0),
            one.mean(),
            one.variance()
        ),
        (Some(7), Some(7), Some(7.0), None)
    );
    assert_eq!(
        (
            lost.percentile(0.5),
            lost.mean(),
            lost.total(),
            lost.finished()
        ),
        (None, None, 1, 0)
    );
    assert_eq!(tests_of::mann_whitney(&empty, &one), None);
    assert_eq!(
        tests_of::mann_whitney(&one, &one).map(|test| test.p),
        Some(1.0)
    );
    assert_eq!(
        tests_of::wilcoxon([(Some(3), Some(3)), (None, None)].into_iter())
            .map(|test| (test.p, test.share_less)),
        Some((1.0, 0.5))
    );
    assert_eq!(MeanPair::apart(&one, &one), None);
    assert_eq!(tests_of::share(0, 0, Z_95), None);
    assert!(tests_of::holm(&[]).is_empty());
}

#[test]
fn the_gamma_variates_have_their_mean_and_variance() {
    let mut random = Random::new(5, 0);
    for shape in [1u64, 2, 9, 4000] {
        let count = 40_000;
        let values: Vec<f64> = (0..count).map(|_| random.gamma(shape)).collect();
        let mean = values.iter().sum::<f64>() / f64::from(count);
        let variance = values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>()
            / f64::from(count - 1);
        let shape = shape as f64;
        // Four standard errors of each.
        assert!(
            (mean - shape).abs() < 4.0 * (shape / f64::from(count)).sqrt(),
            "{mean}"
        );
        let error = shape * ((2.0 + 6.0 / shape) / f64::from(count)).sqrt();
        assert!(
            (variance - shape).abs() < 4.0 * error,
            "{variance} of {shape}"
        );
    }
}

/// A resample, connection by connection.
fn naive(random: &mut Random, values: &[u64], shares: &[f64]) -> Vec<Option<u64>> {
    let drawn = (0..values.len()).map(|_| Some(values[random.below(values.len() as u64) as usize]));
    let drawn = Counts::of(drawn);
    shares
        .iter()
        .map(|share| drawn.percentile(*share))
        .collect()
}

#[test]
fn resampled_ranks_have_the_distribution_of_drawn_connections() {
    let values: Vec<u64> = (0..60).map(|place| place * place).collect();
    let counts = Counts::of(values.iter().copied().map(Some));
    let shares = [0.05, 0.25, 0.5, 0.9];
    let replicates = 20_000;
    let fast = bootstrap::apart(&[&counts], &shares, replicates, 3);
    let mut random = Random::new(9, 9);
    let slow: Vec<Vec<Option<u64>>> = (0..replicates)
        .map(|_| naive(&mut random, &values, &shares))
        .collect();
    for place in 0..shares.len() {
        let of = |all: Vec<Option<u64>>| Counts::of(all);
        let slow = of(slow.iter().map(|one| one[place]).collect());
        let made = of(fast.iter().map(|one| one[0][place]).collect());
        // The largest distance of two distributions of 20 000: above 0.0195 once in a thousand (Kolmogorov, Smirnov).
        let distance = values.iter().map(|value| {
            let below = |counts: &Counts| 1.0 - counts.share_from(*value).unwrap_or(0.0);
            (below(&slow) - below(&made)).abs()
        });
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 0.0195, "{distance} at {}", shares[place]);
    }
}

fn log_normal(random: &mut Random, median: f64, sigma: f64) -> u64 {
    (median * (sigma * random.normal()).exp()).round().max(1.0) as u64
}

/// The shares of experiments with an interval, pointwise and joint, that does not contain the true change of −10 % at all
/// percentiles.
fn misses(experiments: u64, connections: usize, truth: f64) -> (f64, f64) {
    let shares: Vec<f64> = (1..=99).map(|p| f64::from(p) / 100.0).collect();
    let (mut alone, mut joint, mut cells) = (0u64, 0u64, 0u64);
    for experiment in 0..experiments {
        let mut random = Random::new(experiment, 77);
        let mut group = |median: f64| {
            Counts::of((0..connections).map(|_| Some(log_normal(&mut random, median, 0.8))))
        };
        let (base, arm) = (group(4000.0), group(4000.0 * (1.0 + truth)));
        let groups = [&base, &arm];
        let comparison = changes(&groups, &shares);
        let intervals = comparison.intervals(&comparison.apart(500, experiment));
        let mut holds = true;
        for cell in &intervals[1] {
            if let (Some((low, high)), true) = (cell.alone, cell.together.is_some()) {
                cells += 1;
                alone += u64::from(truth < low || truth > high);
            }
            if let Some((low, high)) = cell.together {
                holds &= low <= truth && truth <= high;
            }
        }
        joint += u64::from(!holds);
    }
    (
        alone as f64 / cells as f64,
        joint as f64 / experiments as f64,
    )
}

#[test]
fn intervals_have_their_nominal_coverage() {
    let (alone, joint) = misses(300, 700, -0.1);
    assert!((0.03..0.07).contains(&alone), "at one percentile: {alone}");
    // Three standard errors around 5 % of 300.
    assert!((0.012..0.088).contains(&joint), "at all of them: {joint}");
}

#[test]
fn pairing_removes_the_variance_of_common_paths() {
    let shares = [0.25, 0.5, 0.75];
    let mut random = Random::new(4, 4);
    let mut pairs = Pairs::new(2);
    let (mut base, mut arm) = (Vec::new(), Vec::new());
    for _ in 0..800 {
        let path = random.normal();
        let mut one = |factor: f64| {
            (3000.0 * (0.9 * path + 0.05 * random.normal()).exp() * factor).round() as u64
        };
        let (first, second) = (one(1.0), one(0.95));
        pairs.push(&[Member::Value(first), Member::Value(second)]);
        base.push(Some(first));
        arm.push(Some(second));
    }
    let (base, arm) = (Counts::of(base), Counts::of(arm));
    let groups = [&base, &arm];
    let comparison = changes(&groups, &shares);
    let width = |resampled| {
        let cell = comparison.intervals(&resampled)[1][1];
        let (low, high) = cell.alone.expect("an interval");
        assert!(low < -0.05 && high > -0.05, "{low} {high}");
        high - low
    };
    let paired = width(comparison.paired(&pairs, 1000, 1));
    let apart = width(comparison.apart(1000, 1));
    assert!(paired * 3.0 < apart, "{paired} {apart}");
}

/// Packet loss in hundredths of a percent: both arms have the loss of the path, which does not widen the interval.
#[test]
fn differences_of_pairs_exclude_the_variance_of_common_paths() {
    let mut random = Random::new(5, 5);
    let pairs: Vec<(Option<u64>, Option<u64>)> = (0..2000)
        .map(|_| {
            let path = 300.0 * random.normal().exp();
            let other = path + 10.0 + 5.0 * random.normal();
            (
                Some(other.max(0.0).round() as u64),
                Some(path.round() as u64),
            )
        })
        .chain([(None, Some(1)), (Some(1), None)])
        .collect();
    let paired = tests_of::mean_difference_paired(pairs.iter().copied(), Z_95).expect("pairs");
    // As a textbook has it, in two passes.
    let differences: Vec<f64> = pairs
        .iter()
        .filter_map(|(one, other)| Some((*one)? as f64 - (*other)? as f64))
        .collect();
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let squares: f64 = differences.iter().map(|one| (one - mean).powi(2)).sum();
    let half = 1.959_963_984_540_054 * (squares / (n - 1.0) / n).sqrt();
    near(paired.value, mean, "the difference");
    near(paired.interval.0, mean - half, "its lower end");
    near(paired.interval.1, mean + half, "its upper end");
    assert!((9.0..11.0).contains(&paired.value), "{paired:?}");
    let [one, other] = [0, 1].map(|side| {
        Counts::of(
            pairs
                .iter()
                .map(|pair| if side == 0 { pair.0 } else { pair.1 }),
        )
    });
    let apart = tests_of::mean_difference(&one, &other, Z_95).expect("an interval");
    let width = |one: Estimate| one.interval.1 - one.interval.0;
    assert!(width(paired) * 20.0 < width(apart), "{paired:?} {apart:?}");
    assert_eq!(
        tests_of::mean_difference_paired([(Some(1), Some(2))].into_iter(), Z_95),
        None
    );
}

#[test]
fn intervals_of_pairs_have_their_nominal_coverage() {
    let shares: Vec<f64> = (1..=19).map(|step| f64::from(step) / 20.0).collect();
    let (experiments, truth) = (200, -0.05);
    let (mut alone, mut joint, mut cells) = (0u64, 0u64, 0u64);
    for experiment in 0..experiments {
        let mut random = Random::new(experiment, 78);
        let mut pairs = Pairs::new(2);
        let (mut base, mut arm) = (Vec::new(), Vec::new());
        for _ in 0..400 {
            let path = random.normal();
            let mut one = |factor: f64| {
                (6000.0 * (0.7 * path + 0.2 * random.normal()).exp() * factor).round() as u64
            };
            let (first, second) = (one(1.0), one(1.0 + truth));
            pairs.push(&[Member::Value(first), Member::Value(second)]);
            base.push(Some(first));
            arm.push(Some(second));
        }
        let groups = [&Counts::of(base), &Counts::of(arm)];
        let comparison = changes(&groups, &shares);
        let intervals = comparison.intervals(&comparison.paired(&pairs, 300, experiment));
        let outside = |(low, high): (f64, f64)| truth < low || truth > high;
        for cell in &intervals[1] {
            cells += 1;
            alone += u64::from(outside(cell.alone.expect("an interval")));
        }
        let is_missed = |cell: &bootstrap::Interval| cell.together.is_some_and(outside);
        joint += u64::from(intervals[1].iter().any(is_missed));
    }
    let (alone, joint) = (
        alone as f64 / cells as f64,
        joint as f64 / experiments as f64,
    );
    assert!((0.04..0.06).contains(&alone), "at one percentile: {alone}");
    assert!((0.03..=0.07).contains(&joint), "at all of them: {joint}");
}

#[test]
fn resamples_that_lose_a_percentile_take_an_end_of_its_interval() {
    let base = Counts::of((1..=1000).map(Some));
    let arm = Counts::of((1..=1000).map(|value| (value <= 900).then_some(value)));
    let shares = [0.5, 0.89, 0.95];
    let groups = [&base, &arm];
    let comparison = changes(&groups, &shares);
    let cells = &comparison.intervals(&comparison.apart(1000, 1))[1];
    assert_eq!(cells[0].estimate, Some(0.0));
    let is_bounded = |(low, high): (f64, f64)| low < 0.0 && high > 0.0 && high.is_finite();
    assert!(cells[0].alone.is_some_and(is_bounded) && cells[0].together.is_some_and(is_bounded));
    // Some resamples have fewer than 89 % that ended: the lower end is as far as that of a percentile that none loses.
    let has_low = |(low, high): (f64, f64)| (-0.06..-0.01).contains(&low) && high == f64::INFINITY;
    assert_eq!(cells[1].estimate, Some(0.0));
    assert!(cells[1].alone.is_some_and(has_low), "{:?}", cells[1]);
    assert!(cells[1].together.is_some_and(has_low), "{:?}", cells[1]);
    assert_eq!(
        (cells[2].estimate, cells[2].alone, cells[2].together),
        (None, None, None)
    );
    // Where it is the baseline that loses it, the change has no lower end.
    let mirrored = BaselineComparison {
        baseline: 1,
        ..comparison
    };
    let cells = &mirrored.intervals(&mirrored.apart(1000, 1))[0];
    let has_high =
        |(low, high): (f64, f64)| (low + 1.0).abs() < 1e-12 && (0.01..0.06).contains(&high);
    assert!(cells[1].alone.is_some_and(has_high), "{:?}", cells[1]);
    assert!(cells[1].together.is_some_and(has_high), "{:?}", cells[1]);
}

/// A resample of pairs, pair by pair: the mean of the logarithms of the values in a window around a rank.
#[test]
fn smoothed_percentiles_of_pairs_are_means_of_the_values_around_the_rank() {
    let (mut chance, total) = (Random::new(8, 8), 80usize);
    let mut pairs = Pairs::new(2);
    let mut members: Vec<[f64; 2]> = Vec::new();
    for _ in 0..total {
        let pair = [0, 1].map(|_| log_normal(&mut chance, 20.0, 1.5));
        let is_lost = chance.below(12) == 0;
        pairs.push(&[
            Member::Value(pair[0]),
            if is_lost {
                Member::Unfinished
            } else {
                Member::Value(pair[1])
            },
        ]);
        members.push([
            (pair[0] as f64).ln(),
            if is_lost {
                f64::INFINITY
            } else {
                (pair[1] as f64).ln()
            },
        ]);
    }
    let naive = |drawn: &[usize], arm: usize, share: f64| {
        let mut values: Vec<f64> = drawn.iter().map(|pair| members[*pair][arm]).collect();
        values.sort_by(f64::total_cmp);
        let (n, finite) = (
            values.len() as f64,
            values.iter().filter(|one| one.is_finite()).count() as f64,
        );
        let half = (2.5 * (n * share * (1.0 - share)).sqrt())
            .min(finite - share * n)
            .min(share * n);
        let (from, to) = match share * n {
            middle if half < 0.5 => (middle.ceil() - 1.0, middle.ceil()),
            middle => (middle - half, middle + half),
        };
        let weighted = values.iter().enumerate().map(|(place, value)| {
            let weight = (to.min(place as f64 + 1.0) - from.max(place as f64)).max(0.0);
            if weight > 0.0 { weight * value } else { 0.0 }
        });
        weighted.sum::<f64>() / (to - from)
    };
    let shares = [0.01, 0.05, 0.3, 0.5, 0.8, 0.88, 0.95];
    let none = Counts::default();
    let groups = [&none, &none];
    let comparison = changes(&groups, &shares);
    let resampled = comparison.paired(&pairs, 200, 3);
    let mut same = Random::new(3, 2);
    let mut lost = 0;
    let all = core::iter::once(&resampled.observed).chain(&resampled.draws);
    for (replicate, arms) in all.enumerate() {
        let drawn: Vec<usize> = (0..total)
            .map(|place| match replicate {
                0 => place,
                _ => same.below(total as u64) as usize,
            })
            .collect();
        for (arm, values) in arms.iter().enumerate() {
            for (share, ours) in shares.iter().zip(values) {
                let theirs = naive(&drawn, arm, *share);
                assert!(
                    (ours.is_infinite() && theirs.is_infinite()) || (ours - theirs).abs() < 1e-9,
                    "{share} of {replicate}: {ours} is not {theirs}"
                );
                lost += usize::from(ours.is_infinite());
            }
        }
    }
    assert!(lost > 40, "{lost}");
}

/// An arm that is faster and slower by the same factor at two halves of the percentiles does not differ on average.
#[test]
fn the_mean_of_changes_averages_their_logarithms() {
    let shares: Vec<f64> = (1..=99)
        .map(|percentile| f64::from(percentile) / 100.0)
        .collect();
    let base = Counts::of((0..1000).map(|place| Some(1000 + place)));
    let arm = Counts::of((0..1000).map(|place| {
        let value = 1000 + place;
        Some(if place < 500 { value / 2 } else { value * 2 })
    }));
    let groups = [&base, &arm];
    let comparison = changes(&groups, &shares);
    let overall = comparison.overall(&comparison.apart(200, 1));
    assert_eq!(overall[0], None);
    let overall = overall[1].expect("a mean");
    // 46 percentiles of 91 are halved, the median too; the mean of the changes themselves is +24 %.
    let wanted = 0.5f64.powf(1.0 / 91.0) - 1.0;
    assert!(
        (overall.estimate.value - wanted).abs() < 1e-3,
        "{overall:?}"
    );
    assert!((overall.to - 0.95).abs() < 1e-9);
    assert!(!overall.estimate.excludes_zero(), "{overall:?}");
}

#[test]
fn the_mean_of_changes_covers_percentiles_that_resamples_do_not_lose() {
    let shares: Vec<f64> = (1..=99)
        .map(|percentile| f64::from(percentile) / 100.0)
        .collect();
    let of = |complete: u64| {
        let base = Counts::of((0..1000).map(|place| Some(1000 + place)));
        let arm = Counts::of((0..1000).map(|place| (place < complete).then_some(2000 + 2 * place)));
        let groups = [&base, &arm];
        let comparison = changes(&groups, &shares);
        comparison.overall(&comparison.apart(500, 1))[1]
    };
    for (complete, to) in [(1000, 0.95), (980, 0.95), (955, 0.9), (940, 0.9)] {
        let overall = of(complete).expect("a mean");
        assert!((overall.to - to).abs() < 1e-9, "{complete}: {overall:?}");
        assert!(
            (overall.estimate.value - 1.0).abs() < 1e-9,
            "{complete}: {overall:?}"
        );
        let (low, high) = overall.estimate.interval;
        assert!(
            0.9 < low && low < 1.0 && 1.0 < high && high < 1.1,
            "{complete}: {overall:?}"
        );
    }
    // P90 has a value, and many resamples lose it.
    let overall = of(905).expect("a mean");
    assert!((overall.to - 0.9).abs() < 1e-9, "{overall:?}");
    let (low, high) = overall.estimate.interval;
    assert!(
        0.9 < low && low < 1.0 && high == f64::INFINITY,
        "{overall:?}"
    );
    assert!(overall.estimate.excludes_zero());
    assert_eq!(of(890), None);
}

/// The page's example: 299 paths that differ by noise, and one that takes twice as long in one arm.
#[test]
fn one_pair_cannot_make_a_mean_differ() {
    let mut random = Random::new(3, 3);
    let mut pairs: Vec<(Option<u64>, Option<u64>)> = (0..299)
        .map(|_| {
            let base = log_normal(&mut random, 300_000.0, 0.8);
            (
                Some((base as f64 * (1.0 + 0.02 * random.normal())) as u64),
                Some(base),
            )
        })
        .collect();
    pairs.push((Some(600_000_000), Some(300_000_000)));
    let [one, other] = [0, 1].map(|side| {
        Counts::of(
            pairs
                .iter()
                .map(|pair| if side == 0 { pair.0 } else { pair.1 }),
        )
    });
    for means in [
        MeanPair::paired(pairs.iter().copied()),
        MeanPair::apart(&one, &other),
    ] {
        let change = means.expect("means").change(Z_95);
        assert!(change.value > 0.5, "{change:?}");
        assert!(!change.excludes_zero(), "{change:?}");
    }
    // A baseline that is one value can be anything: there is no upper end.
    let change = MeanPair::paired(pairs.iter().copied())
        .expect("means")
        .change(Z_95);
    assert!(change.interval.1.is_infinite(), "{change:?}");
    // Without it, the noise is what is left.
    let change = MeanPair::paired(pairs[..299].iter().copied())
        .expect("means")
        .change(Z_95);
    let (low, high) = change.interval;
    assert!(-0.01 < low && low < high && high < 0.01, "{change:?}");
}

/// Pages of pools in which a few paths are most of the mean; the connections of a path are in the arms in random order.
#[test]
fn means_of_heavy_tails_differ_in_at_most_5_percent_of_shuffles() {
    let mut all_wrong = [0, 0];
    for pool in 0..6 {
        let mut random = Random::new(pool, 79);
        let paths: Vec<[u64; 2]> = (0..600)
            .map(|_| {
                // Pareto's distribution without a variance, as of starved paths.
                let time = 100_000.0 * random.unit().powf(-1.0 / 1.2);
                [0, 1].map(|_| (time * (0.3 * random.normal()).exp()) as u64)
            })
            .collect();
        let pages = 400;
        let mut wrong = [0, 0];
        for _ in 0..pages {
            let mut page: Vec<(Option<u64>, Option<u64>)> = Vec::new();
            while page.len() < 300 {
                let [one, other] = paths[random.below(600) as usize].map(Some);
                page.push(if random.below(2) == 0 {
                    (one, other)
                } else {
                    (other, one)
                });
            }
            let [ours, theirs] = [0, 1].map(|side| {
                Counts::of(
                    page.iter()
                        .map(|pair| if side == 0 { pair.0 } else { pair.1 }),
                )
            });
            let all = [
                MeanPair::paired(page.iter().copied()),
                MeanPair::apart(&ours, &theirs),
            ];
            for (wrong, means) in wrong.iter_mut().zip(all) {
                *wrong += u64::from(means.expect("means").change(Z_95).excludes_zero());
            }
        }
        // At 5 %, 20 are expected in a pool, and more than 29 in 2.5 % of all choices of seeds.
        assert!(
            wrong.iter().all(|wrong| *wrong <= 29),
            "pool {pool}: {wrong:?} of {pages}"
        );
        all_wrong[0] += wrong[0];
        all_wrong[1] += wrong[1];
    }
    assert!(
        all_wrong.iter().all(|wrong| *wrong <= 6 * 20),
        "{all_wrong:?} of 2400"
    );
}

#[test]
fn the_share_of_the_largest_values_counts_ties_and_finished_members() {
    let of = |values: &[Option<u64>]| Counts::of(values.iter().copied());
    assert_eq!(of(&[]).share_of_largest(5), None);
    assert_eq!(of(&[Some(0), None]).share_of_largest(5), None);
    assert_eq!(of(&[Some(3), None]).share_of_largest(5), Some(1.0));
    let ties = of(&[Some(1), Some(1), Some(2), Some(2), Some(2), Some(2), None]);
    assert_eq!(ties.share_of_largest(3), Some(0.6));
    assert_eq!(ties.share_of_largest(5), Some(0.9));
}

#[test]
fn the_same_seed_gives_the_same_resamples() {
    let counts = Counts::of((1..100).map(Some));
    let of = |seed| bootstrap::apart(&[&counts], &[0.5], 50, seed);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

proptest! {
    #[test]
    fn percentiles_match_a_sorted_list(
        values in prop::collection::vec(0u64..50, 1..200),
        lost in 0usize..5,
        share in 0.0f64..=1.0,
    ) {
        let counts = Counts::of(values.iter().copied().map(Some).chain(core::iter::repeat_n(None, lost)));
        let mut sorted: Vec<Option<u64>> = values.iter().copied().map(Some).collect();
        sorted.sort_unstable();
        sorted.extend(core::iter::repeat_n(None, lost));
        let rank = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
        prop_assert_eq!(counts.percentile(share), sorted[rank - 1]);
        prop_assert_eq!(counts.total() as usize, sorted.len());
    }

    #[test]
    fn joined_parts_equal_the_whole(values in prop::collection::vec(0u64..50, 0..100), cut in 0usize..100) {
        let (left, right) = values.split_at(cut.min(values.len()));
        let of = |values: &[u64]| Counts::of(values.iter().copied().map(Some));
        prop_assert_eq!(Counts::joined([&of(left), &of(right)]), of(&values));
        let by_value = values.iter().fold(BTreeMap::new(), |mut counts, value| {
            *counts.entry(*value).or_insert(0u64) += 1;
            counts
        });
        prop_assert_eq!(of(&values).iter().collect::<BTreeMap<_, _>>(), by_value);
    }

    #[test]
    fn tests_of_two_groups_do_not_depend_on_which_is_first(
        a in prop::collection::vec(prop::option::weighted(0.95, 1u64..60), 1..60),
        b in prop::collection::vec(prop::option::weighted(0.95, 1u64..60), 1..60),
    ) {
        let (one, other) = (Counts::of(a), Counts::of(b));
        let (there, back) = (tests_of::mann_whitney(&one, &other), tests_of::mann_whitney(&other, &one));
        let (there, back) = (there.expect("a test"), back.expect("a test"));
        prop_assert!((there.p - back.p).abs() < 1e-9);
        prop_assert!((there.share_less + back.share_less - 1.0).abs() < 1e-9);
        prop_assert!((0.0..=1.0).contains(&there.p));
    }
}

/// Four arms that are the same, over few paths. Fewer than 30 pairs have no interval: with those of normal quantiles, around smoothed
/// percentiles, 12 % of experiments of 10 pairs had a difference, 26 % of the intervals ended at the observed value, and 8 % of
/// experiments of 40 pairs had a difference.
#[test]
fn percentiles_of_few_pairs_are_false_in_at_most_5_percent_of_experiments() {
    let shares: Vec<f64> = (1..=19).map(|step| f64::from(step) / 20.0).collect();
    for (count, has_intervals) in [(10, false), (29, false), (30, true), (40, true)] {
        let experiments = 400;
        let mut wrong = 0;
        for experiment in 0..experiments {
            let mut random = Random::new(experiment, 90);
            let mut pairs = Pairs::new(4);
            let mut arms: [Vec<Option<u64>>; 4] = Default::default();
            for _ in 0..count {
                let path = random.normal();
                let values: [u64; 4] = core::array::from_fn(|_| {
                    (6e6 * (0.9 * path + 0.2 * random.normal()).exp()).round() as u64
                });
                pairs.push(&values.map(Member::Value));
                for (arm, value) in arms.iter_mut().zip(values) {
                    arm.push(Some(value));
                }
            }
            let counts = arms.map(Counts::of);
            let groups: Vec<&Counts> = counts.iter().collect();
            let comparison = changes(&groups, &shares);
            let intervals = comparison.intervals(&comparison.paired(&pairs, 300, experiment));
            let cells = || intervals[1..].iter().flatten();
            let ranges = |cell: &bootstrap::Interval| [cell.alone, cell.together];
            assert_eq!(
                cells().flat_map(ranges).any(|one| one.is_some()),
                has_intervals
            );
            for cell in cells() {
                let value = cell.estimate.expect("a change");
                for (low, high) in ranges(cell).into_iter().flatten() {
                    let room = 0.05 * (high - low);
                    assert!(low + room < value && value + room < high, "{cell:?}");
                }
            }
            let is_wrong = |(low, high): (f64, f64)| low > 0.0 || high < 0.0;
            wrong += u32::from(cells().any(|cell| cell.together.is_some_and(is_wrong)));
        }
        // At 5 %, 20 are expected, and more than 28 in 2.5 % of all choices of seeds.
        assert!(wrong <= 28, "{wrong} of {experiments} with {count} pairs");
    }
}
