use super::*;

#[test]
fn errors_name_the_guilty() {
    let error = FrameError {
        fault: FrameFault::EmptyToken,
        offset: 17,
        frame_type: Some(FrameType::NEW_TOKEN),
    };
    assert_eq!(
        error.to_string(),
        "NEW_TOKEN at byte 17: the token is empty"
    );
    let error = FrameError {
        fault: FrameFault::NotPermittedIn(PacketType::Initial),
        offset: 0,
        frame_type: Some(FrameType::STREAM),
    };
    assert_eq!(
        error.to_string(),
        "STREAM at byte 0: not permitted in an Initial packet"
    );
    let error = PacketError {
        fault: PacketFault::UnknownVersion(VersionNumber::new(0x1a2a_3a4a)),
        offset: 5,
    };
    assert_eq!(
        error.to_string(),
        "packet at byte 5: unknown version 0x1a2a3a4a"
    );
}

#[test]
fn only_authentic_packets_can_close_a_connection() {
    let error = |fault| PacketError { fault, offset: 0 };
    assert_eq!(
        error(PacketFault::ReservedBits).transport_error(),
        Some(TransportError::PROTOCOL_VIOLATION)
    );
    assert_eq!(error(PacketFault::FixedBit).transport_error(), None);
}
