use super::*;

/// Each byte at each position of texts of up to three words.
#[test]
fn each_byte_is_permitted_wherever_it_stands() {
    for len in 0..=24 {
        let plain = vec![b'a'; len];
        assert!(is_value(&plain));
        assert_eq!(is_visible(&plain), len > 0);
        for at in 0..len {
            for byte in 0..=u8::MAX {
                let mut text = plain.clone();
                text[at] = byte;
                let is_control = byte.is_ascii_control() && byte != b'\t';
                assert_eq!(is_value(&text), !is_control, "{byte} at {at} of {len}");
                let is_graphic = byte.is_ascii_graphic();
                assert_eq!(is_visible(&text), is_graphic, "{byte} at {at} of {len}");
                let is_mark_or_letter =
                    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
                assert_eq!(
                    is_token(&text),
                    is_mark_or_letter,
                    "{byte} at {at} of {len}"
                );
                let is_lower = is_mark_or_letter && !byte.is_ascii_uppercase();
                assert_eq!(is_name(&text), is_lower, "{byte} at {at} of {len}");
            }
        }
    }
    assert!(!is_token(b"") && !is_name(b""));
}

/// RFC 3986 §3.2.2: unreserved characters and delimiters.
#[test]
fn rfc3986_3_2_2_a_host_has_unreserved_characters_and_delimiters() {
    for byte in 0..=u8::MAX {
        let expected = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte);
        assert_eq!(is_host(byte), expected, "{byte}");
    }
}
