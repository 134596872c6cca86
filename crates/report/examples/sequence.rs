//! Measures the bounds of `statistics::sequence` and `statistics::quantiles`: experiments without a difference in which a bound is
//! ever wrong, and the number of connections until an effect is found, against a fixed design.
//!
//! ```console
//! cargo run --release -p lastbyte-report --example sequence
//! ```

#![expect(clippy::print_stdout, reason = "what it measures")]

use lastbyte_report::statistics::{
    Z_95,
    quantiles::{self, Histogram},
    sequence::{Difference, Stratum, difference},
};
use lastbyte_units::SplitMix64;

const LOOKS: usize = 200;
const EXPERIMENTS: u64 = 1000;

fn main() {
    println!("of {EXPERIMENTS} experiments without a difference, {LOOKS} looks each:");
    let ramp = [0.01, 0.05, 0.25, 0.5];
    for (name, draw, effect, shares, total) in [
        ("normal", normal as Draw, 0.05, &[0.5][..], 40_000),
        ("normal, shares of a ramp", normal, 0.05, &ramp, 200_000),
        ("shares of lost packets", losses, 0.005, &[0.5], 40_000),
        ("the same, shares of a ramp", losses, 0.005, &ramp, 200_000),
        ("2 % of zeros", zeros, 0.005, &[0.5], 40_000),
        ("the same, shares of a ramp", zeros, 0.005, &ramp, 200_000),
    ] {
        let [mut wrong, mut fixed, mut last] = [0; 3];
        for number in 0..EXPERIMENTS {
            let mut random = SplitMix64::stream(7, number);
            let [mut is_wrong, mut is_fixed_wrong, mut is_last_wrong] = [false; 3];
            looks(
                &mut random,
                shares,
                total,
                draw,
                0.0,
                |difference, arm, z| {
                    if arm >= 500 {
                        is_last_wrong = !(difference.below(0.025, effect)
                            ..=difference.above(0.025, effect))
                            .contains(&0.0);
                        is_wrong |= is_last_wrong;
                        is_fixed_wrong |= z.abs() > Z_95;
                    }
                    false
                },
            );
            wrong += u64::from(is_wrong);
            fixed += u64::from(is_fixed_wrong);
            last += u64::from(is_last_wrong);
        }
        let percent = |count: u64| count as f64 * 100.0 / EXPERIMENTS as f64;
        println!(
            "{name}: {:.1} % at any look, {:.1} % at the last; one fixed interval at the same looks {:.1} %",
            percent(wrong),
            percent(last),
            percent(fixed)
        );
    }
    quantiles();
    println!(
        "connections until a bound of 2 % excludes 0, by those of a fixed design (5 %, power 80 %):"
    );
    for (effect, planned) in [
        (0.05, 0.05),
        (0.1, 0.05),
        (0.2, 0.05),
        (0.05, 0.1),
        (0.05, 0.2),
    ] {
        let fixed = 4.0 * 7.849 / (effect * effect);
        let mut needed: Vec<f64> = (0..400)
            .map(|number| {
                let mut random = SplitMix64::stream(8, number);
                let mut count = 0.0;
                let total = (fixed * 5.0) as usize;
                looks(
                    &mut random,
                    &[0.5],
                    total,
                    normal,
                    -effect,
                    |difference, _, _| {
                        count += (total / LOOKS) as f64;
                        difference.above(0.02, planned) < 0.0
                    },
                );
                count / fixed
            })
            .collect();
        needed.sort_by(f64::total_cmp);
        let mean = needed.iter().sum::<f64>() / needed.len() as f64;
        println!(
            "effect {effect}, planned {planned}: mean {mean:.2}, P50 {:.2}, P90 {:.2}",
            needed[needed.len() / 2],
            needed[needed.len() * 9 / 10]
        );
    }
}

/// Experiments without a difference in which a bound of 5 % of a quantile's change is ever wrong, and its width at the last look.
fn quantiles() {
    const STEP: usize = 200;
    for (share, arm_share) in [0.5, 0.75, 0.95]
        .into_iter()
        .flat_map(|share| [(share, 0.5), (share, 0.05)])
    {
        let (mut wrong, mut widths) = (0, Vec::new());
        for number in 0..EXPERIMENTS {
            let mut random = SplitMix64::stream(9, number);
            let mut arms = [Histogram::default(), Histogram::default()];
            let (mut is_wrong, mut width) = (false, f64::INFINITY);
            for _ in 0..LOOKS {
                for _ in 0..STEP {
                    let time = 500.0 * normal(&mut random, 0).exp();
                    let arm = usize::from(unit(&mut random) < arm_share);
                    // Logs have whole milliseconds.
                    arms[arm].add(time.round().max(0.5));
                }
                let Some(of) = quantiles::change(&arms[0], &arms[1], share, 0.05) else {
                    continue;
                };
                let (low, high) = (
                    of.low.unwrap_or(f64::NEG_INFINITY),
                    of.high.unwrap_or(f64::INFINITY),
                );
                is_wrong |= !(low..=high).contains(&0.0);
                width = high - low;
            }
            wrong += u64::from(is_wrong);
            widths.push(width);
        }
        widths.sort_by(f64::total_cmp);
        println!(
            "P{:.0}, share of the arm {arm_share}: {:.1} % at any look; width after {} connections {:.3}",
            share * 100.0,
            wrong as f64 * 100.0 / EXPERIMENTS as f64,
            LOOKS * STEP,
            widths[widths.len() / 2]
        );
    }
}

type Draw = fn(&mut SplitMix64, usize) -> f64;

fn unit(random: &mut SplitMix64) -> f64 {
    ((random.number() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Two sites of different means.
fn normal(random: &mut SplitMix64, stratum: usize) -> f64 {
    let (u, v) = (unit(random), unit(random));
    let normal = (-2.0 * u.ln()).sqrt() * (core::f64::consts::TAU * v).cos();
    normal + 3.0 * (stratum % 2) as f64
}

/// Four of five connections lose nothing, the others 2 % in the mean, exponentially distributed.
fn losses(random: &mut SplitMix64, _: usize) -> f64 {
    if unit(random) < 0.8 {
        0.0
    } else {
        -0.02 * unit(random).ln()
    }
}

fn zeros(random: &mut SplitMix64, _: usize) -> f64 {
    f64::from(u8::from(unit(random) < 0.98))
}

/// The difference at each look, the arm's connections, and the z of a fixed test of the same difference.
fn looks(
    random: &mut SplitMix64,
    shares: &[f64],
    total: usize,
    draw: Draw,
    effect: f64,
    mut look: impl FnMut(&Difference, u64, f64) -> bool,
) {
    let mut strata = vec![Stratum::default(); 2 * shares.len()];
    let step = total / LOOKS;
    for number in 0..LOOKS * step {
        let epoch = number * shares.len() / (LOOKS * step);
        let stratum = 2 * epoch + usize::from(unit(random) < 0.3);
        let value = draw(random, stratum);
        if unit(random) < shares[epoch] {
            strata[stratum].arm.add(value + effect);
        } else {
            strata[stratum].control.add(value);
        }
        if (number + 1) % step == 0
            && let Some(difference) = difference(strata.iter().copied())
            && look(
                &difference,
                strata.iter().map(|one| one.arm.count).sum(),
                difference.value / difference.error(),
            )
        {
            return;
        }
    }
}
