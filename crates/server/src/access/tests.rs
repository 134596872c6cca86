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
            config_hash: Some("0123456789abcdef".into()),
        },
    };
    let mut record = AccessLog::begin(&request, &peer, connection);
    record.time = Duration::from_secs(971_186_136);
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
    let long = "é".repeat(TEXT_MAX);
    assert_eq!(cut(&long).len(), TEXT_MAX);
    assert_eq!(cut(&format!("a{long}")).len(), TEXT_MAX - 1);
}

#[test]
fn json_lines_have_the_outcome() {
    let ending = Ending {
        took: Duration::from_micros(1500),
        is_complete: false,
    };
    assert_eq!(
        record().json(ending, Some("fra")),
        "{\"type\":\"request\",\"time\":971186136000,\"remote\":\"::ffff:192.0.2.7\",\"port\":5000,\"http\":\"HTTP/3\",\
         \"method\":\"GET\",\"authority\":\"example.com\",\"path\":\"/a?b\",\"status\":200,\"bytes\":2326,\"ms\":1.5,\
         \"early\":true,\"complete\":false,\"conn_id\":12,\"worker\":1,\"arm\":\"a\",\"site\":\"fra\",\
         \"config\":\"0123456789abcdef\",\"referer\":\"https://example.com/\",\
         \"user_agent\":\"say \\\"hi\\\"\\\\ \\u007f\"}"
    );
    let mut over_tcp = record();
    over_tcp.connection.origin.arm = None;
    let line = over_tcp.json(ending, None);
    assert!(
        !line.contains("\"arm\"") && !line.contains("\"site\""),
        "{line}"
    );
}
