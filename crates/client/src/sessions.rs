//! The session file: state for HTTP/3 that is kept from one run of a program to the next. It contains TLS sessions, address
//! tokens, HTTP/3 settings and the last address of each server.
//!
//! Each session is used once, by the first process that takes it (RFC 8446 §C.4). An error of the file does not fail a
//! fetch: it is reported by [`SessionFile::save`], and connections use full handshakes.
//!
//! Each line consists of a kind, a server, and a value, mostly in hexadecimal. Unknown kinds are ignored, so that later
//! versions can add some. Changes are written to a new file with access for its owner only, which then replaces the old
//! one, under a lock on `FILE.lock`. Readers therefore see either all of a change or nothing, and writers do not
//! interfere.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is where the file is read and written"
)]

use core::{fmt, fmt::Write as _, time::Duration};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_http3 as http3;
use lastbyte_quic::crypto::tickets::client::{
    MemorySessions, PER_SERVER_MAX, SavedSession, SessionStore,
};
use lastbyte_wire::packet::Version;

use crate::{
    memory::{Memory, Remembered},
    url::{Origin, Scheme},
};

#[cfg(test)]
mod tests;

/// The first line of the file.
const FIRST_LINE: &str = "lastbyte sessions 1";
/// The largest file that is read, in bytes: several times the size of a file with the most servers.
const FILE_MAX: u64 = 16 << 20;
/// The most servers in the file.
const SERVERS_MAX: usize = 256;

/// The contents of the file.
#[derive(Clone, Default)]
struct Contents {
    /// The sessions, oldest first.
    sessions: Vec<SavedSession>,
    servers: BTreeMap<Origin, Remembered>,
    /// The number of damaged lines.
    damaged: usize,
}

/// An open session file.
pub struct SessionFile {
    store: Arc<Store>,
    memory: Memory,
}

/// A session store that takes sessions from the file on demand, and keeps new ones until they are saved.
struct Store {
    path: PathBuf,
    fresh: MemorySessions,
    now: fn() -> Duration,
    /// The first error since the last save.
    first_error: Mutex<Option<io::Error>>,
}

impl SessionFile {
    /// Opens a session file; a missing file is empty. `now` returns the time since the Unix epoch. If the file contains
    /// damaged lines, they are ignored and the second value is a warning.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the file cannot be read or locked, and an error if it is larger than 16 MiB, or not a
    /// session file.
    pub fn open(path: &Path, now: fn() -> Duration) -> io::Result<(Self, Option<String>)> {
        let store = Store {
            path: path.to_owned(),
            fresh: MemorySessions::default(),
            now,
            first_error: Mutex::default(),
        };
        let _lock = store.lock()?;
        let mut contents = store.read()?;
        let servers = core::mem::take(&mut contents.servers);
        let warning = (contents.damaged > 0).then(|| {
            let lines = contents.damaged;
            format!("ignored damaged lines: {lines}")
        });
        let store = Arc::new(store);
        let memory = Memory::new(Arc::clone(&store) as Arc<dyn SessionStore>);
        memory.set_remembered(servers);
        Ok((Self { store, memory }, warning))
    }

    /// The memory whose sessions are taken from the file.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Merges the state of the memory into the current contents of the file.
    ///
    /// # Errors
    ///
    /// Returns the error if the file cannot be read or written; its old contents stay. Also returns the first error that
    /// occurred when a session was taken from the file.
    pub fn save(&self) -> io::Result<()> {
        let _lock = self.store.lock()?;
        let mut contents = self.store.read()?;
        contents.sessions.extend(self.store.fresh.take_all());
        contents.servers.extend(self.memory.remembered());
        self.store.write(contents)?;
        let mut first = self
            .store
            .first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        first.take().map_or(Ok(()), Err)
    }
}

impl fmt::Debug for SessionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionFile")
            .field(&self.store.path)
            .finish()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.path).finish()
    }
}

impl SessionStore for Store {
    fn put(&self, session: SavedSession) {
        self.fresh.put(session);
    }

    fn take(&self, server: &str, version: Version) -> Option<SavedSession> {
        if let Some(session) = self.fresh.take(server, version) {
            return Some(session);
        }
        let taken = self.take_from_file(server, version);
        taken.unwrap_or_else(|error| {
            let mut first = self
                .first_error
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
            None
        })
    }
}

impl Store {
    /// Takes a session out of the file, before it is used.
    fn take_from_file(&self, server: &str, version: Version) -> io::Result<Option<SavedSession>> {
        let _lock = self.lock()?;
        let mut contents = self.read()?;
        let newest = contents
            .sessions
            .iter()
            .rposition(|it| it.server() == server && it.version() == version);
        let Some(newest) = newest else {
            return Ok(None);
        };
        let session = contents.sessions.remove(newest);
        self.write(contents)?;
        Ok(Some(session))
    }

