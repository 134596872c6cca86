//! The ECN field of the IP header.

/// The ECN field of a packet's IP header (RFC 3168 §5, RFC 9331 §4), which all packets of a datagram share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// Not-ECT (00): not ECN-capable, or unknown.
    #[default]
    NotEct,
    /// ECT(1) (01): ECN-capable, L4S.
    Ect1,
    /// ECT(0) (10): ECN-capable.
    Ect0,
    /// CE (11): congestion experienced.
    Ce,
}

impl Ecn {
    /// The two bits of the header.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }

    /// The field whose bits are the two lowest of this byte.
    #[must_use]
    pub const fn from_bits(byte: u8) -> Self {
        match byte & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether the packet may be marked instead of dropped.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3168_5_the_field_is_the_two_lowest_bits() {
        let all = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        assert_eq!(all.map(Ecn::bits), [0b00, 0b01, 0b10, 0b11]);
        assert_eq!(all.map(|ecn| Ecn::from_bits(0b1010_1000 | ecn.bits())), all);
    }
}
