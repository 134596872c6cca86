//! The mix of handshakes: the kinds of handshakes, and the weight of each.

use core::{fmt, str::FromStr};

use lastbyte_units::SplitMix64;

#[cfg(test)]
mod tests;

/// How a connection is established.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// By a full TLS handshake.
    #[default]
    Full,
    /// By a resumed TLS session (RFC 8446 §2.2), if there is one.
    Resumed,
    /// By a resumed TLS session with requests in early data (RFC 8446 §2.3), if the server allows that.
    ZeroRtt,
}

/// The weight of each kind; at least one is not 0.
///
/// Each request of a client draws its kind independently, with a probability in proportion to its weight. The first connection of a
/// client is always established by a full handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// A new connection with a full handshake.
    pub new: u32,
    /// A new connection with a resumed session.
    pub resumed: u32,
    /// A new connection with a resumed session and the request in early data.
    pub zero_rtt: u32,
    /// The connection of the client's last request.
    pub reused: u32,
}

impl Mix {
    /// Whether it resumes sessions.
    pub const fn is_resuming(self) -> bool {
        self.resumed > 0 || self.zero_rtt > 0
    }

    /// Whether a connection can carry more than one request.
    pub const fn is_reusing(self) -> bool {
        self.reused > 0
    }

    /// Draws the handshake of a new connection for a request; `None` if the request reuses a connection.
    pub fn draw(self, random: &mut SplitMix64) -> Option<Handshake> {
        let ways = [
            (self.new, Some(Handshake::Full)),
            (self.resumed, Some(Handshake::Resumed)),
            (self.zero_rtt, Some(Handshake::ZeroRtt)),
            (self.reused, None),
        ];
        let total: u64 = ways.iter().map(|(weight, _)| u64::from(*weight)).sum();
        // Of 32 random bits: the error is below one part in 2^20 of a weight, and nothing is drawn twice.
        let mut drawn = ((random.number() >> 32) * total) >> 32;
        for (weight, way) in ways {
            match drawn.checked_sub(u64::from(weight)) {
                Some(rest) => drawn = rest,
                None => return way,
            }
        }
        None
    }
}

/// The highest weight.
const WEIGHT_MAX: u32 = 1_000_000;

/// Parses `new=1,0rtt=10,reused=50`. Ways that are left out have weight 0.
impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut ways = [
            ("new", None),
            ("resumed", None),
            ("0rtt", None),
            ("reused", None),
        ];
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, ""));
            let way = ways.iter_mut().find(|(known, _)| *known == name);
            let Some((_, place)) = way else {
                return Err(format!(
                    "unknown way to get a connection `{name}` (expected `new`, `resumed`, `0rtt` or `reused`)"
                ));
            };
            let parsed = weight.parse().ok();
            let parsed = parsed
                .filter(|weight| *weight <= WEIGHT_MAX)
                .ok_or_else(|| {
                    format!("invalid weight `{weight}` of `{name}` (expected 0 to {WEIGHT_MAX})")
                })?;
            if place.replace(parsed).is_some() {
                return Err(format!("`{name}` has two weights"));
            }
        }
        let [new, resumed, zero_rtt, reused] = ways.map(|(_, weight)| weight.unwrap_or(0));
        if [new, resumed, zero_rtt, reused] == [0; 4] {
            return Err("all weights are 0".to_owned());
        }
        Ok(Self {
            new,
            resumed,
            zero_rtt,
            reused,
        })
    }
}

/// In the form that is parsed.
impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            new,
            resumed,
            zero_rtt,
            reused,
        } = self;
        write!(
            f,
            "new={new},resumed={resumed},0rtt={zero_rtt},reused={reused}"
        )
    }
}
