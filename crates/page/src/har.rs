//! Pages from HAR files: Chromium's, Firefox's and those of `WebPageTest`.
//!
//! Only sizes, times, host names and the dependencies are taken. Contents, query strings, cookies and header values are dropped;
//! the parser does not keep other values.
//!
//! # What is read
//!
//! | of the page | from |
//! |---|---|
//! | resources, in order | `startedDateTime`; `http` and `https` only |
//! | kind | `_resourceType` (Chromium), `_request_type` (`WebPageTest`), or `content.mimeType` |
//! | trigger, delay | `_initiator`: its URL, or the script on top of its stack; times |
//! | header sizes | `headersSize`, or the sum of the fields of `headers` |
//! | body size | `_objectSize`, `bodySize`, `_transferSize`, `content.size`, or `Content-Length`, in this order |
//! | server time | `timings.wait` less the round trip of the host |
//! | round trip of a host | least `connect` less `ssl`, or least `wait` |
//! | priority | the request's `priority` field (RFC 9218), `_priority`, or what Chromium gives to the kind |
//! | render-blocking | `_renderBlocking` (`WebPageTest`), or: a style sheet of highest priority or a script of high priority that the parser of the document requested |
//! | cacheability | method, status, `Cache-Control`, `Expires`, `Age`, `Date`, `Last-Modified`, `Vary` (RFC 9111) |
//! | HTTP/3 | `httpVersion`, `_protocol`, or an `Alt-Svc` field with `h3` |
//! | hosts with one connection | the same `connection` (Chromium) or `_socket` (`WebPageTest`) for two hosts |
//!
//! What is absent is assumed, and counted in [`Recording::assumed`].

use core::time::Duration;
use std::collections::BTreeMap;

use crate::{
    generator::work,
    page::{Host, Kind, Page, Party, Priority, Resource, Trigger},
};

mod cache;
mod tree;

use tree::Tree;

/// The largest file, in bytes.
pub const FILE_MAX: usize = 512 << 20;
/// The largest number of pages of a file.
const PAGES_MAX: usize = 1000;
/// The longest time that is taken over from a file.
const TIME_MAX_MS: f64 = 60_000.0;

/// The keys that are read, wherever they are.
const KEYS: &[&str] = &[
    "log",
    "entries",
    "pages",
    "id",
    "pageref",
    "startedDateTime",
    "time",
    "request",
    "response",
    "method",
    "url",
    "httpVersion",
    "headers",
    "name",
    "value",
    "headersSize",
    "bodySize",
    "status",
    "content",
    "size",
    "mimeType",
    "redirectURL",
    "timings",
    "connect",
    "ssl",
    "wait",
    "receive",
    "connection",
    "creator",
    "_initiator",
    "type",
    "stack",
    "parent",
    "callFrames",
    "_initiator_type",
    "_priority",
    "_resourceType",
    "_request_type",
    "_transferSize",
    "_objectSize",
    "_protocol",
    "_renderBlocking",
    "_socket",
    "_fromCache",
];

/// The content of a HAR file.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Its pages. Each is valid.
    pub pages: Vec<Page>,
    /// Absent values and the assumptions made for them, with the number of requests.
    pub assumed: BTreeMap<&'static str, usize>,
    /// Why requests were left out, with the number of requests.
    pub skipped: BTreeMap<&'static str, usize>,
}

/// Why a HAR file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HarError(String);

