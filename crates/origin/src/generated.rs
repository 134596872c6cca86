//! Generated objects: `/32k`, `/1m`, `/400kB`, and responses with a status: `/status/503`.

use std::sync::OnceLock;

use lastbyte_http3::{Request, Response};
use lastbyte_quic::stream::{Source, SourceError};

use super::{
    handler::{FullResponse, Handler, HandlerResponse, Peer},
    representation::{Boundary, Representation, validator::EntityTag},
};

#[cfg(test)]
mod tests;

/// The largest object, in bytes.
pub const LEN_MAX: u64 = 1 << 40;

/// A prime, so that a piece of the size of a packet or a page that is misplaced does not match.
const PERIOD: usize = 65_521;

/// The methods of resources that are only read (RFC 9110 §9).
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// A handler with an object for each size, and a response for each status.
#[derive(Clone, Copy, Debug, Default)]
pub struct Objects;

impl Handler for Objects {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        if let Some(response) = unless_read(request.method()) {
            return response.into();
        }
        let path = request.path().unwrap_or_default();
        let path = path.split(['?', '#']).next().unwrap_or_default();
        // Nothing in an object looks like a boundary of zeros.
        let response = respond(request, path, Boundary::default);
        if request.method() == "HEAD" {
            return response.head_only().into();
        }
        response.into()
    }
}

/// The response to a request for a generated object or status, by its path. `boundary` is that of several ranges.
pub fn respond(request: &Request, path: &str, boundary: impl FnOnce() -> Boundary) -> FullResponse {
    if let Some(status) = path.strip_prefix("/status/") {
        return status_answer(status);
    }
    match size_of_path(path) {
        Some(len) => {
            let source = Box::new(Generated { len });
            let object = object(len).prepare();
            // It has no date to compare with the time.
            object.answer(source, request, core::time::Duration::ZERO, boundary)
        }
        None => FullResponse::text(404, "Not found\n"),
    }
}

/// The response to a request with a method other than `GET` and `HEAD` for a resource that is only read.
pub fn unless_read(method: &str) -> Option<FullResponse> {
    match method {
        "GET" | "HEAD" => None,
        "OPTIONS" => Some(FullResponse::bare(204).with("allow", ALLOW)),
        _ => {
            let text = "Method not allowed (expected GET, HEAD or OPTIONS)\n";
            Some(FullResponse::text(405, text).with("allow", ALLOW))
        }
    }
}

/// The size in a path: digits and a unit. `kB`, `MB` and `GB` are powers of 1000, `KiB`, `MiB` and `GiB` of 1024, as
/// everywhere (`docs/units.md`), and so are `k`, `m` and `g` alone, as in curl.
fn size_of_path(path: &str) -> Option<u64> {
    let text = path.strip_prefix('/')?;
    let unit_at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let unit: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "k" | "K" | "KiB" => 1 << 10,
        "m" | "M" | "MiB" => 1 << 20,
        "g" | "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    let len = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    (len <= LEN_MAX).then_some(len)
}

/// A generated object. Its content never changes.
fn object(len: u64) -> Representation {
    Representation {
        len,
        content_type: "application/octet-stream",
        coding: None,
        etag: Some(EntityTag::strong(&format!("generated-{len:x}"))),
        modified: None,
        varies: false,
    }
}

/// A response with a status chosen by the client, from 200 on.
fn status_answer(text: &str) -> FullResponse {
    match text.parse::<u16>() {
        Ok(status @ (204 | 304)) => FullResponse::bare(status),
        // It has no body, and no length either (RFC 9110 §15.3.6).
        Ok(205) => FullResponse {
            response: Response::new(205).with("content-length", "0"),
            body: None,
        },
        Ok(status @ 200..=599) => FullResponse::text(status, format!("Status {status}\n")),
        _ => FullResponse::text(404, "Not found (expected a status from 200 to 599)\n"),
    }
}

/// Pseudo-random bytes that depend only on the offset.
#[derive(Clone, Copy, Debug)]
struct Generated {
    len: u64,
}

fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut state = 0x9e37_79b9_u32;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as u8
        };
        (0..PERIOD).map(|_| next()).collect()
    })
}

impl Source for Generated {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let pattern = pattern();
        let mut at = (offset % PERIOD as u64) as usize;
        let mut rest = buffer;
        while !rest.is_empty() {
            let len = rest.len().min(PERIOD - at);
            let (now, later) = rest.split_at_mut(len);
            now.copy_from_slice(&pattern[at..at + len]);
            rest = later;
            at = 0;
        }
        Ok(())
    }
}
