//! Field values with quoted strings (RFC 9110 §5.6.4).

/// The parts between the marks outside of quoted strings, without whitespace around them. Empty parts are left out
/// (RFC 9110 §5.6.1.2).
pub(crate) fn split_unquoted(text: &str, mark: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(move |c| {
        if is_escaped {
            is_escaped = false;
        } else {
            is_escaped = is_quoted && c == '\\';
            is_quoted ^= c == '"';
        }
        c == mark && !is_quoted
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// The value of a token or of a quoted string, without quotes and the backslashes of quoted pairs.
pub(crate) fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let Some(inner) = inner else {
        return text.to_owned();
    };
    let mut characters = inner.chars();
    core::iter::from_fn(|| match characters.next()? {
        '\\' => characters.next(),
        other => Some(other),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9110_5_6_4_quoted_pairs_do_not_end_a_string() {
        for (text, expected) in [
            ("a, b ,,c", &["a", "b", "c"][..]),
            (r#"a="x,y", b"#, &[r#"a="x,y""#, "b"]),
            (r#"a="x\",y", b"#, &[r#"a="x\",y""#, "b"]),
            (r#"a="x\\", b"#, &[r#"a="x\\""#, "b"]),
            (r"a\, b", &[r"a\", "b"]),
            ("", &[]),
        ] {
            let parts: Vec<&str> = split_unquoted(text, ',').collect();
            assert_eq!(parts, expected, "{text}");
        }
        for (text, expected) in [
            (" token ", "token"),
            (r#""a b""#, "a b"),
            (r#""a\"\\\b""#, r#"a"\b"#),
            ("\"", "\""),
            ("", ""),
        ] {
            assert_eq!(unquoted(text), expected, "{text}");
        }
    }
}
