//! Initial packets that contain only `CONNECTION_CLOSE` (RFC 9000 §5.2.2, §8.1.2).
//!
//! No state is kept for the client.

use lastbyte_wire::{
    ConnectionId, Encode, TransportError, Writer,
    frame::{CloseCause, ConnectionClose, FrameType},
    packet::{LongHeader, LongKind, PacketNumber, PacketNumberLen, Version},
};

use crate::crypto::{Keys, TAG_LEN};

/// The content of a refusal.
pub(super) struct Refusal {
    pub(super) version: Version,
    /// The client's own ID.
    pub(super) client: ConnectionId,
    /// An ID of ours.
    pub(super) source: ConnectionId,
    pub(super) code: TransportError,
}

impl Refusal {
    /// Writes the sealed packet. It need not be padded, since it is not acknowledged (RFC 9000 §14.1). Returns its
    /// length; `None` if it does not fit.
    pub(super) fn write(&self, buffer: &mut [u8], keys: &Keys) -> Option<usize> {
        let number = PacketNumber::ZERO;
        let header = LongHeader {
            kind: LongKind::Initial { token: &[] },
            version: self.version,
            destination: self.client,
            source: self.source,
            number: number.truncate_to(PacketNumberLen::One),
            fixed_bit: true,
        };
        let mut writer = Writer::new(buffer);
        let packet = header.begin(&mut writer).ok()?;
        let close = ConnectionClose {
            cause: CloseCause::Transport {
                error: self.code,
                frame_type: FrameType::PADDING,
            },
            reason: b"",
        };
        close.encode(&mut writer).ok()?;
        let finished = packet.finish(&mut writer, TAG_LEN).ok()?;
        keys.seal
            .protect(number, &finished, writer.written_mut())
            .ok()?;
        Some(finished.end)
    }
}
