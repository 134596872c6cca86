use super::*;

#[test]
fn markup_in_texts_is_escaped() {
    assert_eq!(
        escaped("a<b>&\"c'\u{0}\n\u{ffff}d"),
        "a&lt;b&gt;&amp;&quot;c&#39; d"
    );
}

#[test]
fn coordinates_are_short() {
    let cases = [
        (0.0, "0"),
        (-0.04, "0"),
        (12.0, "12"),
        (12.34, "12.3"),
        (-0.5, "-0.5"),
        (-12.96, "-13"),
        (f32::NAN, "0"),
    ];
    for (value, text) in cases {
        assert_eq!(number(value), text);
    }
}

#[test]
fn steps_are_written_short() {
    let mut out = String::new();
    polyline(
        &mut out,
        &[(0.0, 5.0), (3.0, 5.0), (3.0, 9.0), (3.01, 9.0), (4.0, 8.0)],
    );
    assert_eq!(out, "M0 5H3V9L4 8");
}
