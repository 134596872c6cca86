//! The sources of retransmittable frames: they write frames into packets and receive the receipts of those frames back.
//!
//! Owns CRYPTO data, streams, connection IDs, and frames too small for their own object. ACK frames
//! are not included, since they need no receipt, and neither are path challenges, which belong to one path.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{Encode, Writer, frame::HandshakeDone};

use crate::{
    ack_frequency::AckFrequencyOut,
    address_token::NewTokenOut,
    cid::{ConnectionIdGenerator, LocalIds, PeerIds},
    crypto_stream::CryptoStream,
    receipt::Receipt,
    recovery::ReceiptSink,
    space::{PerSpace, Space, SpaceStates},
    stream::Streams,
};

/// The sources of frames.
pub(super) struct FrameSources {
    pub(super) crypto: SpaceStates<CryptoStream>,
    /// Bytes of CRYPTO data sent in spaces whose keys are discarded.
    crypto_sent_before: u64,
    pub(super) streams: Streams,
    pub(super) local_ids: LocalIds,
    generator: Box<dyn ConnectionIdGenerator + Send>,
    pub(super) peer_ids: PeerIds,
    pub(super) new_token: NewTokenOut,
    pub(super) ack_frequency: AckFrequencyOut,
    wants_handshake_done: bool,
    /// For each space, the largest number whose acknowledgment the peer has received, until it is taken.
    acks_known: PerSpace<Option<u64>>,
}

impl FrameSources {
    pub(super) fn new(
        streams: Streams,
        local_ids: LocalIds,
        generator: Box<dyn ConnectionIdGenerator + Send>,
        peer_ids: PeerIds,
    ) -> Self {
        Self {
            crypto: SpaceStates::new(CryptoStream::new()),
            crypto_sent_before: 0,
            streams,
            local_ids,
            generator,
            peer_ids,
            new_token: NewTokenOut::default(),
            ack_frequency: AckFrequencyOut::default(),
            wants_handshake_done: false,
            acks_known: PerSpace::default(),
        }
    }

    /// A server sends `HANDSHAKE_DONE` in the next packet.
    pub(super) const fn send_handshake_done(&mut self) {
        self.wants_handshake_done = true;
    }

    /// Whether anything but acknowledgments and probes is waiting to be sent in this space. 0-RTT packets carry only
    /// streams; nothing else can be waiting before 1-RTT keys exist.
    pub(super) fn want_to_send(&self, space: Space) -> bool {
        // Streams first, since they are the most frequent source.
        (space == Space::Application
            && (self.streams.wants_to_send()
                || self.wants_handshake_done
                || self.local_ids.wants_to_send()
                || self.peer_ids.wants_to_send()
                || self.new_token.wants_to_send()
                || self.ack_frequency.wants_to_send()))
            || self.crypto.get(space).wants_to_send()
    }

    /// Whether the application has data, and flow control allows to send none of it.
    pub(super) fn are_blocked(&self) -> bool {
        self.streams.is_blocked()
    }

    /// Whether the application has data for a datagram of this size.
    pub(super) fn have_data_for(&self, size: u64) -> bool {
        self.streams.next_chunk_len() >= size
    }

    /// Writes the frames of 0-RTT and 1-RTT packets, by priority.
    pub(super) fn write_application_frames(
        &mut self,
        now: Time,
        round_trip: Duration,
        is_one_rtt: bool,
        writer: &mut Writer<'_>,
        receipts: &mut Vec<Receipt>,
    ) {
        if self.wants_handshake_done && HandshakeDone.encode(writer).is_ok() {
            self.wants_handshake_done = false;
            receipts.push(Receipt::HandshakeDone);
        }
        let mut push = |receipt| receipts.push(receipt);
        if is_one_rtt {
            let generator = &mut *self.generator;
            self.local_ids
                .write_frames(now, round_trip, writer, generator, &mut push);
            self.peer_ids.write_frames(writer, &mut push);
            self.new_token.write_frames(writer, &mut push);
            self.ack_frequency.write_frames(writer, &mut push);
        }
        self.streams.write_frames(writer, &mut push);
    }

    /// The largest number in a space whose acknowledgment the peer has newly received.
    pub(super) const fn take_ack_known(&mut self, space: Space) -> Option<u64> {
        self.acks_known.get_mut(space).take()
    }

    /// Bytes of CRYPTO data sent, each counted once.
    pub(super) fn crypto_sent(&self) -> u64 {
        let sent_in = |space| self.crypto.get(space).sent_bytes();
        Space::ALL.into_iter().map(sent_in).sum::<u64>() + self.crypto_sent_before
    }

    /// The keys of a space are discarded, and its CRYPTO data with them.
    pub(super) fn discard(&mut self, space: Space) {
        self.crypto_sent_before += self.crypto.get(space).sent_bytes();
        self.crypto.discard(space);
    }

    /// Frees buffers that are empty.
    pub(super) fn release_memory(&mut self) {
        self.streams.release_memory();
        self.local_ids.release_memory();
        self.peer_ids.release_memory();
    }

    /// Discards all CRYPTO data: the handshake restarts in another version.
    pub(super) fn restart_crypto(&mut self) {
        self.crypto = SpaceStates::new(CryptoStream::new());
    }
}

impl ReceiptSink for FrameSources {
    fn acked(&mut self, space: Space, receipt: Receipt) {
        match receipt {
            Receipt::Crypto { offset, len } => {
                self.crypto.get_mut(space).on_acked(offset, u64::from(len));
            }
            Receipt::RetireConnectionId(sequence) => self.peer_ids.on_acked(sequence),
            Receipt::NewToken => self.new_token.on_acked(),
            Receipt::NewConnectionId(sequence) => self.local_ids.on_acked(sequence),
            Receipt::Ack { largest } => {
                let known = self.acks_known.get_mut(space);
                *known = (*known).max(Some(largest));
            }
            Receipt::HandshakeDone | Receipt::AckFrequency(_) | Receipt::Path | Receipt::Ping => {}
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
            Receipt::NewToken => self.new_token.on_lost(),
            Receipt::HandshakeDone => self.wants_handshake_done = true,
            Receipt::AckFrequency(sequence) => self.ack_frequency.on_lost(sequence),
            // A repeated challenge carries new data.
            Receipt::Ack { .. } | Receipt::Path | Receipt::Ping => {}
            of_streams => self.streams.lost(&of_streams),
        }
    }
}

/// Drops the receipts of 0-RTT packets that the server rejected (RFC 9001 §4.6.2).
pub(super) struct Discard;

impl ReceiptSink for Discard {
    fn acked(&mut self, _: Space, _: Receipt) {}
    fn lost(&mut self, _: Space, _: Receipt) {}
}

#[cfg(test)]
mod tests;
