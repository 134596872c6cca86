use super::*;

const CAUSE: CloseCause = CloseCause::Transport {
    error: TransportError::PROTOCOL_VIOLATION,
    frame_type: FrameType::PING,
};

#[test]
fn the_reason_is_truncated_at_a_character_boundary() {
    let reason = "größer".as_bytes();
    let close = ConnectionClose {
        cause: CAUSE,
        reason,
    };
    // Type, error code, frame type and length take one byte each.
    let cut = |space| close.fit(space).map(|close| close.reason.len());
    assert_eq!(cut(3), None);
    assert_eq!(cut(4), Some(0));
    assert_eq!(cut(6), Some(2)); // gr
    assert_eq!(cut(7), Some(2)); // ö takes two
    assert_eq!(cut(8), Some(4));
    assert_eq!(cut(9), Some(4)); // ß too
    assert_eq!(cut(10), Some(6));
    assert_eq!(cut(12), Some(reason.len()));
    assert_eq!(cut(usize::MAX), Some(reason.len()));
}

#[test]
fn a_reason_that_is_not_utf8_is_truncated_at_any_byte() {
    let close = ConnectionClose {
        cause: CloseCause::Application {
            error_code: VarInt::ZERO,
        },
        reason: &[0x80; 10],
    };
    let cut = close.fit(8).expect("fits");
    assert_eq!(cut.reason.len(), 5);
    assert_eq!(cut.encoded_len(), 8);
}
