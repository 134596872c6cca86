//! Logs that are packed as they are written.
//!
//! Owns: the packing of whole lines, [`PackedLines`]. Never: opens a file, or waits for one.
//!
//! A packed log is a series of gzip members (RFC 1952 §2.2) or Zstandard frames (RFC 8878 §3), each with some whole lines,
//! written in one piece. So what a crash leaves can be read up to the last piece that was written in full:
//!
//! - a process that is killed loses the lines that were not packed yet, and nothing else;
//! - where the system itself stops in the middle of a write, the last piece is cut. Its lines are lost, though a reader that
//!   does not mind may show the first of them, the last of those perhaps in part; all readers complain at that place.
//!
//! An unpacked log goes the same way, without the packing. Readers of both formats take such a series as one file (`gzip`,
//! `zstd`, `lastbyte query`).

use core::{fmt, str::FromStr};
use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

#[cfg(test)]
mod tests;

/// How a log is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    #[default]
    None,
    /// gzip, at level 6: 1.78 MB of lines take 101 kB.
    Gzip,
    /// Zstandard, about as level 1 of the reference: the same lines take 183 kB.
    Zstd,
}

impl Packing {
    /// What a file's name ends with.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    /// As the end of a file's name has it.
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

/// There is no such packing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPacking(String);

impl fmt::Display for UnknownPacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is none of `gzip`, `zstd` and `none`", self.0)
    }
}

impl std::error::Error for UnknownPacking {}

/// A log that is being written. What is not sealed when it is dropped is lost: [`PackedLines::seal`] it.
pub struct PackedLines<W> {
    writer: W,
    packing: Packing,
    /// Whole lines that are not packed yet.
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
    /// A log to be written to `writer`, which needs no buffer.
    pub fn new(writer: W, packing: Packing) -> Self {
        Self {
            writer,
            packing,
            waiting: Vec::new(),
        }
    }

    /// Takes a line, with its end or without. It is written with those before it, once there are enough for a piece.
    ///
    /// # Errors
    ///
    /// A piece could not be written; its lines are lost.
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

    /// Writes all lines that wait, as a piece, and flushes the writer. At the end; and from time to time where lines come
    /// slowly, though small pieces pack badly.
    ///
    /// # Errors
    ///
    /// They could not be written, and are lost.
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
    /// From how many bytes of lines on a piece is written: what is packed gains by longer ones.
    const fn piece_len(self) -> usize {
        match self {
            Self::None => 1 << 16,
            Self::Gzip | Self::Zstd => 1 << 20,
        }
    }
}
