use core::time::Duration;

use super::*;
use crate::rtt::Rtt;

fn pico_after(full: u64, rtt_ms: u64, datagram: u64) -> Pico {
    let mut rtt = Rtt::default();
    rtt.update(
        Time::ZERO,
        Duration::from_millis(rtt_ms),
        Duration::ZERO,
        None,
    );
    let mut pico = Pico::new(&Config::default());
    pico.on_congestion(&Reduction {
        now: Time::ZERO,
        full,
        is_measured: false,
        after: full / 2,
        cause: Cause::Loss,
        rtt: &rtt,
        max_datagram_size: datagram,
    });
    pico
}

#[test]
fn slope_matches_newreno_on_short_paths() {
    // 100 kB at 10 ms: CUBIC would need 1.447 / 0.3 × cbrt(0.75 × 78.125) / 0.01 × 1280 = 2.4 MB a datagram.
    assert_eq!(
        pico_after(100_000, 10, 1280).slope.bytes_per_datagram,
        Some(70_000)
    );
}

#[test]
fn slope_matches_cubic_on_long_fat_paths() {
    // 1.447 / 0.3 × cbrt(0.75 × 10_000_000 / 1280) / 0.2 × 1280 = 556 495 bytes a datagram; NewReno 7 MB.
    let slope = pico_after(10_000_000, 200, 1280).slope.bytes_per_datagram;
    assert!(
        slope.is_some_and(|bytes| bytes.abs_diff(556_495) < 200),
        "{slope:?}"
    );
}

#[test]
fn grows_by_whole_datagrams_and_carries_the_remainder() {
    let mut pico = pico_after(100_000, 10, 1000);
    let rtt = Rtt::default();
    let mut ack = |bytes, window| {
        pico.on_ack(&AvoidanceAck {
            now: Time::ZERO,
            bytes,
            window,
            rtt: &rtt,
            max_datagram_size: 1000,
        })
    };
    assert_eq!(ack(69_999, 50_000), 50_000);
    assert_eq!(ack(1, 50_000), 51_000);
    assert_eq!(ack(150_000, 51_000), 53_000);
    assert_eq!(ack(60_000, 53_000), 54_000); // 10 000 were left
}

#[test]
fn undo_restores_the_slope() {
    let mut pico = pico_after(100_000, 10, 1000);
    let rtt = Rtt::default();
    let before = pico.slope.bytes_per_datagram;
    pico.on_congestion(&Reduction {
        now: Time::ZERO,
        full: 50_000,
        is_measured: false,
        after: 35_000,
        cause: Cause::Loss,
        rtt: &rtt,
        max_datagram_size: 1000,
    });
    assert_ne!(pico.slope.bytes_per_datagram, before);
    pico.undo(0);
    assert_eq!(pico.slope.bytes_per_datagram, before);
}