/// Reads a HAR file. With `is_anonymous` names of hosts and pages are replaced by numbers.
///
/// # Errors
///
/// [`HarError`] if the file is larger than [`FILE_MAX`], not JSON, not a HAR file, or without a page; or if a page has more than
/// [`Page::RESOURCES_MAX`] requests.
pub fn read(bytes: &[u8], is_anonymous: bool) -> Result<Recording, HarError> {
    if bytes.len() > FILE_MAX {
        return Err(HarError(format!(
            "file of {} bytes (expected at most {FILE_MAX})",
            bytes.len()
        )));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let tree = Tree::parse(bytes, KEYS).map_err(|error| HarError(format!("not JSON: {error}")))?;
    let log = tree.get("log");
    let entries = log.get("entries").list().ok_or_else(|| {
        HarError(
            "not a HAR file: no list `log.entries` (expected HTTP Archive 1.1 or 1.2)".to_owned(),
        )
    })?;
    let mut recording = Recording {
        pages: Vec::new(),
        assumed: BTreeMap::new(),
        skipped: BTreeMap::new(),
    };
    let mut order: Vec<&str> = Vec::new();
    let mut by_page: BTreeMap<&str, Vec<Entry<'_>>> = BTreeMap::new();
    for tree in entries {
        match Entry::read(tree) {
            Ok(entry) => {
                // Without a page of its own, as of a service worker: that of the request before it.
                let page = tree.get("pageref").text();
                let page = page.or(order.last().copied()).unwrap_or("");
                by_page
                    .entry(page)
                    .or_insert_with(|| {
                        order.push(page);
                        Vec::new()
                    })
                    .push(entry);
            }
            Err(reason) => *recording.skipped.entry(reason).or_default() += 1,
        }
    }
    if order.len() > PAGES_MAX {
        return Err(HarError(format!(
            "{} pages (expected at most {PAGES_MAX})",
            order.len()
        )));
    }
    for id in order {
        let mut entries = by_page.remove(id).unwrap_or_default();
        if entries.len() > Page::RESOURCES_MAX {
            return Err(HarError(format!(
                "page `{}`: {} requests (expected at most {})",
                id.escape_debug(),
                entries.len(),
                Page::RESOURCES_MAX
            )));
        }
        entries.sort_by(|one, other| one.started.total_cmp(&other.started));
        let number = recording.pages.len();
        let page =
            Importer::new(&entries, &mut recording.assumed).page(is_anonymous.then_some(number));
        page.check().map_err(|error| HarError(error.to_string()))?;
        recording.pages.push(page);
    }
    if recording.pages.is_empty() {
        return Err(HarError(match recording.skipped.iter().next() {
            Some((reason, _)) => format!(
                "no page: all {} requests are left out, the first reason is {reason}",
                entries.len()
            ),
            None => "no page: `log.entries` is empty".to_owned(),
        }));
    }
    Ok(recording)
}

/// A request and its response.
struct Entry<'a> {
    tree: &'a Tree,
    /// Without fragment.
    url: &'a str,
    host: String,
    /// Milliseconds since some day.
    started: f64,
    first_byte: f64,
    ended: f64,
    status: u16,
    kind: Kind,
}

impl<'a> Entry<'a> {
    fn read(tree: &'a Tree) -> Result<Self, &'static str> {
        let request = tree.get("request");
        let url = request.get("url").text().ok_or("no URL")?;
        let url = url.split('#').next().unwrap_or("");
        let (scheme, rest) = url.split_once("://").ok_or("not HTTP")?;
        if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
            return Err("not HTTP");
        }
        let authority = rest.split(['/', '?']).next().unwrap_or("");
        let host = host_of(&scheme.to_ascii_lowercase(), authority);
        if host.is_empty() || host.len() > 255 {
            return Err("no host in the URL");
        }
        let started = tree
            .get("startedDateTime")
            .text()
            .and_then(iso_date_ms)
            .ok_or("no valid `startedDateTime`")?;
        let response = tree.get("response");
        let status = response.get("status").known().unwrap_or(0.0) as u16;
        if status < 200 {
            return Err("no response (blocked, aborted or failed)");
        }
        let timings = tree.get("timings");
        let took = tree.get("time").known().unwrap_or(0.0).min(600_000.0);
        let receive = timings.get("receive").known().unwrap_or(0.0).min(took);
        let mime = response.get("content").get("mimeType").text().unwrap_or("");
        Ok(Self {
            tree,
            url,
            host,
            started,
            first_byte: started + took - receive,
            ended: started + took,
            status,
            kind: kind(tree, mime),
        })
    }

