//! Request targets (RFC 9110 §7.1): valid authorities and paths.
//!
//! Owns only the syntax, for all versions of HTTP; the application decides which authorities it serves.

use core::net::Ipv6Addr;

use super::text;

/// Returns whether `text` is `uri-host [ ":" port ]` (RFC 3986 §3.2.2, §3.2.3): a registered name, an IPv4 address, or an
/// IPv6 address in brackets, and a port below 65536 or none. User information, zone identifiers and future versions of IP
/// are not valid here (RFC 9110 §4.2.4).
#[must_use]
pub fn is_authority(text: &[u8]) -> bool {
    let host_end = if text.first() == Some(&b'[') {
        text.iter()
            .position(|byte| *byte == b']')
            .map_or(0, |at| at + 1)
    } else {
        let colon = text.iter().position(|byte| *byte == b':');
        colon.unwrap_or(text.len())
    };
    let (host, rest) = text.split_at_checked(host_end).unwrap_or_default();
    is_host(host) && (rest.is_empty() || rest.strip_prefix(b":").is_some_and(is_port))
}

fn is_host(host: &[u8]) -> bool {
    if let Some(literal) = host.strip_prefix(b"[") {
        let address = literal.strip_suffix(b"]");
        return address
            .and_then(|address| core::str::from_utf8(address).ok()?.parse::<Ipv6Addr>().ok())
            .is_some();
    }
    let mut bytes = host.iter();
    while let Some(byte) = bytes.next() {
        let is_valid = match byte {
            b'%' => {
                let mut is_hex = || bytes.next().is_some_and(u8::is_ascii_hexdigit);
                is_hex() && is_hex()
            }
            byte => text::is_host(*byte),
        };
        if !is_valid {
            return false;
        }
    }
    !host.is_empty()
}

fn is_port(port: &[u8]) -> bool {
    // RFC 3986 §3.2.3: a port may be empty.
    port.is_empty() || is_port_number(port)
}

fn is_port_number(port: &[u8]) -> bool {
    port.iter().all(u8::is_ascii_digit)
        && core::str::from_utf8(port).is_ok_and(|port| port.parse::<u16>().is_ok())
}

/// Returns whether `text` is an authority with a port above 0, as CONNECT requires (RFC 9110 §9.3.6).
pub(super) fn is_authority_with_port(text: &[u8]) -> bool {
    let colon = text.iter().rposition(|byte| *byte == b':');
    let port = colon.and_then(|at| text.get(at + 1..)).unwrap_or_default();
    is_authority(text) && is_port_number(port) && port.iter().any(|digit| *digit != b'0')
}

/// Returns whether `text` is a valid target for this method: a path that starts with `/`, with an optional query but no
/// fragment, or `*` with OPTIONS (RFC 9110 §7.1, RFC 9114 §4.3.1).
#[must_use]
pub fn is_path(text: &str, method: &str) -> bool {
    text::is_visible(text.as_bytes()) && is_visible_path(text.as_bytes(), method.as_bytes())
}

/// The same for visible characters.
pub(super) fn is_visible_path(text: &[u8], method: &[u8]) -> bool {
    let is_of_server = text == b"*" && method == b"OPTIONS";
    (text.first() == Some(&b'/') || is_of_server) && !text.contains(&b'#')
}

#[cfg(test)]
mod tests {
    use super::{is_authority, is_authority_with_port, is_path};

    #[test]
    fn rfc3986_3_2_an_authority_is_a_host_with_an_optional_port() {
        for good in [
            "example.com",
            "example.com:443",
            "EXAMPLE.com:",
            "192.0.2.1:8080",
            "[2001:db8::1]",
            "[::ffff:192.0.2.1]:443",
            "xn--bcher-kva.example",
            "a_b.example",
            "caf%C3%A9.example",
            "a!$&'()*+,;=~b",
        ] {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            ":443",
            "user@example.com",
            "a/b?c#d",
            "a b",
            "a\tb",
            "a\"b",
            "a\\b",
            "a<b",
            "example.com:443:443",
            "example.com:port",
            "example.com:65536",
            "example.com:-1",
            "example.com:+1",
            "a%",
            "a%2",
            "a%zz",
            "2001:db8::1",
            "[2001:db8::1",
            "[::1%25eth0]",
            "[v1.a]",
            "[example.com]",
            "[::1]x",
            "[::1]]",
            "[]",
            "caf\u{e9}",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
        assert!(is_authority_with_port(b"example.com:443"));
        for bad in [
            "example.com",
            "example.com:",
            "example.com:0",
            "example.com:00",
            "[2001:db8::1]",
            "a@b:443",
        ] {
            assert!(!is_authority_with_port(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn rfc9114_4_3_1_a_path_starts_with_a_slash_and_has_no_fragment() {
        for good in ["/", "/a/../b?c=/d?e", "//a", "/%2e%2e/{x}"] {
            assert!(is_path(good, "GET"), "{good}");
        }
        for bad in [
            "",
            "*",
            "a",
            "-x",
            "?a",
            "/a#b",
            "/a b",
            "/\u{e9}",
            "http://a/",
        ] {
            assert!(!is_path(bad, "GET"), "{bad}");
        }
        assert!(is_path("*", "OPTIONS") && !is_path("*a", "OPTIONS"));
    }
}
