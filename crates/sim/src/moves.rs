//! Changes of the clients' address during a simulation.
//!
//! Owns: how they are written, and the addresses that follow from them. The path stays the same: its `steps` can change its
//! rate at the same time.

use core::{net::SocketAddr, time::Duration};

use lastbyte_units as units;

#[cfg(test)]
mod tests;

/// Why the address of a client changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// A NAT gives it another port, which it does not notice.
    Nat,
    /// It has another network and another address, and the previous one is gone: it moves its connection.
    Network,
}

/// A change of the address of each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When, from the start of the simulation.
    pub at: Duration,
    /// Why.
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

    /// Parses all of a path, in the order of their times.
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

/// The most moves of a path: as many as there are addresses for.
const MOVES_MAX: usize = 100;

fn count(past: &[Move], kind: MoveKind) -> u8 {
    // At most `MOVES_MAX`.
    past.iter().filter(|one| one.kind == kind).count() as u8
}

/// The address of a client after these moves, as it knows it. It had `first` before them.
pub(crate) fn local(first: SocketAddr, past: &[Move]) -> SocketAddr {
    let mut address = first;
    if let SocketAddr::V4(v4) = &mut address {
        let [a, b, c, d] = v4.ip().octets();
        v4.set_ip([a + count(past, MoveKind::Network), b, c, d].into());
    }
    address
}

/// The same, as the server sees it.
pub(crate) fn external(first: SocketAddr, past: &[Move]) -> SocketAddr {
    let mut address = local(first, past);
    address.set_port(address.port() + u16::from(count(past, MoveKind::Nat)));
    address
}
