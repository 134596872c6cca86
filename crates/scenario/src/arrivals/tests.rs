use super::*;

#[test]
fn sizes_of_the_web_have_the_mean_of_their_distribution() {
    let mean = Sizes::Web.mean();
    let drawn: f64 = (0..10_000)
        .map(|index| Sizes::Web.at((f64::from(index) + 0.5) / 10_000.0) as f64)
        .sum();
    assert!((1.70e6..1.72e6).contains(&mean), "{mean}");
    assert!((drawn / 10_000.0 / mean - 1.0).abs() < 0.01, "{drawn}");
    assert_eq!(
        [0.0, 0.15, 0.53, 1.0].map(|share| Sizes::Web.at(share)),
        [1, 10_000, 80_000, 30_000_000]
    );
    assert_eq!(Sizes::Fixed(7).at(0.3), 7);
}

#[test]
fn the_interval_offers_the_load() {
    let arrivals = Arrivals {
        load: 0.5,
        sizes: Sizes::Fixed(125_000),
    };
    // A transfer takes 100 ms of the link.
    let interval = arrivals.interval(Rate::from_bits_per_second(10_000_000));
    assert_eq!(interval, Duration::from_millis(200));
}
