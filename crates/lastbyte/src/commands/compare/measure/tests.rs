use lastbyte_congestion::Registry;

use super::{super::arms::arms, *};

#[test]
fn measured_arms_are_named_after_the_kernels_control_or_the_arm() {
    let texts = ["2", "2 bbr", "1.1 newreno", "3", "new=3 bbr"].map(str::to_owned);
    let arms = arms("--arm", &texts, 1..=8, &Registry::builtin()).expect("they are valid");
    let names: Vec<String> = arms.iter().map(name).collect();
    let expected = [
        "Linux cubic",
        "Linux bbr",
        "Linux reno HTTP/1.1",
        "HTTP/3 measured",
        "new measured",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_connection_with_another_control_of_the_kernel_is_a_warning() {
    let log =
        |control: &str| format!("{{\"transport\":\"tcp\",\"tcp.congestion\":\"{control}\"}}\n");
    let quic = "{\"transport\":\"quic\"}\n".to_owned();
    let right = [log("cubic"), quic.clone(), log("cubic")].concat();
    assert_eq!(unexpected("Linux cubic", "cubic", &right), None);
    let wrong = [log("cubic"), quic, log("bbr")].concat();
    assert_eq!(
        unexpected("Linux cubic", "cubic", &wrong).as_deref(),
        Some(
            "1 of 2 connections of `Linux cubic` had the kernel's congestion control `bbr` (expected `cubic`)."
        )
    );
    assert_eq!(unexpected("Linux cubic", "cubic", ""), None);
}
