//! Frames (RFC 9000 §12.4, §19; draft-ietf-quic-ack-frequency), one file per frame.
//!
//! [`Frames`] iterates over the payload of a packet, and [`Frame::decode`] decodes a single frame. Both borrow from the
//! payload and do not allocate. Decoded frames satisfy every rule that can be checked on the frame alone. Whether a
//! stream exists or an extension was negotiated is checked by the transport.
//!
//! To send, create the frame's type and [`Encode`] it. Bulk data can be written in place: see [`StreamHeader`]
//! and [`AckReport`].

mod ack;
mod ack_frequency;
mod connection_close;
mod crypto;
mod data_blocked;
mod fields;
pub(crate) mod frame_type;
mod frames;
mod handshake_done;
mod immediate_ack;
mod length_field;
mod max_data;
mod max_stream_data;
mod max_streams;
mod new_connection_id;
mod new_token;
mod padding;
mod path_challenge;
mod path_response;
mod ping;
mod reset_stream;
mod retire_connection_id;
mod stop_sending;
mod stream;
mod stream_data_blocked;
mod streams_blocked;
#[cfg(test)]
mod tests;

pub use ack::{Ack, AckRanges, AckReport, EcnCounts};
pub use ack_frequency::AckFrequency;
pub use connection_close::{CloseCause, ConnectionClose};
pub use crypto::Crypto;
pub use data_blocked::DataBlocked;
pub use frame_type::FrameType;
pub use frames::Frames;
pub use handshake_done::HandshakeDone;
pub use immediate_ack::ImmediateAck;
pub use length_field::LengthField;
pub use max_data::MaxData;
pub use max_stream_data::MaxStreamData;
pub use max_streams::MaxStreams;
pub use new_connection_id::NewConnectionId;
pub use new_token::NewToken;
pub use padding::Padding;
pub use path_challenge::PathChallenge;
pub use path_response::PathResponse;
pub use ping::Ping;
pub use reset_stream::ResetStream;
pub use retire_connection_id::RetireConnectionId;
pub use stop_sending::StopSending;
pub use stream::{Stream, StreamHeader};
pub use stream_data_blocked::StreamDataBlocked;
pub use streams_blocked::StreamsBlocked;

pub use crate::error::{FrameError, FrameErrorKind};

use crate::{BufferFull, Direction, Encode, Reader, Writer};

