//! The filters and episodes in isolation, without a path.

use core::time::Duration;

use super::{ms, path::SIZE, secs};
use crate::{
    Bandwidth, Bbr, Controller, Packet, RateSample, Receipt, Rtt, Sent, Time,
    bbr::{
        Config,
        full_pipe::FullPipe,
        mode::Mode,
        model::{ExtraAcked, MaxBandwidth, MinRtt, Rounds},
    },
};

const fn rate(bytes_per_second: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(bytes_per_second)
}

fn at(time: Duration) -> Time {
    Time::ZERO + time
}

const fn sample(bytes_per_second: u64, app_limited: bool) -> RateSample {
    RateSample {
        rate: Some(rate(bytes_per_second)),
        delivered: 0,
        interval: Duration::ZERO,
        prior_delivered: 0,
        in_flight: 0,
        lost: 0,
        newly_acked: 0,
        rtt: Duration::ZERO,
        app_limited,
    }
}

#[test]
fn maximum_covers_this_cycle_and_the_previous_one() {
    let mut filter = MaxBandwidth::default();
    filter.on_sample(&sample(100, false));
    filter.on_sample(&sample(80, false));
    filter.advance();
    assert_eq!(filter.value(), rate(100));
    filter.on_sample(&sample(60, false));
    filter.advance();
    assert_eq!(filter.value(), rate(60));
    // Nothing was measured in this cycle: only the earlier ones count.
    filter.advance();
    filter.advance();
    assert_eq!(filter.value(), rate(60));
}

#[test]
fn application_limited_samples_count_only_if_larger() {
    let mut filter = MaxBandwidth::default();
    filter.on_sample(&sample(100, false));
    filter.advance();
    filter.on_sample(&sample(99, true));
    filter.advance();
    assert_eq!(filter.value(), rate(100));
    filter.on_sample(&sample(101, true));
    assert_eq!(filter.value(), rate(101));
}

#[test]
fn pipe_is_full_after_three_rounds_without_a_quarter_more() {
    let mut pipe = FullPipe::default();
    let full = |pipe: &mut FullPipe, bytes, app_limited| {
        pipe.on_round(&sample(bytes, app_limited));
        pipe.is_now
    };
    assert!(!full(&mut pipe, 1000, false));
    assert!(!full(&mut pipe, 1249, false));
    assert!(!full(&mut pipe, 1249, false));
    assert!(!full(&mut pipe, 1250, false), "grew by a quarter");
    assert!(!full(&mut pipe, 1250, false));
    assert!(!full(&mut pipe, 1250, false));
    assert!(!full(&mut pipe, 1250, true), "of the application's making");
    assert!(full(&mut pipe, 1250, false));
    pipe.restart(Bandwidth::ZERO);
    assert!(pipe.is_reached && !pipe.is_now);
}

#[test]
fn min_rtt_lasts_ten_seconds_and_is_updated_by_probe_rtt_min() {
    let mut filter = MinRtt::default();
    let mut see = |time, rtt| {
        filter.on_sample(at(time), rtt);
        (filter.value(), filter.is_probe_due)
    };
    assert_eq!(see(secs(0), ms(50)), (Some(ms(50)), false));
    assert_eq!(see(secs(1), ms(60)), (Some(ms(50)), false));
    assert_eq!(see(secs(5), ms(60)), (Some(ms(50)), false));
    assert_eq!(see(ms(5001), ms(60)), (Some(ms(50)), true));
    assert_eq!(see(secs(6), ms(55)), (Some(ms(50)), false));
    assert_eq!(see(secs(10), ms(70)), (Some(ms(50)), false));
    assert_eq!(see(ms(10_001), ms(70)), (Some(ms(55)), false));
    assert_eq!(see(ms(10_002), ms(40)), (Some(ms(40)), false));
}

#[test]
fn extra_acked_is_what_exceeds_the_rate_in_ten_rounds() {
    let mut filter = ExtraAcked::default();
    let mut rounds = Rounds::default();
    let mut ack = |millis, bytes, window, starts_round: bool| {
        rounds.started = starts_round;
        rounds.count += u64::from(starts_round);
        // 1000 bytes in a millisecond are expected.
        filter.on_ack(at(ms(millis)), bytes, rate(1_000_000), window, &rounds);
        (filter.value(&rounds, false), filter.value(&rounds, true))
    };
    assert_eq!(ack(10, 5000, 100_000, true), (5000, 5000));
    assert_eq!(ack(11, 5000, 100_000, false), (9000, 9000));
    assert_eq!(
        ack(12, 5000, 12_000, false),
        (12_000, 12_000),
        "no more than the window"
    );
    // 15 kB in 20 ms are less than expected: the episode is over.
    assert_eq!(ack(30, 2000, 100_000, true), (2000, 12_000));
    for round in 0..8 {
        assert_eq!(ack(100 + 50 * round, 1000, 100_000, true), (1000, 12_000));
    }
    assert_eq!(
        ack(600, 1000, 100_000, true),
        (1000, 2000),
        "ten rounds later"
    );
}

