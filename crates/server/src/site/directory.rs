//! A directory as a web site.
//!
//! Maps a path to a file and its metadata. **Nothing outside the directory is ever opened**: a path is decoded first, then split;
//! `..` is rejected; and the kernel resolves it below the directory only, whatever symbolic links are on the way (`openat2`,
//! `RESOLVE_BENEATH`), so that changing a link concurrently has no effect.
//!
//! Links within the directory are followed; links that leave it are not found. Names that start with a dot are not found,
//! except `.well-known` (RFC 8615), unless the site is configured to serve them.

use std::{
    borrow::Cow,
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use lastbyte_driver::Clock;
use percent_encoding::percent_decode_str;
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2},
    io::Errno,
};

use super::{
    cache::FileCache,
    file_identity::Identity,
    found::{Found, FoundFile, Variant},
    open_files::{OpenFile, OpenFiles},
};
use crate::representation::coding::{CODINGS, Coding};

#[cfg(test)]
pub(crate) mod tests;

/// A directory that is served.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    root: Arc<OwnedFd>,
    /// Its canonical path.
    path: PathBuf,
    shows_hidden: bool,
    open_files: Arc<OpenFiles>,
    /// Time that a look-up is cached.
    valid_for: Duration,
    cache: Option<Arc<FileCache>>,
}

/// Opening a pipe must not block a worker until there is a writer, nor may a terminal become the controlling one.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

