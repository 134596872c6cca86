use core::time::Duration;

use lastbyte_congestion::{ControllerFactory, Environment, Rtt, Spec};

use super::*;
use crate::recovery::{EcnValidation, LossThresholds, Outgoing};

const NOW: Time = Time::from_nanos(1_000_000_000);

/// A path of 100 ms with a window of ten packets.
fn recovery() -> Recovery {
    with_window("cubic:initial-window=10p")
}

fn with_window(spec: &str) -> Recovery {
    let spec: Spec = spec.parse().expect("a spec");
    let controller = spec.build(&Environment {
        max_datagram_size: 1200,
        seed: 1,
    });
    let mut rtt = Rtt::default();
    rtt.update(NOW, Duration::from_millis(100), Duration::ZERO, None);
    Recovery::new(
        controller,
        rtt,
        LossThresholds::fixed(),
        EcnValidation::disabled(),
    )
}

fn send(recovery: &mut Recovery) {
    let outgoing = Outgoing {
        space: Space::Application,
        bytes: 1200,
        is_ack_eliciting: true,
        is_in_flight: true,
        is_mtu_probe: false,
        is_off_path: false,
    };
    recovery.on_sent(NOW, &outgoing, []);
}

fn sender() -> Sender {
    Sender::new(&mut Random::new([1; 32]))
}

#[test]
fn a_full_window_permits_acknowledgments_and_probes() {
    let (mut sender, mut recovery) = (sender(), recovery());
    for _ in 0..9 {
        send(&mut recovery);
    }
    // One more fits the window; a larger one does not.
    assert_eq!(
        sender.permit(NOW, &mut recovery, 1201),
        Permit::AcksAndProbes
    );
    assert_eq!(sender.release_at(), None, "not for want of pacing");
    send(&mut recovery);
    assert_eq!(
        sender.permit(NOW, &mut recovery, 1200),
        Permit::AcksAndProbes
    );
}

#[test]
fn an_exhausted_pacer_returns_its_release_time() {
    let (mut sender, mut recovery) = (sender(), with_window("cubic:initial-window=100p"));
    let mut sent = 0;
    while sender.permit(NOW, &mut recovery, 1200) == Permit::All {
        send(&mut recovery);
        sent += 1;
    }
    assert!(recovery.window_left() >= 1200, "after {sent} packets");
    let release_at = sender.release_at().expect("a time");
    assert!(release_at > NOW);
    sender.on_timeout(NOW);
    assert_eq!(sender.release_at(), Some(release_at));
    sender.on_timeout(release_at);
    assert_eq!(sender.release_at(), None);
    assert_eq!(sender.permit(release_at, &mut recovery, 1200), Permit::All);
}

#[test]
fn probes_are_counted_for_each_space() {
    let mut sender = sender();
    sender.request_probes(Space::Handshake, 2);
    sender.take_probe(Space::Handshake);
    assert!(sender.has_probe(Space::Handshake));
    assert!(!sender.has_probe(Space::Application));
    sender.take_probe(Space::Handshake);
    sender.take_probe(Space::Handshake);
    assert!(!sender.has_probe(Space::Handshake));
    sender.request_probes(Space::Initial, 2);
    sender.discard(Space::Initial);
    assert!(!sender.has_probe(Space::Initial));
}

#[test]
fn rfc9000_21_4_packet_numbers_are_skipped_by_the_seed() {
    let skipped = |seed: u8| {
        let mut random = Random::new([seed; 32]);
        let mut sender = Sender::new(&mut random);
        let mut recovery = recovery();
        let mut skipped = Vec::new();
        for _ in 0..3000 {
            let next = recovery.sent(Space::Application).next_number();
            if sender.skip_if_due(NOW, &mut recovery, &mut random) {
                skipped.push(next);
            }
            send(&mut recovery);
        }
        skipped
    };
    let numbers = skipped(1);
    assert_eq!(numbers, skipped(1));
    assert_ne!(numbers, skipped(2));
    assert!((32..256).contains(&numbers[0]), "{numbers:?}");
    for pair in numbers.windows(2) {
        assert!((128..1152).contains(&(pair[1] - pair[0])), "{numbers:?}");
    }
    assert!(numbers.len() >= 3, "{numbers:?}");
}

#[test]
fn rfc9000_13_2_4_a_ping_is_due_after_many_acknowledgments() {
    let mut sender = sender();
    for _ in 0..NOT_ACK_ELICITING_MAX {
        assert!(!sender.needs_ping(Space::Application));
        sender.on_packet_sent(Space::Application, false);
    }
    assert!(sender.needs_ping(Space::Application));
    assert!(!sender.needs_ping(Space::Handshake));
    sender.on_packet_sent(Space::Application, true);
    assert!(!sender.needs_ping(Space::Application));
}

#[test]
fn each_path_has_its_own_pacer() {
    let (mut sender, mut recovery) = (sender(), with_window("cubic:initial-window=100p"));
    while sender.permit(NOW, &mut recovery, 1200) == Permit::All {
        send(&mut recovery);
    }
    assert!(
        sender
            .release_at()
            .is_some_and(|at| at.since(NOW) > Duration::ZERO)
    );
    sender.on_new_path();
    assert_eq!(sender.release_at(), None);
}