/// A frame of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each variant is documented as the type it holds"
)]
pub enum Frame<'a> {
    Padding(Padding),
    Ping(Ping),
    Ack(Ack<'a>),
    ResetStream(ResetStream),
    StopSending(StopSending),
    Crypto(Crypto<'a>),
    NewToken(NewToken<'a>),
    Stream(Stream<'a>),
    MaxData(MaxData),
    MaxStreamData(MaxStreamData),
    MaxStreams(MaxStreams),
    DataBlocked(DataBlocked),
    StreamDataBlocked(StreamDataBlocked),
    StreamsBlocked(StreamsBlocked),
    NewConnectionId(NewConnectionId),
    RetireConnectionId(RetireConnectionId),
    PathChallenge(PathChallenge),
    PathResponse(PathResponse),
    ConnectionClose(ConnectionClose<'a>),
    HandshakeDone(HandshakeDone),
    ImmediateAck(ImmediateAck),
    AckFrequency(AckFrequency),
}

impl<'a> Frame<'a> {
    /// Decodes one frame. Consecutive PADDING frames are decoded as one.
    ///
    /// # Errors
    ///
    /// Returns a [`FrameError`] if the frame is malformed. The position of the reader is then unspecified.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, FrameError> {
        let frame_type = decode_type(reader)?;
        Self::decode_fields(reader, frame_type).map_err(|kind| FrameError {
            kind,
            offset: reader.position(),
            frame_type: Some(frame_type),
        })
    }

    /// Decodes the fields of a frame after its type.
    #[inline]
    fn decode_fields(
        reader: &mut Reader<'a>,
        frame_type: FrameType,
    ) -> Result<Self, FrameErrorKind> {
        use Direction::{Bidirectional, Unidirectional};
        Ok(match frame_type.get() {
            0x00 => Self::Padding(Padding::decode(reader)),
            0x01 => Self::Ping(Ping),
            0x02 | 0x03 => Self::Ack(Ack::decode(reader, frame_type)?),
            0x04 => Self::ResetStream(ResetStream::decode(reader)?),
            0x05 => Self::StopSending(StopSending::decode(reader)?),
            0x06 => Self::Crypto(Crypto::decode(reader)?),
            0x07 => Self::NewToken(NewToken::decode(reader)?),
            0x08..=0x0f => Self::Stream(Stream::decode(reader, frame_type)?),
            0x10 => Self::MaxData(MaxData::decode(reader)?),
            0x11 => Self::MaxStreamData(MaxStreamData::decode(reader)?),
            0x12 => Self::MaxStreams(MaxStreams::decode(reader, Bidirectional)?),
            0x13 => Self::MaxStreams(MaxStreams::decode(reader, Unidirectional)?),
            0x14 => Self::DataBlocked(DataBlocked::decode(reader)?),
            0x15 => Self::StreamDataBlocked(StreamDataBlocked::decode(reader)?),
            0x16 => Self::StreamsBlocked(StreamsBlocked::decode(reader, Bidirectional)?),
            0x17 => Self::StreamsBlocked(StreamsBlocked::decode(reader, Unidirectional)?),
            0x18 => Self::NewConnectionId(NewConnectionId::decode(reader)?),
            0x19 => Self::RetireConnectionId(RetireConnectionId::decode(reader)?),
            0x1a => Self::PathChallenge(PathChallenge::decode(reader)?),
            0x1b => Self::PathResponse(PathResponse::decode(reader)?),
            0x1c | 0x1d => Self::ConnectionClose(ConnectionClose::decode(reader, frame_type)?),
            0x1e => Self::HandshakeDone(HandshakeDone),
            0x1f => Self::ImmediateAck(ImmediateAck),
            0xaf => Self::AckFrequency(AckFrequency::decode(reader)?),
            _ => return Err(FrameErrorKind::UnknownType),
        })
    }

    /// The frame's type. For STREAM frames, whose types also encode which fields are present, the first of their types.
    pub const fn frame_type(&self) -> FrameType {
        match self {
            Self::Padding(_) => FrameType::PADDING,
            Self::Ping(_) => FrameType::PING,
            Self::Ack(frame) => frame.frame_type(),
            Self::ResetStream(_) => FrameType::RESET_STREAM,
            Self::StopSending(_) => FrameType::STOP_SENDING,
            Self::Crypto(_) => FrameType::CRYPTO,
            Self::NewToken(_) => FrameType::NEW_TOKEN,
            Self::Stream(_) => FrameType::STREAM,
            Self::MaxData(_) => FrameType::MAX_DATA,
            Self::MaxStreamData(_) => FrameType::MAX_STREAM_DATA,
            Self::MaxStreams(frame) => frame.frame_type(),
            Self::DataBlocked(_) => FrameType::DATA_BLOCKED,
            Self::StreamDataBlocked(_) => FrameType::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked(frame) => frame.frame_type(),
            Self::NewConnectionId(_) => FrameType::NEW_CONNECTION_ID,
            Self::RetireConnectionId(_) => FrameType::RETIRE_CONNECTION_ID,
            Self::PathChallenge(_) => FrameType::PATH_CHALLENGE,
            Self::PathResponse(_) => FrameType::PATH_RESPONSE,
            Self::ConnectionClose(frame) => frame.frame_type(),
            Self::HandshakeDone(_) => FrameType::HANDSHAKE_DONE,
            Self::ImmediateAck(_) => FrameType::IMMEDIATE_ACK,
            Self::AckFrequency(_) => FrameType::ACK_FREQUENCY,
        }
    }

    /// See [`FrameType::is_ack_eliciting`].
    pub fn is_ack_eliciting(&self) -> bool {
        self.frame_type().is_ack_eliciting()
    }

    fn as_encode(&self) -> &dyn Encode {
        match self {
            Self::Padding(frame) => frame,
            Self::Ping(frame) => frame,
            Self::Ack(frame) => frame,
            Self::ResetStream(frame) => frame,
            Self::StopSending(frame) => frame,
            Self::Crypto(frame) => frame,
            Self::NewToken(frame) => frame,
            Self::Stream(frame) => frame,
            Self::MaxData(frame) => frame,
            Self::MaxStreamData(frame) => frame,
            Self::MaxStreams(frame) => frame,
            Self::DataBlocked(frame) => frame,
            Self::StreamDataBlocked(frame) => frame,
            Self::StreamsBlocked(frame) => frame,
            Self::NewConnectionId(frame) => frame,
            Self::RetireConnectionId(frame) => frame,
            Self::PathChallenge(frame) => frame,
            Self::PathResponse(frame) => frame,
            Self::ConnectionClose(frame) => frame,
            Self::HandshakeDone(frame) => frame,
            Self::ImmediateAck(frame) => frame,
            Self::AckFrequency(frame) => frame,
        }
    }
}

impl Encode for Frame<'_> {
    fn encoded_len(&self) -> usize {
        self.as_encode().encoded_len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        self.as_encode().encode(writer)
    }
}

/// Decodes a frame type, which must use the shortest encoding (RFC 9000 §12.4).
#[inline]
fn decode_type(reader: &mut Reader<'_>) -> Result<FrameType, FrameError> {
    let offset = reader.position();
    let invalid = |kind, frame_type| FrameError {
        kind,
        offset,
        frame_type,
    };
    let code = reader.varint().map_err(|end| invalid(end.into(), None))?;
    let frame_type = FrameType::from(code);
    if reader.position() - offset == frame_type.encoded_len() {
        Ok(frame_type)
    } else {
        let kind = FrameErrorKind::TypeNotShortest;
        Err(invalid(kind, Some(frame_type)))
    }
}
