use super::*;
use crate::packet::{PacketType, VersionNumber};

#[test]
fn errors_name_the_frame_and_the_offset() {
    let error = FrameError {
        kind: FrameErrorKind::EmptyToken,
        offset: 17,
        frame_type: Some(FrameType::NEW_TOKEN),
    };
    assert_eq!(
        error.to_string(),
        "NEW_TOKEN at byte 17: the token is empty"
    );
    let error = FrameError {
        kind: FrameErrorKind::NotPermittedIn(PacketType::Initial),
        offset: 0,
        frame_type: Some(FrameType::STREAM),
    };
    assert_eq!(
        error.to_string(),
        "STREAM at byte 0: not permitted in an Initial packet"
    );
    let error = PacketError {
        kind: PacketErrorKind::UnknownVersion(VersionNumber::new(0x1a2a_3a4a)),
        offset: 5,
    };
    assert_eq!(
        error.to_string(),
        "packet at byte 5: unknown version 0x1a2a3a4a"
    );
}
