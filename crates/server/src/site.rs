//! The handler of `lastbyte serve`: a directory, or generated objects.
//!
//! Owns methods, the meaning of paths, redirects, and the choice among a file's representations.
//! [`representation`](super::representation) evaluates conditions and ranges.
//!
//! | path | response |
//! |---|---|
//! | of a file | the file, or a compressed sibling |
//! | `/32k`, `/1m`, `/1000` | that many bytes, unless there is such a file |
//! | `/delay/50ms/PATH` | the resource at `/PATH` after a delay |
//! | `/status/503` | a response with that status |
//!
//! All but the first are for tests and measurements: each client can request any number of bytes, and keep any number
//! of requests waiting. A directory is served without them unless [`Site::with_generated`] asks for them.

mod cache;
mod directory;
mod file;
mod file_identity;
mod found;
mod listing;
mod listings;
mod open_files;
mod read_ahead;

#[cfg(test)]
pub(crate) use self::directory::tests::Temporary;

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::rand;
use lastbyte_driver::Clock;
use lastbyte_http3::Request;
use lastbyte_origin::generated;
use percent_encoding::utf8_percent_encode;

use self::{
    directory::Directory,
    found::{Found, FoundFile},
    listings::{Listings, Unavailable},
};
use super::{
    handler::{FullResponse, Handler, HandlerResponse, Peer},
    representation::{Boundary, coding::Accepted},
};

#[cfg(test)]
mod tests;

/// Maximum delay.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// A directory, generated objects, or both: files take precedence.
#[derive(Clone, Debug)]
pub struct Site {
    directory: Option<Directory>,
    generates: bool,
    listings: Option<Arc<Listings>>,
    fields: Vec<(String, String)>,
}

impl Site {
    /// Serves only generated objects: `/400kB` is 400 000 bytes, `/32KiB` and `/32k` are 32 768, `/1000` is 1000.
    #[must_use]
    pub const fn generated() -> Self {
        Self {
            directory: None,
            generates: true,
            listings: None,
            fields: Vec::new(),
        }
    }

    /// Serves a directory.
    ///
    /// # Errors
    ///
    /// Returns an error if `path` is not a directory or cannot be opened.
    pub fn directory(path: &Path) -> io::Result<Self> {
        Ok(Self {
            directory: Some(Directory::open(path)?),
            generates: false,
            ..Self::generated()
        })
    }

    /// Sets whether there are generated objects, delays and statuses, where there is no file of that name. Default:
    /// only without a directory.
    #[must_use]
    pub fn with_generated(self, generates: bool) -> Self {
        Self { generates, ..self }
    }

    /// Sets the maximum number of files that responses hold open; beyond, requests are answered with 503. A file that
    /// several responses send is open once. Default: no limit.
    #[must_use]
    pub fn with_open_files(mut self, limit: usize) -> Self {
        if let Some(directory) = &mut self.directory {
            directory.limit_open_files(limit);
        }
        self
    }

    /// Sets the time that a file is cached without another look-up, and small files without another read. A replaced or
    /// changed file is noticed after this time at the latest. Zero: each request looks its file up. Default: zero.
    #[must_use]
    pub fn with_file_cache(mut self, valid_for: Duration) -> Self {
        if let Some(directory) = &mut self.directory {
            directory.cache_for(valid_for);
        }
        self
    }

    /// Sets whether a directory without `index.html` is listed. Default: no.
    #[must_use]
    pub fn with_listings(self, lists: bool) -> Self {
        let listings = lists.then(Arc::default);
        Self { listings, ..self }
    }

    /// Sets whether files whose names start with a dot are served. Default: no, except `.well-known`.
    #[must_use]
    pub fn with_hidden(mut self, shows_hidden: bool) -> Self {
        if let Some(directory) = &mut self.directory {
            directory.show_hidden(shows_hidden);
        }
        self
    }

    /// Adds a field to all responses to `GET` and `HEAD`, such as `cache-control`. The name is in lower case.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    fn get(&self, request: &Request, target: &str) -> FullResponse {
        let (path, query) = match target.split_once(['?', '#']) {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        if let Some(directory) = &self.directory {
            match directory.find(path) {
                Found::File(found) => return file(&found, request),
                Found::Unslashed => return moved(path, query),
                Found::Exhausted => {
                    return FullResponse::text(503, "Service unavailable: too many open files\n")
                        .with("retry-after", "1");
                }
                Found::Failed => return FullResponse::text(500, "Cannot read the file\n"),
                Found::Directory(found) => {
                    if let Some(listings) = &self.listings {
                        let shows_hidden = directory.shows_hidden();
                        return list(listings, found.as_fd(), path, shows_hidden);
                    }
                }
                Found::Nothing => {}
            }
        }
        if !self.generates {
            return FullResponse::text(404, "Not found\n");
        }
        generated::respond(request, path, boundary)
    }

