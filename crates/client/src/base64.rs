//! Base64 encoding (RFC 4648 §4), for credentials (RFC 7617) and pinned keys (RFC 7469 §2.4).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes in Base64.
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) as usize & 63;
            let is_there = place <= three.len();
            text.push(if is_there {
                char::from(ALPHABET[index])
            } else {
                '='
            });
        }
    }
    text
}

/// The value of an `authorization` field for credentials `user:password` (RFC 7617 §2). A name alone has an empty password.
pub(crate) fn basic(credentials: &str) -> String {
    let colon = if credentials.contains(':') { "" } else { ":" };
    format!(
        "Basic {}",
        base64(format!("{credentials}{colon}").as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc4648_10_test_vectors() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }
}
