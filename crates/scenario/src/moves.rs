//! Changes of the clients' address during a transfer. The path stays the same; its `steps` can change its rate at the same time.

use core::time::Duration;

use lastbyte_units as units;

use crate::setting::SettingError;

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
    /// Returns a [`SettingError`] for the part that is invalid.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [at, kind] = words[..] else {
            return Err(SettingError::of_value(
                format!("`{text}`"),
                "a time and `nat` or `network`, such as `2s network`",
            ));
        };
        Ok(Self {
            at: units::span(at)?,
            kind: match kind {
                "nat" => MoveKind::Nat,
                "network" => MoveKind::Network,
                other => {
                    return Err(SettingError::of_value(
                        format!("`{other}`"),
                        "`nat` or `network`",
                    ));
                }
            },
        })
    }

    /// Parses the changes of a path, ordered by time.
    pub(crate) fn parse_all(texts: &[String]) -> Result<Vec<Self>, SettingError> {
        if texts.len() > MOVES_MAX {
            let count = texts.len();
            return Err(SettingError::of_value(
                format!("{count} moves"),
                format!("at most {MOVES_MAX}"),
            ));
        }
        let moves: Vec<Self> = texts
            .iter()
            .map(|text| Self::parse(text))
            .collect::<Result<_, _>>()?;
        if moves.is_sorted_by_key(|one| one.at) {
            Ok(moves)
        } else {
            Err(SettingError::of_value(
                "times that do not ascend",
                "the earliest first",
            ))
        }
    }
}

/// The maximum number of changes of a path, bounded by the number of addresses.
const MOVES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_parsed_in_order() {
        let texts = ["1s nat", "1500ms network", "2s nat"].map(str::to_owned);
        let moves = Move::parse_all(&texts).expect("valid");
        assert_eq!(moves[1].at, Duration::from_millis(1500));
        assert_eq!(moves[1].kind, MoveKind::Network);
        for (texts, expected) in [
            (&["2s nat", "1s nat"][..], "do not ascend"),
            (&["2s"], "expected a time and `nat` or `network`"),
            (&["2s wifi"], "`wifi` (expected `nat` or `network`)"),
            (&["2 nat"], "`2s`"),
            (&["1s nat"; 101], "101 moves (expected at most 100)"),
        ] {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let error = Move::parse_all(&texts).expect_err("invalid").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
