//! Compressed content (RFC 9110 §8.4.1), decompressed as it arrives.
//!
//! Owns the decoders, and the bound against content that grows beyond all measure. Never: holds more of a body than its
//! decoder's window and one block.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::FrameDecoder;

use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// What is said to be understood.
pub(crate) const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// How much content may grow to whatever it came from.
const UNCHECKED_LEN: u64 = 64 << 20;
/// How many times its size it may grow beyond that. The most that DEFLATE can is 1032.
const RATIO_MAX: u64 = 2000;
/// How much is decompressed at a time.
const BUFFER_LEN: usize = 64 << 10;

/// The largest block of zstd, with what may stand before it (RFC 8878 §3.1.1.2).
const ZSTD_BLOCK_LEN: usize = (128 << 10) + 32;

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

enum Kind {
    Flate(Decompress),
    Brotli(Box<Brotli>),
    Zstd {
        decoder: Box<FrameDecoder>,
        /// A block that is not there as a whole yet.
        waiting: Vec<u8>,
    },
}

/// One content that is being decompressed.
pub(crate) struct Decoder {
    kind: Kind,
    growth: Growth,
    is_finished: bool,
    buffer: Vec<u8>,
}

/// How much came in and went out.
struct Growth {
    input_len: u64,
    output_len: u64,
    /// The most that is asked for.
    limit: Option<u64>,
}

impl Growth {
    /// Hands on what was decompressed, unless it is too much.
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
                "{input_len} bytes of compressed content became more than {output_len}; it is not input_len further"
            )));
        }
        sink(bytes)
    }
}

/// Takes what was decompressed.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Failure>;

impl Decoder {
    /// For a `content-encoding`; `None` if there is nothing to be done.
    ///
    /// # Errors
    ///
    /// It is not known here, or there are several, one around the other.
    pub(crate) fn new(coding: &str) -> Result<Option<Self>, Failure> {
        let coding = coding.trim().to_ascii_lowercase();
        let kind = match &*coding {
            "" | "identity" => return Ok(None),
            // 15 bits of window, the most that there is.
            "gzip" | "x-gzip" => Kind::Flate(Decompress::new_gzip(15)),
            "deflate" => Kind::Flate(Decompress::new(true)),
            "br" => Kind::Brotli(Box::new(Brotli::new(
                StandardAlloc::default(),
                StandardAlloc::default(),
                StandardAlloc::default(),
            ))),
            "zstd" => Kind::Zstd {
                decoder: Box::default(),
                waiting: Vec::new(),
            },
            _ => {
                return Err(Failure::Encoding(format!(
                    "the content is encoded as `{}`, which was not asked for",
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

    /// The same, for no more than so many decompressed bytes.
    pub(crate) const fn with_limit(mut self, limit: Option<u64>) -> Self {
        self.growth.limit = limit;
        self
    }

    /// Decompresses the next bytes.
    ///
    /// # Errors
    ///
    /// They are not what they are said to be, or `sink` fails.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: Sink<'_>) -> Result<(), Failure> {
        self.growth.input_len += bytes.len() as u64;
        let Self {
            kind,
            growth,
            is_finished,
            buffer,
        } = self;
        let mut emit = |bytes: &[u8]| growth.emit(bytes, sink);
        match kind {
            Kind::Flate(decoder) => flate(decoder, bytes, buffer, is_finished, &mut emit),
            Kind::Brotli(decoder) => brotli(decoder, bytes, buffer, is_finished, &mut emit),
            Kind::Zstd { decoder, waiting } => {
                waiting.extend_from_slice(bytes);
                zstd(decoder, waiting, buffer, false, &mut emit)
            }
        }
    }

    /// There is no more to come.
    ///
    /// # Errors
    ///
    /// It ends in the middle.
    pub(crate) fn finish(&mut self, sink: Sink<'_>) -> Result<(), Failure> {
        if self.growth.input_len == 0 {
            // No content is not compressed content; servers answer HEAD so, and 304.
            return Ok(());
        }
        if let Kind::Zstd { decoder, waiting } = &mut self.kind {
            let mut emit = |bytes: &[u8]| self.growth.emit(bytes, sink);
            zstd(decoder, waiting, &mut self.buffer, true, &mut emit)?;
            self.is_finished = decoder.is_finished() && waiting.is_empty();
        }
        if self.is_finished {
            Ok(())
        } else {
            Err(corrupt("it ends in the middle"))
        }
    }
}

fn corrupt(why: &str) -> Failure {
    Failure::Encoding(format!("the content is not compressed as it says: {why}"))
}

fn flate(
    decoder: &mut Decompress,
    mut bytes: &[u8],
    buffer: &mut [u8],
    is_finished: &mut bool,
    emit: Sink<'_>,
) -> Result<(), Failure> {
    // What follows the end is padding, and of no interest.
    while !*is_finished {
        let (before_in, before_out) = (decoder.total_in(), decoder.total_out());
        let status = decoder
            .decompress(bytes, buffer, FlushDecompress::None)
            .map_err(|error| corrupt(&error.to_string()))?;
        let read = (decoder.total_in() - before_in) as usize;
        let written = (decoder.total_out() - before_out) as usize;
        bytes = bytes.get(read..).unwrap_or_default();
        emit(buffer.get(..written).unwrap_or_default())?;
        *is_finished = status == Status::StreamEnd;
        if bytes.is_empty() && written < buffer.len() || read == 0 && written == 0 {
            break;
        }
    }
    Ok(())
}

fn brotli(
    decoder: &mut Brotli,
    bytes: &[u8],
    buffer: &mut [u8],
    is_finished: &mut bool,
    emit: Sink<'_>,
) -> Result<(), Failure> {
    let (mut available_in, mut in_offset, mut total) = (bytes.len(), 0, 0);
    while !*is_finished {
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
            BrotliResult::ResultSuccess => *is_finished = true,
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => break,
            BrotliResult::ResultFailure => return Err(corrupt("it is broken")),
        }
    }
    Ok(())
}

fn zstd(
    decoder: &mut FrameDecoder,
    waiting: &mut Vec<u8>,
    buffer: &mut [u8],
    is_last: bool,
    emit: Sink<'_>,
) -> Result<(), Failure> {
    let mut from = 0;
    loop {
        let rest = waiting.get(from..).unwrap_or_default();
        // Blocks are decoded as a whole, so that they are waited for.
        if rest.len() < ZSTD_BLOCK_LEN && !is_last {
            break;
        }
        let (read, written) = decoder
            .decode_from_to(rest, buffer)
            .map_err(|error| corrupt(&error.to_string()))?;
        from += read;
        emit(buffer.get(..written).unwrap_or_default())?;
        if read == 0 && written == 0 {
            if decoder.is_finished() && !rest.is_empty() {
                // Another frame (RFC 8878 §3).
                *decoder = FrameDecoder::new();
                continue;
            }
            break;
        }
    }
    waiting.drain(..from);
    Ok(())
}
