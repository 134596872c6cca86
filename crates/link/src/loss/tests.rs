use super::*;
use crate::testing::{at_ms, ms};

/// Which of so many packets, a millisecond apart, a model takes.
fn fates(model: &Loss, seed: u64, packets: u64) -> Vec<bool> {
    let mut losses = Losses::new(model, seed, 0);
    (0..packets)
        .map(|number| losses.takes(at_ms(number), number))
        .collect()
}

fn lost(fates: &[bool]) -> f64 {
    fates.iter().filter(|is_lost| **is_lost).count() as f64
}

/// Lengths of the runs of losses.
fn runs(fates: &[bool]) -> Vec<usize> {
    let runs = fates.chunk_by(|a, b| a == b);
    runs.filter(|run| run[0]).map(<[bool]>::len).collect()
}

fn mean(values: &[usize]) -> f64 {
    values.iter().sum::<usize>() as f64 / values.len() as f64
}

#[test]
fn bernoulli_loses_its_share_within_four_standard_deviations() {
    let packets = 200_000;
    for (seed, probability) in [(1, 0.001), (2, 0.02), (3, 0.5)] {
        let fates = fates(&Loss::Bernoulli(probability), seed, packets);
        let expected = probability * packets as f64;
        let deviation = (expected * (1.0 - probability)).sqrt();
        let share = lost(&fates);
        assert!((share - expected).abs() < 4.0 * deviation, "{share}");
        // Without memory: a run of losses is 1 / (1 − p) long.
        let length = mean(&runs(&fates));
        assert!((length * (1.0 - probability) - 1.0).abs() < 0.1, "{length}");
    }
    assert!(fates(&Loss::Bernoulli(0.0), 1, 1000).iter().all(|f| !f));
    assert!(fates(&Loss::Bernoulli(1.0), 1, 1000).iter().all(|f| *f));
}

#[test]
fn gilbert_loses_its_share_in_bursts_of_its_length() {
    let model = GilbertElliott::simple(0.02, 4.0);
    assert!((model.mean_loss() - 0.02).abs() < 1e-12);
    let fates = fates(&Loss::GilbertElliott(model), 7, 1_000_000);
    let share = lost(&fates) / 1e6;
    let length = mean(&runs(&fates));
    assert!((share / 0.02 - 1.0).abs() < 0.05, "{share}");
    assert!((length / 4.0 - 1.0).abs() < 0.05, "{length}");
}

#[test]
fn gilbert_elliott_loses_what_its_states_lose() {
    let model = GilbertElliott {
        to_bad: 0.01,
        to_good: 0.04,
        loss_in_bad: 0.3,
        loss_in_good: 0.01,
    };
    // A fifth of all packets sees the bad state.
    assert!((model.mean_loss() - (0.2 * 0.3 + 0.8 * 0.01)).abs() < 1e-12);
    let share = lost(&fates(&Loss::GilbertElliott(model), 5, 1_000_000)) / 1e6;
    assert!((share / model.mean_loss() - 1.0).abs() < 0.05, "{share}");
}

#[test]
fn gilbert_elliott_begins_good_and_may_stay_there() {
    let never = GilbertElliott {
        to_bad: 0.0,
        to_good: 0.0,
        loss_in_bad: 1.0,
        loss_in_good: 0.0,
    };
    assert!(never.mean_loss().abs() < f64::EPSILON);
    assert!((lost(&fates(&Loss::GilbertElliott(never), 1, 1000))).abs() < f64::EPSILON);
    // From state to state with each packet: each second one is lost, and not the first.
    let alternating = GilbertElliott {
        to_bad: 1.0,
        to_good: 1.0,
        ..never
    };
    let fates = fates(&Loss::GilbertElliott(alternating), 1, 4);
    assert_eq!(fates, [false, true, false, true]);
}

#[test]
fn packets_are_lost_by_number_in_any_order() {
    let fates = fates(&Loss::Packets(vec![5, 0, 3, 3]), 1, 8);
    assert_eq!(fates, [true, false, false, true, false, true, false, false]);
}

#[test]
fn fixed_bursts_come_at_multiples_and_have_their_length() {
    let bursts = Bursts {
        spacing: Spacing::Fixed(ms(10)),
        probability: 1.0,
        length: BurstLength::Fixed(3),
    };
    let fates = fates(&Loss::Bursts(bursts), 1, 40);
    for (number, is_lost) in fates.into_iter().enumerate() {
        assert_eq!(is_lost, number >= 10 && number % 10 < 3, "{number}");
    }
}

#[test]
fn an_instant_without_packets_takes_the_next_and_many_count_as_one() {
    let bursts = Bursts {
        spacing: Spacing::Fixed(ms(10)),
        probability: 1.0,
        length: BurstLength::Fixed(2),
    };
    let mut losses = Losses::new(&Loss::Bursts(bursts), 1, 0);
    let fates = [9, 55, 56, 57, 59, 60].map(|at| losses.takes(at_ms(at), at));
    assert_eq!(fates, [false, true, true, false, false, true]);
}

#[test]
fn random_bursts_have_their_rate_and_length() {
    let bursts = Bursts {
        spacing: Spacing::Random(ms(200)),
        probability: 0.25,
        length: BurstLength::Random(4.0),
    };
    let fates = fates(&Loss::Bursts(bursts), 11, 2_000_000);
    // One in 800 packets begins one; of few do they touch.
    let runs = runs(&fates);
    let expected = 2_000_000.0 / 800.0;
    assert!(
        (runs.len() as f64 / expected - 1.0).abs() < 0.1,
        "{}",
        runs.len()
    );
    let length = mean(&runs);
    assert!((length / 4.0 - 1.0).abs() < 0.1, "{length}");
}
