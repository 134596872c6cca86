//! The life of each packet, beside what else was recorded of a transfer.

use lastbyte_congestion::Time;
use lastbyte_link as link;
use lastbyte_scenario::Scenario;
use lastbyte_sim::{
    recorder::{Life, Recorder, Recording},
    simulate,
};

use crate::paths::{bottleneck, transfer};

fn recorded(scenario: &Scenario) -> (Recording, usize) {
    let direction = scenario.direction();
    let mut recorder = Recorder::new(0, direction, Time::ZERO, scenario.path.overhead);
    let outcome = simulate(scenario, &mut recorder).expect("a scenario");
    (recorder.into_recording(), outcome.flows[0].drops.len())
}

#[test]
fn each_packet_is_at_one_place_at_each_moment() {
    let mut lossy = bottleneck(20, 40, 100);
    lossy.down.loss = vec![link::Loss::Bernoulli(0.02)];
    for (path, spec) in [
        (bottleneck(20, 40, 30), "slow-start"),
        (bottleneck(20, 40, 30), "rapid-start"),
        (lossy, "bbr"),
    ] {
        let scenario = transfer(path, spec, 400_000);
        let overhead = u64::from(scenario.path.overhead);
        let (recording, drops) = recorded(&scenario);
        let lives = &recording.lives;
        assert_eq!(lives.len(), recording.sent.len(), "{spec}");
        assert!(drops > 0, "{spec}");
        let dropped = lives.iter().filter(|life| life.dropped.is_some()).count();
        // A datagram of the handshake has several packets.
        assert!(
            (drops..drops + 3).contains(&dropped),
            "{spec}: {dropped} {drops}"
        );
        for life in lives {
            assert!(
                life.arrived.is_none() || life.dropped.is_none(),
                "{spec}: {life:?}"
            );
            let Life {
                sent,
                queued,
                served,
                arrived,
                ack_sent,
                acked,
                ..
            } = *life;
            let times: Vec<_> = [Some(sent), queued, served, arrived, ack_sent, acked]
                .into_iter()
                .flatten()
                .collect();
            assert!(times.is_sorted(), "{spec}: {life:?}");
            assert!(
                life.acked.is_none() || life.ack_sent.is_some(),
                "{spec}: {life:?}"
            );
        }
        // At the end, an acknowledgment of the sender may be on its way.
        let places = |life: &&Life| life.arrived.is_some() || life.dropped.is_some();
        assert!(
            lives.iter().filter(places).count() + 2 >= lives.len(),
            "{spec}"
        );
        // What is in the queue by the lives of packets is the depth that the link reports, at the last report of each time.
        for (index, (at, depth)) in recording.queue.iter().enumerate() {
            if recording
                .queue
                .get(index + 1)
                .is_some_and(|(next, _)| next == at)
            {
                continue;
            }
            let waits = |life: &&Life| {
                life.queued.is_some_and(|from| from <= *at) && life.served.is_none_or(|to| to > *at)
            };
            let bytes: u64 = lives.iter().filter(waits).map(|life| life.bytes).sum();
            let count = lives.iter().filter(waits).count() as u64;
            // Packets of one datagram have its overhead once.
            let least = bytes + count.saturating_sub(2) * overhead;
            assert!(
                (least..=bytes + count * overhead).contains(depth),
                "{spec}: {at:?} {bytes} {depth}"
            );
        }
    }
}
