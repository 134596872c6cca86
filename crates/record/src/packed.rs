//! Logs that are compressed as they are written.
//!
//! Compresses whole lines ([`PackedLines`]). Opens no file, and does not block.
//!
//! A compressed log is a series of gzip members (RFC 1952 §2.2) or Zstandard frames (RFC 8878 §3). Each holds whole lines and
//! is written with one call, so the log is readable up to the last complete member after a crash:
//!
//! - if the process is killed, only the lines that were not compressed yet are lost;
//! - if the system stops during a write, the last member is truncated and its lines are lost. A lenient reader may return some
//!   of them, the last perhaps in part; every reader reports an error there.
//!
//! An uncompressed log is written in the same pieces. Readers of both formats accept such a series as one file (`gzip`, `zstd`,
//! `lastbyte query`).

use core::{fmt, str::FromStr};
use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

#[cfg(test)]
mod tests;

/// The compression of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// No compression.
    #[default]
    None,
    /// gzip at level 6: 101 kB for 1.78 MB of lines.
    Gzip,
    /// Zstandard, about level 1 of the reference implementation: 183 kB for the same lines.
    Zstd,
}

impl Packing {
    /// The suffix of file names.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    /// The compression that the suffix of a file name stands for.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        [Self::Gzip, Self::Zstd]
            .into_iter()
            .find(|packing| name.ends_with(packing.suffix()))
            .unwrap_or_default()
    }
}

impl FromStr for Packing {
    type Err = UnknownPacking;

    fn from_str(text: &str) -> Result<Self, UnknownPacking> {
        match text {
            "none" => Ok(Self::None),
            "gz" | "gzip" => Ok(Self::Gzip),
            "zst" | "zstd" => Ok(Self::Zstd),
            _ => Err(UnknownPacking(text.to_owned())),
        }
    }
}

/// An unknown compression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown compression `{0}` (expected `gzip`, `zstd` or `none`)")]
pub struct UnknownPacking(String);

/// A log that is being written. Lines since the last [`PackedLines::seal`] are lost when it is dropped.
pub struct PackedLines<W> {
    writer: W,
    packing: Packing,
    /// Whole lines that are not written yet.
    waiting: Vec<u8>,
}

impl<W> fmt::Debug for PackedLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackedLines")
            .field("packing", &self.packing)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl<W: Write> PackedLines<W> {
    /// Creates a log that is written to `writer`, which needs no buffer.
    pub fn new(writer: W, packing: Packing) -> Self {
        Self {
            writer,
            packing,
            waiting: Vec::new(),
        }
    }

    /// Adds a line, with or without its line break. Lines are written once there are enough for a member.
    ///
    /// # Errors
    ///
    /// Returns the error of the writer if a member cannot be written. Its lines are lost.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.waiting.extend_from_slice(line.as_bytes());
        if !line.ends_with('\n') {
            self.waiting.push(b'\n');
        }
        if self.waiting.len() >= self.packing.piece_len() {
            self.seal()?;
        }
        Ok(())
    }

    /// Writes all pending lines as a member and flushes the writer. Call it at the end, and from time to time if lines are
    /// rare; small members compress badly.
    ///
    /// # Errors
    ///
    /// Returns the error of the writer if the lines cannot be written. They are lost.
    pub fn seal(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return self.writer.flush();
        }
        let written = match self.packing {
            Packing::None => self.writer.write_all(&self.waiting),
            Packing::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                let packed = encoder
                    .write_all(&self.waiting)
                    .and_then(|()| encoder.finish());
                packed.and_then(|packed| self.writer.write_all(&packed))
            }
            Packing::Zstd => {
                let packed = compress_to_vec(&self.waiting[..], CompressionLevel::Fastest);
                self.writer.write_all(&packed)
            }
        };
        self.waiting.clear();
        written.and_then(|()| self.writer.flush())
    }
}

impl Packing {
    /// The bytes of lines at which a member is written. Longer members compress better.
    const fn piece_len(self) -> usize {
        match self {
            Self::None => 1 << 16,
            Self::Gzip | Self::Zstd => 1 << 20,
        }
    }
}
