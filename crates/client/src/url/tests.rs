use super::*;

#[test]
fn addresses_become_what_goes_on_the_wire() {
    for (text, expected) in [
        ("https://example.com", "https://example.com/"),
        ("example.com:443/x", "https://example.com/x"),
        ("HTTPS://Example.COM:8443/X", "https://example.com:8443/X"),
        ("https://[::1]:4433/a?b=c#d", "https://[::1]:4433/a?b=c"),
        ("https://a/b/./c/../d", "https://a/b/d"),
        ("https://a/b/..", "https://a/"),
        ("https://a/../../b/", "https://a/b/"),
        ("https://a//b", "https://a//b"),
        ("https://a/x//", "https://a/x//"),
        ("https://a/b/.", "https://a/b/"),
        ("https://a?q=../x", "https://a/?q=../x"),
        ("https://a/é?ü", "https://a/%C3%A9?%C3%BC"),
        ("https://a#f", "https://a/"),
        ("https://a:/x", "https://a/x"),
    ] {
        let url: Url = text.parse().expect(text);
        assert_eq!(url.to_string(), expected, "{text}");
        assert_eq!(expected.parse::<Url>().expect(expected), url, "{text}");
    }
}

#[test]
fn what_cannot_be_fetched_is_named() {
    for (text, expected) in [
        ("http://a/", UrlError::Scheme("http".to_owned())),
        ("https:///x", UrlError::Host(String::new())),
        ("https://a b/", UrlError::Character(' ')),
        ("https://a/\r\nx", UrlError::Character('\r')),
        ("https://me:secret@a/", UrlError::UserInformation),
        ("https://a:0/", UrlError::Port("0".to_owned())),
        ("https://a:+80/", UrlError::Port("+80".to_owned())),
        ("https://a:99999/", UrlError::Port("99999".to_owned())),
        ("https://[::1/", UrlError::Host("[::1".to_owned())),
        ("https://[::1]x/", UrlError::Host("[::1]x".to_owned())),
        (
            "https://bücher.example/",
            UrlError::Host("bücher.example".to_owned()),
        ),
    ] {
        assert_eq!(text.parse::<Url>(), Err(expected), "{text}");
    }
}

#[test]
fn a_file_is_named_by_the_last_part_of_the_path() {
    let name = |text: &str| {
        let url: Url = text.parse().expect(text);
        url.file_name().map(str::to_owned)
    };
    assert_eq!(name("https://a/b/c.txt?d=/e"), Some("c.txt".to_owned()));
    assert_eq!(name("https://a/b/"), None);
    assert_eq!(name("https://a"), None);
}
