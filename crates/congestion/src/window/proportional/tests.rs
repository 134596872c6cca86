use super::*;

fn round(pre: u64, beta: f64, floor: u64, variant: Variant) -> Proportional {
    Proportional::new(
        variant,
        &Entry {
            window: pre,
            in_flight: pre,
            initial: 0,
            minimum: floor,
            jump_delivered: None,
            beta,
        },
    )
}

fn factors(beta: f64, variant: Variant) -> [u64; 3] {
    let Factors { silence, ack, loss } = round(0, beta, 0, variant).factors;
    [silence, ack, loss].map(|factor| libm::round(factor * 1e4) as u64)
}

#[test]
fn rapid_start_02_3_3_factors() {
    assert_eq!(factors(0.5, Variant::Draft02), [8333, 3333, 8333]); // 5/6, 1/3, 5/6
    assert_eq!(factors(0.7, Variant::Draft02), [9000, 2000, 9000]); // 9/10, 1/5, 9/10
    assert_eq!(factors(0.7, Variant::Quicly), [8833, 1833, 8833]); // 53/60, 11/60, 53/60
}

fn exit_window(pre: u64, acked: u64, lost: u64, beta: f64) -> u64 {
    let mut round = round(pre, beta, 0, Variant::Draft02);
    round.on_acked(acked);
    round.on_lost(lost);
    round.window()
}

#[test]
fn rapid_start_02_appendix_a_exits_at_beta_of_the_bytes_delivered() {
    // (in flight, acknowledged, lost) in thirds and halves of a full path of 120 000 bytes
    assert_eq!(exit_window(360_000, 120_000, 240_000, 0.5), 60_000);
    assert_eq!(exit_window(240_000, 120_000, 120_000, 0.5), 60_000);
    assert_eq!(exit_window(120_000, 120_000, 0, 0.5), 60_000);
    assert_eq!(exit_window(120_000, 120_000, 0, 0.7), 84_000);
}

#[test]
fn rapid_start_02_appendix_a_sending_resumes_when_1_minus_beta_is_delivered() {
    // The longest silence, at a loss of two thirds: what is in flight falls to the window after 1 − beta of the path.
    for beta in [0.5, 0.7] {
        let mut round = round(300_000, beta, 0, Variant::Draft02);
        let acked = share_of(100_000, 1.0 - beta);
        round.on_acked(acked);
        round.on_lost(2 * acked);
        assert_eq!(round.window(), 300_000 - 3 * acked, "beta {beta}");
    }
}

fn share_of(bytes: u64, factor: f64) -> u64 {
    libm::round(bytes as f64 * factor) as u64
}

#[test]
fn rapid_start_02_3_3_the_window_is_at_least_a_third_of_beta() {
    assert_eq!(exit_window(300_000, 1_000, 299_000, 0.5), 50_000);
    assert_eq!(exit_window(300_000, 0, u64::MAX, 0.5), 50_000);
}

#[test]
fn window_never_rises_while_the_round_lasts() {
    let mut round = round(300_000, 0.5, 10_000, Variant::Draft02);
    let mut before = round.window();
    for step in 0..300 {
        if step % 3 == 0 {
            round.on_acked(1000);
        } else {
            round.on_lost(1000);
        }
        assert!(round.window() <= before);
        before = round.window();
    }
}
