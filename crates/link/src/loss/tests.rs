use super::*;
use crate::testing::{at_ms, ms};

/// Which of `packets` packets, sent 1 ms apart, a model drops.
fn outcomes(model: &Loss, seed: u64, packets: u64) -> Vec<bool> {
    let mut losses = LossProcess::new(model, seed, 0);
    (0..packets)
        .map(|number| losses.is_lost(at_ms(number), number))
        .collect()
}

fn lost(outcomes: &[bool]) -> f64 {
    outcomes.iter().filter(|is_lost| **is_lost).count() as f64
}

/// The lengths of runs of consecutive losses.
fn runs(outcomes: &[bool]) -> Vec<usize> {
    let runs = outcomes.chunk_by(|a, b| a == b);
    runs.filter(|run| run[0]).map(<[bool]>::len).collect()
}

fn mean(values: &[usize]) -> f64 {
    values.iter().sum::<usize>() as f64 / values.len() as f64
}

#[test]
fn bernoulli_loss_rate_is_within_four_standard_deviations() {
    let packets = 200_000;
    for (seed, probability) in [(1, 0.001), (2, 0.02), (3, 0.5)] {
        let outcomes = outcomes(&Loss::Bernoulli(probability), seed, packets);
        let expected = probability * packets as f64;
        let deviation = (expected * (1.0 - probability)).sqrt();
        let share = lost(&outcomes);
        assert!((share - expected).abs() < 4.0 * deviation, "{share}");
        // Losses are independent, so the mean run length is 1 / (1 − p).
        let length = mean(&runs(&outcomes));
        assert!((length * (1.0 - probability) - 1.0).abs() < 0.1, "{length}");
    }
    assert!(outcomes(&Loss::Bernoulli(0.0), 1, 1000).iter().all(|f| !f));
    assert!(outcomes(&Loss::Bernoulli(1.0), 1, 1000).iter().all(|f| *f));
}

#[test]
fn gilbert_has_the_configured_loss_rate_and_burst_length() {
    let model = GilbertElliott::simple(0.02, 4.0);
    let outcomes = outcomes(&Loss::GilbertElliott(model), 7, 1_000_000);
    let share = lost(&outcomes) / 1e6;
    let length = mean(&runs(&outcomes));
    assert!((share / 0.02 - 1.0).abs() < 0.05, "{share}");
    assert!((length / 4.0 - 1.0).abs() < 0.05, "{length}");
}

#[test]
fn gilbert_elliott_has_the_mean_loss_of_its_states() {
    let model = GilbertElliott {
        to_bad: 0.01,
        to_good: 0.04,
        loss_in_bad: 0.3,
        loss_in_good: 0.01,
    };
    // A fifth of all packets are in the bad state.
    let mean_loss = 0.2 * 0.3 + 0.8 * 0.01;
    let share = lost(&outcomes(&Loss::GilbertElliott(model), 5, 1_000_000)) / 1e6;
    assert!((share / mean_loss - 1.0).abs() < 0.05, "{share}");
}

#[test]
fn gilbert_elliott_starts_in_the_good_state_and_may_stay_there() {
    let never = GilbertElliott {
        to_bad: 0.0,
        to_good: 0.0,
        loss_in_bad: 1.0,
        loss_in_good: 0.0,
    };
    assert!((lost(&outcomes(&Loss::GilbertElliott(never), 1, 1000))).abs() < f64::EPSILON);
    // The state changes with each packet, so every second one is lost, but not the first.
    let alternating = GilbertElliott {
        to_bad: 1.0,
        to_good: 1.0,
        ..never
    };
    let outcomes = outcomes(&Loss::GilbertElliott(alternating), 1, 4);
    assert_eq!(outcomes, [false, true, false, true]);
}

#[test]
fn packets_are_lost_by_number_in_any_order() {
    let outcomes = outcomes(&Loss::Packets(vec![5, 0, 3, 3]), 1, 8);
    assert_eq!(
        outcomes,
        [true, false, false, true, false, true, false, false]
    );
}

#[test]
fn fixed_bursts_start_at_multiples_and_have_the_configured_length() {
    let bursts = Bursts {
        spacing: Spacing::Fixed(ms(10)),
        probability: 1.0,
        length: 3,
    };
    let outcomes = outcomes(&Loss::Bursts(bursts), 1, 40);
    for (number, is_lost) in outcomes.into_iter().enumerate() {
        assert_eq!(is_lost, number >= 10 && number % 10 < 3, "{number}");
    }
}

#[test]
fn a_burst_drops_the_next_packets_and_several_starts_count_as_one() {
    let bursts = Bursts {
        spacing: Spacing::Fixed(ms(10)),
        probability: 1.0,
        length: 2,
    };
    let mut losses = LossProcess::new(&Loss::Bursts(bursts), 1, 0);
    let outcomes = [9, 55, 56, 57, 59, 60].map(|at| losses.is_lost(at_ms(at), at));
    assert_eq!(outcomes, [false, true, true, false, false, true]);
}

#[test]
fn random_bursts_have_the_configured_rate_and_length() {
    let bursts = Bursts {
        spacing: Spacing::Random(ms(200)),
        probability: 0.25,
        length: 4,
    };
    let outcomes = outcomes(&Loss::Bursts(bursts), 11, 2_000_000);
    // A burst starts every 800 packets, and few bursts touch.
    let runs = runs(&outcomes);
    let expected = 2_000_000.0 / 800.0;
    assert!(
        (runs.len() as f64 / expected - 1.0).abs() < 0.1,
        "{}",
        runs.len()
    );
    let length = mean(&runs);
    assert!((length / 4.0 - 1.0).abs() < 0.1, "{length}");
}
