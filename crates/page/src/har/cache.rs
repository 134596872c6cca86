//! Whether a repeat view finds a response in the cache (RFC 9111).

use super::http_date;

/// Whether a private cache may use the response without asking the server, right after it was received: it may be stored
/// (RFC 9111 §3), and is fresh (§4.2).
///
/// Without an explicit lifetime a tenth of the time since the last change is taken (§4.2.2), at most a day.
pub(super) fn is_fresh<'a>(
    method: &str,
    status: u16,
    header: &impl Fn(&str) -> Option<&'a str>,
) -> bool {
    // Statuses that are cacheable by default (RFC 9110 §15.1), without 206, which no browser reuses as a whole.
    let is_default = matches!(
        status,
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    );
    let control = header("cache-control").unwrap_or("").to_ascii_lowercase();
    let directive = |name: &str| {
        control.split(',').map(str::trim).find_map(|directive| {
            let (key, value) = directive.split_once('=').unwrap_or((directive, ""));
            (key.trim() == name).then(|| value.trim().trim_matches('"').to_owned())
        })
    };
    if method != "GET"
        || !is_default
        || directive("no-store").is_some()
        || directive("no-cache").is_some()
        || header("vary").is_some_and(|vary| vary.contains('*'))
    {
        return false;
    }
    let seconds = |text: &str| text.trim().parse::<i64>().ok();
    let age = header("age").and_then(seconds).unwrap_or(0);
    let date = header("date").and_then(http_date);
    let lifetime = match directive("max-age") {
        // An invalid lifetime means a stale response (§4.2.1).
        Some(value) => seconds(&value).unwrap_or(0),
        None => match (header("expires"), date) {
            (Some(expires), Some(date)) => http_date(expires).map_or(0, |expires| expires - date),
            (Some(_), None) => 0,
            (None, date) => header("last-modified")
                .and_then(http_date)
                .zip(date)
                .map_or(0, |(changed, date)| ((date - changed) / 10).min(86_400)),
        },
    };
    lifetime > age
}
