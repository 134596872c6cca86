//! Changes of the clients' address during a simulation.
//!
//! Parses changes, and computes the resulting addresses. The path stays the same; its `steps` can change its rate at the
//! same time.

use core::{net::SocketAddr, time::Duration};

use lastbyte_units as units;

#[cfg(test)]
mod tests;

/// Why the address of a client changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// NAT rebinding to another port, which the client does not notice.
    Nat,
    /// The client moves to another network and address, and migrates its connection. The previous address is gone.
    Network,
}

/// A change of the address of each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Time of the change, from the start of the simulation.
    pub at: Duration,
    /// The reason.
    pub kind: MoveKind,
}

impl Move {
    /// Parses `2s nat` or `5s network`.
    ///
    /// # Errors
    ///
    /// Returns the text of the error for the part that is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [at, kind] = words[..] else {
            return Err(format!(
                "`{text}` (expected a time and `nat` or `network`, such as `2s network`)"
            ));
        };
        Ok(Self {
            at: units::span(at).map_err(|error| error.with_value())?,
            kind: match kind {
                "nat" => MoveKind::Nat,
                "network" => MoveKind::Network,
                other => return Err(format!("`{other}` (expected `nat` or `network`)")),
            },
        })
    }

    /// Parses the changes of a path, ordered by time.
    pub(crate) fn parse_all(texts: &[String]) -> Result<Vec<Self>, String> {
        if texts.len() > MOVES_MAX {
            let count = texts.len();
            return Err(format!("{count} moves (expected at most {MOVES_MAX})"));
        }
        let moves: Vec<Self> = texts
            .iter()
            .map(|text| Self::parse(text))
            .collect::<Result<_, _>>()?;
        if moves.is_sorted_by_key(|one| one.at) {
            Ok(moves)
        } else {
            Err("times that do not ascend (expected the earliest first)".to_owned())
        }
    }
}

/// The maximum number of changes of a path, bounded by the number of addresses.
const MOVES_MAX: usize = 100;

fn count(past: &[Move], kind: MoveKind) -> u8 {
    // At most `MOVES_MAX`.
    past.iter().filter(|one| one.kind == kind).count() as u8
}

/// The client's local address after these moves, starting with `first`.
pub(crate) fn local(first: SocketAddr, past: &[Move]) -> SocketAddr {
    let mut address = first;
    if let SocketAddr::V4(v4) = &mut address {
        let [a, b, c, d] = v4.ip().octets();
        v4.set_ip([a + count(past, MoveKind::Network), b, c, d].into());
    }
    address
}

/// The client's address as the server sees it.
pub(crate) fn external(first: SocketAddr, past: &[Move]) -> SocketAddr {
    let mut address = local(first, past);
    address.set_port(address.port() + u16::from(count(past, MoveKind::Nat)));
    address
}
