//! How clients acknowledge, by name: the rules of browsers.
//!
//! | name | `max_ack_delay` | 1-RTT packets are acknowledged | source |
//! |---|---|---|---|
//! | `rfc9000` | 25 ms | every second one | RFC 9000 §13.2.2; also the defaults of quinn and quic-go (`packetsBeforeAck`) |
//! | `chromium` | 25 ms | every second one; from the 100th on every tenth, or after a quarter of the minimum round-trip time | QUICHE, `quic_received_packet_manager.cc` and `quic_constants.h` |
//! | `firefox` | 20 ms | every second one | neqo-transport, `tracking.rs` |
//! | `safari` | 25 ms | every second one | assumed: its stack is not public |
//!
//! Not modeled: the ACK that neqo adds to a packet one round-trip time after its previous ACK, and that QUICHE and neqo do
//! not acknowledge every CE-marked packet at once before the 100th.

use core::{str::FromStr, time::Duration};

use lastbyte_wire::AckDecimation;

use crate::setting::SettingError;

/// A rule by which clients acknowledge 1-RTT packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAcks {
    /// Every second packet, or after 25 ms.
    #[default]
    Rfc9000,
    /// As Chromium: [`AckDecimation::CHROMIUM`].
    Chromium,
    /// As Firefox: every second packet, or after 20 ms.
    Firefox,
    /// As Safari: assumed to be [`ClientAcks::Rfc9000`].
    Safari,
}

impl ClientAcks {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rfc9000, Self::Chromium, Self::Firefox, Self::Safari];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rfc9000 => "rfc9000",
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
            Self::Safari => "safari",
        }
    }

    /// The longest delay of an acknowledgment: the transport parameter `max_ack_delay`.
    pub const fn max_ack_delay(self) -> Duration {
        match self {
            Self::Firefox => Duration::from_millis(20),
            Self::Rfc9000 | Self::Chromium | Self::Safari => Duration::from_millis(25),
        }
    }

    /// Fewer acknowledgments after the first packets.
    pub const fn decimation(self) -> Option<AckDecimation> {
        match self {
            Self::Chromium => Some(AckDecimation::CHROMIUM),
            Self::Rfc9000 | Self::Firefox | Self::Safari => None,
        }
    }
}

impl FromStr for ClientAcks {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        Self::ALL
            .into_iter()
            .find(|one| one.name() == text)
            .ok_or_else(|| {
                let names = Self::ALL.map(|one| format!("`{}`", one.name()));
                SettingError::of_value(
                    format!("unknown rule for ACKs `{text}`"),
                    format!("one of {}", names.join(", ")),
                )
            })
    }
}
