//! Inputs: files and standard input, plain or compressed with gzip or zstd, which is detected from the first bytes.

use super::csv::Csv;
use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Read size for compressed input, in bytes.
const BUFFER: usize = 128 * 1024;

/// Size of decompressed pieces in bytes: small enough to stay in the L1 cache until they are copied.
const PIECE: usize = 32 * 1024;

/// A source of bytes. Threads take turns to read it.
pub type ByteSource = Box<dyn Read + Send>;

/// A named source of bytes, opened when its turn comes.
pub struct Input {
    /// Its name in error messages.
    pub name: String,
    /// Rows may arrive slowly and are processed as they arrive.
    pub(super) live: bool,
    is_csv: bool,
    open: Box<dyn FnOnce() -> io::Result<ByteSource> + Send>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Input {
    /// An input with a name and a function that opens it.
    pub fn new(
        name: impl Into<String>,
        open: impl FnOnce() -> io::Result<ByteSource> + Send + 'static,
    ) -> Input {
        Input {
            name: name.into(),
            live: false,
            is_csv: false,
            open: Box::new(open),
        }
    }

    /// Marks an input whose rows may arrive slowly: each row is processed when it arrives.
    #[must_use]
    pub fn live(mut self) -> Input {
        self.live = true;
        self
    }

    /// Reads the input as comma-separated records with a header (RFC 4180). An empty field is null, and an unquoted
    /// field that is a number of JSON is a number.
    #[must_use]
    pub fn csv(mut self) -> Input {
        self.is_csv = true;
        self
    }

    /// An input of bytes in memory.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Input {
        Input::new(name, move || Ok(Box::new(Cursor::new(bytes)) as ByteSource))
    }

    /// Opens the input, and converts it to lines of JSON.
    pub(super) fn open(self) -> io::Result<ByteSource> {
        let is_csv = self.is_csv;
        let plain = self.unpacked()?;
        Ok(if is_csv {
            Box::new(Csv::new(plain))
        } else {
            plain
        })
    }

    /// Opens the input, and decompresses it.
    ///
    /// # Errors
    ///
    /// Returns the error of the function that opens it, or of the first read, or that the input is in a format that is not text.
    pub fn unpacked(self) -> io::Result<ByteSource> {
        let (format, raw) = recognised((self.open)()?)?;
        let Some(format) = format else {
            return Ok(raw);
        };
        let packed = BufReader::with_capacity(BUFFER, raw);
        let unpacked: ByteSource = match format {
            GZIP => Box::new(Pieces::of(Gzip::Between(packed))),
            ZSTD => Box::new(Pieces::of(Zstd {
                source: packed,
                decoder: zstd_decoder(),
                state: State::Between,
            })),
            other => return Err(not_text(other)),
        };
        match recognised(unpacked)? {
            (None, text) => Ok(text),
            (Some(other), _) => Err(not_text(other)),
        }
    }
}

fn not_text(what: &str) -> io::Error {
    let expected = "text, plain or compressed with gzip or zstd";
    corrupt(format!("this is {what} (expected {expected})"))
}

/// The format that the first bytes are of, if it is not text, and the bytes without the mark of a text.
fn recognised(mut raw: ByteSource) -> io::Result<(Option<&'static str>, ByteSource)> {
    let head = head(&mut *raw)?;
    let format = FORMATS
        .into_iter()
        .find(|(magic, _)| head.len() >= magic.len() && agrees(&head, magic));
    Ok(match format {
        // It was read no further than that.
        Some((_, MARKED)) => (None, raw),
        other => {
            let whole = Cursor::new(head).chain(raw);
            (other.map(|(_, name)| name), Box::new(whole))
        }
    })
}

/// Decompresses pieces of a fixed size. The output of a decoder before it finds a fault depends on the size of the reads,
/// which must not depend on the caller.
struct Pieces<R> {
    reader: R,
    piece: Vec<u8>,
    given: usize,
    filled: usize,
}

impl<R: Read> Pieces<R> {
    fn of(reader: R) -> Pieces<R> {
        Pieces {
            reader,
            piece: vec![0; PIECE],
            given: 0,
            filled: 0,
        }
    }
}

