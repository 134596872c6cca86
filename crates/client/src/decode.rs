//! Decompression of content (RFC 9110 §8.4.1) as it arrives, with a limit on its expansion.
//!
//! Memory is bounded: the window of the decoder and one block.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::FrameDecoder;

use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// The value of `accept-encoding`.
pub(crate) const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// Output of this many bytes is accepted whatever the size of the input.
const UNCHECKED_LEN: u64 = 64 << 20;
/// The largest ratio of output to input beyond that. DEFLATE reaches at most 1032.
const RATIO_MAX: u64 = 2000;
/// The size of the output buffer in bytes.
const BUFFER_LEN: usize = 64 << 10;

/// The largest zstd block with its headers, in bytes (RFC 8878 §3.1.1.2).
const ZSTD_BLOCK_LEN: usize = (128 << 10) + 32;

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

enum Kind {
    Flate(Decompress),
    Brotli(Box<Brotli>),
    Zstd {
        decoder: Box<FrameDecoder>,
        /// Input of an incomplete block.
        waiting: Vec<u8>,
    },
}

/// The decompression of one body.
pub(crate) struct Decoder {
    kind: Kind,
    growth: Growth,
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
    /// A decoder for a `content-encoding`; `None` if the content is not compressed.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::Encoding`] if the coding is not supported. Several codings of one body are not supported.
    pub(crate) fn new(coding: &str) -> Result<Option<Self>, Failure> {
        let coding = coding.trim().to_ascii_lowercase();
        let kind = match &*coding {
            "" | "identity" => return Ok(None),
            // A window of 15 bits, the maximum.
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
        match kind {
            Kind::Flate(decoder) => flate(decoder, bytes, buffer, is_finished, &mut emit),
            Kind::Brotli(decoder) => brotli(decoder, bytes, buffer, is_finished, &mut emit),
            Kind::Zstd { decoder, waiting } => {
                waiting.extend_from_slice(bytes);
                zstd(decoder, waiting, buffer, false, &mut emit)
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
        if let Kind::Zstd { decoder, waiting } = &mut self.kind {
            let mut emit = |bytes: &[u8]| self.growth.emit(bytes, sink);
            zstd(decoder, waiting, &mut self.buffer, true, &mut emit)?;
            self.is_finished = decoder.is_finished() && waiting.is_empty();
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

fn flate(
    decoder: &mut Decompress,
    mut bytes: &[u8],
    buffer: &mut [u8],
    is_finished: &mut bool,
    emit: Sink<'_>,
) -> Result<(), Failure> {
    // Bytes after the end are padding and ignored.
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
            BrotliResult::ResultFailure => return Err(corrupt("corrupt brotli data")),
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
        // The decoder needs whole blocks, so wait for one.
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
                // A further frame follows (RFC 8878 §3).
                *decoder = FrameDecoder::new();
                continue;
            }
            break;
        }
    }
    waiting.drain(..from);
    Ok(())
}
