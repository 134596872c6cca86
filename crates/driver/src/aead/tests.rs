use super::*;

#[test]
fn ring_is_chosen_if_it_is_10_percent_faster() {
    for (measured, expected) in [
        ([1000, 899], AeadProvider::Ring),
        ([1000, 900], AeadProvider::AwsLc),
        ([1000, 1000], AeadProvider::AwsLc),
        ([500, 1000], AeadProvider::AwsLc),
        // A clock that does not advance.
        ([0, 0], AeadProvider::AwsLc),
        ([u64::MAX, u64::MAX], AeadProvider::AwsLc),
        ([u64::MAX, 1], AeadProvider::Ring),
    ] {
        assert_eq!(choose(measured), expected, "{measured:?}");
    }
}

#[test]
fn a_measurement_follows_the_rule_and_shows_both_times() {
    let choice = AeadChoice::measure();
    let [aws_lc, ring] = choice.measured.expect("it was measured");
    assert!(aws_lc > 0 && ring > 0);
    assert_eq!(choice.provider, choose([aws_lc, ring]));
    let text = choice.to_string();
    assert!(
        text.contains(&format!("aws-lc {aws_lc} ns, ring {ring} ns")),
        "{text}"
    );
}

#[test]
fn a_pinned_library_is_not_measured() {
    let choice = AeadChoice::pinned(AeadProvider::Ring);
    assert_eq!(choice.to_string(), "ring (set by an option)");
}
