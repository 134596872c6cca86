//! Frame types and frame headers (RFC 9114 §7, §9; RFC 9218 §7).
//!
//! Parses the header, which can arrive in any number of pieces. Payloads are parsed by the modules that they concern.

use lastbyte_wire::{Reader, VarInt};

use crate::settings::put_varint;

#[cfg(test)]
mod tests;

/// A frame's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameType(pub(crate) u64);

impl FrameType {
    pub(crate) const DATA: Self = Self(0x0);
    pub(crate) const HEADERS: Self = Self(0x1);
    pub(crate) const CANCEL_PUSH: Self = Self(0x3);
    pub(crate) const SETTINGS: Self = Self(0x4);
    pub(crate) const PUSH_PROMISE: Self = Self(0x5);
    pub(crate) const GOAWAY: Self = Self(0x7);
    pub(crate) const MAX_PUSH_ID: Self = Self(0xd);
    pub(crate) const PRIORITY_UPDATE_REQUEST: Self = Self(0xf_0700);
    pub(crate) const PRIORITY_UPDATE_PUSH: Self = Self(0xf_0701);

    /// Whether it is reserved because HTTP/2 used it, and must not be sent (RFC 9114 §7.2.8).
    pub(crate) const fn is_of_http2(self) -> bool {
        matches!(self.0, 0x2 | 0x6 | 0x8 | 0x9)
    }

    /// Whether it is reserved so that peers ignore it (RFC 9114 §7.2.8).
    pub(crate) const fn is_reserved(self) -> bool {
        self.0 >= 0x21 && (self.0 - 0x21).is_multiple_of(0x1f)
    }

    /// Whether RFC 9114 defines it, so that it is permitted only in certain places.
    pub(crate) fn is_known(self) -> bool {
        matches!(
            self,
            Self::DATA
                | Self::HEADERS
                | Self::CANCEL_PUSH
                | Self::SETTINGS
                | Self::PUSH_PROMISE
                | Self::GOAWAY
                | Self::MAX_PUSH_ID
                | Self::PRIORITY_UPDATE_REQUEST
                | Self::PRIORITY_UPDATE_PUSH
        ) || self.is_of_http2()
    }
}

/// The `n`th reserved identifier, which peers must ignore (RFC 9114 §6.2.3, §7.2.4.1, §7.2.8).
pub(crate) fn reserved(n: u64) -> VarInt {
    VarInt::saturating(0x1f * (n % (1 << 52)) + 0x21)
}

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) frame_type: FrameType,
    pub(crate) len: u64,
}

impl FrameHeader {
    pub(crate) fn put(frame_type: FrameType, len: u64, into: &mut Vec<u8>) {
        put_varint(into, VarInt::saturating(frame_type.0));
        put_varint(into, VarInt::saturating(len));
    }

    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut reader = Reader::new(bytes);
        let frame_type = FrameType(reader.varint().ok()?.get());
        let len = reader.varint().ok()?.get();
        Some((Self { frame_type, len }, reader.position()))
    }
}

/// The start of a header whose rest has not arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartialHeader {
    bytes: [u8; HEADER_MAX],
    len: u8,
}

/// Two variable-length integers.
const HEADER_MAX: usize = 16;

impl PartialHeader {
    /// Whether nothing of a header has arrived.
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Consumes the bytes of the header from the front of `bytes`. Returns the header once it is complete.
    #[inline]
    pub(crate) fn take(&mut self, bytes: &mut &[u8]) -> Option<FrameHeader> {
        if self.len == 0
            && let Some((header, len)) = FrameHeader::read(bytes)
        {
            *bytes = bytes.get(len..).unwrap_or_default();
            return Some(header);
        }
        while let Some((byte, rest)) = bytes.split_first() {
            *bytes = rest;
            if let Some(slot) = self.bytes.get_mut(usize::from(self.len)) {
                *slot = *byte;
                self.len += 1;
            }
            let so_far = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
            if let Some((header, _)) = FrameHeader::read(so_far) {
                self.len = 0;
                return Some(header);
            }
        }
        None
    }
}
