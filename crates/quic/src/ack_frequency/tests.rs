use lastbyte_wire::frame::{Frame, Frames};

use super::*;

const PATH: PathState = PathState {
    window_packets: 100,
    loss_episodes: 1,
    packet_threshold: Some(3),
    probe_timeout: Duration::from_millis(50),
};

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn frame(room: &mut AckFrequencyOut) -> Option<(u64, u64, u64, u64)> {
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    room.write_frames(&mut writer, &mut |_| {});
    let written = writer.written();
    let (one_rtt, client) = (
        lastbyte_wire::packet::PacketType::OneRtt,
        lastbyte_wire::Side::Client,
    );
    let mut frames = Frames::new(written, one_rtt, client).ok()?;
    let Some(Ok(Frame::AckFrequency(frame))) = frames.next() else {
        return None;
    };
    Some((
        frame.sequence.get(),
        frame.ack_eliciting_threshold.get(),
        frame.max_ack_delay_us.get(),
        frame.reordering_threshold.get(),
    ))
}

fn room() -> AckFrequencyOut {
    let mut room = AckFrequencyOut::default();
    room.on_peer_parameters(true, Duration::from_millis(25));
    room
}

#[test]
fn no_ack_frequency_before_the_first_loss_episode_or_without_peer_support() {
    let mut startup = room();
    let calm = PathState {
        loss_episodes: 0,
        ..PATH
    };
    startup.update(at(0), &calm);
    assert_eq!(frame(&mut startup), None);
    let mut deaf = AckFrequencyOut::default();
    deaf.update(at(0), &PATH);
    assert_eq!(frame(&mut deaf), None);
}

#[test]
fn the_requested_frequency_follows_the_window_at_a_limited_rate() {
    let mut room = room();
    room.update(at(0), &PATH);
    assert_eq!(frame(&mut room), Some((0, 10, 25_000, 3)));
    assert_eq!(frame(&mut room), None);
    let small = PathState {
        window_packets: 30,
        ..PATH
    };
    room.update(at(199), &small);
    assert_eq!(frame(&mut room), None);
    room.update(at(200), &small);
    assert_eq!(frame(&mut room), Some((1, 3, 25_000, 3)));
    let tiny = PathState {
        window_packets: 10,
        packet_threshold: None,
        ..PATH
    };
    room.update(at(400), &tiny);
    assert_eq!(frame(&mut room), Some((2, 1, 25_000, 0)));
}

#[test]
fn only_the_latest_lost_frame_is_retransmitted() {
    let mut room = room();
    room.update(at(0), &PATH);
    assert!(frame(&mut room).is_some());
    room.on_new_path();
    assert!(frame(&mut room).is_some());
    room.on_lost(0);
    assert!(!room.wants_to_send());
    room.on_lost(1);
    assert_eq!(frame(&mut room), Some((2, 10, 25_000, 3)));
}
