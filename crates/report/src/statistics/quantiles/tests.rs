use super::*;
use crate::statistics::random::Random;

fn histogram(values: impl IntoIterator<Item = f64>) -> Histogram {
    let mut histogram = Histogram::default();
    for value in values {
        histogram.add(value);
    }
    histogram
}

/// Times in whole milliseconds, as in logs, so that many are equal.
fn time(random: &mut Random) -> f64 {
    (20.0 * random.normal().exp()).round().max(0.5)
}

/// The numbers of experiments without a difference in which the bounds of the change, and those of the control, are ever wrong.
fn false_bounds(seed: u64, experiments: u64, looks: u64, share: f64, arm_share: f64) -> [u64; 2] {
    let of_times = histogram((0..200_000).scan(Random::new(99, 0), |random, _| Some(time(random))));
    let truth = of_times.quantile(share, 0.05).expect("values").value;
    let mut wrong = [0; 2];
    for number in 0..experiments {
        let mut random = Random::new(seed, number);
        let mut arms = [Histogram::default(), Histogram::default()];
        let mut is_wrong = [false; 2];
        let excludes = |of: Bounded, value: f64| {
            of.low.is_some_and(|low| low > value) || of.high.is_some_and(|high| high < value)
        };
        for _ in 0..looks {
            for _ in 0..100 {
                let arm = usize::from(random.unit() < arm_share);
                let value = time(&mut random);
                arms[arm].add(value);
            }
            let both = change(&arms[0], &arms[1], share, 0.05);
            is_wrong[0] |= both.is_some_and(|of| excludes(of, 0.0));
            let one = arms[0].quantile(share, 0.05);
            is_wrong[1] |= one.is_some_and(|of| excludes(of, truth));
        }
        for (count, is_wrong) in wrong.iter_mut().zip(is_wrong) {
            *count += u64::from(is_wrong);
        }
    }
    wrong
}

#[test]
fn at_200_looks_few_experiments_without_a_difference_have_a_wrong_bound() {
    // 40 experiments with 5 % of errors have 5 or fewer with a probability of 98.6 %.
    for (share, arm_share) in [(0.5, 0.5), (0.75, 0.25), (0.95, 0.5)] {
        let [change, one] = false_bounds(1, 40, 200, share, arm_share);
        assert!(
            change <= 5 && one <= 5,
            "P{}: {change}, {one}",
            share * 100.0
        );
    }
}

#[test]
fn a_bound_contains_the_quantile_and_is_as_narrow_as_the_paper_says() {
    // Of 50 000 values and an error of 2.5 %, the ranks are 3.6 standard deviations from n p.
    let (low, high) = ranks(50_000, 0.5, 0.025).expect("values");
    assert_eq!((low, high), (24_598, 25_403));
    assert_eq!(ranks(5000, 0.95, 0.025), Some((4697, 4800)));
    // Few values have no bound.
    let few = histogram([1.0, 2.0, 3.0])
        .quantile(0.95, 0.05)
        .expect("values");
    assert_eq!((few.low, few.high), (None, None));
}

#[test]
fn bounds_with_bins_are_at_most_a_bin_wider_than_those_of_the_values() {
    let mut random = Random::new(2, 0);
    let mut values: Vec<f64> = (0..3000).map(|_| 20.0 * random.normal().exp()).collect();
    let binned = histogram(values.iter().copied());
    values.sort_by(f64::total_cmp);
    for share in [0.5, 0.75, 0.95] {
        let (low, high) = ranks(3000, share, 0.05).expect("values");
        let (low, high) = (values[low as usize - 1], values[high as usize - 1]);
        let of = binned.quantile(share, 0.05).expect("values");
        let width = BINS.recip().exp2() * (1.0 + 1e-12);
        let (lower, upper) = (of.low.expect("a bound"), of.high.expect("a bound"));
        assert!(
            lower <= low * width && low / lower <= width,
            "{lower} {low}"
        );
        assert!(
            upper * width >= high && upper / high <= width,
            "{upper} {high}"
        );
        let exact = values[(3000.0 * share) as usize];
        assert!((of.value / exact - 1.0).abs() < 0.02, "{of:?} {exact}");
    }
}

#[test]
fn histograms_of_parts_are_that_of_all() {
    let mut random = Random::new(3, 0);
    let values: Vec<f64> = (0..1000).map(|_| random.normal().exp()).collect();
    let mut merged = histogram(values[..300].iter().copied());
    merged.merge(&histogram(values[300..].iter().copied()));
    assert_eq!(merged, histogram(values));
    // Whatever the values, the number of bins is bounded.
    let any = [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e-300, 1e300];
    let bins = histogram(any).bins;
    let range =
        f64::from(*bins.keys().next().expect("one"))..=f64::from(*bins.keys().last().expect("one"));
    assert_eq!(range, OCTAVES.0 * BINS..=OCTAVES.1 * BINS);
}

#[test]
fn a_change_is_found() {
    let mut random = Random::new(4, 0);
    let mut arms = [Histogram::default(), Histogram::default()];
    for number in 0..20_000_usize {
        let factor = if number % 2 == 1 { 0.8 } else { 1.0 };
        let time = 500.0 * factor * (random.normal() / 2.0).exp();
        arms[number % 2].add(time);
    }
    let of = change(&arms[0], &arms[1], 0.5, 0.05).expect("values");
    let (low, high) = (of.low.expect("a bound"), of.high.expect("a bound"));
    assert!(low < -0.2 && -0.2 < high && high < -0.1, "{of:?}");
    assert_eq!(change(&arms[0], &Histogram::default(), 0.5, 0.05), None);
}
