//! The certificate files of `--cert` and `--key`: read at startup and at a reload, and watched in between.
//!
//! An ACME client replaces them while the server runs. Files are compared by their metadata, and read when that changed. What
//! was read is used if all of it is valid together: a certificate whose key has not been written yet is left for the next look.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use lastbyte_driver::Clock;
use lastbyte_server::{Identity, Server, Validity};
use lastbyte_units::date_of_days;

use super::arguments::Arguments;
use crate::{
    failure::Failure,
    terminal::{notice, warn_if_exposed},
};

#[cfg(test)]
mod tests;

/// The time between two looks at the files.
pub(super) const PERIOD: Duration = Duration::from_secs(10);
const DAY: u64 = 86_400;
/// The rest of a certificate's validity from which on it is warned of. Shorter-lived ones: a quarter of their lifetime.
const SOON: u64 = 14 * DAY;

/// Certificate files that are watched.
#[derive(Debug)]
pub(super) struct CertificateFiles {
    /// Certificate chain and key.
    pairs: Vec<(PathBuf, PathBuf)>,
    /// What was read last, and is in use.
    current: Vec<Identity>,
    /// The metadata of all files at the last look.
    seen: Vec<Option<Metadata>>,
    /// Why the files of the last look cannot be used, until it is reported.
    unreported: Option<String>,
    /// Whether the files at the last look cannot be used.
    is_failed: bool,
}

/// The result of a look at the files.
#[derive(Debug)]
pub(super) enum Look {
    /// Nothing to do.
    Unchanged,
    /// New certificates.
    Renewed(Vec<Identity>),
    /// The files can be used no longer, and this is why. Reported once.
    Failed(String),
    /// Files that could not be used are again those in use.
    Restored,
}

/// What changes when a file is written or replaced, also by way of a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Metadata {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

impl Metadata {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            len: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }
}

impl CertificateFiles {
    /// Reads the files of the options; without any, generates a certificate.
    ///
    /// # Errors
    ///
    /// Returns [`Failure::Usage`] if a file cannot be read, or has no certificate or key.
    pub(super) fn read(arguments: &Arguments) -> Result<Self, Failure> {
        if !arguments.acme.is_empty() {
            return Self::of_acme(arguments);
        }
        let pairs = arguments.cert.iter().cloned();
        let pairs: Vec<_> = pairs.zip(arguments.key.iter().cloned()).collect();
        if pairs.is_empty() {
            return Self::generated(&arguments.name, pairs);
        }
        Self::of(pairs).map_err(Failure::Usage)
    }

    /// The files of an ACME client, which may not have written them yet.
    fn of_acme(arguments: &Arguments) -> Result<Self, Failure> {
        let files = acme_files(&acme_folder(arguments), &arguments.acme);
        match Self::of(vec![files.clone()]) {
            Ok(read) => Ok(read),
            Err(why) => {
                if files.0.exists() {
                    notice(format!("warning: {why}"));
                }
                Self::generated(&arguments.acme, vec![files])
            }
        }
    }

    /// A generated certificate, until these files change.
    fn generated(names: &[String], pairs: Vec<(PathBuf, PathBuf)>) -> Result<Self, Failure> {
        let seen = look(&pairs);
        let days = Clock::since_epoch().as_secs() / DAY;
        let generated = Identity::self_signed(names, days.cast_signed());
        Ok(Self {
            pairs,
            current: vec![generated.map_err(Failure::usage)?],
            seen,
            unreported: None,
            is_failed: false,
        })
    }

    /// Reads these files.
    fn of(pairs: Vec<(PathBuf, PathBuf)>) -> Result<Self, String> {
        // Before the contents: what is written in between is read again.
        let seen = look(&pairs);
        let current = read(&pairs)?;
        for (_, key) in &pairs {
            warn_if_exposed(key);
        }
        Ok(Self {
            current,
            pairs,
            seen,
            unreported: None,
            is_failed: false,
        })
    }

    /// Copies of the certificates.
    pub(super) fn identities(&self) -> Vec<Identity> {
        self.current.clone()
    }

