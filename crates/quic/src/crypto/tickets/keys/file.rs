//! The format of a file with ticket keys, which all servers of a fleet share.
//!
//! Owns the syntax and its errors. Error messages never contain a secret.
//!
//! Decision: parsing is strict, since a typing error must not be accepted as a key: servers with different keys would
//! only notice more full handshakes.

use std::fmt;

use super::{KEYS_MAX, SECRET_LEN};

/// Why a text is not a list of ticket keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFileError {
    /// The line, counted from 1; the last if the text as a whole is meant.
    pub line: usize,
    /// The problem.
    pub fault: KeyFileErrorKind,
}

/// The error of a list of ticket keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFileErrorKind {
    /// A line has this many characters instead of the 64 of a secret.
    Length(usize),
    /// The character in this column, counted from 1 at the start of the secret, is not a hexadecimal digit.
    Digit(usize),
    /// The secret is the same as that of another line.
    Duplicate(usize),
    /// All bytes of the secret are the same, so it is not random.
    NotRandom,
    /// The text contains no secret.
    Empty,
    /// The text contains more than [`KEYS_MAX`] secrets.
    TooMany,
}

impl KeyFileError {
    pub(super) const fn of_count(count: usize) -> Self {
        Self {
            line: count,
            fault: if count == 0 {
                KeyFileErrorKind::Empty
            } else {
                KeyFileErrorKind::TooMany
            },
        }
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = 2 * SECRET_LEN;
        match self.fault {
            KeyFileErrorKind::Empty => {
                return write!(
                    f,
                    "no ticket key (expected lines of {digits} random hexadecimal digits)"
                );
            }
            _ => write!(f, "line {} of the ticket keys: ", self.line)?,
        }
        match self.fault {
            KeyFileErrorKind::Length(len) => {
                write!(f, "a key has {digits} hexadecimal digits, not {len}")
            }
            KeyFileErrorKind::Digit(column) => {
                write!(f, "character {column} is not a hexadecimal digit")
            }
            KeyFileErrorKind::Duplicate(line) => write!(f, "the key is that of line {line}"),
            KeyFileErrorKind::NotRandom => f.write_str("the key is not random"),
            KeyFileErrorKind::Empty => Ok(()),
            KeyFileErrorKind::TooMany => write!(f, "there are more than {KEYS_MAX} keys"),
        }
    }
}

impl std::error::Error for KeyFileError {}

/// The secrets of a text, in order.
pub(super) fn secrets(text: &[u8]) -> Result<Vec<[u8; SECRET_LEN]>, KeyFileError> {
    let mut secrets = Vec::new();
    let mut lines = Vec::new();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let before_comment = line.split(|byte| *byte == b'#').next();
        let digits = before_comment.unwrap_or_default().trim_ascii();
        if digits.is_empty() {
            continue;
        }
        let at_line = |fault| KeyFileError {
            line: index + 1,
            fault,
        };
        let secret = secret(digits).map_err(at_line)?;
        if let Some(same) = secrets.iter().position(|known| *known == secret) {
            let line = lines.get(same).copied().unwrap_or_default();
            return Err(at_line(KeyFileErrorKind::Duplicate(line)));
        }
        if secrets.len() == KEYS_MAX {
            return Err(at_line(KeyFileErrorKind::TooMany));
        }
        secrets.push(secret);
        lines.push(index + 1);
    }
    if secrets.is_empty() {
        return Err(KeyFileError {
            line: text.split(|byte| *byte == b'\n').count(),
            fault: KeyFileErrorKind::Empty,
        });
    }
    Ok(secrets)
}

fn secret(digits: &[u8]) -> Result<[u8; SECRET_LEN], KeyFileErrorKind> {
    let wrong = |digit: &u8| !digit.is_ascii_hexdigit();
    if let Some(index) = digits.iter().position(wrong) {
        return Err(KeyFileErrorKind::Digit(index + 1));
    }
    if digits.len() != 2 * SECRET_LEN {
        return Err(KeyFileErrorKind::Length(digits.len()));
    }
    let mut secret = [0; SECRET_LEN];
    for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair
            .iter()
            .filter_map(|digit| char::from(*digit).to_digit(16))
            .fold(0, |value, digit| value << 4 | digit as u8);
    }
    if secret.iter().all(|byte| *byte == secret[0]) {
        return Err(KeyFileErrorKind::NotRandom);
    }
    Ok(secret)
}
