use super::*;

#[test]
fn messages_contain_no_sequences_for_terminals() {
    let message = "a `\u{1b}]0;x\u{7}\u{9b}31m`\r\n\tüb";
    assert_eq!(
        printable(message),
        "a `\\u{1b}]0;x\\u{7}\\u{9b}31m`\\r\n\tüb"
    );
}

/// The only sequences are those of styles.
#[test]
fn styled_texts_contain_no_sequences_of_others() {
    let style = Style::new().bold();
    let texts = [
        (Style::new(), "a\u{1b}[31m\n".to_owned()),
        (style, "\u{9b}31m\u{7f}".to_owned()),
    ];
    let expected = format!("a\\u{{1b}}[31m\n{style}\\u{{9b}}31m\\u{{7f}}{style:#}");
    assert_eq!(styled(&texts), expected);
}

#[test]
fn long_lines_of_errors_lose_their_middle() {
    let short = "a\nb";
    assert_eq!(shortened(short), short);
    let long = format!("`x`: invalid host `{}` (expected a name)", "é".repeat(5000));
    let text = shortened(&long);
    assert!(text.starts_with("`x`: invalid host `éé"), "{text}");
    assert!(text.ends_with("éé` (expected a name)"), "{text}");
    assert!(text.chars().count() < QUOTE_MAX + 50, "{text}");
    let toml = format!(
        "TOML parse error at line 1, column 9\n1 | {}",
        "x".repeat(5000)
    );
    let text = shortened(&toml);
    assert!(
        text.starts_with("TOML parse error at line 1, column 9\n1 | xxx"),
        "{text}"
    );
    assert!(text.chars().count() < QUOTE_MAX + 50, "{text}");
    let redirect = format!(
        "{0}: invalid redirect to `{0}{1}`: invalid port `{1}` (expected 1 to 65535)",
        "http://h/".repeat(300),
        "9".repeat(5000)
    );
    for line in [redirect.clone(), format!("a ` {redirect}")] {
        let text = shortened(&line);
        assert!(text.contains(": invalid redirect to `http://"), "{text}");
        assert!(text.ends_with("99` (expected 1 to 65535)"), "{text}");
        assert!(text.chars().count() < LINE_MAX, "{text}");
    }
    let list = format!("unknown key `a` (expected {})", "key, ".repeat(100));
    assert_eq!(shortened(&list), list);
}
