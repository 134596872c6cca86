//! Cookies (RFC 6265, as browsers have it: draft-ietf-httpbis-rfc6265bis), and the file that curl, wget and browsers'
//! extensions keep them in.
//!
//! | module | owns |
//! |---|---|
//! | `cookie` | one cookie: what servers set, and to whom it is sent |
//! | `file` | Netscape's file format |
//!
//! Owns which cookies are kept and sent. Never: opens a file, or reads a clock; times are seconds since the Unix epoch. There
//! is no list of public suffixes here: a server cannot set cookies for a domain of one label, but one under `co.uk` can for
//! all of `co.uk`.

mod cookie;
mod file;

use core::time::Duration;

use self::cookie::{Cookie, is_secure};
use crate::url::Url;

/// How many are kept of one domain, and of all; the oldest give way.
const PER_DOMAIN_MAX: usize = 180;
const COOKIES_MAX: usize = 3000;
/// How many are sent with one request, and how many bytes, as curl has it.
const SENT_MAX: usize = 150;
const SENT_LEN_MAX: usize = 8190;

/// Cookies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieJar {
    /// In the order in which they were made.
    cookies: Vec<Cookie>,
}

impl CookieJar {
    /// Takes in the value of a `set-cookie` of a response to a request for `url`. What is no cookie, or none that this server
    /// may set, is as if it was not there.
    pub fn put(&mut self, url: &Url, value: &str, now: Duration) {
        if let Some(cookie) = Cookie::parse(url, value, now.as_secs()) {
            let is_secure = is_secure(url);
            // What was set over a secure way is not to be overlaid over another (RFC 6265bis §5.7, step 9).
            let is_shadowing = |other: &Cookie| !is_secure && cookie.shadows(other);
            if !self.cookies.iter().any(is_shadowing) {
                self.insert(cookie, now.as_secs());
            }
        }
    }

    fn insert(&mut self, cookie: Cookie, now_s: u64) {
        self.cookies.retain(|other| !other.has_expired(now_s));
        let place = self.cookies.iter().position(|other| other.is_same(&cookie));
        if cookie.has_expired(now_s) {
            if let Some(place) = place {
                self.cookies.remove(place);
            }
            return;
        }
        if let Some(place) = place {
            self.cookies[place] = cookie;
            return;
        }
        let mut of_domain = self.cookies.iter().enumerate();
        let of_domain: Vec<usize> = of_domain
            .by_ref()
            .filter(|(_, other)| other.domain == cookie.domain)
            .map(|(place, _)| place)
            .collect();
        if of_domain.len() >= PER_DOMAIN_MAX {
            self.cookies.remove(of_domain[0]);
        } else if self.cookies.len() >= COOKIES_MAX {
            self.cookies.remove(0);
        }
        self.cookies.push(cookie);
    }

    /// The value of the `cookie` field of a request for `url`; `None` if there are none for it.
    #[must_use]
    pub fn header(&self, url: &Url, now: Duration) -> Option<String> {
        let is_secure = is_secure(url);
        let fitting = self.cookies.iter();
        let mut fitting: Vec<&Cookie> = fitting
            .filter(|cookie| cookie.is_for(url, is_secure) && !cookie.has_expired(now.as_secs()))
            .collect();
        // Longer paths first, then those that were made first (RFC 6265 §5.4).
        fitting.sort_by_key(|cookie| core::cmp::Reverse(cookie.path.len()));
        let mut text = String::new();
        for cookie in fitting.into_iter().take(SENT_MAX) {
            let joint = if text.is_empty() { "" } else { "; " };
            let len = joint.len() + cookie.name.len() + 1 + cookie.value.len();
            if text.len() + len > SENT_LEN_MAX {
                break;
            }
            text.extend([joint, &cookie.name, "=", &cookie.value]);
        }
        (!text.is_empty()).then_some(text)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cookies.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Those that end with the session end now.
    pub fn end_session(&mut self) {
        self.cookies.retain(|cookie| cookie.expires_s.is_some());
    }

    /// Takes in what is in a file of Netscape's format. Returns how many lines are none of it; they are left out.
    pub fn read(&mut self, text: &str, now: Duration) -> usize {
        let mut wrong = 0;
        for line in text.lines() {
            match file::parse(line) {
                file::Line::Cookie(cookie) => self.insert(cookie, now.as_secs()),
                file::Line::Comment => {}
                file::Line::Invalid => wrong += 1,
            }
        }
        wrong
    }

    /// As such a file; what has ended is left out.
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
