//! The result of resolving a request's path.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use lastbyte_quic::stream::Source;

use super::{
    file::FileSource,
    open_files::{Key, OpenFile},
};
use crate::representation::{Prepared, Representation, coding::Coding};

/// The result of resolving a path.
#[derive(Debug)]
pub(crate) enum Found {
    /// A file.
    File(Arc<FoundFile>),
    /// A directory whose path lacks the trailing slash.
    Unslashed,
    /// A directory without an index.
    Directory(OwnedFd),
    /// Nothing, or nothing that may be served.
    Nothing,
    /// Unknown: the process or the system has no file descriptor left, or the limit of open files is reached.
    Exhausted,
    /// It exists, but cannot be read.
    Failed,
}

/// A file, and its compressed siblings.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) original: Variant,
    pub(crate) compressed: Vec<Variant>,
    /// Whether the last change of each is long enough ago that another would change its date.
    pub(super) is_settled: bool,
}

/// A file with one content coding or none, and the headers of its responses.
#[derive(Debug)]
pub(crate) struct Variant {
    content: Content,
    key: Key,
    pub(crate) coding: Option<Coding>,
    pub(crate) prepared: Prepared,
}

#[derive(Debug)]
enum Content {
    Open(Arc<OpenFile>),
    Memory(Arc<[u8]>),
}

impl Variant {
    /// An open file. `now` is the time since the Unix epoch.
    pub(super) fn new(
        file: Arc<OpenFile>,
        content_type: &'static str,
        coding: Option<Coding>,
        varies: bool,
        now: Duration,
    ) -> Self {
        let key = file.key();
        let identity = key.identity;
        let name = coding.map(|coding| coding.name);
        let representation = Representation {
            len: identity.len,
            content_type,
            coding: name,
            etag: Some(identity.etag(now, name)),
            modified: Some(identity.modified),
            varies,
        };
        Self {
            content: Content::Open(file),
            key,
            coding,
            prepared: representation.prepare(),
        }
    }

    /// Its length in bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.key.identity.len
    }

    /// Its bytes; with `in_parts` only some of them are read.
    pub(crate) fn source(&self, in_parts: bool) -> Box<dyn Source> {
        match &self.content {
            Content::Memory(bytes) => Box::new(Arc::clone(bytes)),
            Content::Open(file) => {
                let source = FileSource::new(Arc::clone(file));
                Box::new(if in_parts { source.in_parts() } else { source })
            }
        }
    }

    fn load(&mut self, len_max: u64) -> io::Result<()> {
        if self.len() > len_max {
            return Ok(());
        }
        let mut bytes = vec![0; self.len() as usize];
        self.source(true)
            .read_at(0, &mut bytes)
            .map_err(io::Error::other)?;
        self.content = Content::Memory(bytes.into());
        Ok(())
    }
}

impl FoundFile {
    pub(super) fn variants(&self) -> impl Iterator<Item = &Variant> {
        std::iter::once(&self.original).chain(&self.compressed)
    }

    /// Whether both are the same files with the same content.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.compressed.len() == other.compressed.len()
            && self
                .variants()
                .zip(other.variants())
                .all(|(one, other)| one.key == other.key && one.coding == other.coding)
    }

    /// Whether the open files still have the content that they were opened for.
    pub(super) fn is_unchanged(&self) -> bool {
        self.variants().all(|variant| match &variant.content {
            Content::Open(file) => file.is_unchanged(),
            Content::Memory(_) => true,
        })
    }

    /// Reads variants of up to `len_max` bytes into memory, and closes them.
    ///
    /// # Errors
    ///
    /// Returns an error if one cannot be read or was changed.
    pub(super) fn load(&mut self, len_max: u64) -> io::Result<()> {
        self.original.load(len_max)?;
        self.compressed
            .iter_mut()
            .try_for_each(|variant| variant.load(len_max))
    }

    /// Bytes in memory.
    pub(super) fn loaded(&self) -> usize {
        self.variants()
            .map(|variant| match &variant.content {
                Content::Memory(bytes) => bytes[..].len(),
                Content::Open(_) => 0,
            })
            .sum()
    }

    /// The number of files it holds open.
    pub(super) fn descriptors(&self) -> usize {
        self.variants()
            .filter(|variant| matches!(variant.content, Content::Open(_)))
            .count()
    }
}
