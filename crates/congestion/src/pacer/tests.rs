use super::*;
use crate::bandwidth::Bandwidth;

const DATAGRAM: u64 = 1200;

fn pacing(mbit: u64) -> Pacing {
    Pacing::at(Bandwidth::from_bits_per_second(mbit * 1_000_000), DATAGRAM)
}

const fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

/// Sends single datagrams as soon as the pacer permits; returns when each was sent, in microseconds.
fn departures(pacing: &Pacing, count: usize) -> Vec<u64> {
    let mut pacer = Pacer::new();
    let mut now = Time::ZERO;
    let mut departures = Vec::new();
    while departures.len() < count {
        if pacer.budget(now, pacing) >= DATAGRAM {
            pacer.on_sent(now, DATAGRAM, pacing);
            departures.push(now.as_nanos() / 1000);
        } else {
            now = pacer.next_release(now, pacing).expect("a time to wait for");
        }
    }
    departures
}

#[test]
fn first_flight_is_paced_over_half_an_rtt_or_one() {
    // 30 datagrams over 20 ms, or 60 over 40 ms: 14.4 Mb/s either way. Ten are sent at once, the rest in pairs.
    let rate = Bandwidth::from_delivery(30 * DATAGRAM, Duration::from_millis(20));
    assert_eq!(
        rate,
        Bandwidth::from_delivery(60 * DATAGRAM, Duration::from_millis(40))
    );
    let departures = departures(&Pacing::at(rate, DATAGRAM), 60);
    assert_eq!(departures[..10], [0; 10]);
    assert_eq!(departures[10..16], [1333, 1333, 2666, 2666, 4000, 4000]);
    assert_eq!(departures[59], 33_333);
}

#[test]
fn quantum_grows_with_the_rate_up_to_what_one_send_can_carry() {
    let quantum = |mbit| pacing(mbit).quantum;
    assert_eq!(quantum(1), 2 * DATAGRAM);
    assert_eq!(quantum(100), 12_500); // 1 ms of 100 Mb/s
    assert_eq!(quantum(10_000), 64 * 1024);
}

#[test]
fn nothing_is_released_until_a_quantum_has_accumulated() {
    let pacing = pacing(100);
    let mut pacer = Pacer::new();
    let burst = pacer.budget(at(0), &pacing);
    pacer.on_sent(at(0), burst, &pacing);
    assert_eq!(pacer.next_release(at(0), &pacing), Some(at(1000)));
    assert_eq!(pacer.budget(at(999), &pacing), 0);
    assert_eq!(pacer.budget(at(1000), &pacing), 12_500);
    // The rest of a release needs no further accumulation.
    pacer.on_sent(at(1000), 10_000, &pacing);
    assert_eq!(pacer.budget(at(1000), &pacing), 2_500);
}

#[test]
fn a_pause_fills_the_bucket_at_most() {
    let pacing = pacing(100);
    let mut pacer = Pacer::new();
    assert_eq!(pacer.budget(at(0), &pacing), pacing.burst);
    pacer.on_sent(at(0), pacing.burst, &pacing);
    assert_eq!(pacer.budget(at(60_000_000), &pacing), pacing.burst);
}

#[test]
fn probes_above_the_rate_delay_later_packets_by_at_most_a_burst() {
    let pacing = pacing(100);
    let mut pacer = Pacer::new();
    for _ in 0..1000 {
        pacer.on_sent(at(0), pacing.burst, &pacing);
    }
    let release = pacer.next_release(at(0), &pacing).expect("a time");
    assert_eq!(
        release.since(at(0)),
        pacing.rate.time_for(pacing.burst + pacing.quantum)
    );
}

#[test]
fn unpaced_bytes_count_once_pacing_starts() {
    let mut pacer = Pacer::new();
    assert_eq!(pacer.budget(at(0), &Pacing::UNLIMITED), u64::MAX);
    assert_eq!(pacer.next_release(at(0), &Pacing::UNLIMITED), None);
    pacer.on_sent(at(0), 36_000, &Pacing::UNLIMITED);
    // 40 ms later the rate is known, and has filled the bucket in the meantime; at once it would be empty.
    assert_eq!(pacer.clone().budget(at(40_000), &pacing(12)), 12_000);
    assert_eq!(pacer.budget(at(0), &pacing(12)), 0);
}

#[test]
fn a_rate_of_zero_releases_the_burst_and_then_nothing() {
    let pacing = Pacing {
        rate: Bandwidth::ZERO,
        ..pacing(12)
    };
    let mut pacer = Pacer::new();
    assert_eq!(pacer.budget(at(0), &pacing), 12_000);
    pacer.on_sent(at(0), 12_000, &pacing);
    assert_eq!(pacer.next_release(at(0), &pacing), Some(Time::MAX));
}

#[test]
fn decreasing_time_adds_no_credit() {
    let pacing = pacing(100);
    let mut pacer = Pacer::new();
    pacer.on_sent(at(1000), pacing.burst, &pacing);
    assert_eq!(pacer.budget(at(0), &pacing), 0);
    assert_eq!(pacer.budget(at(1000), &pacing), 0);
}
