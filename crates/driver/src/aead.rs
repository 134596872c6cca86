//! The choice of the library that protects packets and TLS records, by a short measurement.
//!
//! Which one is faster depends on the CPU: aws-lc has kernels for AVX-512, ring has them for VAES without AVX-512, and ring
//! has a lower cost per packet. Feature bits do not show this for every CPU, so both libraries are measured.
//!
//! Decisions:
//!
//! - *The rule has a margin.* aws-lc, which does the handshake, stays unless ring needs at most nine tenths of its time,
//!   so that a busy machine does not change the choice where the libraries are equal.
//! - *Each library's time is the minimum of interleaved rounds*: other work on the machine makes a round longer, never
//!   shorter.

use core::{fmt, hint::black_box};

use lastbyte_quic::crypto::{AeadProvider, TAG_LEN, initial};
use lastbyte_wire::{
    ConnectionId, Side,
    packet::{PacketNumber, Version},
};

use crate::Clock;

#[cfg(test)]
mod tests;

/// A packet's payload, in bytes: the middle of what paths of 1280 to 1500 bytes allow.
const PAYLOAD: usize = 1424;
/// Rounds per library.
const ROUNDS: usize = 8;
/// Packets that are sealed and opened in a round.
const PACKETS: u32 = 8;

/// The library to use, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AeadChoice {
    /// The library.
    pub provider: AeadProvider,
    /// Nanoseconds to seal and to open a packet, together, with aws-lc and with ring; `None` if nothing was measured.
    pub measured: Option<[u64; 2]>,
}

impl AeadChoice {
    /// Measures both libraries with AES-128-GCM, and chooses. This takes less than a millisecond.
    #[must_use]
    pub fn measure() -> Self {
        let clock = Clock::new();
        let destination = ConnectionId::EMPTY;
        let keys = AeadProvider::ALL.map(|aead| {
            let keys = |side| initial::keys_by(aead, side, Version::V1, &destination);
            (
                keys(Side::Client).seal.packet,
                keys(Side::Server).open.packet,
            )
        });
        let mut buffer = [0; PAYLOAD + TAG_LEN];
        let mut fastest = [u64::MAX; 2];
        for _ in 0..ROUNDS {
            for ((seal, open), fastest) in keys.iter().zip(&mut fastest) {
                let start = clock.now();
                for number in 0..PACKETS {
                    let number = PacketNumber::from(number);
                    // Neither fails: the buffer has room for the tag, and holds what was sealed.
                    let _ = black_box(seal.seal(number, &[], black_box(&mut buffer)));
                    let _ = black_box(open.open(number, &[], black_box(&mut buffer)));
                }
                let spent = clock.now().nanos_since(start);
                *fastest = (*fastest).min(spent / u64::from(PACKETS));
            }
        }
        Self {
            provider: choose(fastest),
            measured: Some(fastest),
        }
    }

    /// This library, without a measurement.
    #[must_use]
    pub const fn pinned(provider: AeadProvider) -> Self {
        Self {
            provider,
            measured: None,
        }
    }
}

/// ring if it needs less than nine tenths of aws-lc's time.
const fn choose([aws_lc, ring]: [u64; 2]) -> AeadProvider {
    if ring < aws_lc / 10 * 9 {
        AeadProvider::Ring
    } else {
        AeadProvider::AwsLc
    }
}

impl fmt::Display for AeadChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.measured {
            None => write!(f, "{} (set by an option)", self.provider),
            Some([aws_lc, ring]) => write!(
                f,
                "{} (measured for {PAYLOAD} bytes: aws-lc {aws_lc} ns, ring {ring} ns)",
                self.provider
            ),
        }
    }
}
