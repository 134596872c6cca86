//! Decompression of content (RFC 9110 §8.4.1) as it arrives, with a limit on its expansion.
//!
//! Memory is bounded: the window of the decoder (zstd: up to 100 MiB) and one block. The sequences of a zstd block that is made
//! for it can describe more than the 128 KiB that RFC 8878 permits, which the decoder does not refuse.

use std::{
    io::Read as _,
    panic::{AssertUnwindSafe, catch_unwind},
};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// The value of `accept-encoding`.
pub(crate) const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// Output of this many bytes is accepted whatever the size of the input.
const UNCHECKED_LEN: u64 = 64 << 20;
/// The largest ratio of output to input beyond that. Every coding can exceed it: DEFLATE reaches 1032.
const RATIO_MAX: u64 = 200;
/// The size of the output buffer in bytes.
const BUFFER_LEN: usize = 64 << 10;

/// The largest zstd block, in bytes (RFC 8878 §3.1.1.2.4).
const ZSTD_BLOCK_MAX: usize = 128 << 10;
/// The first of 16 magic numbers of skippable frames (RFC 8878 §3.1.2).
const ZSTD_SKIPPABLE: u32 = 0x184d_2a50;
/// The first byte of a gzip member (RFC 1952 §2.3.1).
const GZIP_MAGIC: u8 = 0x1f;
/// Whitespace around the members of a list (RFC 9110 §5.6.3).
const OWS: [char; 2] = [' ', '\t'];

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

enum Kind {
    Gzip(Decompress),
    /// `None` before the first byte, which decides between zlib and raw DEFLATE.
    Deflate(Option<Decompress>),
    Brotli(Box<Brotli>),
    Zstd(Zstd),
}

#[derive(Default)]
struct Zstd {
    /// `None` between frames.
    frame: Option<Box<Frame>>,
    /// Input of an incomplete block or header.
    waiting: Vec<u8>,
    /// The bytes of a skippable frame that follow.
    skipped_len: usize,
}

/// A frame of zstd (RFC 8878 §3.1.1).
struct Frame {
    decoder: FrameDecoder,
    has_checksum: bool,
}

/// The decompression of one body.
pub(crate) struct Decoder {
    kind: Kind,
    growth: Growth,
    /// Whether the content may end here.
    is_finished: bool,
    buffer: Vec<u8>,
}

/// The sizes of input and output, in bytes.
struct Growth {
    input_len: u64,
    output_len: u64,
}

impl Growth {
    /// Passes decompressed bytes on, unless a limit is exceeded.
    fn emit(&mut self, bytes: &[u8], sink: Sink<'_>) -> Result<(), Failure> {
        self.output_len += bytes.len() as u64;
        let Self {
            input_len,
            output_len,
        } = *self;
        if output_len > UNCHECKED_LEN && output_len / RATIO_MAX > input_len {
            return Err(Failure::Encoding(format!(
                "expansion limit exceeded: {input_len} bytes of compressed content became {output_len}"
            )));
        }
        sink(bytes)
    }
}

/// Receives decompressed bytes.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Failure>;

impl Decoder {
    /// A decoder for a `content-encoding`, the list of all its lines; `None` if the content is not compressed.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::Encoding`] if the coding is not supported. Several codings of one body are not supported.
    pub(crate) fn new(codings: &str) -> Result<Option<Self>, Failure> {
        let codings = codings.to_ascii_lowercase();
        let codings = codings.split(',').map(|coding| coding.trim_matches(OWS));
        let codings: Vec<&str> = codings
            .filter(|coding| !matches!(*coding, "" | "identity"))
            .collect();
        let coding = codings.join(", ");
        let kind = match &*coding {
            "" => return Ok(None),
            "gzip" | "x-gzip" => Kind::Gzip(gzip()),
            "deflate" => Kind::Deflate(None),
            "br" => Kind::Brotli(Box::new(Brotli::new(
                StandardAlloc::default(),
                StandardAlloc::default(),
                StandardAlloc::default(),
            ))),
            "zstd" => Kind::Zstd(Zstd::default()),
            _ => {
                return Err(Failure::Encoding(format!(
                    "unsupported content coding `{}` (expected gzip, deflate, br or zstd)",
                    coding.escape_debug()
                )));
            }
        };
        Ok(Some(Self {
            kind,
            growth: Growth {
                input_len: 0,
                output_len: 0,
            },
            is_finished: false,
            buffer: vec![0; BUFFER_LEN],
        }))
    }

