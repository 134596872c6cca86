//! The static table (RFC 9204 §3.1, Appendix A) and its lookup.
//!
//! Names are found by their hash in a table that is computed at compile time; entries with the same name are chained.

use super::table::hash;

#[cfg(test)]
mod tests;

/// Names and values, by their index.
pub(super) const ENTRIES: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    (
        "strict-transport-security",
        "max-age=31536000; includesubdomains",
    ),
    (
        "strict-transport-security",
        "max-age=31536000; includesubdomains; preload",
    ),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    (
        "content-security-policy",
        "script-src 'none'; object-src 'none'; base-uri 'none'",
    ),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// No entry.
const NONE: u8 = 0xff;
const SLOTS: usize = 256;

struct Index {
    /// Open addressing by the hash of a name: its first entry.
    slots: [u8; SLOTS],
    /// By entry: the next one of the same name.
    next: [u8; 99],
}

static INDEX: Index = index();

const fn index() -> Index {
    let mut index = Index {
        slots: [NONE; SLOTS],
        next: [NONE; 99],
    };
    // From the last entry, so that each chain starts with its lowest index.
    let mut entry = ENTRIES.len();
    while entry > 0 {
        entry -= 1;
        let name = ENTRIES[entry].0.as_bytes();
        let mut slot = hash(name) as usize % SLOTS;
        while index.slots[slot] != NONE
            && !is_same(ENTRIES[index.slots[slot] as usize].0.as_bytes(), name)
        {
            slot = (slot + 1) % SLOTS;
        }
        index.next[entry] = index.slots[slot];
        index.slots[slot] = entry as u8;
    }
    index
}

const fn is_same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The match of a field in the static table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Name and value, at this index.
    Field(u8),
    /// The name only, at this index, the lowest one.
    Name(u8),
    /// None.
    Nothing,
}

/// Looks for a field. `name_hash` is the [`hash`] of its name.
#[inline]
pub(super) fn find(name: &[u8], name_hash: u32, value: &[u8]) -> Found {
    let mut slot = name_hash as usize % SLOTS;
    let first = loop {
        let entry = INDEX.slots[slot];
        if entry == NONE {
            return Found::Nothing;
        }
        if ENTRIES[usize::from(entry)].0.as_bytes() == name {
            break entry;
        }
        slot = (slot + 1) % SLOTS;
    };
    let mut entry = first;
    while entry != NONE {
        if ENTRIES[usize::from(entry)].1.as_bytes() == value {
            return Found::Field(entry);
        }
        entry = INDEX.next[usize::from(entry)];
    }
    Found::Name(first)
}

/// The entry at an index.
#[inline]
pub(super) fn get(index: u64) -> Option<(&'static str, &'static str)> {
    ENTRIES.get(usize::try_from(index).ok()?).copied()
}
