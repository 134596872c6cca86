use core::ops::RangeInclusive;

use lastbyte_congestion::{ControllerFactory, Environment, Phase, Spec};
use lastbyte_wire::{
    Reader, VarInt, Writer,
    frame::{AckReport, EcnCounts, Frame},
    packet::PacketNumber,
};

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const CONFIRMED: TimerContext = TimerContext {
    max_ack_delay: ms(25),
    is_handshake_confirmed: true,
    has_handshake_keys: false,
    is_amplification_limited: false,
    must_keep_alive: false,
};

/// The receipts returned, by offset: packet n carries CRYPTO data at offset n.
#[derive(Default)]
struct Fates {
    acked: Vec<u64>,
    lost: Vec<u64>,
}

impl ReceiptSink for Fates {
    fn acked(&mut self, _: Space, receipt: Receipt) {
        self.acked.extend(offset(receipt));
    }

    fn lost(&mut self, _: Space, receipt: Receipt) {
        self.lost.extend(offset(receipt));
    }
}

fn offset(receipt: Receipt) -> Option<u64> {
    match receipt {
        Receipt::Crypto { offset, .. } => Some(offset),
        _ => None,
    }
}

struct Path {
    recovery: Recovery,
    now: Time,
    fates: Fates,
}

impl Path {
    fn new(spec: &str) -> Self {
        let spec: Spec = spec.parse().expect("a spec");
        let controller = spec.build(&Environment {
            max_datagram_size: 1200,
            seed: 1,
        });
        Self {
            recovery: Recovery::new(
                controller,
                Rtt::default(),
                LossThresholds::fixed(),
                EcnValidation::new(),
            ),
            now: Time::from_nanos(1_000_000_000),
            fates: Fates::default(),
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    fn send(&mut self, space: Space) {
        self.send_as(space, false);
    }

    fn send_as(&mut self, space: Space, is_mtu_probe: bool) {
        let offset = self.recovery.sent(space).next_number();
        let outgoing = Outgoing {
            space,
            bytes: 1200,
            is_ack_eliciting: true,
            is_in_flight: true,
            is_mtu_probe,
            is_off_path: false,
        };
        let receipt = Receipt::Crypto { offset, len: 1 };
        self.recovery.on_sent(self.now, &outgoing, [receipt]);
    }

    fn send_many(&mut self, count: usize) {
        (0..count).for_each(|_| self.send(Space::Application));
    }

    /// An ACK frame with these ranges, the largest first.
    fn ack(&mut self, ranges: &[RangeInclusive<u32>]) -> Result<AckOutcome, AckedUnsent> {
        self.ack_in(Space::Application, ranges, None)
    }

    fn ack_in(
        &mut self,
        space: Space,
        ranges: &[RangeInclusive<u32>],
        ecn: Option<EcnCounts>,
    ) -> Result<AckOutcome, AckedUnsent> {
        let numbers = ranges
            .iter()
            .map(|range| PacketNumber::from(*range.start())..=PacketNumber::from(*range.end()));
        let report = AckReport {
            ranges: numbers,
            delay: VarInt::ZERO,
            ecn,
        };
        let mut buffer = [0; 1200];
        let mut writer = Writer::new(&mut buffer);
        report.encode(&mut writer, 1200, 512).expect("fits");
        let Ok(Frame::Ack(frame)) = Frame::decode(&mut Reader::new(writer.written())) else {
            panic!("an ACK frame");
        };
        let ack = IncomingAck {
            now: self.now,
            space,
            frame: &frame,
            ack_delay: Duration::ZERO,
            max_ack_delay: Some(ms(25)),
            resets_pto_count: true,
        };
        self.recovery.on_ack(&ack, &mut self.fates, &mut ())
    }

    fn time_out(&mut self) -> Expired {
        self.recovery
            .on_timeout(self.now, &CONFIRMED, &mut self.fates, &mut ())
    }

    fn deadline(&self) -> Option<Duration> {
        Some(self.recovery.deadline(&CONFIRMED)?.since(self.now))
    }

    fn phase(&self) -> Phase {
        self.recovery.congestion().phase
    }
}

#[test]
fn rfc9002_a_7_a_round_trip_by_hand() {
    let mut path = Path::new("newreno:initial-window=10p");
    path.send_many(10);
    assert_eq!(
        (path.recovery.in_flight(), path.recovery.window_left()),
        (12_000, 0)
    );
    path.pass(ms(100));
    let outcome = path.ack(&[0..=3]).expect("sent");
    assert_eq!(outcome.newly_acked, 4);
    assert_eq!(path.recovery.rtt().smoothed(), ms(100));
    assert_eq!(path.recovery.in_flight(), 7200);
    assert_eq!(path.recovery.window_left(), 12_000 + 4800 - 7200);
    assert_eq!(path.fates.acked, [0, 1, 2, 3]);
    // The same frame again has no effect.
    assert_eq!(path.ack(&[0..=3]), Ok(AckOutcome::default()));
}

#[test]
fn rfc9002_6_1_losses_by_packet_threshold_then_by_time_threshold() {
    let mut path = Path::new("newreno:initial-window=10p");
    path.send_many(6);
    path.pass(ms(100));
    let outcome = path.ack(&[4..=4]).expect("sent");
    // 4 − 1 ≥ 3: 0 and 1 are lost; 2 and 3 are lost 112.5 ms after they were sent.
    assert_eq!((outcome.newly_acked, outcome.lost), (1, 2));
    assert_eq!(path.fates.lost, [0, 1]);
    assert_eq!(path.phase(), Phase::Recovery);
    assert_eq!(path.recovery.in_flight(), 3600);
    assert_eq!(path.deadline(), Some(Duration::from_micros(12_500)));
    assert_eq!(path.time_out(), Expired::Nothing);
    path.pass(Duration::from_micros(12_500));
    assert_eq!(path.time_out(), Expired::Lost);
    assert_eq!(path.fates.lost, [0, 1, 2, 3]);
    assert_eq!(path.recovery.in_flight(), 1200);
    let statistics = path.recovery.statistics();
    assert_eq!(
        (statistics.packets_lost, statistics.packets_lost_by_time),
        (4, 2)
    );
}

#[test]
fn rfc9002_6_2_4_a_probe_timeout_declares_nothing_lost() {
    let mut path = Path::new("newreno:initial-window=10p");
    path.send_many(1);
    path.pass(ms(100));
    path.ack(&[0..=0]).expect("sent");
    path.send_many(2);
    // 100 + 4 × 50 + 25
    assert_eq!(path.deadline(), Some(ms(325)));
    path.pass(ms(325));
    assert_eq!(path.time_out(), Expired::Probe(Space::Application));
    assert_eq!(path.recovery.in_flight(), 2400);
    assert!(path.fates.lost.is_empty());
    path.send_many(1);
    assert_eq!(path.deadline(), Some(ms(650)));
    path.pass(ms(100));
    path.ack(&[3..=3]).expect("sent");
    // The probe was acknowledged, so the packets before it are lost: sent 425 ms ago.
    assert_eq!(path.fates.lost, [1, 2]);
    assert_eq!(path.recovery.in_flight(), 0);
    assert_eq!(path.deadline(), None);
}

#[test]
fn rfc9002_7_6_2_persistent_congestion_starts_from_the_minimum_window() {
    // With the second sample the variance is 37.5 ms. (100 + 150 + 25) × 3 = 825 ms between the first and the last
    // packet lost is not enough; a little more is.
    for (gap, window) in [(ms(825), 10 * 1200 + 600), (ms(826), 2 * 1200)] {
        let mut path = Path::new("newreno:initial-window=20p");
        path.send_many(1);
        path.pass(ms(100));
        path.ack(&[0..=0]).expect("sent");
        path.pass(ms(1)); // only packets sent after the first sample count
        path.send_many(1);
        path.pass(gap);
        path.send_many(1);
        path.pass(ms(1));
        path.send_many(3);
        path.pass(ms(100));
        let outcome = path.ack(&[5..=5]).expect("sent");
        assert_eq!(outcome.lost, 2, "1 and 2");
        assert_eq!(path.recovery.congestion().window, window, "after {gap:?}");
    }
}

#[test]
fn rfc9002_7_6_2_no_persistent_congestion_across_an_acknowledged_packet() {
    let mut path = Path::new("newreno:initial-window=20p");
    path.send_many(1);
    path.pass(ms(100));
    path.ack(&[0..=0]).expect("sent");
    path.send_many(1); // 1
    path.pass(ms(600));
    path.send_many(1); // 2, which arrives
    path.pass(ms(600));
    path.send_many(5); // 3 to 7
    path.pass(ms(100));
    let outcome = path.ack(&[7..=7, 2..=2]).expect("sent");
    assert_eq!(outcome.lost, 3, "1, 3 and 4");
    assert!(path.recovery.congestion().window > 2400);
}

/// Each repeated range costs a search, and takes two bytes of an ACK frame.
#[test]
fn an_ack_frame_is_read_up_to_128_ranges_without_news() {
    let mut path = Path::new("newreno:initial-window=500p");
    path.send_many(500);
    let ranges = |count: u32| {
        (0..count)
            .map(|index| 499 - 2 * index)
            .map(|number| number..=number)
    };
    let ranges = |count: u32| ranges(count).collect::<Vec<RangeInclusive<u32>>>();
    let acked = |path: &mut Path, count: u32| path.ack(&ranges(count)).expect("sent").newly_acked;
    assert_eq!(acked(&mut path, 127), 127);
    assert_eq!(acked(&mut path, 128), 1, "after 127 that are known");
    assert_eq!(acked(&mut path, 200), 0, "after 128 that are known");
    // News before them changes nothing about that.
    path.send_many(2);
    let mut with_news = ranges(200);
    with_news.insert(0, 501..=501);
    assert_eq!(path.ack(&with_news).expect("sent").newly_acked, 1);
}

#[test]
fn a_late_packet_undoes_the_episode_and_is_counted() {
    let mut path = Path::new("cubic:initial-window=20p");
    path.send_many(20);
    path.pass(ms(100));
    path.ack(&[5..=5]).expect("sent");
    assert_eq!(path.fates.lost, [0, 1, 2]);
    assert_eq!(path.phase(), Phase::Recovery);
    path.pass(ms(5));
    let outcome = path.ack(&[0..=5]).expect("sent");
    assert_eq!((outcome.newly_acked, outcome.late), (5, 3));
    assert_eq!(path.phase(), Phase::Startup);
    assert_eq!(path.recovery.statistics().packets_late, 3);
    assert_eq!(
        path.recovery.in_flight(),
        14 * 1200,
        "late packets were not in flight any more"
    );
}

#[test]
fn rfc9002_7_1_a_rise_of_the_ce_count_is_congestion() {
    let mut path = Path::new("newreno:initial-window=10p");
    path.send_many(10);
    path.pass(ms(100));
    let counts = |ect0: u32, ce: u32| {
        Some(EcnCounts {
            ect0: VarInt::from_u32(ect0),
            ect1: VarInt::ZERO,
            ce: VarInt::from_u32(ce),
        })
    };
    let one_to_four: RangeInclusive<u32> = 0..=3;
    let outcome = path
        .ack_in(Space::Application, &[one_to_four], counts(3, 1))
        .expect("sent");
    assert_eq!(outcome.newly_marked, 1);
    assert_eq!(path.recovery.congestion().window, 6000);
    assert_eq!(path.recovery.congestion().statistics.ecn_episodes, 1);
    assert_eq!(path.recovery.ecn().state(), EcnState::Capable);
    // Further marks of the same flight change nothing.
    let up_to_nine: RangeInclusive<u32> = 0..=9;
    path.ack_in(Space::Application, &[up_to_nine], counts(6, 4))
        .expect("sent");
    assert_eq!(path.recovery.congestion().window, 6000);
}

#[test]
fn rfc9000_14_4_a_lost_mtu_probe_is_not_congestion() {
    let mut path = Path::new("newreno:initial-window=20p");
    path.send_as(Space::Application, true);
    path.send_many(5);
    path.pass(ms(100));
    let outcome = path.ack(&[1..=5]).expect("sent");
    assert_eq!(outcome.lost, 1);
    assert_eq!(path.fates.lost, [0]);
    assert_eq!(path.phase(), Phase::Startup);
    assert_eq!(path.recovery.in_flight(), 0);
}

#[test]
fn rfc9002_6_4_discarded_packets_leave_flight_neither_acked_nor_lost() {
    let mut path = Path::new("newreno:initial-window=20p");
    path.send(Space::Initial);
    path.send(Space::Handshake);
    path.recovery.discard_space(path.now, Space::Initial);
    assert_eq!(path.recovery.in_flight(), 1200);
    assert!(path.fates.lost.is_empty() && path.fates.acked.is_empty());
    assert_eq!(path.phase(), Phase::Startup);
    // An ACK of discarded packets acknowledges nothing.
    let zero: RangeInclusive<u32> = 0..=0;
    assert_eq!(
        path.ack_in(Space::Initial, &[zero], None),
        Ok(AckOutcome::default())
    );
}

#[test]
fn rfc9000_13_1_an_ack_of_an_unsent_packet_is_an_error() {
    let mut path = Path::new("newreno:initial-window=20p");
    path.send_many(3);
    assert_eq!(path.ack(&[0..=3]), Err(AckedUnsent { number: 3 }));
}

#[test]
fn spaces_share_the_window_but_not_packet_numbers() {
    let mut path = Path::new("newreno:initial-window=10p");
    path.send(Space::Initial);
    path.send(Space::Handshake);
    path.send(Space::Application);
    assert_eq!(path.recovery.in_flight(), 3600);
    path.pass(ms(50));
    for space in Space::ALL {
        let zero: RangeInclusive<u32> = 0..=0;
        let outcome = path.ack_in(space, &[zero], None).expect("sent");
        assert_eq!(outcome.newly_acked, 1, "{space:?}");
    }
    assert_eq!(path.recovery.in_flight(), 0);
}

#[test]
fn idle_periods_are_reported_to_the_controller() {
    let mut path = Path::new("newreno:initial-window=10p,idle=rfc5681");
    path.send_many(10);
    path.pass(ms(100));
    path.ack(&[0..=9]).expect("sent");
    assert_eq!(path.recovery.congestion().window, 24_000);
    path.recovery.on_app_limited(path.now);
    path.pass(ms(2000));
    path.send_many(1);
    assert_eq!(path.recovery.congestion().window, 12_000);
}

#[test]
fn steady_traffic_keeps_the_ring_as_small_as_the_flight() {
    let mut path = Path::new("cubic:initial-window=100p");
    path.send_many(100);
    for round in 0..1000_u32 {
        path.pass(ms(1));
        path.ack(&[round..=round]).expect("sent");
        path.send_many(1);
    }
    assert_eq!(path.recovery.sent(Space::Application).len(), 100);
    assert_eq!(path.recovery.statistics().ring_max, 101 - 1);
}

#[test]
fn cached_pacing_is_updated_after_each_change() {
    let mut path = Path::new("rapid-start");
    let mut rates = Vec::new();
    let mut check = |path: &mut Path| {
        let pacing = path.recovery.pacing();
        assert_eq!(path.recovery.control.pacer().1, pacing);
        rates.push(pacing.rate);
    };
    for round in 0..4 {
        path.send_many(10);
        check(&mut path);
        path.pass(ms(50 + round));
        let largest = round as u32 * 10 + 9;
        path.ack(&[largest - 9..=largest - 5]).expect("sent");
        check(&mut path);
        path.ack(&[largest..=largest]).expect("sent");
        check(&mut path);
        path.recovery.on_app_limited(path.now);
        path.recovery.on_mtu(1200 + round);
        check(&mut path);
    }
    rates.dedup();
    assert!(rates.len() >= 6, "{rates:?}");
}

#[test]
fn being_app_limited_ends_with_the_next_event() {
    let mut path = Path::new("bbr");
    let events: [fn(&mut Path); 3] = [
        |path| path.send_many(1),
        |path| {
            path.ack(&[0..=0]).expect("sent");
        },
        |path| path.recovery.on_mtu(1300),
    ];
    assert!(!path.recovery.is_app_limited());
    for event in events {
        path.recovery.on_app_limited(path.now);
        path.pass(ms(50));
        // Time alone changes nothing, nor does a repeated call.
        assert!(path.recovery.is_app_limited());
        let before = format!("{:?}", path.recovery.control);
        path.recovery.on_app_limited(path.now);
        assert_eq!(format!("{:?}", path.recovery.control), before);
        event(&mut path);
        assert!(!path.recovery.is_app_limited());
    }
}

/// RFC 9000 §9.4: packets sent before the change contribute neither to congestion control nor to the RTT estimate.
#[test]
fn rfc9000_9_4_after_a_rebinding_earlier_packets_change_neither_window_nor_rtt() {
    let mut path = Path::new("newreno:initial-window=10p");
    path.send_many(1);
    path.pass(ms(20));
    path.ack(&[0..=0]).expect("sent");
    path.send_many(8); // 1..=8
    let (window, rtt) = (
        path.recovery.congestion().window,
        path.recovery.rtt().clone(),
    );
    let now = path.now;
    assert!(path.recovery.rebind(now, &mut path.fates));
    assert_eq!(path.recovery.in_flight(), 0);
    path.pass(ms(1000));
    path.send_many(4); // 9..=12
    path.pass(ms(500));
    // Two had passed before the change, and the others are lost by both thresholds.
    path.ack(&[1..=2]).expect("sent");
    assert_eq!(path.fates.acked, [0, 1, 2]);
    assert_eq!(*path.recovery.rtt(), rtt);
    path.ack(&[12..=12]).expect("sent");
    assert_eq!(path.fates.lost, [3, 4, 5, 6, 7, 8, 9]);
    let state = path.recovery.congestion();
    assert_eq!(state.statistics.loss_episodes, 1, "packet 9 is of now");
    assert!(state.window >= window / 2, "no persistent congestion");
    assert_eq!(path.recovery.rtt().latest(), ms(500));
    // One was only late: no reduction is undone for it.
    let window = state.window;
    path.ack(&[12..=12, 8..=8]).expect("sent");
    assert_eq!(path.recovery.congestion().window, window);
}

/// A sender that forgot its flight with each change could be made to ignore congestion.
#[test]
fn a_second_rebinding_within_a_round_trip_leaves_packets_in_flight() {
    let mut path = Path::new("newreno:initial-window=10p");
    path.send_many(1);
    path.pass(ms(20));
    path.ack(&[0..=0]).expect("sent");
    path.send_many(8);
    let rebind = |path: &mut Path| {
        let now = path.now;
        path.recovery.rebind(now, &mut path.fates)
    };
    assert!(rebind(&mut path));
    path.send_many(5);
    path.pass(ms(19));
    assert!(!rebind(&mut path));
    assert_eq!(path.recovery.in_flight(), 5 * 1200);
    path.pass(ms(1));
    assert!(rebind(&mut path));
    assert_eq!(path.recovery.in_flight(), 0);
}
