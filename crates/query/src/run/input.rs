//! Where rows come from: files and standard input, plain or compressed, which their first bytes tell.

use std::fmt;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

const BUFFER: usize = 256 * 1024;

/// A named source of bytes, opened when its turn comes.
pub struct Input {
    /// As errors name it.
    pub name: String,
    /// Rows may come slowly, and are wanted as they come.
    pub(super) live: bool,
    open: Box<dyn FnOnce() -> io::Result<Box<dyn Read>> + Send>,
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
        open: impl FnOnce() -> io::Result<Box<dyn Read>> + Send + 'static,
    ) -> Input {
        Input {
            name: name.into(),
            live: false,
            open: Box::new(open),
        }
    }

    /// Rows may come slowly: each is answered when it is there, on one thread.
    #[must_use]
    pub fn live(mut self) -> Input {
        self.live = true;
        self
    }

    /// Bytes that are there already.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Input {
        Input::new(name, move || {
            Ok(Box::new(Cursor::new(bytes)) as Box<dyn Read>)
        })
    }

    /// Opens it, and unpacks it if it is packed.
    pub(super) fn open(self) -> io::Result<Box<dyn Read>> {
        let mut raw = (self.open)()?;
        let mut head = Vec::with_capacity(4);
        raw.by_ref().take(4).read_to_end(&mut head)?;
        let packed = Cursor::new(head.clone()).chain(raw);
        Ok(if head.starts_with(&[0x1f, 0x8b]) {
            Box::new(flate2::bufread::MultiGzDecoder::new(
                BufReader::with_capacity(BUFFER, packed),
            ))
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Box::new(Zstd {
                frames: Frames::Between(BufReader::with_capacity(BUFFER, packed)),
            })
        } else {
            Box::new(packed)
        })
    }
}

type Packed = BufReader<Chain<Cursor<Vec<u8>>, Box<dyn Read>>>;

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
                            io::Error::new(io::ErrorKind::InvalidData, reason.to_string())
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
