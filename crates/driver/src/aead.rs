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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_is_chosen_if_it_is_10_percent_faster() {
        for (measured, expected) in [
            ([1000, 899], AeadProvider::Ring),
            ([1000, 900], AeadProvider::AwsLc),
            ([1000, 1000], AeadProvider::AwsLc),
            ([500, 1000], AeadProvider::AwsLc),
            // A clock that does not advance.
            ([0, 0], AeadProvider::AwsLc),
            ([u64::MAX, u64::MAX], AeadProvider::AwsLc),
            ([u64::MAX, 1], AeadProvider::Ring),
        ] {
            assert_eq!(choose(measured), expected, "{measured:?}");
        }
    }

    #[test]
    fn a_measurement_follows_the_rule_and_shows_both_times() {
        let choice = AeadChoice::measure();
        let [aws_lc, ring] = choice.measured.expect("it was measured");
        assert!(aws_lc > 0 && ring > 0);
        assert_eq!(choice.provider, choose([aws_lc, ring]));
        let text = choice.to_string();
        assert!(
            text.contains(&format!("aws-lc {aws_lc} ns, ring {ring} ns")),
            "{text}"
        );
    }

    #[test]
    fn a_pinned_library_is_not_measured() {
        let choice = AeadChoice::pinned(AeadProvider::Ring);
        assert_eq!(choice.to_string(), "ring (set by an option)");
    }
}
