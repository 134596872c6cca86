use super::*;

fn labels(domain: (f64, f64), wanted: usize, unit: Unit) -> String {
    let labels: Vec<String> = ticks(domain, wanted, unit)
        .into_iter()
        .map(|(_, label)| label)
        .collect();
    labels.join(", ")
}

#[test]
fn ticks_are_round_and_have_their_unit() {
    assert_eq!(
        labels((0.0, 880_000.0), 5, Unit::Bytes),
        "0, 200 kB, 400 kB, 600 kB, 800 kB"
    );
    assert_eq!(
        labels((0.0, 1_700_000.0), 4, Unit::Bytes),
        "0, 0.5 MB, 1.0 MB, 1.5 MB"
    );
    assert_eq!(
        labels((0.0, 71e6), 4, Unit::BitsPerSecond),
        "0, 20 Mb/s, 40 Mb/s, 60 Mb/s"
    );
    assert_eq!(
        labels((0.0, 330.0), 7, Unit::Milliseconds),
        "0, 50 ms, 100 ms, 150 ms, 200 ms, 250 ms, 300 ms"
    );
    assert_eq!(
        labels((0.0, 25_000.0), 3, Unit::Milliseconds),
        "0, 10 s, 20 s"
    );
    assert_eq!(
        labels((38.9, 39.3), 4, Unit::Milliseconds),
        "38.9 ms, 39.0 ms, 39.1 ms, 39.2 ms, 39.3 ms"
    );
}

#[test]
fn an_empty_domain_has_ticks() {
    for domain in [
        (0.0, 0.0),
        (5.0, 5.0),
        (-3.0, -3.0),
        (f64::NAN, 1.0),
        (0.0, f64::INFINITY),
        (2.0, 1.0),
        (0.0, f64::MIN_POSITIVE),
        (-1e18, 1e18),
    ] {
        let found = ticks(domain, 5, Unit::Bytes);
        assert!((2..=12).contains(&found.len()), "{domain:?}: {found:?}");
        let scale = Linear::new(domain, (0.0, 100.0));
        assert!(scale.place(scale.domain().1).is_finite());
    }
}

#[test]
fn values_are_written_with_three_digits() {
    let bytes = |value| Unit::Bytes.format(value);
    assert_eq!(bytes(0.0), "0 B");
    assert_eq!(bytes(999.0), "999 B");
    assert_eq!(bytes(1200.0), "1.2 kB");
    assert_eq!(bytes(343_750.0), "344 kB");
    assert_eq!(bytes(999_700.0), "1 MB");
    assert_eq!(bytes(1_624_000.0), "1.62 MB");
    assert_eq!(Unit::BitsPerSecond.format(55e6), "55 Mb/s");
    assert_eq!(Unit::Milliseconds.format(39.04), "39 ms");
    assert_eq!(Unit::Milliseconds.format(312.4), "312 ms");
    assert_eq!(Unit::Milliseconds.format(0.05), "50 µs");
    assert_eq!(Unit::Milliseconds.format(12_345.0), "12.3 s");
}

#[test]
fn a_scale_maps_ends_to_ends() {
    let scale = Linear::new((10.0, 20.0), (300.0, 0.0));
    assert!((scale.place(10.0) - 300.0).abs() < 1e-9);
    assert!((scale.place(15.0) - 150.0).abs() < 1e-9);
    assert!(scale.place(20.0).abs() < 1e-9);
}