    fn header<'b>(message: &'b Tree, name: &str) -> Option<&'b str> {
        message
            .get("headers")
            .list()?
            .iter()
            .find(|field| {
                let found = field.get("name").text();
                found.is_some_and(|found| found.eq_ignore_ascii_case(name))
            })?
            .get("value")
            .text()
    }

    fn response_header(&self, name: &str) -> Option<&'a str> {
        Self::header(self.tree.get("response"), name)
    }

    fn is_redirect(&self) -> bool {
        (300..400).contains(&self.status) && self.status != 304
    }
}

fn kind(tree: &Tree, mime: &str) -> Kind {
    let recorded = tree.get("_resourceType").text();
    let recorded = recorded.or_else(|| tree.get("_request_type").text());
    match recorded.unwrap_or("").to_ascii_lowercase().as_str() {
        "document" | "subdocument" => return Kind::Document,
        "stylesheet" => return Kind::Stylesheet,
        "script" => return Kind::Script,
        "font" => return Kind::Font,
        "image" => return Kind::Image,
        "media" | "audio" | "video" | "texttrack" => return Kind::Media,
        "xhr" | "fetch" | "eventsource" => return Kind::Fetch,
        "" => {}
        _ => return Kind::Other,
    }
    let mime = mime
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase();
    match mime.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Document,
        "text/css" => Kind::Stylesheet,
        "application/json" | "text/json" => Kind::Fetch,
        mime if mime.contains("javascript") || mime.contains("ecmascript") => Kind::Script,
        mime if mime.starts_with("font/") || mime.contains("font") => Kind::Font,
        mime if mime.starts_with("image/") => Kind::Image,
        mime if mime.starts_with("video/") || mime.starts_with("audio/") => Kind::Media,
        mime if mime.ends_with("+json") => Kind::Fetch,
        _ => Kind::Other,
    }
}

/// Makes the page of the requests of one page load.
struct Importer<'a> {
    entries: &'a [Entry<'a>],
    assumed: &'a mut BTreeMap<&'static str, usize>,
    /// The index of the document: the first that is not a redirect, with the redirects before it.
    document: usize,
    /// The last request of each URL so far.
    by_url: BTreeMap<&'a str, usize>,
    rtts: BTreeMap<&'a str, f64>,
}

