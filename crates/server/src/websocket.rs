//! The opening handshake of WebSocket over HTTP/1.1 (RFC 6455 §4), on both sides of a proxy.

use aws_lc_rs::{digest, error::Unspecified, rand};
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The version of the protocol.
pub(crate) const VERSION: &str = "13";
/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A new `sec-websocket-key`.
pub(crate) fn new_key() -> Result<HeaderValue, Unspecified> {
    let mut nonce = [0; 16];
    rand::fill(&mut nonce)?;
    HeaderValue::try_from(base64(&nonce)).map_err(|_| Unspecified)
}

/// The `sec-websocket-accept` for a key (RFC 6455 §4.2.2).
pub fn accept(key: &HeaderValue) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key.as_bytes());
    context.update(GUID);
    base64(context.finish().as_ref())
}

/// Whether a response with status 101 opens a WebSocket for this key (RFC 6455 §4.1): each field exactly once.
pub(crate) fn is_accepted(fields: &HeaderMap, key: &HeaderValue) -> bool {
    let only = |name: HeaderName| {
        let mut values = fields.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    };
    has_token(fields, header::CONNECTION, "upgrade")
        && only(header::UPGRADE).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && only(header::SEC_WEBSOCKET_ACCEPT)
            .is_some_and(|it| it.as_bytes() == accept(key).as_bytes())
}

/// The key of a request that asks for a WebSocket (RFC 6455 §4.2.1), if it is valid and has no body.
pub(crate) fn key_of(fields: &HeaderMap) -> Option<HeaderValue> {
    let mut keys = fields.get_all(header::SEC_WEBSOCKET_KEY).iter();
    let key = keys.next().filter(|_| keys.next().is_none())?;
    // 16 bytes in base64 (RFC 4648 §4).
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let text = key.as_bytes().strip_suffix(b"==")?;
    let is_key = text.len() == 22 && text.iter().all(is_base64);
    let version = fields.get(header::SEC_WEBSOCKET_VERSION)?;
    let has_body = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING]
        .iter()
        .any(|name| fields.contains_key(name));
    let is_upgrade = is_key
        && !has_body
        && version == VERSION
        && has_token(fields, header::CONNECTION, "upgrade")
        && has_token(fields, header::UPGRADE, "websocket");
    is_upgrade.then(|| key.clone())
}

fn has_token(fields: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let lines = fields.get_all(name).iter();
    let mut tokens = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    tokens.any(|it| it.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let of = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = of(0) << 16 | of(1) << 8 | of(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(match DIGITS.get(value as usize) {
                Some(byte) if digit <= three.len() => char::from(*byte),
                _ => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    #[test]
    fn rfc6455_1_3_the_proof_of_a_key_is_that_of_the_example() {
        assert_eq!(accept(&HeaderValue::from_static(KEY)), ACCEPT);
        assert_eq!(base64(b"the sample nonce"), KEY);
        assert_eq!(base64(b"a"), "YQ==");
        assert_eq!(base64(b"ab"), "YWI=");
        assert_ne!(
            new_key().expect("randomness"),
            new_key().expect("randomness")
        );
    }

    #[test]
    fn rfc6455_4_1_a_response_without_upgrade_or_proof_is_not_accepted() {
        let key = HeaderValue::from_static(KEY);
        let valid = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-accept", ACCEPT),
        ];
        assert!(is_accepted(&fields(&valid), &key));
        for missing in 0..3 {
            let mut lines = valid.to_vec();
            lines.remove(missing);
            assert!(!is_accepted(&fields(&lines), &key), "{missing}");
        }
        for more in [("upgrade", "h2c"), ("sec-websocket-accept", ACCEPT)] {
            let lines = [&valid[..], &[more]].concat();
            assert!(!is_accepted(&fields(&lines), &key), "{more:?}");
        }
        let other = HeaderValue::from_static("AAAAAAAAAAAAAAAAAAAAAA==");
        assert!(!is_accepted(&fields(&valid), &other));
    }

    #[test]
    fn rfc6455_4_2_1_requests_with_a_body_or_an_invalid_key_ask_for_no_websocket() {
        let valid = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", KEY),
        ];
        assert_eq!(key_of(&fields(&valid)).expect("a key"), KEY);
        for missing in 0..4 {
            let mut lines = valid.to_vec();
            lines.remove(missing);
            assert_eq!(key_of(&fields(&lines)), None, "{missing}");
        }
        for more in [
            ("content-length", "0"),
            ("transfer-encoding", "chunked"),
            ("sec-websocket-key", KEY),
        ] {
            let lines = [&valid[..], &[more]].concat();
            assert_eq!(key_of(&fields(&lines)), None, "{more:?}");
        }
        for key in ["", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25j*Q=="] {
            let mut lines = valid.to_vec();
            lines[3].1 = key;
            assert_eq!(key_of(&fields(&lines)), None, "{key}");
        }
    }
}
