use super::*;

#[test]
fn a_file_of_requests_has_urls_and_weights() {
    let text = "# the page and its parts\nhttps://a.example/ 10\n\n  https://a.example/b\n";
    let requests = parse(text).expect("two URLs");
    let found: Vec<(String, u32)> = requests
        .iter()
        .map(|request| (request.url.to_string(), request.weight))
        .collect();
    let expected = [("https://a.example/", 10), ("https://a.example/b", 1)];
    assert_eq!(
        found,
        expected.map(|(url, weight)| (url.to_owned(), weight))
    );
}

#[test]
fn errors_in_a_file_of_requests_name_the_line() {
    let cases = [
        ("", 1, "no URL (expected one per line)"),
        ("# only a comment\n", 1, "no URL"),
        (
            "https://a.example/\nftp://a.example/\n",
            2,
            "unsupported URL scheme `ftp`",
        ),
        (
            "https://a.example/ 0\n",
            1,
            "invalid weight `0` (expected a whole number from 1 to 1000)",
        ),
        ("https://a.example/ 1001\n", 1, "invalid weight `1001`"),
        (
            "\nhttps://a.example/ 1 x\n",
            2,
            "unexpected `x` (expected a URL and a weight)",
        ),
    ];
    for (text, line, what) in cases {
        let (number, error) = parse(text).expect_err(text);
        assert_eq!(number, line, "{text}");
        assert!(error.starts_with(what), "{text}: {error}");
    }
}

#[test]
fn given_fields_replace_the_default_ones() {
    let lines = |given: &[&str]| {
        let given: Vec<String> = given.iter().map(|text| (*text).to_owned()).collect();
        let fields = fields(&given).expect("valid fields");
        let lines = fields.iter().map(|line| {
            let value = String::from_utf8_lossy(line.value);
            format!("{}: {value}", line.name)
        });
        lines.collect::<Vec<_>>()
    };
    let agent = concat!("user-agent: lastbyte/", env!("CARGO_PKG_VERSION"));
    assert_eq!(lines(&[]), [agent, "accept: */*"]);
    assert_eq!(
        lines(&["User-Agent: x", "a:b"]),
        ["accept: */*", "user-agent: x", "a: b"]
    );
    assert_eq!(lines(&["accept:"]), [agent]);
    assert!(fields(&["nonsense".to_owned()]).is_err());
}

#[test]
fn sockets_of_model_paths_need_descriptors() {
    assert!(check_descriptors(1000, None).is_ok());
    assert!(check_descriptors(1000, Some(1064)).is_ok());
    let Err(Failure::Usage(text)) = check_descriptors(1000, Some(1063)) else {
        panic!("too few");
    };
    assert!(text.contains("1000 connections"), "{text}");
    assert!(
        text.contains("need 1064 file descriptors (the limit is 1063"),
        "{text}"
    );
}
