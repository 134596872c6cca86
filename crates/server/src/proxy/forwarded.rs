//! List fields that proxies extend, as clients send them: `Forwarded` (RFC 7239 §4), `X-Forwarded-For`, `Via` (RFC 9110
//! §7.6.3).
//!
//! Owns the syntax that a list must have before anything is appended to it. A list with an open quote, for example,
//! would hide what follows.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Splits a token off the front; `None` without one.
fn token(text: &str) -> Option<&str> {
    let len = text.bytes().take_while(|byte| is_token_byte(*byte)).count();
    text.get(len..).filter(|_| len > 0)
}

/// Splits a quoted string off the front, after its opening quote (RFC 9110 §5.6.4).
fn quoted(text: &str) -> Option<&str> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if !(byte == b'\t' || byte == b' ' || byte.is_ascii_graphic()) => return None,
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

/// Whether this is a list of forwarded elements, each of `name=value` pairs.
pub(super) fn is_forwarded(list: &str) -> bool {
    let mut rest = list;
    loop {
        let value = token(rest).and_then(|rest| rest.strip_prefix('='));
        let after = value.and_then(|value| match value.strip_prefix('"') {
            Some(open) => quoted(open),
            None => token(value),
        });
        let Some(after) = after else {
            return false;
        };
        let after = after.trim_ascii_start();
        if after.is_empty() {
            return true;
        }
        let Some(next) = after.strip_prefix([';', ',']) else {
            return false;
        };
        rest = next.trim_ascii_start();
    }
}

/// Whether this is a list of IP addresses, with or without ports.
pub(super) fn is_addresses(list: &str) -> bool {
    list.split(',').map(str::trim_ascii).all(|element| {
        let bare = element
            .strip_prefix('[')
            .and_then(|it| it.strip_suffix(']'));
        element.parse::<IpAddr>().is_ok()
            || element.parse::<SocketAddr>().is_ok()
            || bare.is_some_and(|bare| bare.parse::<Ipv6Addr>().is_ok())
    })
}

/// Whether this is a list of protocols and names; comments are not accepted, since they can contain anything.
pub(super) fn is_via(list: &str) -> bool {
    let is_word = |word: &str| {
        let is_part = |byte: u8| is_token_byte(byte) || b"/:[]".contains(&byte);
        !word.is_empty() && word.bytes().all(is_part)
    };
    list.split(',').map(str::trim_ascii).all(|element| {
        let mut words = element.split_ascii_whitespace();
        words.by_ref().take(2).filter(|word| is_word(word)).count() == 2 && words.next().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::{is_addresses, is_forwarded, is_via};

    #[test]
    fn rfc7239_4_malformed_forwarded_lists_are_detected() {
        for good in [
            "for=192.0.2.1",
            "For=\"[2001:db8::1]:47011\";proto=https;by=203.0.113.43",
            "for=192.0.2.43, for=\"a, b; c=\\\"\"",
            "for=_hidden;host=a,for=unknown",
        ] {
            assert!(is_forwarded(good), "{good}");
        }
        for bad in [
            "",
            "for",
            "for=",
            "for=\"1.2.3.4",
            "for=\"1.2.3.4\\\"",
            "for=1.2.3.4,",
            "for=1.2.3.4;",
            "for=2001:db8::1",
            "for=a b=c",
            "=a",
            "for=\"caf\u{e9}\"",
        ] {
            assert!(!is_forwarded(bad), "{bad}");
        }
    }

    #[test]
    fn malformed_lists_of_addresses_and_of_proxies_are_detected() {
        assert!(is_addresses(
            "192.0.2.1, 2001:db8::1,[2001:db8::1], [2001:db8::1]:80, 192.0.2.1:80"
        ));
        for bad in ["", "unknown", "1.2.3.4,", "1.2.3.4\", 127.0.0.1", "a"] {
            assert!(!is_addresses(bad), "{bad}");
        }
        assert!(is_via("1.1 before, HTTP/2 [::1]:80"));
        for bad in [
            "",
            "1.1",
            "1.1 a (comment",
            "1.1 a (b)",
            "1.1 \"a",
            "1.1 a,",
        ] {
            assert!(!is_via(bad), "{bad}");
        }
    }
}