    /// Locks the session file until the returned file is dropped.
    fn lock(&self) -> io::Result<File> {
        let mut options = owner_only();
        // In a shared folder, a symbolic link of another user must not be followed.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NOFOLLOW);
        let file = options
            .create(true)
            .truncate(false)
            .open(with_suffix(&self.path, ".lock"))?;
        file.lock()?;
        Ok(file)
    }

    fn read(&self) -> io::Result<Contents> {
        let about = match fs::metadata(&self.path) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Contents::default());
            }
            Err(error) => return Err(error),
        };
        if about.len() > FILE_MAX {
            let what = format!("session file too large (limit: {FILE_MAX} bytes)");
            return Err(io::Error::other(what));
        }
        let bytes = fs::read(&self.path)?;
        // A new file replaces it: a private key, for example, must stay.
        if !bytes.is_empty() && !bytes.starts_with(FIRST_LINE.as_bytes()) {
            let what = format!("not a session file (expected `{FIRST_LINE}`, or a new file)");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(parse(&bytes, (self.now)()))
    }

    fn write(&self, mut contents: Contents) -> io::Result<()> {
        contents.limit();
        let new = with_suffix(&self.path, ".new");
        // Remove a leftover of a killed process; no other process writes it while the lock is held. Anything else with this
        // name, such as a symbolic link, is neither followed nor written to.
        let _ = fs::remove_file(&new);
        let opened = owner_only().create_new(true).open(&new);
        let written = opened.and_then(|mut file| {
            file.write_all(render(&contents).as_bytes())?;
            fs::rename(&new, &self.path)
        });
        written.inspect_err(|_| {
            // Remove the incomplete file.
            let _ = fs::remove_file(&new);
        })
    }
}

impl Contents {
    /// Keeps the newest sessions of each server, and the most recent servers.
    fn limit(&mut self) {
        let mut counts: BTreeMap<(String, u32), usize> = BTreeMap::new();
        let mut kept: Vec<SavedSession> = Vec::new();
        for session in core::mem::take(&mut self.sessions).into_iter().rev() {
            let key = (
                session.server().to_owned(),
                session.version().number().get(),
            );
            if !counts.contains_key(&key) && counts.len() >= SERVERS_MAX {
                continue;
            }
            let count = counts.entry(key).or_default();
            *count += 1;
            if *count <= PER_SERVER_MAX {
                kept.push(session);
            }
        }
        kept.reverse();
        self.sessions = kept;
        // Other state of a server is of little use without a session.
        let has_session = |origin: &Origin| counts.keys().any(|(host, _)| *host == origin.host);
        self.servers.retain(|origin, _| has_session(origin));
    }
}

fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

/// Options to write a file that only its owner can access.
fn owner_only() -> fs::OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Do not follow symbolic links.
#[cfg(unix)]
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

fn render(contents: &Contents) -> String {
    let mut text = format!("{FIRST_LINE}\n");
    // Writing to a String cannot fail.
    for (origin, it) in &contents.servers {
        let server = format!("{} {}", origin.host, origin.port);
        if !it.token.is_empty() {
            let _ = writeln!(text, "token {server} {}", hex(&it.token));
        }
        if let Some(settings) = &it.settings {
            let _ = writeln!(text, "settings {server} 0x{}", hex(&settings.to_bytes()));
        }
        if let Some(remote) = it.remote {
            let _ = writeln!(text, "remote {server} {remote}");
        }
    }
    for session in &contents.sessions {
        let _ = writeln!(text, "session {}", hex(&session.to_bytes()));
    }
    text
}

fn parse(bytes: &[u8], now: Duration) -> Contents {
    let mut contents = Contents::default();
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    if lines.next() != Some(FIRST_LINE) {
        contents.damaged = 1;
        return contents;
    }
    for line in lines {
        if parse_line(line, now, &mut contents).is_none() {
            contents.damaged += 1;
        }
    }
    contents
}

fn parse_line(line: &str, now: Duration, contents: &mut Contents) -> Option<()> {
    let (kind, rest) = line.split_once(' ')?;
    if kind == "session" {
        // A session of another rustls version is unusable, but not damaged.
        let session = match SavedSession::from_bytes(&parse_hex(rest)?) {
            Ok(session) => session,
            Err(lastbyte_quic::crypto::tickets::client::SavedSessionError::OtherVersion(_)) => {
                return Some(());
            }
            Err(_) => return None,
        };
        if session.expires().since_unix_epoch() > now {
            contents.sessions.push(session);
        }
        return Some(());
    }
    let mut words = rest.split(' ');
    let origin = Origin {
        scheme: Scheme::Https,
        host: words.next()?.to_owned(),
        port: words.next()?.parse().ok()?,
    };
    let value = words.next()?;
    let server = contents.servers.entry(origin).or_default();
    match kind {
        "token" => server.token = parse_hex(value)?,
        "settings" => {
            let bytes = parse_hex(value.strip_prefix("0x")?)?;
            server.settings = Some(http3::Settings::from_bytes(&bytes)?);
        }
        "remote" => server.remote = Some(value.parse().ok()?),
        _ => {}
    }
    Some(())
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn parse_hex(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
