//! Request targets (RFC 9110 §7.1): valid authorities and paths.
//!
//! Owns only the syntax, for all versions of HTTP; the application decides which authorities it serves.

use core::net::Ipv6Addr;

use super::text;

#[cfg(test)]
mod tests;

/// Returns whether `text` is `uri-host [ ":" port ]` (RFC 3986 §3.2.2, §3.2.3): a registered name, an IPv4 address, or an
/// IPv6 address in brackets, and a port below 65536 or none. User information, zone identifiers and future versions of IP
/// are not valid here (RFC 9110 §4.2.4).
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
pub fn is_path(text: &str, method: &str) -> bool {
    text::is_visible(text.as_bytes()) && is_visible_path(text.as_bytes(), method.as_bytes())
}

/// The same for visible characters.
pub(super) fn is_visible_path(text: &[u8], method: &[u8]) -> bool {
    let is_of_server = text == b"*" && method == b"OPTIONS";
    (text.first() == Some(&b'/') || is_of_server) && !text.contains(&b'#')
}
