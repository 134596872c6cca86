//! Pages of a corpus, as browsers see them.

use std::fs;

use super::{
    Serving, folder,
    serving::{free_port, lastbyte},
    stderr,
};

const CORPUS: &str = concat!(
    r#"{"v":1,"name":"one","hosts":[{"name":"www.example"},{"name":"cdn.example"}],"resources":["#,
    r#"{"host":0,"kind":"document","body":9000,"response":900,"wait":50000},"#,
    r#"{"host":1,"kind":"script","body":3000,"bytes":[0,1200],"blocking":true,"urgency":1,"cacheable":true}]}"#,
    "\n"
);

#[test]
fn pages_of_a_corpus_have_the_described_sizes_headers_and_references() {
    let folder = folder("serve-pages");
    fs::write(folder.join("corpus.ndjson"), CORPUS).expect("room");
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let flags = [
        "--self-signed",
        "--pages",
        "corpus.ndjson",
        "--header",
        "x-mine: 1",
    ];
    let serving = Serving::start_as(&folder, &[], &listen, &flags);
    for version in ["1.1", "2", "3"] {
        let get = |path: &str, more: &[&str]| {
            let flags = [&["--http", version], more].concat();
            let output = serving.get(&folder, path, &flags);
            (
                output.status.success(),
                String::from_utf8_lossy(&output.stdout).into_owned(),
                stderr(&output),
            )
        };
        let (is_ok, text, error) = get("/0/0", &["-i"]);
        assert!(is_ok, "{error}");
        let (head, body) = text.split_once("\r\n\r\n").expect("a header");
        assert_eq!(body.len(), 9000);
        let tag = format!("<script src=//cdn.example:{port}/0/1>");
        let at = body.find(&tag).expect("the tag");
        assert!((1200..1300).contains(&at), "{at}");
        for line in [
            "cache-control: no-store",
            "x-mine: 1",
            "access-control-allow-origin: *",
        ] {
            assert!(head.contains(line), "{head}");
        }
        // What else the server adds takes less than 60 bytes.
        assert!((880..980).contains(&head.len()), "{}", head.len());
        let (_, text, _) = get("/0/1", &["-i"]);
        assert!(text.contains("cache-control: max-age=31536000"), "{text}");
        assert!(text.contains("content-type: text/javascript"), "{text}");
        let (_, text, _) = get("/0/1", &["-i", "-I"]);
        assert!(
            text.contains("content-length: 3000") && text.len() < 1000,
            "{text}"
        );
        for path in [
            "/",
            "/0",
            "/0/2",
            "/1/0",
            "/0/-1",
            "/0/0/0",
            "/99999999999999999999/0",
        ] {
            let (_, text, _) = get(path, &["-i"]);
            assert!(text.contains(" 404"), "{path}: {text}");
        }
        let (_, text, _) = get("/0/0", &["-i", "-X", "POST", "-d", "x"]);
        assert!(
            text.contains(" 405") && text.contains("allow: GET, HEAD"),
            "{text}"
        );
    }
    let (code, printed) = serving.end();
    assert_eq!(code, 0);
    assert!(printed.contains("1 pages: the document"), "{printed}");
}

#[test]
fn a_corpus_with_a_mistake_is_refused_at_the_start() {
    let folder = folder("serve-pages-wrong");
    fs::write(
        folder.join("wrong.ndjson"),
        CORPUS.replace("\"host\":1", "\"host\":2"),
    )
    .expect("room");
    fs::write(folder.join("empty.ndjson"), "").expect("room");
    for (file, expected) in [
        ("wrong.ndjson", "host 2 (expected 0 to 1)"),
        ("empty.ndjson", "has no pages"),
        ("absent.ndjson", "absent.ndjson"),
    ] {
        let output = lastbyte(
            &folder,
            &["serve", "--self-signed", "--check", "--pages", file],
        );
        assert!(!output.status.success());
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
