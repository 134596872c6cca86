//! Cookies (RFC 6265 with the rules of browsers, draft-ietf-httpbis-rfc6265bis), and the Netscape cookie file of curl, wget
//! and browser extensions.
//!
//! | module | responsibility |
//! |---|---|
//! | `cookie` | one cookie: parsing, and the requests it is sent with |
//! | `file` | the Netscape file format |
//!
//! Opens no files and reads no clock; times are seconds since the Unix epoch. There is no public suffix list: a server
//! cannot set cookies for a domain of one label, but a server under `co.uk` can set cookies for all of `co.uk`.

mod cookie;
mod file;

use core::time::Duration;

use self::cookie::{Cookie, is_secure};
use crate::url::Url;

/// The most cookies kept for one domain, and in total; the oldest are removed first.
const PER_DOMAIN_MAX: usize = 180;
const COOKIES_MAX: usize = 3000;
/// The most cookies sent with one request, and their total length in bytes; the same as curl.
const SENT_MAX: usize = 150;
const SENT_LEN_MAX: usize = 8190;

/// A set of cookies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieJar {
    /// The cookies in the order of creation.
    cookies: Vec<Cookie>,
}

impl CookieJar {
    /// Adds the value of a `set-cookie` field of a response to a request for `url`. An invalid cookie, or one that this
    /// server may not set, is ignored.
    pub fn put(&mut self, url: &Url, value: &str, now: Duration) {
        if let Some(cookie) = Cookie::parse(url, value, now.as_secs()) {
            let is_secure = is_secure(url);
            // A secure cookie must not be shadowed over an insecure connection (RFC 6265bis §5.7, step 9).
            let is_shadowing = |other: &Cookie| !is_secure && cookie.shadows(other);
            if !self.cookies.iter().any(is_shadowing) {
                self.insert(cookie, now.as_secs());
            }
        }
    }

    fn insert(&mut self, cookie: Cookie, now_s: u64) {
        self.cookies.retain(|other| !other.has_expired(now_s));
        let index = self.cookies.iter().position(|other| other.is_same(&cookie));
        if cookie.has_expired(now_s) {
            if let Some(index) = index {
                self.cookies.remove(index);
            }
            return;
        }
        if let Some(index) = index {
            self.cookies[index] = cookie;
            return;
        }
        let mut of_domain = self.cookies.iter().enumerate();
        let of_domain: Vec<usize> = of_domain
            .by_ref()
            .filter(|(_, other)| other.domain == cookie.domain)
            .map(|(index, _)| index)
            .collect();
        if of_domain.len() >= PER_DOMAIN_MAX {
            self.cookies.remove(of_domain[0]);
        } else if self.cookies.len() >= COOKIES_MAX {
            self.cookies.remove(0);
        }
        self.cookies.push(cookie);
    }

    /// The value of the `cookie` field of a request for `url`; `None` if no cookie matches.
    #[must_use]
    pub fn header(&self, url: &Url, now: Duration) -> Option<String> {
        let is_secure = is_secure(url);
        let matching = self.cookies.iter();
        let mut matching: Vec<&Cookie> = matching
            .filter(|cookie| cookie.is_for(url, is_secure) && !cookie.has_expired(now.as_secs()))
            .collect();
        // Longer paths first, then older cookies (RFC 6265 §5.4).
        matching.sort_by_key(|cookie| core::cmp::Reverse(cookie.path.len()));
        let mut text = String::new();
        for cookie in matching.into_iter().take(SENT_MAX) {
            let joint = if text.is_empty() { "" } else { "; " };
            let len = joint.len() + cookie.name.len() + 1 + cookie.value.len();
            if text.len() + len > SENT_LEN_MAX {
                break;
            }
            text.extend([joint, &cookie.name, "=", &cookie.value]);
        }
        (!text.is_empty()).then_some(text)
    }

    /// The number of cookies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cookies.len()
    }

    /// Whether there are no cookies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Removes session cookies.
    pub fn end_session(&mut self) {
        self.cookies.retain(|cookie| cookie.expires_s.is_some());
    }

    /// Adds the cookies of a file in Netscape format. Invalid lines are ignored; returns their number.
    pub fn read(&mut self, text: &str, now: Duration) -> usize {
        let mut invalid = 0;
        for line in text.lines() {
            match file::parse(line) {
                file::Line::Cookie(cookie) => self.insert(cookie, now.as_secs()),
                file::Line::Comment => {}
                file::Line::Invalid => invalid += 1,
            }
        }
        invalid
    }

    /// The cookies in Netscape format, without expired ones.
    #[must_use]
    pub fn to_text(&self, now: Duration) -> String {
        let mut text = file::HEAD.to_owned();
        for cookie in &self.cookies {
            if !cookie.has_expired(now.as_secs()) {
                file::write(cookie, &mut text);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests;
