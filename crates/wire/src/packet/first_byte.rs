//! The bits of a packet's first byte (RFC 9000 §17.2, §17.3.1).

/// Set in long headers, in any version (RFC 8999 §5.1).
pub(super) const HEADER_FORM: u8 = 0x80;
/// The fixed bit, or QUIC bit: set, unless greased (RFC 9287).
pub(super) const FIXED_BIT: u8 = 0x40;
/// Of long headers: 0 once unmasked.
pub(super) const LONG_RESERVED: u8 = 0x0c;
/// Of long headers: what header protection covers (RFC 9001 §5.4.1).
pub(super) const LONG_MASKED: u8 = 0x0f;
/// Of short headers: the latency spin bit (RFC 9000 §17.4).
pub(super) const SPIN_BIT: u8 = 0x20;
/// Of short headers: 0 once unmasked.
pub(super) const SHORT_RESERVED: u8 = 0x18;
/// Of short headers: which keys (RFC 9001 §6).
pub(super) const KEY_PHASE: u8 = 0x04;
/// Of short headers: what header protection covers (RFC 9001 §5.4.1).
pub(super) const SHORT_MASKED: u8 = 0x1f;
