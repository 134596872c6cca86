use super::*;

fn record() -> Record {
    let peer = Peer {
        remote: "[::ffff:192.0.2.7]:5000".parse().expect("an address"),
        version: Version::Http3,
        is_early: true,
    };
    let request = Request::new("GET", "https", "example.com", "/a?b")
        .with("user-agent", "say \"hi\"\\ \x7f")
        .with("referer", "https://example.com/");
    let connection = ConnectionRef {
        conn_id: 12,
        worker: 1,
        origin: Origin {
            arm: Some("a".into()),
            experiment: Some("x".into()),
            config_hash: Some("0123456789abcdef".into()),
        },
    };
    let time = Duration::from_secs(971_186_136);
    let mut record = AccessLog::begin(&request, &peer, connection, time);
    (record.status, record.body_len) = (200, 2326);
    record
}

#[test]
fn common_lines_have_the_common_log_format() {
    let expected = "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"GET /a?b HTTP/3\" 200 2326";
    assert_eq!(record().common(), expected);
    let mut empty = record();
    empty.body_len = 0;
    assert!(empty.common().ends_with(" 200 -"));
}

#[test]
fn log_lines_cannot_be_forged() {
    assert_eq!(escaped("a\"b\\c\nd\u{7f}"), "a\\\"b\\\\c\\x0Ad\\x7F");
    assert_eq!(escaped(""), "-");
}

#[test]
fn fields_of_a_client_have_at_most_512_bytes_in_all_formats() {
    const LINE_MAX: usize = 5 * 512 + 500;
    let kinds = ["\"", "\\", "\n", "\u{9b}", "\u{7f}", "é", "\u{10ffff}", "a"];
    let versions = [
        Version::Http10,
        Version::Http11,
        Version::Http2,
        Version::Http3,
    ];
    for (kind, version) in kinds
        .into_iter()
        .flat_map(|kind| versions.map(|of| (kind, of)))
    {
        let long = kind.repeat(8000 / kind.len());
        let peer = Peer {
            remote: "[2001:db8::1]:5000".parse().expect("an address"),
            version,
            is_early: false,
        };
        let request = Request::new(&long, "https", &long, &long)
            .with("user-agent", &long)
            .with("referer", &long);
        let record = AccessLog::begin(&request, &peer, ConnectionRef::default(), Duration::MAX);
        let ending = Ending {
            took: Duration::MAX,
            is_complete: true,
            route: None,
            notes: None,
        };
        for format in [Format::Ndjson, Format::Common, Format::Combined] {
            let (writer, queue) = log::queue();
            AccessLog::new(writer, format).end(&record, ending);
            let line = queue.next().expect("a line");
            assert!(line.len() <= LINE_MAX, "{} bytes: {line}", line.len());
            // Every field has the mark.
            let fields = match format {
                Format::Ndjson => 5,
                Format::Common => 2,
                Format::Combined => 4,
            };
            assert_eq!(line.matches('…').count(), fields, "{line}");
            // Text that needs no escapes has the whole room.
            let full = 510 * fields;
            assert!(kind != "a" || line.len() > full, "{line}");
        }
    }
}

#[test]
fn json_lines_have_the_outcome() {
    let notes = Notes::default();
    notes.set_upstream(Duration::from_micros(1250));
    notes.set_error("http_response_incomplete");
    let ending = Ending {
        took: Duration::from_micros(1500),
        is_complete: false,
        route: Some("example.com/a"),
        notes: Some(&notes),
    };
    assert_eq!(
        record().json(ending, Some("fra")),
        "{\"type\":\"request\",\"time\":971186136000,\"remote\":\"::ffff:192.0.2.7\",\"port\":5000,\"http\":\"HTTP/3\",\
         \"method\":\"GET\",\"authority\":\"example.com\",\"path\":\"/a?b\",\"status\":200,\"bytes\":2326,\"ms\":1.5,\
         \"early\":true,\"complete\":false,\"conn_id\":12,\"worker\":1,\"upstream_ms\":1.25,\"error\":\"http_response_incomplete\",\
         \"route\":\"example.com/a\",\"experiment\":\"x\",\"arm\":\"a\",\"site\":\"fra\",\
         \"config\":\"0123456789abcdef\",\"referer\":\"https://example.com/\",\
         \"user_agent\":\"say \\\"hi\\\"\\\\ \\u007f\"}"
    );
    let ending = Ending {
        route: None,
        notes: Some(&Notes::default()),
        ..ending
    };
    let mut over_tcp = record();
    over_tcp.connection.origin = Origin::default();
    let line = over_tcp.json(ending, None);
    assert!(
        !line.contains("\"arm\"") && !line.contains("\"site\""),
        "{line}"
    );
}

#[test]
fn a_trace_is_logged_if_its_context_is_valid() {
    let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let peer = Peer {
        remote: "192.0.2.7:5000".parse().expect("an address"),
        version: Version::Http11,
        is_early: false,
    };
    let logged = |values: &[&str]| {
        let mut request = Request::new("GET", "https", "example.com", "/");
        for value in values {
            request = request.with("traceparent", value);
        }
        let connection = ConnectionRef::default();
        AccessLog::begin(&request, &peer, connection, Duration::ZERO).traceparent
    };
    assert_eq!(logged(&[valid]), valid);
    let later = valid.replacen("00", "cc", 1);
    assert_eq!(logged(&[&later]), later);
    let longer = format!("{later}-what-the-future-will-be-like");
    assert_eq!(logged(&[&longer]), longer);
    let (stuck, forbidden) = (format!("{later}1"), valid.replacen("00", "ff", 1));
    let no_trace = valid.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
    let no_parent = valid.replace("00f067aa0ba902b7", &"0".repeat(16));
    let upper = valid.to_uppercase();
    let long = format!("{valid}-more");
    for values in [
        &[] as &[&str],
        &[""],
        &[valid, valid],
        &[&upper],
        &[&long],
        &[&stuck],
        &[&forbidden],
        &[&no_trace],
        &[&no_parent],
        &[&valid[1..]],
        &["00-\"bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    ] {
        assert_eq!(logged(values), "", "{values:?}");
    }
}