    /// Looks for changes. `now` is in seconds since 1970.
    pub(super) fn look(&mut self, now: u64) -> Look {
        let seen = look(&self.pairs);
        if seen == self.seen {
            // A second look at the same files: nothing is being written.
            return self.unreported.take().map_or(Look::Unchanged, Look::Failed);
        }
        self.seen = seen;
        self.unreported = None;
        match read(&self.pairs).and_then(|read| usable(read, now)) {
            Err(why) => {
                self.is_failed = true;
                self.unreported = Some(why);
                Look::Unchanged
            }
            Ok(read) => {
                let was_failed = std::mem::take(&mut self.is_failed);
                if read != self.current {
                    self.current = read;
                    return Look::Renewed(self.identities());
                }
                if was_failed {
                    return Look::Restored;
                }
                Look::Unchanged
            }
        }
    }

    /// Warnings of certificates that are not valid, or soon will not be. `now` is in seconds since 1970.
    pub(super) fn warnings(&self, now: u64) -> Vec<String> {
        if self.pairs.is_empty() {
            return Vec::new();
        }
        let all = self.current.iter().zip(&self.pairs);
        let warnings = all.filter_map(|(identity, (path, _))| {
            let validity = identity.contents().ok()?.validity;
            let path = path.display();
            if let Some(why) = invalid(validity, now) {
                return Some(format!("the certificate in `{path}` {why}"));
            }
            let rest = validity.until - now;
            let is_soon = rest < SOON.min((validity.until - validity.from) / 4);
            is_soon.then(|| {
                let (day, days) = (date(validity.until), rest / DAY);
                format!("the certificate in `{path}` expires on {day}, in {days} days")
            })
        });
        warnings.collect()
    }

    /// What the certificates in use are called, and until when they are valid: the first ones, and how many more there are.
    pub(super) fn summary(&self) -> String {
        let first = self.current.iter().filter_map(|identity| {
            let contents = identity.contents().ok()?;
            let name = contents.names.first().map_or("-", String::as_str);
            let until = date(contents.validity.until);
            Some(format!("`{name}` until {until}"))
        });
        let mut text = first.take(NAMES_MAX).collect::<Vec<_>>().join(", ");
        if let more @ 1.. = self.current.len().saturating_sub(NAMES_MAX) {
            text = format!("{text}, and {more} more");
        }
        text
    }
}

/// The number of certificates that a message names.
const NAMES_MAX: usize = 8;

/// The folder of the certificates of an authority: those of a test directory are not used for another one.
pub(super) fn acme_folder(arguments: &Arguments) -> PathBuf {
    let url = &arguments.acme_directory;
    let url = url.strip_prefix("https://").unwrap_or(url);
    let authority = url.split('/').next().unwrap_or(url);
    let folder = arguments.acme_state.as_deref().unwrap_or(Path::new(""));
    folder.join(authority.replace(':', "-"))
}

/// The files of the certificate for these names in the folder of an authority: chain and key.
pub(super) fn acme_files(folder: &Path, names: &[String]) -> (PathBuf, PathBuf) {
    let name = names.first().map_or("", String::as_str);
    (
        folder.join(format!("{name}.pem")),
        folder.join(format!("{name}.key")),
    )
}

fn look(pairs: &[(PathBuf, PathBuf)]) -> Vec<Option<Metadata>> {
    let paths = pairs.iter().flat_map(|(chain, key)| [chain, key]);
    paths.map(|path| Metadata::of(path)).collect()
}

fn read(pairs: &[(PathBuf, PathBuf)]) -> Result<Vec<Identity>, String> {
    let all = pairs.iter();
    all.map(|(chain, key)| Identity::read(chain, key).map_err(|error| error.to_string()))
        .collect()
}

/// Checks what would replace the certificates in use.
fn usable(read: Vec<Identity>, now: u64) -> Result<Vec<Identity>, String> {
    Server::check_identities(&read).map_err(|error| error.to_string())?;
    for identity in &read {
        let contents = identity.contents().map_err(|error| error.to_string())?;
        if let Some(why) = invalid(contents.validity, now) {
            let name = contents.names.first().map_or("-", String::as_str);
            return Err(format!("the certificate of `{name}` {why}"));
        }
    }
    Ok(read)
}

fn invalid(validity: Validity, now: u64) -> Option<String> {
    if validity.until < now {
        return Some(format!("expired on {}", date(validity.until)));
    }
    (validity.from > now).then(|| format!("is not valid before {}", date(validity.from)))
}

/// A time in seconds since 1970 as its date, in UTC.
fn date(seconds: u64) -> String {
    let (year, month, day) = date_of_days((seconds / DAY).cast_signed());
    format!("{year}-{month:02}-{day:02}")
}
