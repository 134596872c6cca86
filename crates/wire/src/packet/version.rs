//! Versions and their constants (RFC 8999 §5.1, RFC 9000 §15, RFC 9001 §5, RFC 9369 §3).

use core::fmt;

#[cfg(test)]
mod tests;

/// The 32-bit Version field (RFC 8999 §5.1). It may hold any value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionNumber(u32);

impl VersionNumber {
    /// 0, the version of a Version Negotiation packet (RFC 8999 §6).
    pub const NEGOTIATION: Self = Self(0);

    /// Creates a version number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// A reserved version 0x?a?a?a?a, which exercises version negotiation (RFC 9000 §15). The unconstrained bits are
    /// taken from `random`.
    #[must_use]
    pub const fn reserved(random: u32) -> Self {
        Self(random & 0xf0f0_f0f0 | 0x0a0a_0a0a)
    }

    /// Whether this is a reserved version 0x?a?a?a?a (RFC 9000 §15).
    pub const fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// The version number as an integer.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The version, if this crate supports it.
    pub const fn known(self) -> Option<Version> {
        match self {
            Self(V1) => Some(Version::V1),
            Self(V2) => Some(Version::V2),
            Self(_) => None,
        }
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl fmt::Debug for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

const V1: u32 = 0x0000_0001;
const V2: u32 = 0x6b33_43cf;

/// A supported version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// RFC 9000.
    V1,
    /// RFC 9369.
    V2,
}

/// The constants of a version.
struct Profile {
    number: VersionNumber,
    retry_key: [u8; 16],
    retry_nonce: [u8; 12],
    /// Indexed by the two type bits of a long header.
    long_types: [LongType; 4],
}

/// The types of long header packets (RFC 9000 §17.2, Table 5). Version Negotiation packets have no type; they are
/// recognized by their version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongType {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

/// RFC 9001 §5.8; RFC 9000 §17.2.
static PROFILE_V1: Profile = Profile {
    number: VersionNumber(V1),
    retry_key: [
        0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8,
        0x4e,
    ],
    retry_nonce: [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ],
    long_types: [
        LongType::Initial,
        LongType::ZeroRtt,
        LongType::Handshake,
        LongType::Retry,
    ],
};

/// RFC 9369 §3.2, §3.3.3.
static PROFILE_V2: Profile = Profile {
    number: VersionNumber(V2),
    retry_key: [
        0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc,
        0x92,
    ],
    retry_nonce: [
        0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a,
    ],
    long_types: [
        LongType::Retry,
        LongType::Initial,
        LongType::ZeroRtt,
        LongType::Handshake,
    ],
};

impl Version {
    const fn profile(self) -> &'static Profile {
        match self {
            Self::V1 => &PROFILE_V1,
            Self::V2 => &PROFILE_V2,
        }
    }

    /// The version number.
    pub const fn number(self) -> VersionNumber {
        self.profile().number
    }

    /// The key of the Retry Integrity Tag (RFC 9001 §5.8, RFC 9369 §3.3.3).
    pub const fn retry_key(self) -> &'static [u8; 16] {
        &self.profile().retry_key
    }

    /// The nonce of the Retry Integrity Tag (RFC 9001 §5.8, RFC 9369 §3.3.3).
    pub const fn retry_nonce(self) -> &'static [u8; 12] {
        &self.profile().retry_nonce
    }

    /// The type of a long header packet, from its first byte.
    pub(super) const fn long_type(self, first_byte: u8) -> LongType {
        let [zero, one, two, three] = self.profile().long_types;
        match first_byte >> 4 & 0x03 {
            0 => zero,
            1 => one,
            2 => two,
            _ => three,
        }
    }

    /// The type bits of a long header, in their position in the first byte.
    pub(super) fn long_type_bits(self, long_type: LongType) -> u8 {
        let types = self.profile().long_types;
        let bits = (0..).zip(types).find(|(_, other)| *other == long_type);
        bits.map_or(0, |(bits, _)| bits << 4)
    }
}

impl From<Version> for VersionNumber {
    fn from(version: Version) -> Self {
        version.number()
    }
}
