use proptest::prelude::*;

use super::*;
use crate::{TransportError, frame::FrameType};

fn collect(payload: &[u8], packet_type: PacketType, sender: Side) -> Result<usize, FrameError> {
    Frames::new(payload, packet_type, sender)?.try_fold(0, |count, frame| frame.map(|_| count + 1))
}

#[test]
fn rfc9000_12_4_a_packet_without_frames_is_a_protocol_violation() {
    let error = collect(&[], PacketType::OneRtt, Side::Client).expect_err("is empty");
    assert_eq!(error.kind, FrameErrorKind::NoFrames);
    assert_eq!(error.transport_error(), TransportError::PROTOCOL_VIOLATION);
}

#[test]
fn rfc9000_12_5_forbidden_frames_are_protocol_violations() {
    let max_data = [0x01, 0x10, 7];
    assert_eq!(collect(&max_data, PacketType::ZeroRtt, Side::Client), Ok(2));
    let error = collect(&max_data, PacketType::Handshake, Side::Client).expect_err("is forbidden");
    assert_eq!(
        error.kind,
        FrameErrorKind::NotPermittedIn(PacketType::Handshake)
    );
    assert_eq!(error.offset, 1);
    assert_eq!(error.frame_type, Some(FrameType::MAX_DATA));
    assert_eq!(error.transport_error(), TransportError::PROTOCOL_VIOLATION);
    // Initial packets permit only the close of type 0x1c.
    assert!(collect(&[0x1d, 0, 0], PacketType::Initial, Side::Client).is_err());
    assert!(collect(&[0x1c, 0, 0, 0], PacketType::Initial, Side::Client).is_ok());
}

#[test]
fn rfc9000_19_20_handshake_done_from_a_client_is_a_protocol_violation() {
    assert_eq!(collect(&[0x1e], PacketType::OneRtt, Side::Server), Ok(1));
    let error = collect(&[0x1e], PacketType::OneRtt, Side::Client).expect_err("is forbidden");
    assert_eq!(error.kind, FrameErrorKind::NotPermittedFromClient);
    assert_eq!(error.transport_error(), TransportError::PROTOCOL_VIOLATION);
}

#[test]
fn unknown_types_are_reported_as_unknown_not_as_forbidden() {
    let error = collect(&[0x21], PacketType::Initial, Side::Client).expect_err("is unknown");
    assert_eq!(error.kind, FrameErrorKind::UnknownType);
}

#[test]
fn nothing_comes_after_an_error() {
    let payload = [0x01, 0x20, 0x01, 0x01];
    let mut frames = Frames::new(&payload, PacketType::OneRtt, Side::Client).expect("not empty");
    assert!(frames.next().is_some_and(|frame| frame.is_ok()));
    assert_eq!(frames.reader.position(), 1);
    assert!(frames.next().is_some_and(|frame| frame.is_err()));
    assert_eq!(frames.next(), None);
}

#[test]
fn a_run_of_padding_is_one_frame() {
    let payload = [0; 1200];
    assert_eq!(collect(&payload, PacketType::Initial, Side::Client), Ok(1));
}

proptest! {
    #[test]
    fn any_payload_terminates(payload in prop::collection::vec(prop_oneof![0_u8..0x32, any::<u8>()], 0..300)) {
        for packet_type in [PacketType::Initial, PacketType::ZeroRtt, PacketType::Handshake, PacketType::OneRtt] {
            if let Ok(frames) = Frames::new(&payload, packet_type, Side::Client) {
                let count = frames.count();
                prop_assert!(count <= payload.len());
            }
        }
    }
}