#[test]
fn losses_lower_bounds_by_30_percent_per_round_but_not_below_delivery() {
    let mut bbr = Bbr::new(Config {
        initial_window: 100_000,
        max_datagram_size: SIZE,
        seed: 0,
        burst: None,
    });
    bbr.max_bandwidth.on_sample(&sample(1_000_000, false));
    bbr.losses.note(0);
    bbr.adapt_lower_bounds();
    assert!(
        bbr.bounds.bandwidth_shortterm.is_unlimited(),
        "not in Startup"
    );
    bbr.mode = Mode::ProbeBandwidthCruise;
    let mut adapt = |bandwidth_latest, in_flight_latest| {
        bbr.losses.bandwidth_latest = rate(bandwidth_latest);
        bbr.losses.in_flight_latest = in_flight_latest;
        bbr.adapt_lower_bounds();
        bbr.update_window(0);
        (
            bbr.bounds.bandwidth_shortterm.bytes_per_second(),
            bbr.bounds.in_flight_shortterm,
            bbr.window(),
        )
    };
    assert_eq!(adapt(0, 0), (700_000, 70_000, 70_000));
    assert_eq!(adapt(600_000, 60_000), (600_000, 60_000, 60_000));
    assert_eq!(adapt(0, 0), (420_000, 42_000, 42_000));
}

#[test]
fn longterm_bound_falls_by_at_most_30_percent() {
    let mut bbr = Bbr::new(Config {
        initial_window: 100_000,
        max_datagram_size: SIZE,
        seed: 0,
        burst: None,
    });
    bbr.cycle.is_probe_sample = true;
    let packet = Packet {
        bytes: SIZE,
        sent_at: Time::ZERO,
        receipt: Receipt::default(),
    };
    bbr.on_packet_lost(at(ms(100)), &packet);
    assert_eq!(bbr.bounds.in_flight_longterm, 70_000);
    assert!(!bbr.cycle.is_probe_sample, "once a probe");
}

#[test]
fn an_earlier_spurious_episode_is_undone_with_the_latest() {
    let mut bbr = Bbr::new(Config {
        initial_window: 10 * SIZE,
        max_datagram_size: SIZE,
        seed: 0,
        burst: None,
    });
    let rtt = Rtt::default();
    let send = |bbr: &mut Bbr, millis| {
        let now = at(ms(millis));
        let sent = Sent {
            now,
            bytes: SIZE,
            in_flight: 5 * SIZE,
            rtt: &rtt,
        };
        Packet {
            bytes: SIZE,
            sent_at: now,
            receipt: bbr.on_sent(&sent),
        }
    };
    let first = [send(&mut bbr, 0), send(&mut bbr, 0)];
    bbr.on_packet_lost(at(ms(100)), &first[0]);
    bbr.on_packet_lost(at(ms(100)), &first[1]);
    bbr.bounds.in_flight_shortterm = 70_000;
    let second = [send(&mut bbr, 100), send(&mut bbr, 100)];
    bbr.on_packet_acked(at(ms(200)), &second[1]);
    bbr.on_packet_lost(at(ms(200)), &second[0]);
    bbr.bounds.in_flight_shortterm = 49_000;
    assert_eq!(bbr.statistics.loss_episodes, 2);
    bbr.on_spurious_loss(at(ms(201)), &first[0]);
    bbr.on_spurious_loss(at(ms(201)), &first[1]);
    assert_eq!(bbr.statistics.episodes_undone, 1);
    assert_eq!(
        bbr.bounds.in_flight_shortterm, 49_000,
        "the latest may be real"
    );
    bbr.on_spurious_loss(at(ms(202)), &second[0]);
    assert_eq!(bbr.statistics.episodes_undone, 2);
    assert_eq!(bbr.bounds.in_flight_shortterm, u64::MAX);
    // A later loss of earlier packets is an episode that can be undone as well.
    bbr.on_packet_lost(at(ms(203)), &second[1]);
    bbr.on_spurious_loss(at(ms(204)), &second[1]);
    assert_eq!(bbr.statistics.episodes_undone, 3);
}
