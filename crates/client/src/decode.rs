//! Decompression of content (RFC 9110 §8.4.1) as it arrives, with a limit on its expansion.
//!
//! Memory is bounded: the window of the decoder and one block.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::{
    FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

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

/// The largest zstd block with its headers, in bytes (RFC 8878 §3.1.1.2).
const ZSTD_BLOCK_LEN: usize = (128 << 10) + 32;

/// The header of a skippable frame, in bytes (RFC 8878 §3.1.2).
const ZSTD_SKIPPABLE_HEADER_LEN: usize = 8;
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
    decoder: Option<Box<FrameDecoder>>,
    /// Input of an incomplete block.
    waiting: Vec<u8>,
    /// The bytes of a skippable frame that follow.
    skipped_len: usize,
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
    /// The limit of the output ([`Fetch::size_max`](crate::Fetch::size_max)).
    limit: Option<u64>,
}

impl Growth {
    /// Passes decompressed bytes on, unless a limit is exceeded.
    fn emit(&mut self, bytes: &[u8], sink: Sink<'_>) -> Result<(), Failure> {
        self.output_len += bytes.len() as u64;
        let Self {
            input_len,
            output_len,
            limit,
        } = *self;
        if let Some(limit) = limit
            && output_len > limit
        {
            return Err(Failure::TooLarge(limit));
        }
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
                limit: None,
            },
            is_finished: false,
            buffer: vec![0; BUFFER_LEN],
        }))
    }

    /// Limits the output to this many bytes.
    pub(crate) const fn with_limit(mut self, limit: Option<u64>) -> Self {
        self.growth.limit = limit;
        self
    }

    /// Decompresses the next bytes.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::Encoding`] if the bytes are invalid or expand too much, [`Failure::TooLarge`] if the limit is
    /// exceeded, and the error of `sink`.
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
                    return zstd.decode(buffer, false, &mut emit);
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
    /// Returns [`Failure::Encoding`] if the content is truncated, and the same errors as [`Self::push`].
    pub(crate) fn finish(&mut self, sink: Sink<'_>) -> Result<(), Failure> {
        if self.growth.input_len == 0 {
            // Empty content is valid. Responses to HEAD and with status 304 have a coding without content.
            return Ok(());
        }
        if let Kind::Zstd(zstd) = &mut self.kind {
            let mut emit = |bytes: &[u8]| self.growth.emit(bytes, sink);
            zstd.decode(&mut self.buffer, true, &mut emit)?;
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
    /// Decodes whole blocks; with `is_last`, all there is.
    fn decode(&mut self, buffer: &mut [u8], is_last: bool, emit: Sink<'_>) -> Result<(), Failure> {
        let mut from = 0;
        loop {
            let rest = self.waiting.get(from..).unwrap_or_default();
            let skipped = self.skipped_len.min(rest.len());
            self.skipped_len -= skipped;
            from += skipped;
            let rest = rest.get(skipped..).unwrap_or_default();
            // The decoder needs whole blocks, so wait for one.
            let waits = rest.len() < ZSTD_BLOCK_LEN && !is_last;
            if waits || rest.is_empty() && self.decoder.is_none() {
                break;
            }
            let decoder = self.decoder.get_or_insert_default();
            // The decoder asserts what a corrupt block may break.
            let progress = catch_unwind(AssertUnwindSafe(|| decoder.decode_from_to(rest, buffer)));
            let (read, written) = match progress.map_err(|_| corrupt("corrupt zstd data"))? {
                Ok(progress) => progress,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    self.decoder = None;
                    self.skipped_len = length as usize;
                    from += ZSTD_SKIPPABLE_HEADER_LEN;
                    continue;
                }
                Err(error) => return Err(corrupt(&error.to_string())),
            };
            emit(buffer.get(..written).unwrap_or_default())?;
            if read > rest.len() {
                // The decoder counts a checksum that is not there.
                return Err(corrupt("truncated"));
            }
            from += read;
            if decoder.is_finished() && decoder.can_collect() == 0 {
                let checksum = decoder.get_checksum_from_data();
                if checksum.is_some() && checksum != decoder.get_calculated_checksum() {
                    return Err(corrupt("wrong checksum"));
                }
                // A further frame may follow (RFC 8878 §3).
                self.decoder = None;
            } else if read == 0 && written == 0 {
                break;
            }
        }
        self.waiting.drain(..from);
        Ok(())
    }

    fn is_between_frames(&self) -> bool {
        self.decoder.is_none() && self.waiting.is_empty() && self.skipped_len == 0
    }
}
