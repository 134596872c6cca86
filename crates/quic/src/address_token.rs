//! The token that a server issues for a client's next connection (RFC 9000 §8.1.3, §19.7).
//!
//! Its content is defined by [`crate::crypto::token`].

use lastbyte_wire::{BufferFull, Encode, Writer, frame::NewToken};

use crate::receipt::Receipt;

/// A server's `NEW_TOKEN` frame: kept until it is acknowledged.
#[derive(Clone, Debug, Default)]
pub struct NewTokenOut {
    token: Vec<u8>,
    is_to_send: bool,
}

impl NewTokenOut {
    /// Queues this token.
    pub fn offer(&mut self, token: Vec<u8>) {
        self.token = token;
        self.is_to_send = true;
    }

    /// Whether the frame is pending.
    pub const fn wants_to_send(&self) -> bool {
        self.is_to_send
    }

    /// Writes the frame, if it is pending and fits.
    pub fn write_frames(&mut self, writer: &mut Writer<'_>, receipts: &mut impl FnMut(Receipt)) {
        if !self.is_to_send {
            return;
        }
        // An empty token is invalid (§19.7).
        let Some(frame) = NewToken::new(&self.token) else {
            self.is_to_send = false;
            return;
        };
        if frame.encode(writer) != Err(BufferFull) {
            self.is_to_send = false;
            receipts(Receipt::NewToken);
        }
    }

    /// The frame was acknowledged.
    pub fn on_acked(&mut self) {
        if !self.is_to_send {
            self.token = Vec::new();
        }
    }

    /// The packet with the frame was lost.
    pub fn on_lost(&mut self) {
        self.is_to_send = !self.token.is_empty();
    }
}