impl<'a> Importer<'a> {
    fn new(entries: &'a [Entry<'a>], assumed: &'a mut BTreeMap<&'static str, usize>) -> Self {
        let mut document = 0;
        while entries[document].is_redirect()
            && entries
                .get(document + 1)
                .is_some_and(|next| next.kind == Kind::Document || next.is_redirect())
        {
            document += 1;
        }
        let mut rtts: BTreeMap<&str, f64> = BTreeMap::new();
        let mut waits: BTreeMap<&str, f64> = BTreeMap::new();
        for entry in entries {
            let timings = entry.tree.get("timings");
            let ssl = timings.get("ssl").known().unwrap_or(0.0);
            let connect = timings.get("connect").known().map(|connect| connect - ssl);
            for (known, value) in [
                (&mut rtts, connect),
                (&mut waits, timings.get("wait").known()),
            ] {
                if let Some(value) = value.filter(|value| *value > 0.0) {
                    let least = known.entry(entry.host.as_str()).or_insert(value);
                    *least = least.min(value);
                }
            }
        }
        for (host, wait) in waits {
            let rtt = rtts.entry(host).or_insert(wait);
            *rtt = rtt.min(wait);
        }
        Self {
            entries,
            assumed,
            document,
            by_url: BTreeMap::new(),
            rtts,
        }
    }

    fn assume(&mut self, what: &'static str) {
        *self.assumed.entry(what).or_default() += 1;
    }

    fn page(mut self, anonymous: Option<usize>) -> Page {
        let (hosts, host_of) = self.hosts(anonymous);
        let mut resources = Vec::with_capacity(self.entries.len());
        for (index, host) in host_of.into_iter().enumerate() {
            let resource = self.resource(index, host, &resources);
            resources.push(resource);
            self.by_url.insert(self.entries[index].url, index);
        }
        let path = self.entries[self.document]
            .url
            .split_once("://")
            .map_or("", |(_, rest)| rest)
            .split('?')
            .next()
            .unwrap_or("");
        let name = match anonymous {
            Some(number) => format!("page{number}"),
            None => path.chars().take(60).collect(),
        };
        Page {
            name,
            hosts,
            resources,
        }
    }

    /// The hosts, that of the first request first, and the host of each request.
    fn hosts(&mut self, anonymous: Option<usize>) -> (Vec<Host>, Vec<u16>) {
        let site = registrable(&self.entries[self.document].host).to_owned();
        let base = self.rtts.get(self.entries[0].host.as_str()).copied();
        let mut hosts: Vec<Host> = Vec::new();
        let mut index_of: BTreeMap<&str, u16> = BTreeMap::new();
        let mut group_of: BTreeMap<String, u16> = BTreeMap::new();
        let mut host_of = Vec::with_capacity(self.entries.len());
        for entry in self.entries {
            let host = *index_of.entry(entry.host.as_str()).or_insert_with(|| {
                let index = hosts.len() as u16;
                let rtt = self.rtts.get(entry.host.as_str()).copied();
                let extra = rtt.zip(base).map_or(0.0, |(rtt, base)| rtt - base);
                let is_first = registrable(&entry.host) == site;
                hosts.push(Host {
                    name: match anonymous {
                        Some(page) => format!("h{index}.page{page}.example"),
                        None => entry.host.clone(),
                    },
                    party: if is_first { Party::First } else { Party::Third },
                    group: index,
                    has_http3: false,
                    rtt_extra_us: (extra.clamp(-2000.0, 2000.0) * 1000.0) as i32,
                });
                index
            });
            host_of.push(host);
            let known = &mut hosts[usize::from(host)];
            known.has_http3 |= speaks_http3(entry);
            if let Some(connection) = connection(entry.tree) {
                let group = *group_of.entry(connection).or_insert(known.group);
                // Hosts that shared a connection are one group. The first of them names it.
                known.group = known.group.min(group);
            }
        }
        (hosts, host_of)
    }

    fn resource(&mut self, index: usize, host: u16, earlier: &[Resource]) -> Resource {
        let entry = &self.entries[index];
        let (request, response) = (entry.tree.get("request"), entry.tree.get("response"));
        // The document, and what redirects to it, is one whatever its type.
        let kind = if index <= self.document {
            Kind::Document
        } else {
            entry.kind
        };
        let usual = Resource::new(host, kind, 0);
        let request_header = header_size(request).unwrap_or_else(|| {
            self.assume("request header size: 450 bytes");
            usual.request_header
        });
        let response_header = header_size(response).unwrap_or_else(|| {
            self.assume("response header size: 400 bytes");
            usual.response_header
        });
        let body = body_size(entry, response_header).unwrap_or_else(|| {
            self.assume("body size: 0 bytes");
            0
        });
        let rtt = self.rtts.get(entry.host.as_str()).copied();
        let wait = entry.tree.get("timings").get("wait").known();
        if wait.is_none() {
            self.assume("server time: 0 ms");
        }
        let wait = wait.zip(rtt).map_or(0.0, |(wait, rtt)| wait - rtt);
        let priority = self.priority(entry, kind);
        let (trigger, delay) = match self.trigger(index, earlier) {
            Some((trigger, delay)) => (Some(trigger), delay),
            None => (None, 0.0),
        };
        let method = request.get("method").text().unwrap_or("GET");
        let work = if entry.is_redirect() {
            Duration::ZERO
        } else {
            work(kind, body)
        };
        Resource {
            request_header,
            response_header,
            wait: millis(wait),
            trigger,
            delay: millis(delay),
            work,
            is_blocking: self.is_blocking(entry, kind, trigger, priority),
            priority,
            is_cacheable: cache::is_fresh(method, entry.status, &|name| {
                entry.response_header(name)
            }),
            is_hinted: false,
            ..Resource::new(host, kind, body)
        }
    }

    fn priority(&mut self, entry: &Entry<'_>, kind: Kind) -> Priority {
        let mut priority = kind.priority();
        if let Some(field) = Entry::header(entry.tree.get("request"), "priority") {
            // Defaults of RFC 9218 §4.
            priority = Priority {
                urgency: 3,
                is_incremental: false,
            };
            for item in field.split(',').map(str::trim) {
                match item.split_once('=') {
                    Some(("u", urgency)) => {
                        let urgency = urgency.parse().ok().filter(|urgency| *urgency <= 7);
                        priority.urgency = urgency.unwrap_or(priority.urgency);
                    }
                    None if item == "i" => priority.is_incremental = true,
                    _ => {}
                }
            }
            return priority;
        }
        let name = entry.tree.get("_priority").text().unwrap_or("");
        let urgency = match name.to_ascii_lowercase().as_str() {
            "veryhigh" | "highest" => 0,
            "high" => 1,
            "medium" => 2,
            "low" => 3,
            "verylow" | "lowest" | "idle" => 4,
            _ => {
                self.assume("priority: Chromium's for the kind");
                return priority;
            }
        };
        priority.urgency = urgency;
        priority
    }

    fn is_blocking(
        &mut self,
        entry: &Entry<'_>,
        kind: Kind,
        trigger: Option<Trigger>,
        priority: Priority,
    ) -> bool {
        match entry.tree.get("_renderBlocking").text() {
            Some("blocking" | "in_body_parser_blocking") => return kind != Kind::Document,
            Some("non_blocking" | "dynamically_injected_non_blocking" | "potentially_blocking") => {
                return false;
            }
            _ => {}
        }
        let is_parsed =
            matches!(trigger, Some(Trigger::Bytes { of, .. }) if usize::from(of) == self.document);
        match kind {
            Kind::Stylesheet => is_parsed && priority.urgency == 0,
            Kind::Script => {
                let has_priority = *entry.tree.get("_priority") != Tree::Null;
                is_parsed && has_priority && priority.urgency <= 1
            }
            _ => false,
        }
    }

    /// What made the browser request an entry, and the delay in milliseconds.
    fn trigger(&mut self, index: usize, earlier: &[Resource]) -> Option<(Trigger, f64)> {
        if index == 0 {
            return None;
        }
        if index <= self.document {
            let of = (index - 1) as u16;
            return Some((Trigger::Complete { of }, 0.0));
        }
        let entry = &self.entries[index];
        // The target of an earlier entry's redirect.
        if let Some(redirect) = self.redirect_to(index) {
            let of = redirect as u16;
            return Some((Trigger::Complete { of }, 0.0));
        }
        let initiator = entry.tree.get("_initiator");
        let recorded = initiator
            .text()
            .or_else(|| initiator.get("url").text())
            .or_else(|| top_of_stack(initiator));
        let known = recorded.and_then(|url| self.by_url.get(url.split('#').next()?).copied());
        let of = known.unwrap_or_else(|| {
            self.assume("initiator: the last style sheet for fonts, the last script for data, else the document");
            let wanted = match entry.kind {
                Kind::Font => Kind::Stylesheet,
                Kind::Fetch => Kind::Script,
                _ => return self.document,
            };
            let is_before = |at: &usize| {
                self.entries[*at].kind == wanted && self.entries[*at].ended <= entry.started
            };
            (self.document + 1..index).rev().find(is_before).unwrap_or(self.document)
        });
        Some(self.after(of, entry.started, &earlier[of]))
    }

    /// The trigger by `of` of what started at `started`.
    fn after(&self, of: usize, started: f64, resource: &Resource) -> (Trigger, f64) {
        let cause = &self.entries[of];
        let of = of as u16;
        let is_document = resource.kind == Kind::Document;
        if is_document || started < cause.ended {
            // While it arrived: the share of its bytes that had arrived.
            let receive = cause.ended - cause.first_byte;
            let share = if receive > 0.0 {
                (started - cause.first_byte) / receive
            } else {
                1.0
            };
            let offset = (share.clamp(0.0, 1.0) * resource.body as f64) as u64;
            let offset = offset.min(resource.body);
            return (
                Trigger::Bytes { of, offset },
                (started - cause.ended).max(0.0),
            );
        }
        let work = resource.work.as_secs_f64() * 1000.0;
        (
            Trigger::Executed { of },
            (started - cause.ended - work).max(0.0),
        )
    }

    fn redirect_to(&self, index: usize) -> Option<usize> {
        let url = self.entries[index].url;
        // Redirects precede their targets closely: a bounded look back keeps pages of many redirects linear.
        (index.saturating_sub(64)..index).rev().find(|earlier| {
            let entry = &self.entries[*earlier];
            let target = entry.tree.get("response").get("redirectURL").text();
            let target = target.filter(|target| !target.is_empty());
            let target = target.or_else(|| entry.response_header("location"));
            entry.is_redirect()
                && target.is_some_and(|target| {
                    let target = target.split('#').next().unwrap_or("");
                    // A relative reference is the end of the URL.
                    target == url || (target.starts_with('/') && url.ends_with(target))
                })
        })
    }
}

