use super::*;

const LINE: &str = r#"{"v":1,"name":"one","hosts":[{"name":"www.example","http3":true},{"name":"cdn.example","party":"third","group":1,"rtt":-2000}],"resources":[{"host":0,"kind":"document","body":9000,"wait":50000,"work":3000,"incremental":true},{"host":1,"kind":"script","body":100,"request":300,"response":200,"bytes":[0,1200],"delay":1,"urgency":3,"blocking":true,"cacheable":true,"hinted":true},{"host":1,"kind":"fetch","body":7,"executed":1,"incremental":true},{"host":0,"kind":"other","body":0,"complete":2}]}
"#;

fn error(text: &str) -> String {
    read("c.ndjson", text)
        .find_map(Result::err)
        .map_or_else(|| "no error".to_owned(), |error| error.to_string())
}

#[test]
fn what_is_written_is_read() {
    let pages: Vec<Page> = read("c", LINE)
        .map(|page| page.expect("a valid line"))
        .collect();
    assert_eq!(write(&pages[0]), LINE);
    let script = &pages[0].resources[1];
    assert_eq!(
        script.trigger,
        Some(Trigger::Bytes {
            of: 0,
            offset: 1200
        })
    );
    assert_eq!(script.delay, Duration::from_micros(1));
    assert_eq!((script.request_header, script.response_header), (300, 200));
    assert!(script.is_blocking && script.is_cacheable && script.is_hinted);
    assert_eq!(pages[0].hosts[1].rtt_extra_us, -2000);
    assert_eq!(pages[0].hosts[1].party, Party::Third);
    assert!(pages[0].hosts[0].has_http3 && !pages[0].hosts[1].has_http3);
}

#[test]
fn empty_lines_are_skipped_and_numbers_of_lines_count_them() {
    assert_eq!(read("c", &format!("\n{LINE}\n{LINE}")).count(), 2);
    assert_eq!(
        error(&format!("{LINE}\n{{}}\n{LINE}")),
        "c.ndjson:3: page: no `v` (expected a number)"
    );
    // Nothing is read after an error.
    assert_eq!(read("c", &format!("{{\n{LINE}")).count(), 1);
}

#[test]
fn a_har_file_is_not_a_corpus_and_the_error_names_the_command_that_makes_one() {
    for text in [
        "{\"log\":{\"version\":\"1.2\",\"entries\":[]}}",
        "\u{feff}{\n  \"log\": {\n    \"version\": \"1.2\"\n  }\n}\n",
    ] {
        assert_eq!(
            error(text),
            "c.ndjson: a HAR file (expected a corpus: first `lastbyte compare record c.ndjson --out FILE`)"
        );
        assert_eq!(read("c", text).count(), 1);
    }
}

#[test]
fn errors_name_the_file_the_line_the_value_and_what_is_expected() {
    let cases = [
        (
            LINE.replace("\"v\":1", "\"v\":2"),
            "c.ndjson:1: v: 2 (expected 1)",
        ),
        (
            LINE.replace("\"name\":\"one\"", "\"name\":\"\""),
            "c.ndjson:1: page: name: \"\" (expected 1 to 256 bytes of text)",
        ),
        (
            LINE.replace("third", "second"),
            "c.ndjson:1: host 1: party: \"second\" (expected `first` or `third`)",
        ),
        (
            LINE.replace("-2000", "1e99"),
            "c.ndjson:1: host 1: rtt: 1e+99 (expected -10000000 to 10000000)",
        ),
        (
            LINE.replace("\"script\"", "\"applet\""),
            "c.ndjson:1: resource 1: kind: \"applet\" (expected document, stylesheet, script, font, image, media, fetch, other)",
        ),
        (
            LINE.replace("[0,1200]", "[0]"),
            "c.ndjson:1: resource 1: bytes: a list (expected a resource and a number of its bytes, as in [0, 1200])",
        ),
        (
            LINE.replace("\"executed\":1", "\"executed\":1,\"complete\":1"),
            "c.ndjson:1: resource 2: executed: 1 (expected at most one of `bytes`, `complete` and `executed`)",
        ),
        (
            LINE.replace("\"urgency\":3", "\"urgency\":8"),
            "c.ndjson:1: resource 1: urgency: 8 (expected 0 to 7)",
        ),
        (
            LINE.replace("\"delay\":1", "\"delay\":-1"),
            "c.ndjson:1: resource 1: delay: -1 (expected 0 to 600000000)",
        ),
        (
            LINE.replace("\"blocking\":true", "\"blocking\":1"),
            "c.ndjson:1: resource 1: blocking: 1 (expected true or false)",
        ),
        (
            LINE.replace("\"hinted\"", "\"hint\""),
            "c.ndjson:1: resource 1: unknown key `hint` (expected host, kind, request, response, body, wait, bytes, complete, executed, delay, work, urgency, incremental, blocking, cacheable, hinted)",
        ),
        (
            LINE.replace("\"executed\":1", "\"executed\":2"),
            "c.ndjson:1: page `one`: resource 2: trigger 2 (expected an earlier resource)",
        ),
        (
            LINE.replace("\"body\":9000,", ""),
            "c.ndjson:1: resource 0: no `body` (expected 0 to 1073741824)",
        ),
        (
            "[]".to_owned(),
            "c.ndjson:1: page: a list (expected an object)",
        ),
        (
            "{".to_owned(),
            "c.ndjson:1: not JSON: EOF while parsing an object at line 1 column 1",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(&text), expected);
    }
}

#[test]
fn long_lines_and_many_pages_are_refused() {
    let long = format!("{}{}", LINE.trim(), " ".repeat(LINE_MAX));
    assert!(
        error(&long).contains("bytes (expected at most 8388608)"),
        "{}",
        error(&long)
    );
    let short = r#"{"v":1,"name":"a","hosts":[{"name":"a"}],"resources":[{"host":0,"kind":"document","body":0}]}"#;
    let many = format!("{short}\n").repeat(PAGES_MAX + 1);
    assert_eq!(
        error(&many),
        "c.ndjson:100001: too many pages (expected at most 100000)"
    );
}

#[test]
fn the_schema_has_the_keys_that_are_read() {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/corpus.schema.json"))
        .expect("it is there");
    let keys = |object: &Value| {
        let keys = object["properties"]
            .as_object()
            .expect("it is there")
            .keys();
        let mut keys: Vec<&str> = keys.map(String::as_str).collect();
        keys.sort_unstable();
        keys.join(", ")
    };
    let expected = |known: &str| {
        let mut known: Vec<&str> = known.split(", ").collect();
        known.sort_unstable();
        known.join(", ")
    };
    let resource = &schema["$defs"]["resource"];
    let unknown = error(&LINE.replace("\"hinted\"", "\"hint\""));
    let known = unknown.split_once("(expected ").expect("it is there").1;
    assert_eq!(keys(resource), expected(known.trim_end_matches(')')));
    let unknown = error(&LINE.replace("\"group\"", "\"grp\""));
    let known = unknown.split_once("(expected ").expect("it is there").1;
    assert_eq!(
        keys(&schema["$defs"]["host"]),
        expected(known.trim_end_matches(')'))
    );
    assert_eq!(keys(&schema), "hosts, name, resources, v");
    let kinds = resource["properties"]["kind"]["enum"]
        .as_array()
        .expect("it is there");
    assert!(
        kinds
            .iter()
            .map(|kind| kind.as_str().expect("it is there"))
            .eq(Kind::ALL.map(Kind::name))
    );
}
