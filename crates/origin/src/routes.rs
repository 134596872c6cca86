//! Requests by host and path to several handlers, and hints (103) before slow responses.
//!
//! Owns the order of routes, and which paths are ambiguous. A path is passed on unchanged.
//!
//! | place | requests |
//! |---|---|
//! | `www.example.com` | for this host, any port |
//! | `*.example.com` | for hosts below it |
//! | `/api` | for `/api` and paths below `/api/`, of any host |
//! | `www.example.com/api` | both |
//!
//! Decision: *a path that leads to different routes as different servers read it is refused*, since the server behind a route
//! may serve the path of another. Such readings merge slashes, drop parameters (`;a=b`), and take `\`, `%2f` and `%5c` for a
//! slash, and `%3b` for `;`. Three readings are compared: the two extremes, and that of servers that drop parameters before they
//! decode. Paths that stay within a route are left alone, since they are common (`a%2fb` as
//! one name, `;` in parameters).

use std::{borrow::Cow, collections::BTreeMap, fmt, str::FromStr, sync::Arc};

use lastbyte_http3::{Request, Response};
use percent_encoding::percent_decode_str;

use super::handler::{FullResponse, Handler, HandlerResponse, Peer};

#[cfg(test)]
mod tests;

/// The most bytes of a place.
const PLACE_LEN_MAX: usize = 1024;

/// The hosts of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Any,
    /// Hosts that end with this, which starts with a dot.
    Below(String),
    Exact(String),
}

/// The requests of a route: a host, a path, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    host: Host,
    /// Without a trailing slash: empty for all paths.
    path: String,
}

/// Why a text is not a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceError(String);

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlaceError {}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let error = |what: &str| PlaceError(format!("invalid place `{text}`: {what}"));
        if text.len() > PLACE_LEN_MAX {
            return Err(PlaceError(format!(
                "a place has {} bytes (expected at most {PLACE_LEN_MAX})",
                text.len()
            )));
        }
        let (host, path) = text.find('/').map_or((text, ""), |at| text.split_at(at));
        if host.is_empty() && path.is_empty() {
            return Err(error("empty (expected a host, a path, or both)"));
        }
        if path.contains(['%', '?', '#', ';', '\\']) || path.contains("//") || has_dot_segment(path)
        {
            return Err(error(
                "expected a path without `%`, `?`, `;` and dot segments",
            ));
        }
        let host = host.to_ascii_lowercase();
        let is_name = |host: &str| {
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            let is_address = host.starts_with('[') && host.ends_with(']');
            !host.is_empty() && (is_address || host.chars().all(is_allowed))
        };
        let host = match host.strip_prefix('*') {
            _ if host.is_empty() => Host::Any,
            Some(rest) if rest.len() > 1 && rest.starts_with('.') && is_name(rest) => {
                Host::Below(rest.to_owned())
            }
            None if is_name(&host) => Host::Exact(host),
            _ => {
                return Err(error(
                    "expected a host without a port, such as `www.example.com` or `*.example.com`",
                ));
            }
        };
        Ok(Self {
            host,
            path: path.trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Any if self.path.is_empty() => f.write_str("/"),
            Host::Any => f.write_str(&self.path),
            Host::Below(suffix) => write!(f, "*{suffix}{}", self.path),
            Host::Exact(name) => write!(f, "{name}{}", self.path),
        }
    }
}

impl Place {
    fn has(&self, host: &str, path: &[u8]) -> bool {
        let has_host = match &self.host {
            Host::Any => true,
            Host::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
            Host::Exact(name) => host == name,
        };
        let below = path.strip_prefix(self.path.as_bytes());
        has_host && below.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
    }

    /// More specific places have greater ranks: by host, then by path.
    fn rank(&self) -> (u8, usize, usize) {
        let (kind, host_len) = match &self.host {
            Host::Any => (0, 0),
            Host::Below(suffix) => (1, suffix.len()),
            Host::Exact(_) => (2, 0),
        };
        (kind, host_len, self.path.len())
    }
}

/// Values by place. A request has that of the most specific place: by host, then by path.
#[derive(Clone, Debug)]
pub struct Places<T>(Vec<(Place, T)>);

