use super::*;
use crate::{controller::Receipt, rtt::Rtt};

const SIZE: u64 = 1000;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// A sampler and the state of its transport.
#[derive(Default)]
struct Sender {
    sampler: DeliveryRateSampler,
    in_flight: u64,
    send_index: u64,
}

impl Sender {
    fn send(&mut self, millis: u64) -> Packet {
        self.in_flight += SIZE;
        let delivery = self.sampler.on_sent(&Sent {
            now: at(millis),
            bytes: SIZE,
            in_flight: self.in_flight,
            rtt: &Rtt::default(),
        });
        self.send_index += 1;
        Packet {
            bytes: SIZE,
            sent_at: at(millis),
            receipt: Receipt::with_delivery(self.send_index - 1, delivery),
        }
    }

    fn ack(&mut self, millis: u64, packets: &[Packet]) -> RateSample {
        for packet in packets {
            self.in_flight -= packet.bytes;
            self.sampler.on_packet_acked(at(millis), packet);
        }
        self.sampler
            .take_sample(ms(100))
            .expect("a packet was acknowledged")
    }

    fn lose(&mut self, packet: &Packet) {
        self.in_flight -= packet.bytes;
        self.sampler.on_packet_lost(packet);
    }
}

fn rate(sample: &RateSample) -> u64 {
    sample
        .rate
        .expect("an interval of an RTT or more")
        .bytes_per_second()
}

#[test]
fn steady_flow_measures_its_own_rate() {
    // One packet of 1000 bytes each 10 ms, acknowledged 100 ms later: 100 kB/s.
    let mut sender = Sender::default();
    let mut packets = Vec::new();
    for step in 0..40 {
        packets.push(sender.send(step * 10));
        if step >= 10 {
            let sample = sender.ack(step * 10, &[packets[step as usize - 10]]);
            assert_eq!(sample.newly_acked, SIZE);
            assert_eq!(sample.rtt, ms(100));
            if step > 20 {
                assert_eq!(rate(&sample), 100_000);
            }
        }
    }
}

#[test]
fn compressed_acks_are_capped_by_the_send_rate() {
    let mut sender = Sender::default();
    let packets: Vec<_> = (0..11).map(|step| sender.send(step * 100)).collect();
    // All are acknowledged within 1 ms, although they took a second to send.
    sender.ack(1100, &packets[..1]);
    let sample = sender.ack(1101, &packets[1..]);
    assert_eq!(sample.delivered, 11 * SIZE);
    assert_eq!(sample.interval, ms(1101));
    // A later flight: what is delivered since it was sent, over the time it took to send.
    let packets: Vec<_> = (0..3).map(|step| sender.send(2000 + step * 100)).collect();
    sender.ack(2210, &packets[..1]);
    let sample = sender.ack(2211, &packets[1..]);
    assert_eq!(sample.interval, ms(211));
}

#[test]
fn stretched_acks_are_measured_by_the_time_they_took() {
    let mut sender = Sender::default();
    let packets: Vec<_> = (0..10).map(|_| sender.send(0)).collect();
    for (index, packet) in packets.iter().enumerate() {
        let sample = sender.ack(100 + 50 * index as u64, &[*packet]);
        let delivered = SIZE * (index as u64 + 1);
        assert_eq!(sample.delivered, delivered);
        assert_eq!(rate(&sample), delivered * 1000 / (100 + 50 * index as u64));
    }
}

#[test]
fn samples_use_the_newest_packet_in_any_order_of_acknowledgment() {
    let mut forward = Sender::default();
    let first = forward.send(0);
    let second = forward.send(0);
    let mut backward = Sender {
        sampler: forward.sampler.clone(),
        ..forward
    };
    let sample = forward.ack(100, &[first, second]);
    assert_eq!(sample, backward.ack(100, &[second, first]));
    assert_eq!(sample.in_flight, 2 * SIZE);
}

