//! Conditional requests (RFC 9110 §13).
//!
//! Owns the meaning and precedence of conditions. An invalid date is ignored; an invalid list of tags matches nothing.

use std::time::Duration;

use lastbyte_http3::Fields;

use super::validator::{EntityTag, parse_date};

/// The result of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All true: continue.
    Proceed,
    /// 304: the client has it already.
    NotModified,
    /// 412: a precondition failed.
    Failed,
}

/// Evaluates the conditions in the order of §13.2.2. `is_read` is whether the method is `GET` or `HEAD`.
pub fn evaluate(
    fields: &Fields,
    etag: Option<&EntityTag>,
    modified: Option<Duration>,
    is_read: bool,
) -> Verdict {
    let modified = modified.map(|modified| modified.as_secs());
    let date = |name: &str| parse_date(fields.get(name)?);
    if fields.get("if-match").is_some() {
        // §13.1.1: strong comparison.
        if !any(fields, "if-match", etag, EntityTag::matches_strongly) {
            return Verdict::Failed;
        }
    } else if let (Some(limit), Some(modified)) = (date("if-unmodified-since"), modified)
        && modified > limit
    {
        return Verdict::Failed;
    }
    let has_it = if fields.get("if-none-match").is_some() {
        // §13.1.2: weak comparison.
        any(fields, "if-none-match", etag, EntityTag::matches_weakly)
    } else {
        // §13.1.3: the date is ignored for other methods.
        let dates = date("if-modified-since").zip(modified);
        is_read && dates.is_some_and(|(limit, modified)| modified <= limit)
    };
    match (has_it, is_read) {
        (false, _) => Verdict::Proceed,
        (true, true) => Verdict::NotModified,
        (true, false) => Verdict::Failed,
    }
}

/// Whether a tag of the field matches; `*` matches any.
fn any(
    fields: &Fields,
    name: &str,
    etag: Option<&EntityTag>,
    matches: fn(&EntityTag, &EntityTag) -> bool,
) -> bool {
    let mut text = Vec::new();
    fields.join(name, ", ", &mut text);
    if text.trim_ascii() == b"*" {
        return true;
    }
    let tags = EntityTag::parse_list(&text).unwrap_or_default();
    etag.is_some_and(|etag| tags.iter().any(|tag| matches(tag, etag)))
}

/// Whether the condition `If-Range` is true (§13.1.5): by a strong tag, or by the exact date of the last change, if
/// that is long enough ago to be a strong validator (§8.8.2.2).
pub fn if_range(
    condition: &[u8],
    etag: Option<&EntityTag>,
    modified: Option<Duration>,
    now: Duration,
) -> bool {
    let condition = condition.trim_ascii();
    if condition.starts_with(b"\"") || condition.starts_with(b"W/") {
        let Some(tags) = EntityTag::parse_list(condition) else {
            return false;
        };
        let ([tag], Some(etag)) = (tags.as_slice(), etag) else {
            return false;
        };
        return tag.matches_strongly(etag);
    }
    parse_date(condition)
        .zip(modified)
        .is_some_and(|(date, modified)| {
            date == modified.as_secs() && now.as_secs() > modified.as_secs()
        })
}
