//! Where rows come from: files and standard input, plain or compressed, which their first bytes tell.

use std::fmt;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};

/// Packed bytes are read so many at a time.
const BUFFER: usize = 128 * 1024;

/// Unpacked bytes come so many at a time: they stay in the nearest cache until they are copied.
const PIECE: usize = 32 * 1024;

/// Where bytes come from; threads read it by turns.
pub type ByteSource = Box<dyn Read + Send>;

/// A named source of bytes, opened when its turn comes.
pub struct Input {
    /// As errors name it.
    pub name: String,
    /// Rows may come slowly, and are wanted as they come.
    pub(super) live: bool,
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
    /// An input and how to open it.
    pub fn new(
        name: impl Into<String>,
        open: impl FnOnce() -> io::Result<ByteSource> + Send + 'static,
    ) -> Input {
        Input {
            name: name.into(),
            live: false,
            open: Box::new(open),
        }
    }

    /// Rows may come slowly: each is taken when it is there, and not when there are many.
    #[must_use]
    pub fn live(mut self) -> Input {
        self.live = true;
        self
    }

    /// Bytes that are there already.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Input {
        Input::new(name, move || Ok(Box::new(Cursor::new(bytes)) as ByteSource))
    }

    /// Opens it, and unpacks it if it is packed.
    pub(super) fn open(self) -> io::Result<ByteSource> {
        let mut raw = (self.open)()?;
        let head = head(&mut *raw)?;
        let gzip = head.starts_with(&GZIP);
        let zstd = head.starts_with(&ZSTD);
        let raw = Cursor::new(head).chain(raw);
        let packed = |raw| BufReader::with_capacity(BUFFER, raw);
        Ok(if gzip {
            Box::new(Pieces::of(flate2::bufread::MultiGzDecoder::new(packed(
                raw,
            ))))
        } else if zstd {
            Box::new(Pieces::of(Zstd {
                frames: Frames::Between(packed(raw)),
            }))
        } else {
            Box::new(raw)
        })
    }
}

/// Unpacks so many bytes at once, whatever it is asked for: what a decoder gives before it finds a fault depends on how
/// it is asked, and must not depend on who asks.
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

/// How packed bytes begin: RFC 1952 §2.3.1, RFC 8878 §3.1.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The first bytes, as far as they begin like something packed: a row that comes slowly is not waited for.
fn head(raw: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(ZSTD.len());
    let mut byte = [0];
    while head.len() < ZSTD.len() && (GZIP.starts_with(&head) || ZSTD.starts_with(&head)) {
        match raw.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => head.push(byte[0]),
            Err(reason) if reason.kind() == ErrorKind::Interrupted => {}
            Err(reason) => return Err(reason),
        }
    }
    Ok(head)
}

type Packed = BufReader<Chain<Cursor<Vec<u8>>, ByteSource>>;

/// One frame after the other.
struct Zstd {
    frames: Frames,
}

enum Frames {
    Between(Packed),
    In(Box<ruzstd::decoding::StreamingDecoder<Packed, ruzstd::decoding::FrameDecoder>>),
    Done,
}

impl Read for Zstd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.frames, Frames::Done) {
                Frames::Done => return Ok(0),
                Frames::Between(mut packed) => {
                    if packed.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let decoder =
                        ruzstd::decoding::StreamingDecoder::new(packed).map_err(|reason| {
                            io::Error::new(ErrorKind::InvalidData, reason.to_string())
                        })?;
                    self.frames = Frames::In(Box::new(decoder));
                }
                Frames::In(mut decoder) => {
                    let count = decoder.read(buffer)?;
                    if count > 0 || buffer.is_empty() {
                        self.frames = Frames::In(decoder);
                        return Ok(count);
                    }
                    self.frames = Frames::Between(decoder.into_inner());
                }
            }
        }
    }
}