#[test]
fn interval_below_the_minimum_rtt_has_no_rate() {
    let mut sender = Sender::default();
    let packet = sender.send(0);
    let sample = sender.ack(99, &[packet]);
    assert_eq!(sample.rate, None);
    assert_eq!(sample.delivered, SIZE);
}

#[test]
fn interval_of_zero_has_no_rate() {
    let mut sampler = DeliveryRateSampler::default();
    let packet = Packet {
        bytes: u64::MAX,
        sent_at: Time::MAX,
        receipt: Receipt::default(),
    };
    sampler.on_packet_acked(Time::ZERO, &packet);
    // Sent after it was acknowledged: times ran backwards, and there must be no effect.
    let sample = sampler
        .take_sample(Duration::ZERO)
        .expect("a packet was acknowledged");
    assert_eq!(sample.interval, Time::MAX.since(Time::ZERO));
    let packet = Packet {
        sent_at: Time::ZERO,
        ..packet
    };
    sampler.on_packet_acked(Time::ZERO, &packet);
    assert_eq!(
        sampler
            .take_sample(Duration::ZERO)
            .expect("a packet was acknowledged")
            .rate,
        None
    );
}

#[test]
fn idle_time_is_excluded_from_an_interval() {
    let mut sender = Sender::default();
    let packet = sender.send(0);
    sender.ack(100, &[packet]);
    let packet = sender.send(60_000);
    let sample = sender.ack(60_100, &[packet]);
    assert_eq!(sample.interval, ms(100));
}

#[test]
fn app_limited_mark_lasts_until_its_flight_is_delivered() {
    let mut sender = Sender::default();
    let before = sender.send(0);
    sender.sampler.on_app_limited(sender.in_flight);
    let marked = sender.send(50);
    assert!(!sender.ack(100, &[before]).app_limited);
    assert!(
        sender.sampler.is_app_limited(),
        "not more than the mark is delivered"
    );
    assert!(sender.ack(150, &[marked]).app_limited);
    assert!(!sender.sampler.is_app_limited());
    let after = sender.send(200);
    assert!(!sender.ack(300, &[after]).app_limited);
}

#[test]
fn losses_count_from_the_send_time_of_the_sampled_packet() {
    let mut sender = Sender::default();
    let packets: Vec<_> = (0..4).map(|_| sender.send(0)).collect();
    sender.lose(&packets[0]);
    let late = sender.send(10);
    sender.lose(&packets[1]);
    assert_eq!(sender.sampler.lost_since(&packets[1]), 2 * SIZE);
    assert_eq!(sender.ack(110, &[late]).lost, SIZE);
}

#[test]
fn spurious_loss_is_delivered_once() {
    let mut sender = Sender::default();
    let packets: Vec<_> = (0..2).map(|_| sender.send(0)).collect();
    sender.lose(&packets[0]);
    sender.sampler.on_spurious_loss(at(105), &packets[0]);
    assert!(
        sender.sampler.take_sample(ms(100)).is_none(),
        "no packet in flight was acknowledged"
    );
    let sample = sender.ack(110, &packets[1..]);
    assert_eq!(sample.delivered, 2 * SIZE);
    assert_eq!(sample.newly_acked, 2 * SIZE);
    assert_eq!(sender.sampler.delivered(), 2 * SIZE);
}

#[test]
fn counts_saturate() {
    let mut sender = Sender::default();
    let packet = Packet {
        bytes: u64::MAX,
        ..sender.send(0)
    };
    for _ in 0..2 {
        sender.sampler.on_packet_lost(&packet);
        sender.sampler.on_packet_acked(Time::MAX, &packet);
    }
    sender.sampler.on_app_limited(u64::MAX);
    let sample = sender
        .sampler
        .take_sample(Duration::MAX)
        .expect("a packet was acknowledged");
    assert_eq!((sample.delivered, sample.lost), (u64::MAX, u64::MAX));
}
