use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Applies samples (at, RTT) in milliseconds and returns the growth factor per round trip after each.
fn factors(threshold: QueueThreshold, samples: &[(u64, Option<u64>)]) -> Vec<u64> {
    let mut startup = RapidStart::new(threshold);
    let mut rtt = Rtt::default();
    samples
        .iter()
        .map(|(at, sample)| {
            let now = Time::ZERO + ms(*at);
            if let Some(sample) = sample {
                rtt.update(now, ms(*sample), Duration::ZERO, None);
            }
            let growth = startup.on_ack(&StartupAck {
                now,
                bytes: 1000,
                delivered: 0,
                sent: 0,
                in_flight: 0,
                window: 10_000,
                largest_acked: 0,
                next: 0,
                rtt: &rtt,
                rtt_sample: sample.map(ms),
            });
            assert!(!growth.done);
            1 + growth.bytes / 1000
        })
        .collect()
}

#[test]
fn the_draft_uses_the_smaller_threshold_and_quicly_the_larger() {
    let both = |millis| {
        [QueueThreshold::Min, QueueThreshold::Max]
            .map(|rule| rule.round_trip(ms(millis)).as_micros())
    };
    // min_rtt + 4 ms, × 1.10 (draft) or × 35/32 (quicly)
    assert_eq!(both(10), [11_000, 14_000]);
    assert_eq!(both(40), [44_000, 44_000]);
    assert_eq!(both(100), [104_000, 109_375]);
}

#[test]
fn triples_while_the_path_is_empty_and_doubles_with_a_queue() {
    let samples = [
        (100, Some(40)),
        (110, Some(44)),
        (160, Some(45)),
        (165, Some(60)),
    ];
    assert_eq!(factors(QueueThreshold::Min, &samples), [3, 3, 2, 2]);
}

#[test]
fn one_small_sample_is_valid_for_a_round_trip() {
    // The slots of 10 ms: the sample of 100 ms has expired from 140 ms on.
    let samples = [
        (100, Some(40)),
        (120, Some(60)),
        (139, Some(60)),
        (140, Some(60)),
    ];
    assert_eq!(factors(QueueThreshold::Min, &samples), [3, 3, 3, 2]);
}

#[test]
fn tripling_resumes_when_the_queue_drains() {
    let samples = [(100, Some(40)), (200, Some(70)), (240, Some(41))];
    assert_eq!(factors(QueueThreshold::Min, &samples), [3, 2, 3]);
}

#[test]
fn doubles_without_a_recent_sample() {
    let samples = [(0, None), (100, Some(40)), (150, None)];
    assert_eq!(factors(QueueThreshold::Min, &samples), [2, 3, 2]);
}

#[test]
fn quicly_does_not_triple_below_4_ms() {
    let samples = [(100, Some(3)), (101, Some(3))];
    assert_eq!(factors(QueueThreshold::Max, &samples), [2, 2]);
    assert_eq!(factors(QueueThreshold::Min, &samples), [3, 3]);
}

#[test]
fn paces_three_windows_a_round_trip_while_tripling() {
    let mut startup = RapidStart::new(QueueThreshold::Min);
    assert!((startup.pacing_gain() - 2.0).abs() < f64::EPSILON);
    startup.tripling = true;
    assert!((startup.pacing_gain() - 3.0).abs() < f64::EPSILON);
}

/// The growth of a flow of ten packets a round, of which the round-trip times are these, for each packet acknowledged; and whether
/// startup ended.
fn rounds(hystart_exit: bool, rtts: &[u64]) -> (Vec<u64>, bool) {
    let settings = [("hystart-exit", crate::spec::Value::Switch(hystart_exit))];
    let mut startup = RapidStart::of(&settings.into_iter().collect());
    let (mut rtt, mut at, mut number, mut done) = (Rtt::default(), 0, 0, false);
    let mut growths = Vec::new();
    for sample in rtts {
        for _ in 0..10 {
            at += sample / 10;
            rtt.update(Time::ZERO + ms(at), ms(*sample), Duration::ZERO, None);
            let growth = startup.on_ack(&StartupAck {
                now: Time::ZERO + ms(at),
                bytes: 1000,
                delivered: 0,
                sent: 0,
                in_flight: 0,
                window: 10_000,
                largest_acked: number,
                next: number + 10,
                rtt: &rtt,
                rtt_sample: Some(ms(*sample)),
            });
            number += 1;
            growths.push(growth.bytes);
            done |= growth.done;
        }
    }
    (growths, done)
}

#[test]
fn rfc9406_4_2_hystart_beside_rapid_growth_slows_it_and_ends_startup_before_a_loss() {
    // Doubled as soon as there is a queue; a round later the queue has grown by more than an eighth.
    let queue = [40, 40, 46, 60, 60, 60, 60, 60, 60, 60, 60];
    let (growths, done) = rounds(true, &queue);
    assert_eq!(growths[19], 2000);
    assert_eq!(growths[29], 250);
    assert!(growths[30..].iter().all(|bytes| *bytes == 250));
    assert!(done);
    let (growths, done) = rounds(false, &queue);
    assert_eq!((growths[19], growths[39], done), (2000, 1000, false));
    // The delay was none of the queue: growth goes on as it was.
    let (growths, done) = rounds(true, &[40, 40, 46, 40, 40, 40, 40, 40, 40, 40]);
    assert_eq!((growths[29], growths[99], done), (250, 2000, false));
}