impl<T> Places<T> {
    /// These places.
    #[must_use]
    pub fn new(mut places: Vec<(Place, T)>) -> Self {
        places.sort_by_key(|(place, _)| std::cmp::Reverse(place.rank()));
        Self(places)
    }

    /// The value for the authority and target of a request; `None` if no place has it.
    pub fn find(&self, authority: &str, target: &str) -> Option<&T> {
        if self.0.is_empty() {
            return None;
        }
        let host = host_of(authority).to_ascii_lowercase();
        let at = self.position(&host, &decoded(path_of(target)))?;
        self.0.get(at).map(|(_, value)| value)
    }

    /// As [`find`](Self::find); `Err` if servers may read the path as one with another value.
    fn find_one(&self, authority: &str, target: &str) -> Result<Option<(usize, &T)>, Ambiguous> {
        let host = host_of(authority).to_ascii_lowercase();
        let path = path_of(target);
        let resolved = resolved(&decoded(path));
        let at = self.position(&host, &resolved);
        let is_plain = resolved.as_slice() == path.as_bytes();
        if !is_plain && self.positions(&host, path) != [at; 2] {
            return Err(Ambiguous);
        }
        let found = at.and_then(|at| Some((at, &self.0.get(at)?.1)));
        Ok(found)
    }

    /// The places of a path as other servers read it: those that keep encoded slashes, and those that drop parameters before
    /// they decode (`;%2fx` is one).
    fn positions(&self, host: &str, path: &str) -> [Option<usize>; 2] {
        let segments = path.split('/');
        let names: Vec<&str> = segments.filter_map(|it| it.split(';').next()).collect();
        [
            self.position(host, &with_encoded_slashes(path)),
            self.position(host, &resolved(&decoded(&names.join("/")))),
        ]
    }

    fn position(&self, host: &str, path: &[u8]) -> Option<usize> {
        let mut places = self.0.iter();
        places.position(|(place, _)| place.has(host, path))
    }
}

/// Servers may read a path as one of different places.
struct Ambiguous;

fn decoded(path: &str) -> Cow<'_, [u8]> {
    percent_decode_str(path).into()
}

/// The decoded path as a server reads it to which an encoded slash is a part of a name. No place has a `%`.
fn with_encoded_slashes(path: &str) -> Vec<u8> {
    let kept = path.replace("%2f", "%252f").replace("%2F", "%252f");
    decoded(&kept).into_owned()
}

/// A decoded path as a server reads it that takes `\` for a slash, drops parameters, and merges slashes.
fn resolved(path: &[u8]) -> Vec<u8> {
    let mut resolved = Vec::with_capacity(path.len());
    let mut is_parameter = false;
    for byte in path {
        match byte {
            b'/' | b'\\' => {
                is_parameter = false;
                if resolved.last() != Some(&b'/') {
                    resolved.push(b'/');
                }
            }
            b';' => is_parameter = true,
            _ if is_parameter => {}
            byte => resolved.push(*byte),
        }
    }
    resolved
}

/// Passes each request to the handler of its place.
pub struct Routes {
    places: Places<Arc<dyn Handler>>,
    fallback: Arc<dyn Handler>,
    /// [`OTHERS`], and the places in the order of `places`.
    names: Vec<String>,
}

/// The name of the requests without a route. It is not a place.
const OTHERS: &str = "*";

impl Routes {
    /// These routes, and the handler of all other requests.
    #[must_use]
    pub fn new(routes: Vec<(Place, Arc<dyn Handler>)>, fallback: Arc<dyn Handler>) -> Self {
        let places = Places::new(routes);
        let names = places.0.iter().map(|(place, _)| place.to_string());
        Self {
            names: [OTHERS.to_owned()].into_iter().chain(names).collect(),
            places,
            fallback,
        }
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.places.0.iter().map(|(place, _)| place);
        f.debug_list().entries(places).finish()
    }
}