impl<R: Read> Read for Pieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.filled {
            (self.given, self.filled) = (0, 0);
            self.filled = self.reader.read(&mut self.piece)?;
        }
        let count = buffer.len().min(self.filled - self.given);
        buffer[..count].copy_from_slice(&self.piece[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

/// Formats that are decompressed.
const GZIP: &str = "gzip";
const ZSTD: &str = "zstd";
/// Text whose byte order mark is skipped.
const MARKED: &str = "text in UTF-8";

/// Magic numbers: RFC 1952 §2.3.1, RFC 8878 §3.1.1 and §3.1.2, and those of formats that are refused.
const FORMATS: [(&[u8], &str); 11] = [
    (b"\xef\xbb\xbf", MARKED),
    (b"ARROW1\0\0", "an Arrow file"),
    (&[0x1f, 0x8b], GZIP),
    (&[0x28, 0xb5, 0x2f, 0xfd], ZSTD),
    (SKIPPABLE, ZSTD),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"BZh91AY&SY", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"PAR1", "a Parquet file"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
];

/// The first of sixteen magic numbers of skippable frames, which differ in the lower half of the first byte.
const SKIPPABLE: &[u8] = &[0x50, 0x2a, 0x4d, 0x18];

/// Whether bytes and a magic number agree as far as both go.
fn agrees(head: &[u8], magic: &[u8]) -> bool {
    let mut both = magic.iter().zip(head).enumerate();
    both.all(|(at, (known, byte))| {
        known == byte || at == 0 && magic == SKIPPABLE && known >> 4 == byte >> 4
    })
}

/// Reads the first bytes while they match a magic number, so that a slow uncompressed input is not waited for.
fn head(raw: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    let is_open = |head: &[u8]| {
        let mut formats = FORMATS.iter();
        formats.any(|(magic, _)| head.len() < magic.len() && agrees(head, magic))
    };
    while is_open(&head) {
        match raw.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => head.push(byte[0]),
            Err(reason) if reason.kind() == ErrorKind::Interrupted => {}
            Err(reason) => return Err(reason),
        }
    }
    Ok(head)
}

type Packed = BufReader<ByteSource>;

/// One member after the other.
enum Gzip {
    Between(Packed),
    In(Box<GzDecoder<Packed>>),
    Done,
}

impl Read for Gzip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Gzip::Done) {
                Gzip::Done => return Ok(0),
                Gzip::Between(mut packed) => match packed.fill_buf()?.first() {
                    None => return Ok(0),
                    // Tapes and `dd` fill up with zeros, which `gzip` leaves out as well.
                    Some(0) => {
                        if let Some(other) = after_zeros(&mut packed)? {
                            return Err(corrupt(format!(
                                "the byte {other:#04x} after the end of the gzip data (expected another member, or zeros)"
                            )));
                        }
                    }
                    Some(_) => *self = Gzip::In(Box::new(GzDecoder::new(packed))),
                },
                Gzip::In(mut decoder) => {
                    let count = decoder.read(buffer)?;
                    if count > 0 || buffer.is_empty() {
                        *self = Gzip::In(decoder);
                        return Ok(count);
                    }
                    *self = Gzip::Between(decoder.into_inner());
                }
            }
        }
    }
}

/// Reads zeros; the first byte that is none.
fn after_zeros(packed: &mut Packed) -> io::Result<Option<u8>> {
    loop {
        let bytes = packed.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if let Some(other) = bytes.iter().copied().find(|byte| *byte != 0) {
            return Ok(Some(other));
        }
        let count = bytes.len();
        packed.consume(count);
    }
}

fn corrupt(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.into())
}

/// A decoder that has seen a header: it checks the size of the window for all but the first.
fn zstd_decoder() -> FrameDecoder {
    const HEADER_OF_NOTHING: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0];
    let mut decoder = FrameDecoder::new();
    // It is valid.
    let _ = decoder.reset(&HEADER_OF_NOTHING[..]);
    decoder
}

/// One frame after the other, a block at a time: what was whole before a fault is given first.
struct Zstd {
    source: Packed,
    decoder: FrameDecoder,
    state: State,
}

enum State {
    Between,
    In,
    /// Returns the data decoded before, then this error.
    Failing(io::Error),
    Done,
}

/// A last block without bytes, and room for a checksum: RFC 8878 §3.1.1.2. It makes the decoder give what it has.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl Read for Zstd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if matches!(self.state, State::In | State::Failing(_)) && self.decoder.can_collect() > 0
            {
                return self.decoder.read(buffer);
            }
            match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Ok(0),
                State::Failing(reason) => return Err(reason),
                State::Between => {
                    if self.source.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    self.start_frame()?;
                }
                State::In if self.decoder.is_finished() => {
                    let (given, own) = (
                        self.decoder.get_checksum_from_data(),
                        self.decoder.get_calculated_checksum(),
                    );
                    if given.is_some() && given != own {
                        return Err(corrupt("the checksum of the zstd data is wrong"));
                    }
                    self.state = State::Between;
                }
                State::In => self.state = self.block(),
            }
        }
    }
}

impl Zstd {
    /// Starts a frame, or skips a skippable one.
    fn start_frame(&mut self) -> io::Result<()> {
        match self.decoder.reset(&mut self.source) {
            Ok(()) => self.state = State::In,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut rest = (&mut self.source).take(length.into());
                if io::copy(&mut rest, &mut io::sink())? < length.into() {
                    return Err(self.fault()?);
                }
                self.state = State::Between;
            }
            Err(FrameDecoderError::WindowSizeTooBig { .. }) => {
                return Err(corrupt("the zstd window is above 100 MiB"));
            }
            Err(_) => return Err(self.fault()?),
        }
        Ok(())
    }

    /// Decodes a block. The decoder asserts what a corrupt block may break.
    fn block(&mut self) -> State {
        let (decoder, source) = (&mut self.decoder, &mut self.source);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            decoder.decode_blocks(source, BlockDecodingStrategy::UptoBlocks(1))
        }));
        if let Ok(Ok(_)) = outcome {
            return State::In;
        }
        let fault = self.fault().unwrap_or_else(|reason| reason);
        if outcome.is_ok() && !self.decoder.is_finished() {
            // What remains of the blocks before is given all the same.
            let _ = self
                .decoder
                .decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All);
        }
        State::Failing(fault)
    }

    /// Why the data cannot be decoded.
    fn fault(&mut self) -> io::Result<io::Error> {
        Ok(if self.source.fill_buf()?.is_empty() {
            io::Error::new(ErrorKind::UnexpectedEof, "the zstd data is cut off")
        } else {
            corrupt("the zstd data is corrupt")
        })
    }
}
