//! The handler of `serve --pages`: the resources of the pages of a corpus.
//!
//! All texts are made at the start. A request takes no more memory than one for an object by size: its body refers to them.

use std::{fmt::Write as _, path::Path, sync::Arc, time::Duration};

use lastbyte_http3::{Request, Response};
use lastbyte_page::{Page, content, content::Content};
use lastbyte_quic::stream::{Source, SourceError};
use lastbyte_server::{FullResponse, Handler, HandlerResponse, Peer};

use crate::{failure::Failure, files};

/// Longer times of a server are cut.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The bytes of the status line, of the date that the server adds, and of the empty line over HTTP/1.1.
const COMMON_LEN: usize = 17 + 37 + 2;
/// The field that fills headers up to their described sizes.
const FILLER: &str = "x-filler";

/// The pages of a corpus.
pub(super) struct Replay {
    pages: Vec<Vec<Arc<Entry>>>,
    fields: Vec<(String, String)>,
    /// Links for 103 Early Hints, by the path of a document.
    hints: Vec<(String, String)>,
    unreachable: usize,
    longer: usize,
}

/// A resource.
struct Entry {
    content: Content,
    response: Response,
    wait: Duration,
}

/// The body of a resource.
struct Body(Arc<Entry>);

impl Source for Body {
    fn len(&self) -> u64 {
        self.0.content.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.0.content.read_at(offset, buffer);
        Ok(())
    }
}

impl Replay {
    /// Reads a corpus. The pages refer to hosts on this port.
    pub(super) fn open(
        path: &Path,
        port: u16,
        fields: Vec<(String, String)>,
    ) -> Result<Self, Failure> {
        let text = files::read_text(path).map_err(Failure::Usage)?;
        let name = path.display().to_string();
        let mut replay = Self {
            pages: Vec::new(),
            fields,
            hints: Vec::new(),
            unreachable: 0,
            longer: 0,
        };
        for (index, page) in lastbyte_page::read_corpus(&name, &text).enumerate() {
            replay.add(&page.map_err(Failure::usage)?, index, port);
        }
        if replay.pages.is_empty() {
            return Err(Failure::Usage(format!("`{name}` has no pages")));
        }
        Ok(replay)
    }

    fn add(&mut self, page: &Page, index: usize, port: u16) {
        let made = content::contents(page, index, port);
        self.unreachable += made.unreachable;
        self.longer += made.longer;
        let document = format!("/{index}/{}", page.document());
        let hints = made.hints.into_iter();
        self.hints
            .extend(hints.map(|hint| (document.clone(), hint)));
        let entries = made
            .contents
            .into_iter()
            .zip(&page.resources)
            .map(|(content, resource)| {
                Arc::new(Entry {
                    response: response(
                        &content,
                        resource.is_cacheable,
                        resource.response_header as usize,
                    ),
                    content,
                    wait: resource.wait.min(WAIT_MAX),
                })
            });
        self.pages.push(entries.collect());
    }

    /// The links of all pages for 103 Early Hints, by the path of the document.
    pub(super) fn take_hints(&mut self) -> Vec<(String, String)> {
        core::mem::take(&mut self.hints)
    }

    /// Warnings for the operator.
    pub(super) fn notice(&self) -> String {
        let mut text = format!(
            "{} pages: the document of page N, from 0, is /N/0 on its first host\n",
            self.pages.len()
        );
        for (count, what) in [
            (
                self.unreachable,
                "resources are not requested by browsers: nothing can refer to them",
            ),
            (
                self.longer,
                "bodies are longer than described: their text needs the room",
            ),
        ] {
            if count > 0 {
                // Writing to a `String` cannot fail.
                let _ = writeln!(text, "{count} {what}");
            }
        }
        text
    }

    /// The resource at `/PAGE/RESOURCE`.
    fn find(&self, path: &str) -> Option<&Arc<Entry>> {
        let (page, resource) = path.strip_prefix('/')?.split_once('/')?;
        let resource = resource.split(['?', '#']).next()?;
        self.pages
            .get(page.parse::<usize>().ok()?)?
            .get(resource.parse::<usize>().ok()?)
    }
}

/// The header of a response, which takes about `len` bytes over HTTP/1.1.
fn response(content: &Content, is_cacheable: bool, len: usize) -> Response {
    let cache = if is_cacheable {
        "max-age=31536000, immutable"
    } else {
        "no-store"
    };
    let status = if content.location.is_some() { 302 } else { 200 };
    let body_len = content.len().to_string();
    let mut fields = vec![
        ("content-type", content.media_type),
        ("content-length", &body_len),
        ("cache-control", cache),
        // Scripts of any host fetch, and read times.
        ("access-control-allow-origin", "*"),
        ("timing-allow-origin", "*"),
    ];
    if let Some(location) = &content.location {
        fields.push(("location", location));
    }
    let line_len = |name: &str, value: &str| name.len() + value.len() + 4;
    let lines: usize = fields.iter().map(|it| line_len(it.0, it.1)).sum();
    let filler = len.saturating_sub(COMMON_LEN + lines + line_len(FILLER, ""));
    let filler: String = ('a'..='z').cycle().take(filler).collect();
    if !filler.is_empty() {
        fields.push((FILLER, &filler));
    }
    let response = Response::new(status);
    fields
        .into_iter()
        .fold(response, |response, (name, value)| {
            response.with(name, value)
        })
}

impl Handler for Replay {
    fn handle(&self, request: &Request, _peer: &Peer) -> HandlerResponse {
        let is_head = request.method() == "HEAD";
        if !is_head && request.method() != "GET" {
            return FullResponse::text(405, "Method not allowed (expected GET or HEAD)\n")
                .with("allow", "GET, HEAD")
                .into();
        }
        let Some(entry) = self.find(request.path().unwrap_or("/")) else {
            return FullResponse::text(404, "Not found (expected /PAGE/RESOURCE)\n").into();
        };
        let mut response = entry.response.clone();
        for (name, value) in &self.fields {
            response = response.with(name, value);
        }
        let (entry, wait) = (Arc::clone(entry), entry.wait);
        let answer = move || {
            let body = Body(entry);
            let has_body = !is_head && !body.is_empty();
            FullResponse {
                response,
                body: has_body.then(|| Box::new(body) as Box<dyn Source>),
            }
        };
        if wait.is_zero() {
            answer().into()
        } else {
            HandlerResponse::After(wait, Box::new(answer))
        }
    }
}
