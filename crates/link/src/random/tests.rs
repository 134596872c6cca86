use super::*;

#[test]
fn components_and_seeds_have_distinct_streams() {
    let mut firsts: Vec<u64> = Vec::new();
    for seed in [0, 1, 2, u64::MAX] {
        for piece in [
            Component::Duplication,
            Component::Jitter,
            Component::Reordering,
        ] {
            firsts.extend((0..4).map(|index| Random::new(seed, piece, 0).at(index)));
        }
        firsts.extend((0..4).map(|index| Random::new(seed, Component::Loss, index).at(0)));
    }
    let count = firsts.len();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), count);
}

#[test]
fn distributions_have_the_expected_means() {
    let random = Random::new(7, Component::Jitter, 0);
    let count = 100_000;
    let mean = |value: &dyn Fn(u64) -> f64| (0..count).map(value).sum::<f64>() / count as f64;
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.02;
    assert!(near(mean(&|n| random.unit(n)), 0.5));
    assert!(near(mean(&|n| random.exponential(n)), 1.0));
    assert!(near(mean(&|n| random.up_to(n, 1000) as f64), 500.0));
    assert!(near(
        mean(&|n| f64::from(u8::from(random.happens(n, 0.1)))),
        0.1
    ));
}

#[test]
fn bounds_hold_at_both_ends() {
    let random = Random::new(1, Component::Jitter, 0);
    assert!((0..1000).all(|n| random.up_to(n, 0) == 0));
    assert!((0..1000).any(|n| random.up_to(n, 1) == 1));
    assert!((0..1000).any(|n| random.up_to(n, u64::MAX) > 1 << 63));
    assert!((0..1000).all(|n| !random.happens(n, 0.0) && random.happens(n, 1.0)));
}
