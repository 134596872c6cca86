use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use proptest::{collection::vec, prelude::*};

use super::*;

const NOW: WallTime = WallTime::from_unix(Duration::from_secs(1_900_000_000));

fn hash(number: u64) -> [u8; 32] {
    let digest = digest(&SHA256, &number.to_be_bytes());
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn before(time: WallTime, span: Duration) -> WallTime {
    WallTime::from_unix(time.since_unix_epoch().saturating_sub(span))
}

#[test]
fn rfc8446_8_2_a_client_hello_is_accepted_once_within_the_window() {
    // Wherever in a generation it falls.
    for offset in 0..198 {
        let start = NOW + seconds(offset);
        for later in [0, 1, 65, 66, 67, 121, 122, 132] {
            let replay_filter = ReplayFilter::new(100, None);
            assert_eq!(replay_filter.strike(&hash(1), start), Strike::New);
            let again = replay_filter.strike(&hash(1), start + seconds(later));
            assert_eq!(again, Strike::Seen, "{later} s");
            let other = replay_filter.strike(&hash(2), start + seconds(later));
            assert_eq!(other, Strike::New);
        }
        let replay_filter = ReplayFilter::new(100, None);
        assert_eq!(replay_filter.strike(&hash(1), start), Strike::New);
        let after = replay_filter.strike(&hash(1), start + seconds(198));
        assert_eq!(after, Strike::New, "its memory has an end");
    }
}

#[test]
fn rfc8446_8_2_the_filter_rejects_everything_right_after_a_start() {
    let replay_filter = ReplayFilter::new(100, Some(NOW));
    assert_eq!(replay_filter.strike(&hash(1), NOW), Strike::Blind);
    let almost = before(NOW + DEPTH, Duration::from_nanos(1));
    assert_eq!(replay_filter.strike(&hash(1), almost), Strike::Blind);
    assert_eq!(replay_filter.strike(&hash(1), NOW + DEPTH), Strike::New);
    assert_eq!(replay_filter.strike(&hash(1), NOW + DEPTH), Strike::Seen);
}

#[test]
fn the_filter_rejects_while_the_clock_is_behind() {
    let replay_filter = ReplayFilter::new(100, None);
    assert_eq!(replay_filter.strike(&hash(1), NOW), Strike::New);
    let back = before(NOW, CLOCK_BACK_MAX);
    assert_eq!(replay_filter.strike(&hash(1), back), Strike::Seen);
    assert_eq!(replay_filter.strike(&hash(2), back), Strike::New);
    assert_eq!(
        replay_filter.strike(&hash(3), before(back, seconds(1))),
        Strike::Blind
    );
    // Forwards and back: what the jump deleted is not accepted again.
    let ahead = NOW + seconds(3600);
    assert_eq!(replay_filter.strike(&hash(4), ahead), Strike::New);
    assert_eq!(
        replay_filter.strike(&hash(1), NOW + seconds(1)),
        Strike::Blind
    );
    assert_eq!(
        replay_filter.strike(&hash(4), ahead + seconds(1)),
        Strike::Seen
    );
}

#[test]
fn a_full_filter_rejects_and_evicts_nothing() {
    let replay_filter = ReplayFilter::new(800, None);
    let struck: Vec<u64> = (0..2000)
        .filter(|number| replay_filter.strike(&hash(*number), NOW) == Strike::New)
        .collect();
    assert!(
        struck.len() > 720,
        "{} of 800 places were used",
        struck.len()
    );
    assert!(struck.len() <= 800);
    assert_eq!(replay_filter.strike(&hash(1_000_000), NOW), Strike::Full);
    for number in &struck {
        let again = replay_filter.strike(&hash(*number), NOW + seconds(66));
        assert_eq!(again, Strike::Seen);
    }
    // The next generation has its own slots.
    assert_eq!(
        replay_filter.strike(&hash(1_000_000), NOW + seconds(66)),
        Strike::New
    );
}

#[test]
fn a_fingerprint_of_zeros_is_recorded() {
    let replay_filter = ReplayFilter::new(1, None);
    assert_eq!(replay_filter.strike(&[0; 32], NOW), Strike::New);
    assert_eq!(replay_filter.strike(&[0; 32], NOW), Strike::Seen);
}

proptest! {
    /// Against a map that never deletes: what was recorded within the depth is never new again, and what is refused was
    /// recorded within the longest time, or there was no room, or the clock had gone back.
    #[test]
    fn arbitrary_strikes_match_a_naive_filter(
        count in prop_oneof![Just(1usize), Just(20), Just(4000)],
        strikes in vec((0..40u64, -60..120i64), 1..300),
    ) {
        let replay_filter = ReplayFilter::new(count, None);
        let mut naive = BTreeMap::<u64, WallTime>::new();
        let (mut now, mut latest) = (NOW, NOW);
        for (number, step) in strikes {
            let size = seconds(step.unsigned_abs());
            now = if step < 0 { before(now, size) } else { now + size };
            latest = latest.max(now);
            let age = naive.get(&number).map(|at| now.since(*at).max(at.since(now)));
            match replay_filter.strike(&hash(number), now) {
                Strike::New => {
                    prop_assert!(age.is_none_or(|age| age > DEPTH), "{age:?}");
                    naive.insert(number, now);
                }
                Strike::Seen => prop_assert!(age.is_some_and(|age| age <= seconds(198 + 10))),
                Strike::Full => prop_assert!(count < 4000),
                Strike::Blind => prop_assert!(now + CLOCK_BACK_MAX < latest),
            }
        }
    }
}
