use super::*;

#[test]
fn urls_are_normalized() {
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
        ("http://a:80/x", "http://a/x"),
        ("http://a:443/x", "http://a:443/x"),
        ("a/x?y=b://c", "https://a/x?y=b://c"),
        ("http:80/x", "https://http:80/x"),
        (
            "https://a/<b>`\"{^}'[|]\\?",
            "https://a/%3Cb%3E%60%22{%5E}'[|]\\?",
        ),
        (
            "https://a/?q={\"a\":'<1>'}^`",
            "https://a/?q={%22a%22:%27%3C1%3E%27}^`",
        ),
        ("https://a/%3c%22%?%3c", "https://a/%3c%22%?%3c"),
    ] {
        let url: Url = text.parse().expect(text);
        assert_eq!(url.to_string(), expected, "{text}");
        assert_eq!(expected.parse::<Url>().expect(expected), url, "{text}");
    }
}

#[test]
fn errors_name_the_invalid_part() {
    for (text, expected) in [
        ("ftp://a/", UrlError::Scheme("ftp".to_owned())),
        ("https:///x", UrlError::Host(String::new())),
        ("https://a b/", UrlError::Character(' ')),
        ("http:/127.0.0.1/", UrlError::Slashes(Scheme::Http)),
        ("HTTPS:example.com", UrlError::Slashes(Scheme::Https)),
        ("http:", UrlError::Slashes(Scheme::Http)),
        ("https://http://a/", UrlError::Slashes(Scheme::Http)),
        ("https://a/\r\nx", UrlError::Character('\r')),
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
fn file_names_are_the_last_path_segment() {
    let name = |text: &str| {
        let url: Url = text.parse().expect(text);
        url.file_name().map(str::to_owned)
    };
    assert_eq!(name("https://a/b/c.txt?d=/e"), Some("c.txt".to_owned()));
    assert_eq!(name("https://a/b/"), None);
    assert_eq!(name("https://a"), None);
}

/// RFC 3986 §5.4, for URLs with a host.
#[test]
fn rfc3986_5_4_references_are_resolved() {
    let base: Url = "http://a/b/c/d;p?q".parse().expect("a URL");
    for (reference, expected) in [
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../../../g", "http://a/g"),
        ("https://h/i", "https://h/i"),
        ("a b", "http://a/b/c/a%20b"),
        (" https://h/a b?c d ", "https://h/a%20b?c%20d"),
        ("//h/a b", "http://h/a%20b"),
        ("/a?b=<x>", "http://a/a?b=%3Cx%3E"),
    ] {
        let url = base.join(reference).expect(reference);
        assert_eq!(url.to_string(), expected, "{reference}");
    }
    assert_eq!(
        base.join("mailto:x"),
        Err(UrlError::Scheme("mailto".to_owned()))
    );
    assert_eq!(base.join("http:/x"), Err(UrlError::Slashes(Scheme::Http)));
    let spaced = base.join("https://h i/");
    assert_eq!(spaced, Err(UrlError::Host("h%20i".to_owned())));
}

/// The user may be called like a scheme.
#[test]
fn credentials_are_no_scheme() {
    let url: Url = "https://http:secret@host/".parse().expect("a URL");
    assert_eq!(url.to_string(), "https://host/");
    assert!("https://http:secret/@host".parse::<Url>().is_err());
}

/// HTTP/1.1 and HTTP/2 refuse some characters that HTTP/3 would send.
#[test]
fn every_url_is_a_request_target_in_all_versions() {
    let printable: String = (0x21..0x7f_u8).map(char::from).collect();
    for character in printable.chars() {
        for text in [
            format!("https://a/{character}"),
            format!("https://a/?{character}"),
        ] {
            let url: Url = text.parse().expect(&text);
            let path = url.path();
            let target: Result<hyper::Uri, _> = path.parse();
            let target = target.unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!(target, *path);
        }
    }
}

#[test]
fn credentials_are_parsed_and_not_displayed() {
    let url: Url = "https://me:p%40ss@a.example/x".parse().expect("a URL");
    assert_eq!(url.credentials(), Some("me:p@ss"));
    assert_eq!(url.to_string(), "https://a.example/x");
}