fn millis(time: f64) -> Duration {
    Duration::from_micros((time.clamp(0.0, TIME_MAX_MS) * 1000.0) as u64)
}

/// The URL of the innermost script of a stack, or of the stacks that led to it.
fn top_of_stack(initiator: &Tree) -> Option<&str> {
    let mut stack = initiator.get("stack");
    // As deep as JSON may be nested.
    for _ in 0..128 {
        let frames = stack.get("callFrames").list().unwrap_or(&[]);
        let url = frames
            .iter()
            .filter_map(|frame| frame.get("url").text())
            .find(|url| !url.is_empty());
        if url.is_some() {
            return url;
        }
        stack = stack.get("parent");
    }
    None
}

fn header_size(message: &Tree) -> Option<u32> {
    let recorded = message
        .get("headersSize")
        .known()
        .filter(|size| *size > 0.0);
    let size = recorded.or_else(|| {
        let fields = message
            .get("headers")
            .list()
            .filter(|fields| !fields.is_empty())?;
        let length = |field: &Tree, key: &str| field.get(key).text().map_or(0, str::len);
        let fields: usize = fields
            .iter()
            .map(|field| length(field, "name") + length(field, "value") + 4)
            .sum();
        let target = message
            .get("url")
            .text()
            .and_then(|url| url.splitn(4, '/').nth(3));
        // The request line or the status line.
        Some((fields + target.map_or(17, |target| target.len() + 16)) as f64)
    })?;
    Some(size.min(f64::from(Page::HEADER_MAX)) as u32)
}