    /// A response with the common fields.
    fn finish(&self, mut answer: FullResponse, is_head: bool) -> FullResponse {
        for (name, value) in &self.fields {
            answer = answer.with(name, value);
        }
        if is_head { answer.head_only() } else { answer }
    }

    /// The delay and the delayed path, if the path requests one.
    fn delayed<'a>(&self, target: &'a str) -> Option<(Duration, &'a str)> {
        let rest = target.strip_prefix("/delay/").filter(|_| self.generates)?;
        let slash = rest.find('/').unwrap_or(rest.len());
        let (span, path) = rest.split_at(slash);
        let span = match span.strip_suffix("ms") {
            Some(millis) => Duration::from_millis(millis.parse().ok()?),
            None => Duration::from_secs(span.strip_suffix('s')?.parse().ok()?),
        };
        (span <= DELAY_MAX).then_some((span, if path.is_empty() { "/" } else { path }))
    }
}

impl Handler for Site {
    fn handle(&self, request: &Request, _peer: &Peer) -> HandlerResponse {
        let target = request.path().unwrap_or("/");
        if let Some(response) = generated::unless_read(request.method()) {
            return response.into();
        }
        let is_head = request.method() == "HEAD";
        match self.delayed(target) {
            Some((span, target)) => {
                // Nothing is opened before the delay is over.
                let (site, target) = (self.clone(), target.to_owned());
                let request = without_other_fields(request);
                let later = move || site.finish(site.get(&request, &target), is_head);
                HandlerResponse::After(span, Box::new(later))
            }
            None => self.finish(self.get(request, target), is_head).into(),
        }
    }
}

/// The parts of a request that determine the response.
fn without_other_fields(request: &Request) -> Request {
    let mut kept = Request::new(request.method(), "https", "", request.path().unwrap_or("/"));
    for line in request.fields() {
        let decides =
            matches!(line.name, "accept-encoding" | "range") || line.name.starts_with("if-");
        if decides {
            kept.fields_mut().push(line.name, line.value);
        }
    }
    kept
}

/// The response with the names in a directory.
fn list(
    listings: &Listings,
    directory: BorrowedFd<'_>,
    path: &str,
    shows_hidden: bool,
) -> FullResponse {
    let title = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    match listings.page(&title, || listing::page(directory, &title, shows_hidden)) {
        Ok(page) => FullResponse::source(200, "text/html; charset=utf-8", Box::new(page)),
        Err(Unavailable::Busy) => {
            FullResponse::text(503, "Service unavailable: too many directory listings\n")
                .with("retry-after", "1")
        }
        Err(Unavailable::Failed) => FullResponse::text(500, "Cannot read the directory\n"),
    }
}

/// The response with a file, in the client's preferred coding.
fn file(found: &FoundFile, request: &Request) -> FullResponse {
    let mut chosen = &found.original;
    if !found.compressed.is_empty() {
        let candidates: Vec<_> = found
            .compressed
            .iter()
            .filter_map(|variant| Some((variant.coding?, variant.len(), variant)))
            .collect();
        if let Some(variant) = Accepted::of(request.fields()).best(&candidates) {
            chosen = variant;
        }
    }
    let in_parts = request.fields().get("range").is_some();
    let source = chosen.source(in_parts);
    chosen
        .prepared
        .answer(source, request, Clock::since_epoch(), boundary)
}

fn boundary() -> Boundary {
    let mut boundary = Boundary::default();
    // Without randomness no handshake gets this far; and no file contains a boundary of zeros by accident.
    let _ = rand::fill(&mut boundary);
    boundary
}

/// Redirects to the same path with a trailing slash (RFC 9110 §15.4.2). The location is built from the parts: two
/// leading slashes would name another host.
fn moved(path: &str, query: Option<&str>) -> FullResponse {
    let relative = directory::relative(path).unwrap_or_default();
    let mut to = String::from("/");
    for part in relative.components() {
        let part = part.as_os_str().to_string_lossy();
        to.extend(utf8_percent_encode(&part, listing::SEGMENT));
        to.push('/');
    }
    if let Some(query) = query {
        to.push('?');
        to.push_str(query);
    }
    FullResponse::text(301, "Moved to the same path with a trailing slash\n").with("location", to)
}
