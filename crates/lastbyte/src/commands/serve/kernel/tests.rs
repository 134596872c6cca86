use super::*;

/// The settings of which a kernel with these values is warned.
fn warned(chosen: Option<&str>, congestion: &str, after_idle: &str) -> Vec<String> {
    let value = |name: &str| match name {
        "tcp_congestion_control" => Some(congestion.to_owned()),
        "tcp_slow_start_after_idle" => Some(after_idle.to_owned()),
        _ => None,
    };
    let first = |text: String| text.split(' ').next().map(str::to_owned);
    let warnings = warnings(chosen, value).into_iter();
    warnings.filter_map(first).collect()
}

#[test]
fn settings_that_slow_http1_and_2_down_are_warned_of() {
    let (control, idle) = (
        "net.ipv4.tcp_congestion_control",
        "net.ipv4.tcp_slow_start_after_idle",
    );
    for (chosen, congestion, after_idle, expected) in [
        (None, "cubic", "0", &[][..]),
        (None, "cubic", "1", &[idle]),
        (None, "reno", "1", &[control, idle]),
        (None, "reno", "0", &[control]),
        // Chosen by the operator.
        (Some("reno"), "reno", "1", &[idle]),
        (Some("cubic"), "reno", "0", &[]),
        // BBR has no slow start after an idle time.
        (None, "bbr", "1", &[]),
        (Some("bbr"), "cubic", "1", &[]),
        (Some("cubic"), "bbr", "1", &[idle]),
    ] {
        let warned = warned(chosen, congestion, after_idle);
        assert_eq!(warned, expected, "{chosen:?} {congestion} {after_idle}");
    }
    assert!(warnings(None, |_| None).is_empty());
}
