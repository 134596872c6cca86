//! The Netscape cookie file, as written and read by curl: one cookie per line, fields separated by tabs.

use core::fmt::Write as _;

use super::cookie::Cookie;

pub(super) const HEAD: &str = "# Netscape HTTP Cookie File\n\
                               # https://curl.se/docs/http-cookies.html\n\
                               # This file is read and written by lastbyte and curl.\n\n";

/// The prefix of `httponly` cookies.
const HTTP_ONLY: &str = "#HttpOnly_";

pub(super) enum Line {
    Cookie(Cookie),
    Comment,
    Invalid,
}

pub(super) fn parse(line: &str) -> Line {
    let (line, is_http_only) = match line.strip_prefix(HTTP_ONLY) {
        Some(line) => (line, true),
        None => (line, false),
    };
    if line.trim().is_empty() || (line.starts_with('#') && !is_http_only) {
        return Line::Comment;
    }
    cookie(line, is_http_only).map_or(Line::Invalid, Line::Cookie)
}

fn cookie(line: &str, is_http_only: bool) -> Option<Cookie> {
    let fields: Vec<&str> = line.split('\t').collect();
    // The last tab may be missing if the value is empty.
    let (fields, value) = match fields.split_first_chunk::<6>()? {
        (fields, []) => (fields, ""),
        (fields, [value]) => (fields, *value),
        _ => return None,
    };
    // Control characters, which `set-cookie` does not permit, would be sent in a header.
    let value = value.trim_end_matches('\r');
    let is_plain = |text: &str| !text.chars().any(char::is_control);
    if !fields.iter().all(|field| is_plain(field)) || !is_plain(value) {
        return None;
    }
    let [domain, is_for_subdomains, path, is_secure, expires, name] = *fields;
    // Some programs write other capitals, and dates with a fraction.
    let flag = |text: &str| match &*text.to_ascii_uppercase() {
        "TRUE" => Some(true),
        "FALSE" => Some(false),
        _ => None,
    };
    let expires = expires.split_once('.').map_or(expires, |(whole, _)| whole);
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    let is_valid = !domain.is_empty() && !name.is_empty() && path.starts_with('/');
    let expires_s: u64 = expires.parse().ok()?;
    let cookie = Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: domain.to_ascii_lowercase(),
        is_for_subdomains: flag(is_for_subdomains)?,
        path: path.to_owned(),
        is_secure: flag(is_secure)?,
        is_http_only,
        expires_s: (expires_s > 0).then_some(expires_s),
    };
    is_valid.then_some(cookie)
}

pub(super) fn write(cookie: &Cookie, text: &mut String) {
    let flag = |is: bool| if is { "TRUE" } else { "FALSE" };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{}{}{}\t{}\t{}\t{}\t{}\t{}\t{}",
        if cookie.is_http_only { HTTP_ONLY } else { "" },
        if cookie.is_for_subdomains { "." } else { "" },
        cookie.domain,
        flag(cookie.is_for_subdomains),
        cookie.path,
        flag(cookie.is_secure),
        cookie.expires_s.unwrap_or(0),
        cookie.name,
        cookie.value,
    );
}
