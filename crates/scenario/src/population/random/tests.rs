use super::*;

#[test]
fn quantiles_match_published_tables() {
    for (unit, z) in [
        (0.5, 0.0),
        (0.9, 1.281_551_565_5),
        (0.1, -1.281_551_565_5),
        (0.975, 1.959_963_984_5),
        (0.001, -3.090_232_306_2),
        (1e-9, -5.997_807_015_0),
    ] {
        assert!((quantile(unit) - z).abs() < 1e-7, "{unit}");
    }
}

#[test]
fn streams_differ_and_repeat() {
    let rate = Stream::new(1, Field::Rate);
    assert_eq!(rate.at(5), Stream::new(1, Field::Rate).at(5));
    assert_ne!(rate.at(5), rate.at(6));
    assert_ne!(rate.at(5), Stream::new(2, Field::Rate).at(5));
    assert_ne!(rate.at(5), Stream::new(1, Field::Queue).at(5));
}

#[test]
fn numbers_have_their_means() {
    let stream = Stream::new(3, Field::Size);
    let count = 100_000u64;
    let mean = |of: &dyn Fn(u64) -> f64| (0..count).map(of).sum::<f64>() / count as f64;
    assert!((mean(&|n| stream.unit(n)) - 0.5).abs() < 0.005);
    assert!(mean(&|n| stream.normal(n)).abs() < 0.015);
    assert!((mean(&|n| stream.normal(n).powi(2)) - 1.0).abs() < 0.02);
    assert!((mean(&|n| stream.exponential(n)) - 1.0).abs() < 0.02);
}

#[test]
fn entries_without_weight_are_never_chosen() {
    let stream = Stream::new(3, Field::Size);
    let weights = [0.0, 1.0, 3.0, 0.0];
    let mut counts = [0; 4];
    for index in 0..10_000 {
        counts[stream.choose(index, weights.iter().copied())] += 1;
    }
    assert_eq!((counts[0], counts[3]), (0, 0));
    assert!((2300..2700).contains(&counts[1]), "{counts:?}");
}
