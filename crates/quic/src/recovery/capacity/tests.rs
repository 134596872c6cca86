use core::time::Duration;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// A path of 100 ms whose latest sample is `latest`.
fn rtt(latest: u64) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(at(0), ms(100), Duration::ZERO, None);
    for _ in 0..100 {
        rtt.update(at(0), ms(latest), Duration::ZERO, None);
    }
    rtt
}

#[test]
fn rfc9959_3_1_the_window_is_what_a_round_trip_acknowledges() {
    let mut capacity = Capacity::new(10_000);
    for step in 0..=20 {
        capacity.on_ack(at(step * 10), step * 5000, &rtt(100));
    }
    let saved = capacity.take_offer(Time::ZERO, &rtt(100));
    assert_eq!(
        saved,
        Some(SavedPath {
            window: 50_000,
            rtt: ms(100)
        })
    );
}

#[test]
fn rfc9959_4_1_a_queue_is_not_capacity() {
    let mut capacity = Capacity::new(10_000);
    for step in 0..=100 {
        capacity.on_ack(at(step * 10), step * 5000, &rtt(400));
    }
    assert_eq!(capacity.window, 50_000, "a round trip of 400 ms has 200 kB");
}

#[test]
fn rfc9959_3_1_less_than_four_initial_windows_is_not_saved_and_later_only_twice_as_much() {
    let mut capacity = Capacity::new(10_000);
    let rtt = rtt(100);
    let mut acked = 0;
    let mut offers = [39_999, 40_000, 79_999, 20_000, 80_000, 160_000]
        .into_iter()
        .enumerate()
        .map(|(round, bytes)| {
            if round == 0 {
                capacity.on_ack(at(0), 0, &rtt);
            }
            acked += bytes;
            capacity.on_ack(at(100 * (round as u64 + 1)), acked, &rtt);
            capacity
                .take_offer(Time::ZERO, &rtt)
                .map(|saved| saved.window)
        });
    let offers: [Option<u64>; 6] = core::array::from_fn(|_| offers.next().expect("six"));
    let expected = [None, Some(40_000), None, None, Some(80_000), Some(160_000)];
    assert_eq!(offers, expected);
}

#[test]
fn a_pause_and_any_numbers_do_no_harm() {
    let mut capacity = Capacity::new(u64::MAX);
    capacity.on_ack(at(0), 0, &Rtt::default());
    capacity.on_ack(at(0), u64::MAX, &Rtt::default());
    capacity.on_ack(at(3_600_000), u64::MAX, &rtt(100));
    capacity.on_ack(at(3_600_001), 0, &rtt(100));
    assert_eq!(capacity.take_offer(Time::ZERO, &rtt(100)), None);
}