    /// Decompresses the next bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::Encoding`] if the bytes are invalid or expand too much, and the error of `sink`.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: Sink<'_>) -> Result<(), Failure> {
        self.growth.input_len += bytes.len() as u64;
        let Self {
            kind,
            growth,
            is_finished,
            buffer,
        } = self;
        let mut emit = |bytes: &[u8]| growth.emit(bytes, sink);
        let mut rest = bytes;
        loop {
            if *is_finished {
                // Padding.
                let zeros = rest.iter().take_while(|byte| **byte == 0).count();
                rest = rest.get(zeros..).unwrap_or_default();
                match (rest, &mut *kind) {
                    ([], _) => return Ok(()),
                    // A further member (RFC 1952 §2.2).
                    ([GZIP_MAGIC, ..], Kind::Gzip(decoder)) => *decoder = gzip(),
                    _ => return Err(corrupt("data after its end")),
                }
            }
            let (read, is_end) = match kind {
                Kind::Gzip(decoder) => inflate(decoder, rest, buffer, &mut emit)?,
                Kind::Deflate(decoder) => {
                    let Some(first) = rest.first() else {
                        return Ok(());
                    };
                    // The low bits are 8 in zlib's header (RFC 1950 §2.2), and would be padding that is not zero in raw
                    // DEFLATE (RFC 1951 §3.2.4), which some servers send (RFC 9110 §8.4.1.2).
                    let decoder = decoder.get_or_insert_with(|| Decompress::new(first & 0x0f == 8));
                    inflate(decoder, rest, buffer, &mut emit)?
                }
                Kind::Brotli(decoder) => brotli(decoder, rest, buffer, &mut emit)?,
                Kind::Zstd(zstd) => {
                    zstd.waiting.extend_from_slice(rest);
                    return zstd.decode(buffer, &mut emit);
                }
            };
            rest = rest.get(read..).unwrap_or_default();
            *is_finished = is_end;
            if !is_end {
                return Ok(());
            }
        }
    }

    /// Processes the end of the content.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::Encoding`] if the content is truncated.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if self.growth.input_len == 0 {
            // Empty content is valid. Responses to HEAD and with status 304 have a coding without content.
            return Ok(());
        }
        if let Kind::Zstd(zstd) = &self.kind {
            self.is_finished = zstd.is_between_frames();
        }
        if self.is_finished {
            Ok(())
        } else {
            Err(corrupt("truncated"))
        }
    }
}

fn corrupt(why: &str) -> Failure {
    Failure::Encoding(format!("invalid compressed content: {why}"))
}

/// A decoder of one gzip member, with a window of 15 bits, the maximum.
fn gzip() -> Decompress {
    Decompress::new_gzip(15)
}

/// Returns the number of bytes read, and whether this is the end.
fn inflate(
    decoder: &mut Decompress,
    bytes: &[u8],
    buffer: &mut [u8],
    emit: Sink<'_>,
) -> Result<(usize, bool), Failure> {
    let start = decoder.total_in();
    loop {
        let (before_in, before_out) = (decoder.total_in(), decoder.total_out());
        let rest = bytes.get((before_in - start) as usize..);
        let status = decoder
            .decompress(rest.unwrap_or_default(), buffer, FlushDecompress::None)
            .map_err(|error| corrupt(&error.to_string()))?;
        let read = (decoder.total_in() - start) as usize;
        let written = (decoder.total_out() - before_out) as usize;
        emit(buffer.get(..written).unwrap_or_default())?;
        let is_end = status == Status::StreamEnd;
        let is_stuck = decoder.total_in() == before_in && written == 0;
        if is_end || is_stuck || read == bytes.len() && written < buffer.len() {
            return Ok((read, is_end));
        }
    }
}

/// Returns the number of bytes read, and whether this is the end.
fn brotli(
    decoder: &mut Brotli,
    bytes: &[u8],
    buffer: &mut [u8],
    emit: Sink<'_>,
) -> Result<(usize, bool), Failure> {
    let (mut available_in, mut in_offset, mut total) = (bytes.len(), 0, 0);
    loop {
        let (mut available_out, mut written) = (buffer.len(), 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut in_offset,
            bytes,
            &mut available_out,
            &mut written,
            buffer,
            &mut total,
            decoder,
        );
        emit(buffer.get(..written).unwrap_or_default())?;
        match result {
            BrotliResult::ResultSuccess => return Ok((in_offset, true)),
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => return Ok((in_offset, false)),
            BrotliResult::ResultFailure => return Err(corrupt("corrupt brotli data")),
        }
    }
}

