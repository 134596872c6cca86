//! Seeds on the command line of programs that run a test with random input.

use core::{num::ParseIntError, ops::Range};

/// The seeds to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// One seed, with a report of its run: `--seed N`.
    One(u64),
    /// These seeds, with a summary: `--seeds COUNT [--from N]`. The first 1000 without arguments.
    Many(Range<u64>),
}

impl Seeds {
    /// Parses the arguments without the name of the program.
    ///
    /// # Errors
    ///
    /// Returns a usage message for any other arguments.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let arguments: Vec<String> = arguments.collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let number = |text: &str| {
            let parsed = text.parse::<u64>();
            parsed.map_err(|error: ParseIntError| {
                format!(
                    "invalid number `{text}`: {error} (expected 0 to {})",
                    u64::MAX
                )
            })
        };
        match arguments[..] {
            [] => Ok(Self::Many(0..1000)),
            ["--seed", seed] => Ok(Self::One(number(seed)?)),
            ["--seeds", count] => Ok(Self::Many(0..number(count)?)),
            ["--seeds", count, "--from", first] => {
                let first = number(first)?;
                Ok(Self::Many(first..first.saturating_add(number(count)?)))
            }
            _ => Err("usage: [--seed N | --seeds COUNT [--from N]]".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_one_seed_or_a_range() {
        let parse = |text: &str| Seeds::parse(text.split_whitespace().map(str::to_owned));
        assert_eq!(parse(""), Ok(Seeds::Many(0..1000)));
        assert_eq!(parse("--seed 17"), Ok(Seeds::One(17)));
        assert_eq!(parse("--seeds 5"), Ok(Seeds::Many(0..5)));
        assert_eq!(parse("--seeds 5 --from 7"), Ok(Seeds::Many(7..12)));
        for wrong in ["--seed", "--seed x", "--seeds -1", "17", "--seed 1 2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
