use super::*;

/// As Ruby 3.1 reads them.
#[test]
fn a_number_may_begin_with_its_point() {
    for (text, value) in [
        (".5", 0.5),
        ("-.5", -0.5),
        (" .25ms", 0.25),
        (".5e1", 5.0),
        (".", 0.0),
        (".e1", 0.0),
        ("..5", 0.0),
        ("._5", 0.0),
    ] {
        assert!((leading_float(text) - value).abs() < 1e-12, "{text}");
    }
    assert_eq!(strict_float(".5"), Some(0.5));
    assert_eq!(strict_float("-.5"), Some(-0.5));
    assert_eq!(strict_float("."), None);
    assert_eq!(strict_float("5."), None);
}