fn body_size(entry: &Entry<'_>, response_header: u32) -> Option<u64> {
    let response = entry.tree.get("response");
    let content = response.get("content");
    // Compressed headers of HTTP/2 and 3 are about a third as long.
    let is_compressed = http_version(entry) != "http/1.1" && http_version(entry) != "http/1.0";
    let header = f64::from(response_header) / if is_compressed { 3.0 } else { 1.0 };
    let transferred = response
        .get("_transferSize")
        .known()
        .filter(|size| *size > 0.0);
    let positive = |tree: &Tree| tree.known().filter(|size| *size > 0.0);
    let is_empty = matches!(entry.status, 204 | 304) || entry.is_redirect();
    positive(entry.tree.get("_objectSize"))
        .or_else(|| positive(response.get("bodySize")))
        .or_else(|| transferred.map(|size| (size - header).max(0.0)))
        .or_else(|| content.get("size").known())
        .or_else(|| entry.response_header("content-length")?.trim().parse().ok())
        .or_else(|| is_empty.then_some(0.0))
        .filter(|size| *size >= 0.0)
        .map(|size| (size as u64).min(Page::BODY_MAX))
}

fn http_version(entry: &Entry<'_>) -> String {
    let version = entry
        .tree
        .get("_protocol")
        .text()
        .filter(|version| !version.is_empty());
    let version = version.or_else(|| entry.tree.get("response").get("httpVersion").text());
    version.unwrap_or("").to_ascii_lowercase()
}

