//! C4 over short, deep and marking queues, and over jitter: the delay that it causes, and what it leaves to others.

use core::time::Duration;

use lastbyte_link::{Jitter, Spread};

use crate::{
    paths::bottleneck,
    shares::{dual_pi2, share},
};

#[test]
fn alone_it_fills_the_link_with_a_queue_of_a_millisecond() {
    for queue_ms in [10, 50] {
        let (mut shares, _) = share(bottleneck(40, 20, queue_ms), &["c4"], &[]);
        let (used, tail) = (shares.utilisation(), shares.wait_ms(0, 0.99));
        assert!(used > 0.97 && tail < 4.0, "{used}, {tail} ms of {queue_ms}");
    }
    // CUBIC fills whatever queue there is.
    let (mut shares, _) = share(bottleneck(40, 20, 50), &["cubic"], &[]);
    assert!(shares.wait_ms(0, 0.5) > 30.0);
}

#[test]
fn the_queue_that_initial_built_is_drained() {
    let (mut shares, _) = share(bottleneck(40, 20, 200), &["c4"], &[]);
    let median = shares.wait_ms(0, 0.5);
    assert!(shares.utilisation() > 0.97 && median < 5.0, "{median} ms");
}

#[test]
fn it_shares_with_its_like_and_with_others() {
    for queue_ms in [10, 20, 50] {
        for other in ["c4", "cubic", "bbr", "rapid-start"] {
            let (shares, _) = share(bottleneck(40, 20, queue_ms), &["c4", other], &[]);
            let (part, used) = (shares.first(), shares.utilisation());
            assert!(
                (0.4..=0.8).contains(&part) && used > 0.95,
                "{part} beside {other}, {used} used, {queue_ms} ms"
            );
        }
    }
}

#[test]
fn over_dualpi2_marks_keep_its_queue_short_and_nobody_starves() {
    let (mut shares, outcome) = share(dual_pi2(), &["c4"], &[]);
    let (used, tail) = (shares.utilisation(), shares.wait_ms(0, 0.99));
    assert!(used > 0.87 && tail < 8.0, "{used}, {tail} ms");
    assert_eq!(outcome.down.dropped_total().packets, 0);
    let (mut shares, _) = share(dual_pi2(), &["c4", "cubic"], &[]);
    let (part, tail) = (shares.first(), shares.wait_ms(0, 0.99));
    assert!(
        (0.5..=0.9).contains(&part) && tail < 8.0,
        "{part}, {tail} ms"
    );
}

#[test]
fn jitter_does_not_take_its_rate() {
    let path = || {
        let mut path = bottleneck(40, 20, 200);
        path.up.jitter = Some(Jitter {
            spread: Spread::Uniform(Duration::from_millis(60)),
            may_reorder: false,
        });
        path
    };
    let (mut c4, _) = share(path(), &["c4"], &[]);
    let (mut cubic, _) = share(path(), &["cubic"], &[]);
    let (c4_wait, cubic_wait) = (c4.wait_ms(0, 0.5), cubic.wait_ms(0, 0.5));
    assert!(c4.utilisation() > 0.92, "{}", c4.utilisation());
    assert!(c4_wait < cubic_wait / 2.0, "{c4_wait} and {cubic_wait} ms");
}
