use super::*;

fn both(text: &str) -> [String; 2] {
    let registry = Registry::builtin();
    let of = |result: Result<String, SettingError>| match result {
        Ok(name) => name,
        Err(error) => format!("error: {error}"),
    };
    [
        of(Arm::parse(text, &registry).map(|arm| arm.name)),
        of(HttpArm::parse(text, &registry).map(|arm| format!("{} {}", arm.name, arm.version))),
    ]
}

#[test]
fn a_version_of_http_is_no_name_of_something_else() {
    let no_version = |text: &str| {
        format!(
            "error: `{text}` has a version of HTTP (expected SPEC or NAME=SPEC: only page loads have versions)"
        )
    };
    for (text, version) in [
        ("2=cubic", "2"),
        ("h2=cubic", "2"),
        ("1.1=bbr", "1.1"),
        ("HTTP/2=3 cubic", "2"),
    ] {
        let (_, rest) = text.split_once('=').expect("a name");
        let is_not_of = format!(
            "error: `{text}` is named by a version of HTTP that it is not of (expected another name, or `{version} {rest}` for the version)"
        );
        assert_eq!(both(text), [no_version(text), is_not_of]);
    }
    for text in ["h3", "http/3 cubic"] {
        let word = first_word(text);
        let unknown = format!("error: unknown HTTP version `{word}` (expected `1.1`, `2` or `3`)");
        assert_eq!(both(text), [no_version(text), unknown]);
    }
    assert_eq!(both("h3=3 cubic")[1], "h3 HTTP/3");
    assert_eq!(both("2 cubic")[1], "HTTP/2 cubic HTTP/2");
    assert_eq!(
        both("new=cubic"),
        ["new".to_owned(), "new HTTP/3".to_owned()]
    );
}

#[test]
fn a_key_without_a_congestion_control_is_named() {
    for text in ["initial-window=10p", "beta=0.5"] {
        let (key, value) = text.split_once('=').expect("a key");
        let expected = format!(
            "error: `{text}` has the key `{key}` and no congestion control (expected SPEC:{key}={value}, such as `cubic:{key}={value}`)"
        );
        assert_eq!(both(text), [expected.clone(), expected]);
    }
    // A name may be that of a key.
    assert_eq!(
        both("beta=cubic:beta=0.5"),
        ["beta".to_owned(), "beta HTTP/3".to_owned()]
    );
}
