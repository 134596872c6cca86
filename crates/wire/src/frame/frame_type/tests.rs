use super::*;

/// RFC 9000 Table 3, transcribed independently in another form: type, name, (Initial, Handshake, 0-RTT, 1-RTT),
/// ack-eliciting.
type Expected = (u32, &'static str, [u8; 4], u8);

const EXPECTED: [Expected; 33] = [
    (0x00, "PADDING", [1, 1, 1, 1], 0),
    (0x01, "PING", [1, 1, 1, 1], 1),
    (0x02, "ACK", [1, 1, 0, 1], 0),
    (0x03, "ACK_ECN", [1, 1, 0, 1], 0),
    (0x04, "RESET_STREAM", [0, 0, 1, 1], 1),
    (0x05, "STOP_SENDING", [0, 0, 1, 1], 1),
    (0x06, "CRYPTO", [1, 1, 0, 1], 1),
    (0x07, "NEW_TOKEN", [0, 0, 0, 1], 1),
    (0x08, "STREAM", [0, 0, 1, 1], 1),
    (0x09, "STREAM", [0, 0, 1, 1], 1),
    (0x0a, "STREAM", [0, 0, 1, 1], 1),
    (0x0b, "STREAM", [0, 0, 1, 1], 1),
    (0x0c, "STREAM", [0, 0, 1, 1], 1),
    (0x0d, "STREAM", [0, 0, 1, 1], 1),
    (0x0e, "STREAM", [0, 0, 1, 1], 1),
    (0x0f, "STREAM", [0, 0, 1, 1], 1),
    (0x10, "MAX_DATA", [0, 0, 1, 1], 1),
    (0x11, "MAX_STREAM_DATA", [0, 0, 1, 1], 1),
    (0x12, "MAX_STREAMS", [0, 0, 1, 1], 1),
    (0x13, "MAX_STREAMS", [0, 0, 1, 1], 1),
    (0x14, "DATA_BLOCKED", [0, 0, 1, 1], 1),
    (0x15, "STREAM_DATA_BLOCKED", [0, 0, 1, 1], 1),
    (0x16, "STREAMS_BLOCKED", [0, 0, 1, 1], 1),
    (0x17, "STREAMS_BLOCKED", [0, 0, 1, 1], 1),
    (0x18, "NEW_CONNECTION_ID", [0, 0, 1, 1], 1),
    (0x19, "RETIRE_CONNECTION_ID", [0, 0, 1, 1], 1),
    (0x1a, "PATH_CHALLENGE", [0, 0, 1, 1], 1),
    (0x1b, "PATH_RESPONSE", [0, 0, 0, 1], 1),
    (0x1c, "CONNECTION_CLOSE", [1, 1, 1, 1], 0),
    (0x1d, "APPLICATION_CLOSE", [0, 0, 1, 1], 0),
    (0x1e, "HANDSHAKE_DONE", [0, 0, 0, 1], 1),
    (0x1f, "IMMEDIATE_ACK", [0, 0, 0, 1], 1),
    (0xaf, "ACK_FREQUENCY", [0, 0, 0, 1], 1),
];

#[test]
fn rfc9000_12_4_table_3_in_full() {
    const PACKETS: [PacketType; 4] = [
        PacketType::Initial,
        PacketType::Handshake,
        PacketType::ZeroRtt,
        PacketType::OneRtt,
    ];
    for (code, name, packets, ack_eliciting) in EXPECTED {
        let frame_type = FrameType::from(VarInt::from_u32(code));
        assert_eq!(frame_type.name(), Some(name));
        assert_eq!(
            PACKETS.map(|packet| u8::from(frame_type.check(packet, Side::Server).is_ok())),
            packets,
            "{code:#x} {name}"
        );
        assert_eq!(
            u8::from(frame_type.is_ack_eliciting()),
            ack_eliciting,
            "{code:#x} {name}"
        );
    }
}

#[test]
fn rfc9000_19_7_and_19_20_two_frames_are_server_only() {
    for (code, ..) in EXPECTED {
        let frame_type = FrameType::from(VarInt::from_u32(code));
        let from = |sender| frame_type.check(PacketType::OneRtt, sender).is_ok();
        assert!(from(Side::Server));
        assert_eq!(
            from(Side::Client),
            code != 0x07 && code != 0x1e,
            "{frame_type}"
        );
    }
}

#[test]
fn other_types_are_unknown_and_permitted_nowhere() {
    for code in (0x20..0xaf).chain(0xb0..0x400) {
        let frame_type = FrameType::from(VarInt::from_u32(code));
        assert_eq!(frame_type.name(), None);
        assert!(frame_type.check(PacketType::OneRtt, Side::Server).is_err());
        assert!(!frame_type.is_ack_eliciting());
        assert_eq!(frame_type.to_string(), format!("frame type {code:#x}"));
    }
    assert_eq!(FrameType::from(VarInt::MAX).name(), None);
}
