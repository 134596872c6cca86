//! The rooms that write frames, and get their receipts back.

use crate::{
    address_token::NewTokenOut,
    cid::{LocalIds, PeerIds},
    crypto_stream::CryptoStream,
    receipt::Receipt,
    recovery::ReceiptSink,
    space::{PerSpace, Space},
    stream::Streams,
};

/// Rooms, and frames too small for one.
#[derive(Debug)]
pub(super) struct Rooms {
    pub(super) crypto: PerSpace<CryptoStream>,
    pub(super) streams: Streams,
    pub(super) local_ids: LocalIds,
    pub(super) peer_ids: PeerIds,
    pub(super) new_token: NewTokenOut,
    /// A server has yet to say `HANDSHAKE_DONE`.
    pub(super) wants_handshake_done: bool,
    /// The largest number of each space that the peer knows we acknowledged, since the last look.
    pub(super) acks_known: PerSpace<Option<u64>>,
}

impl Rooms {
    pub(super) fn new(streams: Streams, local_ids: LocalIds, peer_ids: PeerIds) -> Self {
        Self {
            crypto: PerSpace::default(),
            streams,
            local_ids,
            peer_ids,
            new_token: NewTokenOut::default(),
            wants_handshake_done: false,
            acks_known: PerSpace::default(),
        }
    }

    /// Whether anything but acknowledgments and probes waits for a packet of the space.
    pub(super) fn want_to_send(&self, space: Space) -> bool {
        self.crypto.get(space).wants_to_send()
            || (space == Space::Application
                && (self.wants_handshake_done
                    || self.local_ids.wants_to_send()
                    || self.peer_ids.wants_to_send()
                    || self.streams.wants_to_send()))
    }
}

impl ReceiptSink for Rooms {
    fn acked(&mut self, space: Space, receipt: Receipt) {
        match receipt {
            Receipt::Crypto { offset, len } => {
                self.crypto.get_mut(space).on_acked(offset, u64::from(len));
            }
            Receipt::RetireConnectionId(sequence) => self.peer_ids.on_acked(sequence),
            Receipt::Ack { largest } => {
                let known = self.acks_known.get_mut(space);
                *known = (*known).max(Some(largest));
            }
            Receipt::NewConnectionId(_)
            | Receipt::HandshakeDone
            | Receipt::NewToken
            | Receipt::AckFrequency(_)
            | Receipt::Path
            | Receipt::Ping
            | Receipt::Datagram => {}
            of_streams => self.streams.acked(&of_streams),
        }
    }

    fn lost(&mut self, space: Space, receipt: Receipt) {
        match receipt {
            Receipt::Crypto { offset, len } => {
                self.crypto.get_mut(space).on_lost(offset, u64::from(len));
            }
            Receipt::NewConnectionId(sequence) => self.local_ids.on_lost(sequence),
            Receipt::RetireConnectionId(sequence) => self.peer_ids.on_lost(sequence),
            Receipt::HandshakeDone => self.wants_handshake_done = true,
            Receipt::Ack { .. }
            | Receipt::NewToken
            | Receipt::AckFrequency(_)
            | Receipt::Path
            | Receipt::Ping
            | Receipt::Datagram => {}
            of_streams => self.streams.lost(&of_streams),
        }
    }
}