impl Directory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let root = openat(CWD, &path, flags, Mode::empty())?;
        Ok(Self {
            root: Arc::new(root),
            path,
            shows_hidden: false,
            open_files: OpenFiles::new(usize::MAX),
            valid_for: Duration::ZERO,
            cache: None,
        })
    }

    /// Maximum number of files that responses hold open.
    pub(crate) fn limit_open_files(&mut self, limit: usize) {
        self.open_files = OpenFiles::new(limit);
        self.clear_cache();
    }

    pub(crate) fn show_hidden(&mut self, shows_hidden: bool) {
        self.shows_hidden = shows_hidden;
        self.clear_cache();
    }

    pub(crate) const fn shows_hidden(&self) -> bool {
        self.shows_hidden
    }

    /// Sets the time that a look-up is cached; zero disables caching.
    pub(crate) fn cache_for(&mut self, valid_for: Duration) {
        self.valid_for = valid_for;
        self.clear_cache();
    }

    fn clear_cache(&mut self) {
        let cache = || Arc::new(FileCache::new(self.valid_for, self.open_files.limit()));
        self.cache = (!self.valid_for.is_zero()).then(cache);
    }

    /// Resolves the path of a request, without its query.
    pub(crate) fn find(&self, path: &str) -> Found {
        let Some(cache) = &self.cache else {
            return self.look_up(path);
        };
        match canonical(path) {
            Some(canonical) => cache.find(&canonical, || self.look_up(path)),
            None => Found::Nothing,
        }
    }

    fn look_up(&self, path: &str) -> Found {
        let Some(relative) = relative(path) else {
            return Found::Nothing;
        };
        if !self.shows_hidden && is_hidden(&relative) {
            return Found::Nothing;
        }
        match self.find_inside(&relative, path.ends_with('/')) {
            Ok(found) => found,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::CrossesDevices
                | io::ErrorKind::InvalidFilename => Found::Nothing,
                // A cycle of links; a socket, or a missing device.
                _ if [Errno::LOOP, Errno::NXIO]
                    .map(Some)
                    .contains(&Errno::from_io_error(&error)) =>
                {
                    Found::Nothing
                }
                _ if [Errno::MFILE, Errno::NFILE]
                    .map(Some)
                    .contains(&Errno::from_io_error(&error)) =>
                {
                    Found::Exhausted
                }
                _ => Found::Failed,
            },
        }
    }

    fn find_inside(&self, relative: &Path, names_directory: bool) -> io::Result<Found> {
        let file = self.open_inside(relative)?;
        let stat = fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if !names_directory => return Ok(Found::Unslashed),
            FileType::Directory => {}
            FileType::RegularFile if !names_directory => {
                return Ok(self.describe(relative, file, &stat));
            }
            // Neither a pipe nor a device: reading one could block forever.
            _ => return Ok(Found::Nothing),
        }
        let index = relative.join("index.html");
        let opened = self.open_inside(&index);
        let regular = opened.and_then(|file| {
            let stat = fstat(&file)?;
            Ok((file, stat))
        });
        match regular {
            Ok((file, stat)) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(self.describe(&index, file, &stat))
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Found::Directory(file)),
        }
    }

    fn describe(&self, relative: &Path, file: OwnedFd, stat: &Stat) -> Found {
        let identity = Identity::of(stat);
        let content_type = mime_guess::from_path(relative)
            .first_raw()
            .unwrap_or("application/octet-stream");
        let Some(file) = self.open_files.share(file, stat) else {
            return Found::Exhausted;
        };
        let siblings: Vec<_> = CODINGS
            .iter()
            .filter_map(|coding| Some((*coding, self.sibling(relative, *coding, identity)?)))
            .collect();
        let (now, varies) = (Clock::since_epoch(), !siblings.is_empty());
        let variant = |file, coding| Variant::new(file, content_type, coding, varies, now);
        let is_settled = std::iter::once(&file)
            .chain(siblings.iter().map(|(_, sibling)| sibling))
            .all(|file| file.key().identity.is_settled(now));
        Found::File(Arc::new(FoundFile {
            original: variant(file, None),
            compressed: siblings
                .into_iter()
                .map(|(coding, file)| variant(file, Some(coding)))
                .collect(),
            is_settled,
        }))
    }

    /// A compressed sibling; one that is older than the file is out of date.
    fn sibling(
        &self,
        relative: &Path,
        coding: Coding,
        original: Identity,
    ) -> Option<Arc<OpenFile>> {
        let mut name = OsString::from(relative);
        name.push(coding.suffix);
        let file = self.open_inside(Path::new(&name)).ok()?;
        let stat = fstat(&file).ok()?;
        let fits = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && Identity::of(&stat).modified >= original.modified;
        self.open_files.share(file, &stat).filter(|_| fits)
    }

    /// Opens a path that is below the root after all links are followed.
    fn open_inside(&self, relative: &Path) -> io::Result<OwnedFd> {
        let relative = if relative.as_os_str().is_empty() {
            Path::new(".")
        } else {
            relative
        };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(&*self.root, relative, FLAGS, Mode::empty(), beneath);
        match opened {
            Ok(file) => Ok(file),
            // For the kernel a link with an absolute path leaves the directory, even if that path is inside.
            Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => {
                self.open_resolved(relative, opened.err() == Some(Errno::XDEV))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The same for a path without links. If the kernel supports `openat2`, it ensures that there are none.
    fn open_resolved(&self, relative: &Path, has_openat2: bool) -> io::Result<OwnedFd> {
        let path = std::fs::canonicalize(self.path.join(relative))?;
        let inside = path
            .strip_prefix(&self.path)
            .map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
        let inside = if inside.as_os_str().is_empty() {
            Path::new(".")
        } else {
            inside
        };
        if has_openat2 {
            let strictly = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            return Ok(openat2(
                &*self.root,
                inside,
                FLAGS,
                Mode::empty(),
                strictly,
            )?);
        }
        Ok(openat(
            &*self.root,
            inside,
            FLAGS | OFlags::NOFOLLOW,
            Mode::empty(),
        )?)
    }
}

/// A path relative to the root; `None` if it leaves the root or is invalid.
pub(super) fn relative(path: &str) -> Option<PathBuf> {
    let decoded = percent_decode_str(path).decode_utf8().ok()?;
    let mut relative = PathBuf::new();
    for part in decoded.strip_prefix('/')?.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part if part.contains(['\0', '\\']) => return None,
            part => relative.push(part),
        }
    }
    Some(relative)
}

/// The path that the cache knows a resource by: decoded, and without empty and `.` segments. `None` if it is invalid.
fn canonical(path: &str) -> Option<Cow<'_, str>> {
    let is_plain = path.starts_with('/')
        && !path.contains(['%', '\\', '\0'])
        && !path.contains("//")
        && !path.contains("/.");
    if is_plain {
        return Some(path.into());
    }
    let relative = relative(path)?;
    let mut canonical = format!("/{}", relative.to_str()?);
    match (canonical.len(), path.ends_with('/')) {
        // The root without a trailing slash: a redirect, unlike the root.
        (1, false) => canonical.push('.'),
        (1, true) | (_, false) => {}
        (_, true) => canonical.push('/'),
    }
    Some(canonical.into())
}

fn is_hidden(relative: &Path) -> bool {
    relative.components().any(|component| match component {
        Component::Normal(name) => is_hidden_name(&name.to_string_lossy()),
        _ => false,
    })
}

/// Whether a name is hidden.
pub(super) fn is_hidden_name(name: &str) -> bool {
    name.starts_with('.') && name != ".well-known"
}
