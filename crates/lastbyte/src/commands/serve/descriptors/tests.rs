use super::*;

#[test]
fn half_of_the_unreserved_descriptors_are_for_tcp() {
    for (limit, wanted, granted) in [
        (None, 10_000, 10_000),
        (Some(1_048_576), 10_000, 10_000),
        (Some(20_064), 10_000, 10_000),
        (Some(20_063), 10_000, 9_999),
        (Some(1024), 10_000, 480),
        (Some(64), 10_000, 1),
        (Some(0), 10_000, 1),
    ] {
        assert_eq!(for_tcp(limit, wanted), granted, "{limit:?}");
        assert_eq!(for_files(limit).min(wanted), granted, "{limit:?}");
    }
}

#[test]
fn a_quarter_of_the_descriptors_is_for_an_upstream() {
    for (limit, granted) in [
        (None, 1024),
        (Some(20_000), 1024),
        (Some(700), 159),
        (Some(0), 1),
    ] {
        assert_eq!(for_upstream(limit, 1024), granted, "{limit:?}");
    }
}