impl Zstd {
    /// Decodes whole blocks, one at a time: a few bytes may be 128 KiB of content.
    fn decode(&mut self, buffer: &mut [u8], emit: Sink<'_>) -> Result<(), Failure> {
        let mut from = 0;
        loop {
            let rest = self.waiting.get(from..).unwrap_or_default();
            let skipped = self.skipped_len.min(rest.len());
            self.skipped_len -= skipped;
            from += skipped;
            let rest = rest.get(skipped..).unwrap_or_default();
            let Some(frame) = &mut self.frame else {
                match start_frame(rest)? {
                    Some((Start::Frame(frame), len)) => {
                        self.frame = Some(frame);
                        from += len;
                    }
                    Some((Start::Skippable { content_len }, len)) => {
                        self.skipped_len = content_len;
                        from += len;
                    }
                    None => break,
                }
                continue;
            };
            let Some(block) = frame.block(rest)? else {
                break;
            };
            let decoder = &mut frame.decoder;
            // The decoder asserts what a corrupt block may break.
            let one = BlockDecodingStrategy::UptoBlocks(1);
            let result = catch_unwind(AssertUnwindSafe(|| decoder.decode_blocks(block, one)));
            let result = result.map_err(|_| corrupt("corrupt zstd data"))?;
            result.map_err(|error| corrupt(&error.to_string()))?;
            from += block.len();
            while decoder.can_collect() > 0 {
                let read = decoder.read(buffer);
                let read = read.map_err(|error| corrupt(&error.to_string()))?;
                emit(buffer.get(..read).unwrap_or_default())?;
            }
            if decoder.is_finished() {
                let checksum = decoder.get_checksum_from_data();
                if checksum.is_some() && checksum != decoder.get_calculated_checksum() {
                    return Err(corrupt("wrong checksum"));
                }
                // A further frame may follow (RFC 8878 §3).
                self.frame = None;
            }
        }
        self.waiting.drain(..from);
        Ok(())
    }

    fn is_between_frames(&self) -> bool {
        self.frame.is_none() && self.waiting.is_empty() && self.skipped_len == 0
    }
}

/// What starts with a magic number.
enum Start {
    Frame(Box<Frame>),
    Skippable { content_len: usize },
}

/// Parses the header of a frame. Returns its length as well; `None` if it is incomplete.
fn start_frame(bytes: &[u8]) -> Result<Option<(Start, usize)>, Failure> {
    let Some((magic, rest)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    if (ZSTD_SKIPPABLE..=ZSTD_SKIPPABLE | 0xf).contains(&u32::from_le_bytes(*magic)) {
        let start = rest.first_chunk().map(|len| Start::Skippable {
            content_len: u32::from_le_bytes(*len) as usize,
        });
        return Ok(start.map(|start| (start, magic.len() + 4)));
    }
    let Some(descriptor) = rest.first() else {
        return Ok(None);
    };
    // RFC 8878 §3.1.1.1: the lengths of the window descriptor, the dictionary ID and the content size.
    let is_single_segment = descriptor & 0x20 != 0;
    let id_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_len = [usize::from(is_single_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    let len = magic.len() + 1 + usize::from(!is_single_segment) + id_len + size_len;
    let Some(header) = bytes.get(..len) else {
        return Ok(None);
    };
    let mut decoder = FrameDecoder::new();
    // The decoder checks the size of the window for all headers but the first.
    for _ in 0..2 {
        let started = decoder.reset(header);
        started.map_err(|error| corrupt(&error.to_string()))?;
    }
    let frame = Frame {
        decoder,
        has_checksum: descriptor & 4 != 0,
    };
    Ok(Some((Start::Frame(Box::new(frame)), len)))
}

impl Frame {
    /// The next block, with the checksum after the last one; `None` if it is incomplete.
    fn block<'a>(&self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Failure> {
        const RLE: usize = 1;
        let Some([low, middle, high]) = bytes.first_chunk() else {
            return Ok(None);
        };
        // RFC 8878 §3.1.1.2
        let header = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
        let (is_last, kind, size) = (header & 1 == 1, header >> 1 & 3, header >> 3);
        if size > ZSTD_BLOCK_MAX {
            return Err(corrupt("zstd block above 128 KiB"));
        }
        let content_len = if kind == RLE { 1 } else { size };
        let checksum_len = if is_last && self.has_checksum { 4 } else { 0 };
        Ok(bytes.get(..3 + content_len + checksum_len))
    }
}