impl Handler for Routes {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        self.handle_routed(request, peer).0
    }

    fn takes_tunnel(&self, request: &Request) -> bool {
        let authority = request.authority().unwrap_or_default();
        let found = self
            .places
            .find_one(authority, request.path().unwrap_or("/"));
        let handler = found.map(|found| found.map_or(&self.fallback, |(_, handler)| handler));
        handler.is_ok_and(|handler| handler.takes_tunnel(request))
    }

    fn routes(&self) -> &[String] {
        &self.names
    }

    fn handle_routed(&self, request: &Request, peer: &Peer) -> (HandlerResponse, usize) {
        let refuse = |text| (FullResponse::text(400, text).into(), 0);
        let target = request.path().unwrap_or("/");
        // Which route a server behind it would see is not known.
        if has_dot_segment(target) {
            return refuse("The path has `.` or `..` segments\n");
        }
        if path_of(target).contains("%00") {
            return refuse("The path has a null byte\n");
        }
        let authority = request.authority().unwrap_or_default();
        match self.places.find_one(authority, target) {
            Ok(Some((at, handler))) => (handler.handle(request, peer), at + 1),
            Ok(None) => (self.fallback.handle(request, peer), 0),
            Err(Ambiguous) => refuse(AMBIGUOUS),
        }
    }
}

const AMBIGUOUS: &str =
    "The path is ambiguous (expected no `//`, `;`, `\\` or encoded separators before a route)\n";

/// The path of a target, without its query.
fn path_of(target: &str) -> &str {
    target.split(['?', '#']).next().unwrap_or_default()
}

/// The host of an authority, without its port and a final dot.
fn host_of(authority: &str) -> &str {
    let end = authority.find(']').map_or(0, |at| at + 1);
    let port = authority[end..].find(':');
    let host = port.map_or(authority, |at| &authority[..end + at]);
    host.strip_suffix('.').unwrap_or(host)
}

/// Whether a path leaves its base on some server, or could: a segment is `.` or `..`, also encoded, with `\` as a
/// separator, or with parameters (`..;a`) that some servers remove before they resolve dots.
pub fn has_dot_segment(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    let path = path
        .to_ascii_lowercase()
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "/")
        .replace("%3b", ";")
        .replace('\\', "/");
    path.split('/')
        .any(|segment| matches!(segment.split(';').next(), Some("." | "..")))
}

/// Sends `link` fields as 103 Early Hints (RFC 8297), before another handler responds.
///
/// Over HTTP/3, and unless the response is known at once: then it has the fields itself.
pub struct Hints {
    /// By path.
    links: BTreeMap<String, Vec<String>>,
    handler: Arc<dyn Handler>,
}

impl Hints {
    /// Hints for the requests of a handler: pairs of a path and a link.
    #[must_use]
    pub fn new(
        links: impl IntoIterator<Item = (String, String)>,
        handler: Arc<dyn Handler>,
    ) -> Self {
        let mut by_path: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (path, link) in links {
            by_path.entry(path).or_default().push(link);
        }
        Self {
            links: by_path,
            handler,
        }
    }
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hints").field(&self.links).finish()
    }
}

impl Handler for Hints {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        self.handle_routed(request, peer).0
    }

    fn takes_tunnel(&self, request: &Request) -> bool {
        self.handler.takes_tunnel(request)
    }

    fn routes(&self) -> &[String] {
        self.handler.routes()
    }

    fn handle_routed(&self, request: &Request, peer: &Peer) -> (HandlerResponse, usize) {
        let (reply, route) = self.handler.handle_routed(request, peer);
        let path = path_of(request.path().unwrap_or_default());
        let links = self.links.get(path).filter(|_| request.method() == "GET");
        let Some(links) = links.cloned() else {
            return (reply, route);
        };
        let hinted = match reply {
            HandlerResponse::Now(answer) => linked(answer, &links).into(),
            HandlerResponse::After(span, later) | HandlerResponse::Hinted(_, span, later) => {
                let hint = early_hints(&links);
                HandlerResponse::Hinted(hint, span, Box::new(move || linked(later(), &links)))
            }
            HandlerResponse::Task(task) => HandlerResponse::Task(Box::new(move |mut exchange| {
                exchange.outgoing.hint(early_hints(&links));
                task(exchange);
            })),
        };
        (hinted, route)
    }
}

/// A 103 (Early Hints) response with these links (RFC 8297).
fn early_hints(links: &[String]) -> Response {
    let hint = Response::new(103);
    links
        .iter()
        .fold(hint, |hint, link| hint.with("link", link))
}

fn linked(answer: FullResponse, links: &[String]) -> FullResponse {
    if !(200..300).contains(&answer.response.status()) {
        return answer;
    }
    links
        .iter()
        .fold(answer, |answer, link| answer.with("link", link))
}
