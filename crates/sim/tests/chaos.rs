//! Random paths, faults and transfers, each from a seed, and invariants that must always hold.
//!
//! `cargo run --release -p lastbyte-sim --example chaos -- --seeds 10000` runs more.

#[path = "chaos/mod.rs"]
mod chaos;

const SEEDS: u64 = 300;

#[test]
fn on_any_path_all_data_arrives_or_both_ends_report_an_error() {
    let (mut complete, mut late, mut moves, mut key_updates) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        match chaos::run(seed) {
            Ok(report) => {
                complete += u64::from(report.is_complete);
                late += report.late;
                moves += report.moves;
                key_updates += report.key_updates;
            }
            Err(error) => panic!(
                "seed {seed} {error}\nto repeat: cargo run -p lastbyte-sim --example chaos -- --seed {seed}"
            ),
        }
    }
    // Each fault must occur.
    assert!(complete > SEEDS / 2, "{complete} of {SEEDS}");
    assert!(late > 0 && moves > 0 && key_updates > 0);
}

/// Each found a fault of the transport once: a stream kept that was over (836, 2745, 3873, 7104, 8794); an address that
/// could not be challenged, so that the connection was lost (34); challenges and answers without end, as a client whose window
/// is full got no acknowledgment (3998).
#[test]
fn seeds_that_failed_before_pass() {
    for seed in [34, 836, 2745, 3873, 3998, 7104, 8794] {
        match chaos::run(seed) {
            Ok(report) => assert!(report.is_complete, "seed {seed}"),
            Err(error) => panic!("seed {seed} {error}"),
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_datagrams() {
    for seed in 0..10 {
        assert_eq!(chaos::run(seed), chaos::run(seed), "seed {seed}");
    }
}
