use core::num::NonZeroUsize;

use proptest::prelude::*;

use super::*;
use crate::{ConnectionId, StatelessResetToken, StreamCount, TransportError, VarInt};

/// The number of frame types that [`build`] can build: all but ACK, which has its own tests.
const KINDS: usize = 22;

/// Random field values for a frame.
#[derive(Clone, Debug)]
struct Parts {
    kind: usize,
    integers: [u64; 4],
    bytes: Vec<u8>,
    array: [u8; 16],
    flag: bool,
}

impl Parts {
    fn varints(&self) -> [VarInt; 4] {
        self.integers
            .map(|value| VarInt::new(value).expect("in range"))
    }

    /// An offset that leaves space for the data.
    fn offset(&self) -> VarInt {
        VarInt::saturating(self.integers[1].min(VarInt::MAX.get() - 1000))
    }
}

fn integer() -> impl Strategy<Value = u64> {
    (0..=VarInt::MAX.get(), 0..62).prop_map(|(value, shift)| value >> shift)
}

fn parts() -> impl Strategy<Value = Parts> {
    (
        0..KINDS,
        prop::array::uniform4(integer()),
        prop::collection::vec(any::<u8>(), 1..300),
        any::<[u8; 16]>(),
        any::<bool>(),
    )
        .prop_map(|(kind, integers, bytes, array, flag)| Parts {
            kind,
            integers,
            bytes,
            array,
            flag,
        })
}

fn build(parts: &Parts) -> Frame<'_> {
    let [a, b, c, _] = parts.varints();
    let offset = parts.offset();
    let data = parts.bytes.as_slice();
    match parts.kind {
        0 => Frame::Padding(Padding {
            len: NonZeroUsize::new(data.len()).expect("is not empty"),
        }),
        1 => Frame::Ping(Ping),
        2 => Frame::ResetStream(ResetStream {
            stream_id: a.into(),
            error_code: b,
            final_size: c,
        }),
        3 => Frame::StopSending(StopSending {
            stream_id: a.into(),
            error_code: b,
        }),
        4 => Frame::Crypto(Crypto { offset, data }),
        5 => Frame::NewToken(NewToken::new(data).expect("is not empty")),
        6 => Frame::Stream(Stream {
            header: StreamHeader {
                id: a.into(),
                offset,
                fin: parts.flag,
            },
            data,
        }),
        7 => Frame::MaxData(MaxData { maximum: a }),
        8 => Frame::MaxStreamData(MaxStreamData {
            stream_id: a.into(),
            maximum: b,
        }),
        kind => build_remaining(kind, parts),
    }
}

fn build_remaining(kind: usize, parts: &Parts) -> Frame<'_> {
    let [a, b, c, d] = parts.varints();
    let count = StreamCount::new(a.get() >> 2).expect("in range");
    let direction = if parts.flag {
        Direction::Bidirectional
    } else {
        Direction::Unidirectional
    };
    let data = parts.bytes.as_slice();
    let [challenge, _] = parts.array.as_chunks().0 else {
        unreachable!("16 bytes split into two halves of 8")
    };
    match kind {
        9 => Frame::MaxStreams(MaxStreams {
            direction,
            maximum: count,
        }),
        10 => Frame::DataBlocked(DataBlocked { limit: a }),
        11 => Frame::StreamDataBlocked(StreamDataBlocked {
            stream_id: a.into(),
            limit: b,
        }),
        12 => Frame::StreamsBlocked(StreamsBlocked {
            direction,
            limit: count,
        }),
        13 => {
            let id = ConnectionId::new(&data[..data.len().min(20)]).expect("20 bytes at most");
            let token = StatelessResetToken::new(parts.array);
            let frame = NewConnectionId::new(a.max(b), a.min(b), id, token);
            Frame::NewConnectionId(frame.expect("is legal"))
        }
        14 => Frame::RetireConnectionId(RetireConnectionId { sequence: a }),
        15 => Frame::PathChallenge(PathChallenge { data: *challenge }),
        16 => Frame::PathResponse(PathResponse { data: *challenge }),
        17 => Frame::ConnectionClose(ConnectionClose {
            cause: CloseCause::Transport {
                error: a.into(),
                frame_type: b.into(),
            },
            reason: data,
        }),
        18 => Frame::ConnectionClose(ConnectionClose {
            cause: CloseCause::Application { error_code: a },
            reason: data,
        }),
        19 => Frame::HandshakeDone(HandshakeDone),
        20 => Frame::ImmediateAck(ImmediateAck),
        _ => Frame::AckFrequency(AckFrequency {
            sequence: a,
            ack_eliciting_threshold: b,
            max_ack_delay_us: VarInt::from_u32((c.get() % 16_384_000) as u32),
            reordering_threshold: d,
        }),
    }
}

fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = vec![0xee; frame.encoded_len()];
    let mut writer = Writer::new(&mut buffer);
    frame.encode(&mut writer).expect("fits exactly");
    assert_eq!(writer.remaining(), 0, "{frame:?}");
    buffer
}

fn decode(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    Frame::decode(&mut Reader::new(bytes))
}

fn error_kind(bytes: &[u8]) -> FrameErrorKind {
    decode(bytes).expect_err("is invalid").kind
}

proptest! {
    #[test]
    fn decode_inverts_encode(parts in parts()) {
        let frame = build(&parts);
        let bytes = encode(&frame);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(Frame::decode(&mut reader), Ok(frame));
        prop_assert!(reader.is_empty());
        prop_assert!(frame.frame_type().name().is_some());
    }

    #[test]
    fn a_truncated_frame_is_an_error_and_never_another_frame(parts in parts()) {
        let frame = build(&parts);
        let bytes = encode(&frame);
        for cut in 0..bytes.len() {
            match (frame, decode(&bytes[..cut])) {
                // A truncated run of PADDING frames is a shorter run.
                (Frame::Padding(_), Ok(Frame::Padding(run))) => prop_assert_eq!(run.len.get(), cut),
                (_, result) => {
                    let error = result.expect_err("is truncated");
                    prop_assert_eq!(error.kind, FrameErrorKind::Truncated);
                    prop_assert!(error.offset <= cut);
                }
            }
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_writes_nothing(parts in parts()) {
        let frame = build(&parts);
        for space in 0..frame.encoded_len() {
            let mut buffer = vec![0; space];
            let mut writer = Writer::new(&mut buffer);
            prop_assert_eq!(frame.encode(&mut writer), Err(BufferFull));
            prop_assert_eq!(writer.position(), 0);
        }
    }

    #[test]
    fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::new(&bytes);
        match Frame::decode(&mut reader) {
            // A decoded frame can be encoded, and decodes to the same value.
            Ok(frame) => {
                let again = encode(&frame);
                prop_assert_eq!(decode(&again), Ok(frame));
            }
            Err(error) => prop_assert!(error.offset <= bytes.len()),
        }
    }

    /// Starts with a known type, so that decoding reaches the fields.
    #[test]
    fn any_fields_decode_or_fail(
        frame_type in 0_u8..0x34,
        bytes in prop::collection::vec(prop_oneof![0_u8..8, any::<u8>()], 0..100),
    ) {
        let bytes = [&[frame_type], &bytes[..]].concat();
        if let Ok(frame) = decode(&bytes) {
            let again = encode(&frame);
            prop_assert_eq!(decode(&again), Ok(frame));
            if let Frame::Ack(ack) = frame {
                let mut above = None;
                for range in ack.ranges() {
                    prop_assert!(range.start() <= range.end());
                    prop_assert!(above.is_none_or(|above| range.end().get() + 1 < above));
                    above = Some(range.start().get());
                }
            }
        }
    }
}

#[test]
fn rfc9000_12_4_frame_type_must_be_shortest_varint() {
    for bytes in [
        &[0x40, 0x01][..],
        &[0x80, 0, 0, 0x01],
        &[0xc0, 0, 0, 0, 0, 0, 0, 0x01],
        &[0x80, 0, 0, 0xaf, 0, 0, 0, 0],
    ] {
        let error = decode(bytes).expect_err("is not the shortest");
        assert_eq!(error.kind, FrameErrorKind::TypeNotShortest);
        assert_eq!(error.transport_error(), TransportError::PROTOCOL_VIOLATION);
    }
    assert!(decode(&[0x40, 0xaf, 0, 0, 0, 0]).is_ok());
    // Other fields may use longer encodings.
    assert_eq!(
        decode(&[0x10, 0x40, 0x07]),
        Ok(Frame::MaxData(MaxData {
            maximum: VarInt::from_u32(7)
        }))
    );
}

#[test]
fn rfc9000_12_4_unknown_frame_types_are_frame_encoding_errors() {
    for bytes in [&[0x20][..], &[0x32], &[0x40, 0x40], &[0xff; 8]] {
        let error = decode(bytes).expect_err("is unknown");
        assert_eq!(error.kind, FrameErrorKind::UnknownType);
        assert_eq!(
            error.transport_error(),
            TransportError::FRAME_ENCODING_ERROR
        );
    }
}

#[test]
fn rfc9000_19_7_an_empty_token_is_a_frame_encoding_error() {
    assert_eq!(error_kind(&[0x07, 0]), FrameErrorKind::EmptyToken);
    assert_eq!(NewToken::new(&[]), None);
}

#[test]
fn rfc9000_19_11_and_19_14_stream_counts_are_at_most_2_to_the_60() {
    for frame_type in [0x12, 0x13, 0x16, 0x17] {
        let mut bytes = [frame_type, 0xd0, 0, 0, 0, 0, 0, 0, 0];
        assert!(decode(&bytes).is_ok());
        bytes[8] = 1;
        assert_eq!(error_kind(&bytes), FrameErrorKind::StreamCountAboveLimit);
    }
}

#[test]
fn rfc9000_19_15_connection_ids_have_1_to_20_bytes() {
    let frame = |len: u8| [&[0x18, 3, 3, len][..], &vec![7; usize::from(len) + 16]].concat();
    assert_eq!(error_kind(&frame(0)), FrameErrorKind::ConnectionIdLength);
    assert!(decode(&frame(1)).is_ok());
    assert!(decode(&frame(20)).is_ok());
    assert_eq!(error_kind(&frame(21)), FrameErrorKind::ConnectionIdLength);
    assert_eq!(error_kind(&frame(255)), FrameErrorKind::ConnectionIdLength);
}

#[test]
fn rfc9000_19_15_retire_prior_to_is_at_most_the_sequence_number() {
    let frame = |retire_prior_to| [&[0x18, 3, retire_prior_to, 1][..], &[7; 17]].concat();
    assert!(decode(&frame(3)).is_ok());
    assert_eq!(
        error_kind(&frame(4)),
        FrameErrorKind::RetirePriorToAboveSequence
    );

    let [id, empty] = [&[1][..], &[]].map(|id| ConnectionId::new(id).expect("short"));
    let token = StatelessResetToken::new([0; 16]);
    let [three, four] = [3, 4].map(VarInt::from_u32);
    assert!(NewConnectionId::new(three, three, id, token).is_some());
    assert_eq!(NewConnectionId::new(three, four, id, token), None);
    assert_eq!(NewConnectionId::new(three, three, empty, token), None);
}

#[test]
fn ack_frequency_4_a_requested_delay_of_2_to_the_14_ms_is_a_protocol_violation() {
    let frame = |delay: u32| {
        let mut bytes = vec![0x40, 0xaf, 0, 1];
        bytes.extend((delay | 0x8000_0000).to_be_bytes());
        bytes.push(1);
        bytes
    };
    assert!(decode(&frame(16_383_999)).is_ok());
    let bytes = frame(16_384_000);
    let error = decode(&bytes).expect_err("is too long");
    assert_eq!(error.kind, FrameErrorKind::MaxAckDelayAboveLimit);
    assert_eq!(error.transport_error(), TransportError::PROTOCOL_VIOLATION);
}

#[test]
fn ack_frequency_4_layout() {
    let frame = AckFrequency {
        sequence: VarInt::from_u32(1),
        ack_eliciting_threshold: VarInt::from_u32(10),
        max_ack_delay_us: VarInt::from_u32(25_000),
        reordering_threshold: VarInt::from_u32(3),
    };
    let bytes = [0x40, 0xaf, 1, 10, 0x80, 0x00, 0x61, 0xa8, 3];
    assert_eq!(encode(&Frame::AckFrequency(frame)), bytes);
    assert_eq!(encode(&Frame::ImmediateAck(ImmediateAck)), [0x1f]);
}

#[test]
fn an_error_has_the_offset_and_the_frame_type() {
    let error = decode(&[0x04, 1, 2]).expect_err("is truncated");
    assert_eq!(error.frame_type, Some(FrameType::RESET_STREAM));
    assert_eq!(error.offset, 3);
    let error = decode(&[0x40]).expect_err("is truncated");
    assert_eq!((error.frame_type, error.offset), (None, 0));
}