fn speaks_http3(entry: &Entry<'_>) -> bool {
    let version = http_version(entry);
    version == "h3"
        || version.starts_with("http/3")
        || version.starts_with("h3-")
        || entry.response_header("alt-svc").is_some_and(|services| {
            services
                .split(',')
                .any(|service| service.trim_start().starts_with("h3="))
        })
}

/// What identifies a connection, if it does: Firefox writes the port of the server.
fn connection(tree: &Tree) -> Option<String> {
    if let Some(socket) = tree.get("_socket").known() {
        return Some(format!("{socket}"));
    }
    let is_chromium = *tree.get("_resourceType") != Tree::Null;
    let connection = tree
        .get("connection")
        .text()
        .filter(|text| !text.is_empty());
    connection.filter(|_| is_chromium).map(str::to_owned)
}

/// The host that a client of this authority connects to: without user, default port (RFC 3986 §6.2.3) and final dot.
fn host_of(scheme: &str, authority: &str) -> String {
    let host = authority.rsplit('@').next().unwrap_or("");
    let port = if scheme == "https" { ":443" } else { ":80" };
    let host = host.strip_suffix(port).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// The part of a host name under which sites are registered (assumed: the last two labels, or three after a short second-level
/// label under a country).
fn registrable(host: &str) -> &str {
    let host = host.split(':').next().unwrap_or(host);
    let is_address = host
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut dots = host.rmatch_indices('.').map(|(at, _)| at);
    let (Some(last), Some(second), false) = (dots.next(), dots.next(), is_address) else {
        return host;
    };
    let is_country = host.len() - last - 1 == 2;
    let start = if is_country && last - second - 1 <= 3 {
        dots.next().map_or(0, |third| third + 1)
    } else {
        second + 1
    };
    &host[start..]
}

/// Milliseconds since 1970 of an ISO 8601 date with time and zone, as HAR files have it.
fn iso_date_ms(text: &str) -> Option<f64> {
    let (date, time) = text.trim().split_once(['T', ' '])?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (time, zone) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, "Z"),
    };
    let offset = match zone.as_bytes().first()? {
        b'Z' | b'z' => 0.0,
        sign => {
            let digits: String = zone[1..].chars().filter(char::is_ascii_digit).collect();
            let number: u32 = digits.parse().ok().filter(|_| digits.len() == 4)?;
            let minutes = f64::from(number / 100 * 60 + number % 100);
            if *sign == b'-' { -minutes } else { minutes }
        }
    };
    let mut parts = time.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0.0))?;
    let is_time = (0.0..24.0).contains(&hours)
        && (0.0..60.0).contains(&minutes)
        && (0.0..61.0).contains(&seconds);
    let days = days(year, month, day).filter(|_| is_time)?;
    Some(((days * 86_400) as f64 + (hours * 60.0 + minutes - offset) * 60.0 + seconds) * 1000.0)
}

/// Seconds since 1970 of an IMF-fixdate (RFC 9110 §5.6.7).
fn http_date(text: &str) -> Option<i64> {
    let mut words = text.split_once(',')?.1.split_whitespace();
    let day = words.next()?.parse().ok()?;
    let name = words.next()?;
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months
        .find(name)
        .filter(|at| name.len() == 3 && at % 3 == 0)?;
    let year = words.next()?.parse().ok()?;
    let mut parts = words
        .next()?
        .splitn(3, ':')
        .map(|part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let days = days(year, i64::try_from(month / 3).ok()? + 1, day)?;
    Some(days * 86_400 + hours * 3600 + minutes * 60 + seconds)
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1900..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(lastbyte_units::days_of_date(year, month, day))
}

#[cfg(test)]
mod tests;
