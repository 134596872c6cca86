//! The bits of a packet's first byte (RFC 9000 §17.2, §17.3.1).

/// Header Form: set in long headers of any version (RFC 8999 §5.1).
pub(super) const HEADER_FORM: u8 = 0x80;
/// Fixed Bit, also called QUIC Bit: set, unless greased (RFC 9287).
pub(super) const FIXED_BIT: u8 = 0x40;
/// Reserved Bits of long headers: 0 after header protection is removed.
pub(super) const LONG_RESERVED: u8 = 0x0c;
/// The bits of long headers under header protection (RFC 9001 §5.4.1).
pub(super) const LONG_MASKED: u8 = 0x0f;
/// Latency Spin Bit of short headers (RFC 9000 §17.4).
pub(super) const SPIN_BIT: u8 = 0x20;
/// Reserved Bits of short headers: 0 after header protection is removed.
pub(super) const SHORT_RESERVED: u8 = 0x18;
/// Key Phase of short headers (RFC 9001 §6).
pub(super) const KEY_PHASE: u8 = 0x04;
/// The bits of short headers under header protection (RFC 9001 §5.4.1).
pub(super) const SHORT_MASKED: u8 = 0x1f;
