use lastbyte_units::SplitMix64;

use super::*;

/// Runs of a command on a noisy machine: a normal deviate as the sum of twelve uniform ones.
pub(in super::super) fn noisy(random: &mut SplitMix64, median: f64, sd: f64) -> f64 {
    let uniform = |random: &mut SplitMix64| (random.number() >> 11) as f64 / (1_u64 << 53) as f64;
    let deviate: f64 = (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0;
    median * (sd * deviate).exp()
}

/// Against printed tables.
#[test]
fn quantiles_are_those_of_student() {
    for (freedom, expected) in [
        (1, 12.706_20),
        (2, 4.302_65),
        (3, 3.182_45),
        (4, 2.776_45),
        (5, 2.570_58),
        (8, 2.306_00),
        (9, 2.262_16),
        (30, 2.042_27),
        (1000, 1.962_34),
    ] {
        let found = t_quantile(freedom);
        assert!((found - expected).abs() < 1e-5, "{freedom}: {found}");
    }
}

/// Equal commands on a noisy machine differ significantly in at most one of twenty comparisons, and nearly as often as that.
#[test]
fn equal_commands_differ_in_one_of_twenty_comparisons() {
    let mut random = SplitMix64::new(1);
    let mut runs =
        |count: usize| -> Vec<f64> { (0..count).map(|_| noisy(&mut random, 80.0, 0.3)).collect() };
    let mut found = [0; 2];
    for _ in 0..4000 {
        let (old, new) = (runs(5), runs(5));
        let change = between(&old, &new, 0.0).expect("an interval");
        found[0] += u32::from(change.is_significant_alone());
        let ratios: Vec<f64> = old.iter().zip(&new).map(|(old, new)| new / old).collect();
        let change = over_rounds(&ratios, 0.0).expect("an interval");
        found[1] += u32::from(change.is_significant_alone());
    }
    // 200 are expected at 5 %; three standard deviations are 41.
    assert!((120..=241).contains(&found[0]), "{found:?}");
    assert!((159..=241).contains(&found[1]), "{found:?}");
}

#[test]
fn a_change_is_that_of_the_geometric_means() {
    let change = between(&[1.0, 4.0], &[4.0, 16.0], 0.0).expect("an interval");
    assert!((change.relative - 3.0).abs() < 1e-9, "{change:?}");
    // The logarithms have a variance of 0.96 each; two degrees of freedom.
    let half_width = t_quantile(2) * (0.5 * 4.0_f64.ln().powi(2)).sqrt();
    let expected = (4.0_f64.ln() + half_width).exp() - 1.0;
    assert!((change.high / expected - 1.0).abs() < 1e-9, "{change:?}");
    assert!(!change.is_significant_alone());
}

/// Percentiles in neighbouring buckets of a histogram differ by the precision of the buckets only.
#[test]
fn a_difference_below_the_precision_is_not_significant() {
    let (old, new) = ([1.0, 1.0, 1.0], [1.0009, 1.0009, 1.0009]);
    let significant = |precision| between(&old, &new, precision).map(Change::is_significant_alone);
    assert_eq!(significant(0.0), Some(true));
    assert_eq!(significant(0.001), Some(false));
    assert_eq!(
        over_rounds(&new, 0.001).map(Change::is_significant_alone),
        Some(false)
    );
}

/// Against Student's distribution: the interval ends at no change where p is 0.05.
#[test]
fn the_probability_belongs_to_the_interval() {
    let mut random = SplitMix64::new(2);
    for _ in 0..500 {
        let runs: [Vec<f64>; 2] = [80.0, 90.0].map(|median| {
            let one = |_| noisy(&mut random, median, 0.1);
            (0..4).map(one).collect()
        });
        let change = between(&runs[0], &runs[1], 0.001).expect("an interval");
        assert_eq!(
            change.p < LEVEL,
            change.is_significant_alone(),
            "{change:?}"
        );
    }
}

/// Of 2000 tables of five lines without a difference, at most 5 % have a significant line; one real difference is found as if
/// it were alone in a table of five.
#[test]
fn a_table_of_equal_commands_has_a_significant_line_in_one_of_twenty() {
    let mut random = SplitMix64::new(4);
    let mut wrong = [0; 2];
    for _ in 0..2000 {
        let lines: Vec<Option<Change>> = (0..5)
            .map(|_| {
                let mut runs =
                    || -> Vec<f64> { (0..5).map(|_| noisy(&mut random, 80.0, 0.3)).collect() };
                between(&runs(), &runs(), 0.0)
            })
            .collect();
        let alone = lines
            .iter()
            .flatten()
            .any(|line| line.is_significant_alone());
        wrong[0] += u32::from(alone);
        wrong[1] += u32::from(verdicts(&lines).contains(&Some(Verdict::Significant)));
    }
    // 452 are expected of lines that each are right in 95 %, and 100 of a table; three standard deviations are 29.
    assert!(wrong[0] >= 300 && wrong[1] <= 129, "{wrong:?}");
}

#[test]
fn the_smallest_probabilities_are_significant_as_long_as_each_is() {
    let change = |p| {
        Some(Change {
            relative: 0.1,
            low: 0.05,
            high: 0.15,
            p,
        })
    };
    let alone = Some(Verdict::SignificantAlone { lines: 4 });
    let significant = Some(Verdict::Significant);
    let lines = [
        change(0.04),
        None,
        change(0.001),
        change(0.03),
        change(0.012),
    ];
    let expected = [alone, None, significant, alone, significant];
    assert_eq!(verdicts(&lines), expected);
    let lines = [change(0.04), None];
    assert_eq!(verdicts(&lines), [significant, None]);
    assert_eq!(verdicts(&[]), []);
}

#[test]
fn values_without_an_interval_have_none() {
    assert_eq!(between(&[1.0], &[1.0, 2.0], 0.0), None);
    assert_eq!(between(&[1.0, 0.0], &[1.0, 2.0], 0.0), None);
    assert_eq!(over_rounds(&[1.0], 0.0), None);
    assert_eq!(over_rounds(&[1.0, f64::INFINITY], 0.0), None);
    assert_eq!(over_rounds(&[1.0, f64::NAN], 0.0), None);
    assert_eq!(geometric_mean(&[]), None);
    assert_eq!(geometric_mean(&[2.0, -1.0]), None);
    assert!(between(&[1.0; 2000], &[1.0; 2000], 0.0).is_some());
}
