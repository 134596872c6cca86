//! `NEW_CONNECTION_ID` frames (RFC 9000 §19.15).

use super::{FrameErrorKind, FrameType};
use crate::{BufferFull, ConnectionId, Encode, Reader, StatelessResetToken, VarInt, Writer};

/// Issues an additional connection ID to the peer (RFC 9000 §19.15).
///
/// The connection ID is 1 to 20 bytes long, and `retire_prior_to` is at most `sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewConnectionId {
    sequence: VarInt,
    retire_prior_to: VarInt,
    connection_id: ConnectionId,
    reset_token: StatelessResetToken,
}

impl NewConnectionId {
    /// Creates a frame, or returns `None` if the connection ID is empty or `retire_prior_to` exceeds `sequence`.
    pub fn new(
        sequence: VarInt,
        retire_prior_to: VarInt,
        connection_id: ConnectionId,
        reset_token: StatelessResetToken,
    ) -> Option<Self> {
        (retire_prior_to <= sequence && !connection_id.is_empty()).then_some(Self {
            sequence,
            retire_prior_to,
            connection_id,
            reset_token,
        })
    }

    /// The sequence number assigned to the connection ID by its issuer (§5.1.1).
    pub const fn sequence(&self) -> VarInt {
        self.sequence
    }

    /// The receiver must retire all connection IDs with a sequence number below this one (§5.1.2).
    pub const fn retire_prior_to(&self) -> VarInt {
        self.retire_prior_to
    }

    /// The connection ID.
    pub const fn connection_id(&self) -> ConnectionId {
        self.connection_id
    }

    /// The stateless reset token associated with the connection ID (§10.3).
    pub const fn reset_token(&self) -> StatelessResetToken {
        self.reset_token
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        let sequence = reader.varint()?;
        let retire_prior_to = reader.varint()?;
        if retire_prior_to > sequence {
            return Err(FrameErrorKind::RetirePriorToAboveSequence);
        }
        let len = usize::from(reader.u8()?);
        if len == 0 || len > ConnectionId::MAX_LEN {
            return Err(FrameErrorKind::ConnectionIdLength);
        }
        Ok(Self {
            sequence,
            retire_prior_to,
            connection_id: ConnectionId::new(reader.bytes(len)?)
                .ok_or(FrameErrorKind::ConnectionIdLength)?,
            reset_token: StatelessResetToken::new(reader.array()?),
        })
    }
}

impl Encode for NewConnectionId {
    fn encoded_len(&self) -> usize {
        FrameType::NEW_CONNECTION_ID.encoded_len()
            + self.sequence.encoded_len()
            + self.retire_prior_to.encoded_len()
            + 1
            + self.connection_id.len()
            + StatelessResetToken::LEN
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.atomically(|writer| {
            FrameType::NEW_CONNECTION_ID.encode(writer)?;
            writer.varint(self.sequence)?;
            writer.varint(self.retire_prior_to)?;
            writer.u8(self.connection_id.len() as u8)?;
            writer.bytes(self.connection_id.as_slice())?;
            writer.bytes(self.reset_token.as_bytes())
        })
    }
}
