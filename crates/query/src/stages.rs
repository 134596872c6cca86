//! Cuts the text of a query into stages at each `>>` outside of brackets, strings and regexes.
//!
//! A small scanner of Ruby's tokens: it must know where a string, a regex, a `%w[…]` or a comment starts and ends, and
//! whether a `/` divides. On Ruby's own tree `_["x"] == 1 >> sum(_)` would mean something else.

use crate::error::CompileError;

/// A stage: its offset in the text, and its text without surrounding blanks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) start: usize,
    pub(crate) text: &'a str,
}

pub(crate) fn split(text: &str) -> Result<Vec<Piece<'_>>, CompileError> {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        operand: true,
        open: Vec::new(),
        cuts: Vec::new(),
    };
    scanner.run(None)?;
    let mut pieces = Vec::new();
    let mut start = 0;
    for cut in scanner.cuts.iter().copied().chain([text.len() + 2]) {
        let end = cut.min(text.len());
        let raw = &text[start.min(text.len())..end];
        let trimmed = raw.trim();
        if !trimmed.is_empty() {
            pieces.push(Piece {
                start: start + (raw.len() - raw.trim_start().len()),
                text: trimmed,
            });
        }
        start = cut + 2;
    }
    if pieces.is_empty() {
        return Err(CompileError::whole("query", "empty expression"));
    }
    Ok(pieces)
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Whether an operand is expected: then `/`, `%`, `?` and `<<` start a literal.
    operand: bool,
    open: Vec<(u8, usize)>,
    cuts: Vec<usize>,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn offset(&self, byte: usize) -> usize {
        self.text[..byte].chars().count()
    }

    fn fail(&self, byte: usize, message: String) -> CompileError {
        CompileError::at("query", self.text, byte, message)
    }

    /// Scans to the end, or to the `}` that closes an interpolation.
    fn run(&mut self, inside: Option<usize>) -> Result<(), CompileError> {
        let depth = self.open.len();
        while self.at < self.bytes.len() {
            let c = self.bytes[self.at];
            if c == b'}' && inside.is_some() && self.open.len() == depth {
                self.at += 1;
                return Ok(());
            }
            self.token(c, inside.is_some())?;
        }
        if let Some(opened) = inside {
            return Err(self.fail(
                opened,
                "syntax error: a string's `#{` is never closed".to_owned(),
            ));
        }
        if let Some((delimiter, byte)) = self.open.last().copied() {
            let message = format!(
                "unclosed delimiter \"{}\" at offset {}",
                char::from(delimiter),
                self.offset(byte)
            );
            return Err(self.fail(byte, message));
        }
        Ok(())
    }

    fn token(&mut self, c: u8, inside: bool) -> Result<(), CompileError> {
        match c {
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'\n' => {
                self.at += 1;
                self.operand = true;
            }
            b'#' => {
                while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
                    self.at += 1;
                }
            }
            b'\'' | b'"' | b'`' => {
                self.at += 1;
                self.literal(c, c, c != b'\'', self.at - 1)?;
            }
            b'(' | b'[' | b'{' => {
                self.open.push((c, self.at));
                self.at += 1;
                self.operand = true;
            }
            b')' | b']' | b'}' => self.close(c)?,
            b'>' if self.bytes[self.at..].starts_with(b">>") => {
                if self.open.is_empty() && !inside && self.peek(2) != b'=' {
                    self.cuts.push(self.at);
                }
                self.at += 2;
                self.operand = true;
            }
            b'/' if self.operand => {
                self.at += 1;
                self.literal(b'/', b'/', true, self.at - 1)?;
                self.letters();
            }
            b'%' if self.operand && self.is_percent_literal() => self.percent()?,
            b'?' if self.operand && self.is_character() => {
                self.at += 1;
                if self.peek(0) == b'\\' {
                    self.at += 1;
                }
                let character = self.text[self.at..].chars().next();
                self.at += character.map_or(0, char::len_utf8);
                self.operand = false;
            }
            b'$' => {
                self.at += 1;
                if self.peek(0).is_ascii_punctuation() && self.peek(0) != b'_' {
                    self.at += 1;
                } else {
                    self.letters();
                }
                self.operand = false;
            }
            b':' if self.peek(1) == b'"' => {
                self.at += 2;
                self.literal(b'"', b'"', true, self.at - 1)?;
            }
            b'.' => {
                self.at += 1;
                // A method's name may be an operator, and is none of a literal's beginnings.
                self.operand = self.peek(0) == b'.';
            }
            _ if c == b'_' || c.is_ascii_alphabetic() || c >= 0x80 => self.word(),
            _ if c.is_ascii_digit() => {
                self.letters();
                self.operand = false;
            }
            _ => {
                self.at += 1;
                self.operand = true;
            }
        }
        Ok(())
    }

    fn close(&mut self, c: u8) -> Result<(), CompileError> {
        let wanted = match c {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        match self.open.pop() {
            Some((opened, _)) if opened == wanted => {}
            _ => {
                let message = format!(
                    "mismatched delimiter \"{}\" at offset {}",
                    char::from(c),
                    self.offset(self.at)
                );
                return Err(self.fail(self.at, message));
            }
        }
        self.at += 1;
        self.operand = false;
        Ok(())
    }

    fn letters(&mut self) {
        while self.peek(0) == b'_' || self.peek(0).is_ascii_alphanumeric() || self.peek(0) >= 0x80 {
            self.at += 1;
        }
    }

    fn word(&mut self) {
        const BEFORE_OPERAND: &[&str] = &[
            "and", "or", "not", "if", "unless", "while", "until", "when", "case", "in", "then",
            "else", "elsif", "do", "return", "next", "break", "yield", "puts", "raise", "begin",
            "rescue", "ensure",
        ];
        let start = self.at;
        self.letters();
        let word = &self.text[start..self.at];
        let after_dot = start > 0 && self.bytes[start - 1] == b'.';
        if matches!(self.peek(0), b'?' | b'!') && self.peek(1) != b'=' {
            self.at += 1;
        }
        self.operand = !after_dot && BEFORE_OPERAND.contains(&word);
        // `select /x/`: a name, a blank, and a slash without a blank behind it begin a regex, as in Ruby. A row does not.
        let is_row = word == "_" || after_dot;
        if !is_row
            && self.peek(0) == b' '
            && matches!(self.peek(1), b'/' | b'%')
            && !matches!(self.peek(2), b' ' | b'=' | 0)
        {
            self.operand = matches!(word, "split" | "match" | "select" | "puts" | "p");
        }
    }

    fn is_percent_literal(&self) -> bool {
        let next = self.peek(1);
        if matches!(next, b'w' | b'W' | b'i' | b'I' | b'q' | b'Q' | b'r' | b's') {
            return self.peek(2).is_ascii_punctuation();
        }
        next.is_ascii_punctuation() && next != b'='
    }

    fn percent(&mut self) -> Result<(), CompileError> {
        let start = self.at;
        self.at += 1;
        let kind = self.peek(0);
        if kind.is_ascii_alphabetic() {
            self.at += 1;
        }
        let open = self.peek(0);
        self.at += 1;
        let close = match open {
            b'(' => b')',
            b'[' => b']',
            b'{' => b'}',
            b'<' => b'>',
            other => other,
        };
        let interpolates = !matches!(kind, b'q' | b'w' | b'i' | b's');
        self.literal(open, close, interpolates, start)?;
        if kind == b'r' {
            self.letters();
        }
        Ok(())
    }

    fn is_character(&self) -> bool {
        let next = self.peek(1);
        if next == b'\\' {
            return true;
        }
        next > b' ' && !(self.peek(2) == b'_' || self.peek(2).is_ascii_alphanumeric())
    }

    /// The inside of a literal that starts at `start`, and its end.
    fn literal(
        &mut self,
        open: u8,
        close: u8,
        interpolates: bool,
        start: usize,
    ) -> Result<(), CompileError> {
        let mut depth = 0;
        while self.at < self.bytes.len() {
            let c = self.bytes[self.at];
            self.at += 1;
            if c == b'\\' {
                self.at += 1;
            } else if c == b'#' && interpolates && self.peek(0) == b'{' {
                let opened = self.at - 1;
                self.at += 1;
                let operand = self.operand;
                self.operand = true;
                self.run(Some(opened))?;
                self.operand = operand;
            } else if c == close && depth == 0 {
                self.operand = false;
                return Ok(());
            } else if open != close && c == open {
                depth += 1;
            } else if open != close && c == close {
                depth -= 1;
            }
        }
        self.at = self.bytes.len();
        let what = char::from(self.bytes[start]);
        Err(self.fail(
            start,
            format!(
                "syntax error: unclosed delimiter \"{what}\" at offset {}",
                self.offset(start)
            ),
        ))
    }
}

#[cfg(test)]
mod tests;
