//! `lastbyte compare load` against `lastbyte serve --pages`, over loopback.

use std::{collections::BTreeSet, fs, path::Path, process::Output, sync::Arc};

use lastbyte_page::{Page, read_corpus};
use lastbyte_scenario::{HttpVersion, network::PathText};
use lastbyte_sim::{PageLoad, load_page};
use lastbyte_units::Time;
use serde_json::Value;

use super::{
    folder, rows,
    serving::{Running, Serving, certificate, check_failure, command, free_port, lastbyte, stderr},
};

/// Each resource has a trigger that follows the one before, so that their order does not depend on the network. The last ten are
/// requested at once.
fn chain() -> String {
    let mut resources = vec![
        r#"{"host":0,"kind":"document","body":30000,"response":900}"#.to_owned(),
        r#"{"host":0,"kind":"stylesheet","body":5000,"bytes":[0,2000],"blocking":true,"urgency":0,"cacheable":true}"#.to_owned(),
        r#"{"host":1,"kind":"script","body":8000,"complete":1,"delay":3000,"work":20000,"blocking":true,"urgency":1,"cacheable":true}"#.to_owned(),
        r#"{"host":2,"kind":"font","body":9000,"executed":2,"urgency":0,"cacheable":true}"#.to_owned(),
        r#"{"host":0,"kind":"image","body":700,"complete":3,"wait":5000,"urgency":3}"#.to_owned(),
    ];
    for number in 0..10 {
        resources.push(format!(
            r#"{{"host":2,"kind":"image","body":{},"complete":4,"urgency":3,"incremental":true,"cacheable":true}}"#,
            1000 + 20_000 * number
        ));
    }
    format!(
        concat!(
            r#"{{"v":1,"name":"chain","hosts":[{{"name":"www.example","http3":true}},{{"name":"cdn.example","group":1}},"#,
            r#"{{"name":"img.example","group":2,"http3":true}}],"resources":[{}]}}"#,
            "\n"
        ),
        resources.join(",")
    )
}

fn serve(folder: &Path, corpus: &str, identity: &[&str]) -> Serving {
    fs::write(folder.join("corpus.ndjson"), corpus).expect("room");
    let listen = format!("127.0.0.1:{}", free_port());
    let flags = [identity, &["--pages", "corpus.ndjson"]].concat();
    Serving::start_as(folder, &[], &listen, &flags)
}

fn words<'a>(server: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["compare", "load", server, "--corpus", "corpus.ndjson"];
    words.extend(["--out", ".", "--force"]);
    words.extend(more);
    words
}

fn load(folder: &Path, serving: &Serving, more: &[&str]) -> Output {
    let server = format!("127.0.0.1:{}", serving.port);
    lastbyte(folder, &words(&server, more))
}

/// The times of an event of all resources of a row.
fn times(row: &Value, event: usize) -> Vec<Option<f64>> {
    let resources = row["resources"].as_array().expect("a list");
    resources.iter().map(|it| it[event].as_f64()).collect()
}

/// Resources in the order of their requests.
fn order(requested: &[Option<f64>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..requested.len()).collect();
    order.retain(|resource| requested[*resource].is_some());
    order.sort_by(|a, b| requested[*a].partial_cmp(&requested[*b]).expect("numbers"));
    order
}

fn simulated(page: &Arc<Page>, version: HttpVersion) -> lastbyte_sim::PageOutcome {
    let path = PathText::named("vdsl").expect("it is known");
    let path = path.path(&mut |file| Err(file.to_owned())).expect("a path");
    load_page(&PageLoad::new(Arc::clone(page), version, path)).expect("it loads")
}

#[test]
fn requests_connections_and_rendering_are_those_of_the_simulator() {
    let folder = folder("compare-load-order");
    let corpus = chain();
    let page = read_corpus("", &corpus).next().expect("a page");
    let page = Arc::new(page.expect("it is valid"));
    let serving = serve(&folder, &corpus, &["--self-signed"]);
    let output = load(&folder, &serving, &["-k", "--http", "1.1,2,3"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = rows(&folder);
    assert_eq!(rows.len(), 3);
    for (row, version) in rows.iter().zip(HttpVersion::ALL) {
        assert_eq!(row["http"], version.name());
        assert_eq!(
            (&row["failed"], &row["error"]),
            (&0.into(), &Value::Null),
            "{row}"
        );
        let simulated = simulated(&page, version);
        let millis = |at: Option<Time>| Some(at?.since(Time::ZERO).as_secs_f64() * 1e3);
        let expected: Vec<_> = simulated
            .resources
            .iter()
            .map(|it| millis(it.requested))
            .collect();
        assert_eq!(order(&times(row, 0)), order(&expected), "{version}");
        let connections = row["connections"].as_u64().expect("a number");
        let expected = u64::from(simulated.connections);
        // Over HTTP/1.1, a connection may be free before another one is open.
        let least = if version == HttpVersion::Http1 {
            3
        } else {
            expected
        };
        assert!(
            (least..=expected).contains(&connections),
            "{version}: {row}"
        );
        assert_eq!(row["responses"], 15);
        // Rendering waits for the style sheet and the script, and for no image; `onload` waits for all of them.
        let [first_byte, complete, executed] = [1, 2, 3].map(|event| times(row, event));
        let render = row["first_render_ms"].as_f64().expect("a time");
        assert!(
            Some(render) >= executed[1] && Some(render) >= executed[2],
            "{row}"
        );
        assert!(Some(render) <= first_byte[3], "{row}");
        let loaded = row["load_ms"].as_f64();
        assert!(
            complete.iter().all(|at| at.is_some() && *at <= loaded),
            "{row}"
        );
        assert!(
            executed[2] >= complete[2].map(|at| at + 19.9),
            "the script works"
        );
        let expected = match version {
            HttpVersion::Http1 => serde_json::json!({"http/1.1": 15}),
            HttpVersion::Http2 => serde_json::json!({"h2": 15}),
            // One host has no HTTP/3.
            HttpVersion::Http3 => serde_json::json!({"h3": 14, "h2": 1}),
        };
        assert_eq!(row["protocols"], expected);
    }
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(page.contains("over real connections"));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("HTTP/3 compared with HTTP/1.1"), "{text}");
}

#[test]
fn the_repeat_view_resumes_sessions_and_reads_the_cache() {
    let folder = folder("compare-load-repeat");
    let serving = serve(&folder, &chain(), &["--self-signed"]);
    let kind = |transport: &str, kind: &str| {
        let name = "lastbyte_handshakes_total";
        serving.metric(&format!(
            "{name}{{transport=\"{transport}\",kind=\"{kind}\"}}"
        ))
    };
    let output = load(&folder, &serving, &["-k", "--view", "repeat"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for row in rows(&folder) {
        let requested = order(&times(&row, 1));
        assert_eq!(requested, [0, 4], "the others are in the cache");
        assert_eq!(
            (&row["view"], &row["responses"]),
            (&"repeat".into(), &2.into())
        );
        assert_eq!(row["handshakes"], serde_json::json!({"resumed": 1}));
    }
    // Each of the two loads before opened connections to all three hosts, and only those to the first were needed again.
    let full = kind("tcp", "full") + kind("quic", "full");
    assert_eq!(
        (full, kind("tcp", "resumed"), kind("quic", "resumed")),
        (6, 1, 1)
    );
    let output = load(&folder, &serving, &["-k", "--handshake", "0rtt"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = rows(&folder);
    assert_eq!(rows[0]["handshakes"], serde_json::json!({"resumed": 3}));
    let expected = serde_json::json!({"0rtt": 2, "resumed": 1});
    assert_eq!(rows[1]["handshakes"], expected);
    assert_eq!(kind("quic", "zero_rtt"), 2);
}

/// RFC 8297 §2: over HTTP/3 a hinted resource is requested before the document has arrived.
#[test]
fn early_hints_are_sent_over_http3_and_followed() {
    let folder = folder("compare-load-hints");
    let corpus = concat!(
        r#"{"v":1,"name":"hints","hosts":[{"name":"www.example","http3":true}],"resources":["#,
        r#"{"host":0,"kind":"document","body":3000,"wait":300000},"#,
        r#"{"host":0,"kind":"stylesheet","body":5000,"bytes":[0,2000],"blocking":true,"urgency":0,"hinted":true},"#,
        r#"{"host":0,"kind":"image","body":700,"bytes":[0,2000],"urgency":3}]}"#,
    );
    for (flags, follows) in [
        (&["--self-signed", "--early-hints"][..], true),
        (&["--self-signed"], false),
    ] {
        let serving = serve(&folder, corpus, flags);
        let output = load(&folder, &serving, &["-k"]);
        assert!(output.status.success(), "{}", stderr(&output));
        for row in rows(&folder) {
            assert_eq!(row["failed"], 0, "{row}");
            let (requested, first_byte) = (times(&row, 0), times(&row, 1));
            assert!(requested[2] >= first_byte[0], "{row}");
            let is_early = requested[1] < first_byte[0];
            assert_eq!(is_early, follows && row["http"] == "3", "{row}");
        }
    }
}

#[test]
fn a_host_that_the_certificate_does_not_name_fails_its_page_only() {
    let folder = folder("compare-load-hosts");
    certificate(&folder, "id");
    let page = |name: &str, host: &str, more: &str| {
        format!(
            r#"{{"v":1,"name":"{name}","hosts":[{{"name":"{host}","http3":true}},{{"name":"other.example","group":1,"http3":true}}],"resources":[{{"host":0,"kind":"document","body":900}}{more}]}}{}"#,
            "\n"
        )
    };
    let more = r#",{"host":1,"kind":"image","body":10,"complete":0}"#;
    let corpus = page("whole", "localhost", "") + &page("broken", "localhost", more);
    let corpus = corpus + &page("foreign", "other.example", "");
    let serving = serve(&folder, &corpus, &["--cert", "id.pem", "--key", "id.key"]);
    let output = load(
        &folder,
        &serving,
        &["--cacert", "id.pem", "--pages", "2", "--json"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let loads = rows(&folder);
    assert!(loads[..2].iter().all(|row| row["load_ms"].is_number()));
    for row in &loads[2..] {
        assert_eq!(
            (&row["load_ms"], &row["failed"]),
            (&Value::Null, &1.into()),
            "{row}"
        );
        let error = row["error"].as_str().expect("a text");
        assert!(error.contains("https://other.example:"), "{error}");
        assert!(
            error.contains("/1/1: ") && error.contains("certificate"),
            "{error}"
        );
    }
    assert!(
        stderr(&output)
            .contains("2 of 4 page loads failed; the first: broken over HTTP/2: https://other")
    );
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let result = &summary["results"][0];
    assert_eq!(
        (&result["pages"], &result["incomplete_arm"]),
        (&2.into(), &1.into())
    );
    // What fails from the start is an error.
    for (more, expected) in [
        (
            &["--cacert", "id.pem", "--page", "foreign"][..],
            "cannot load a page: https://other.example:",
        ),
        (&["--pages", "1"], "certificate is not trusted"),
    ] {
        let output = load(&folder, &serving, more);
        check_failure(&output, 1, expected);
    }
}

/// A page whose image, on another host, the server holds back.
const HELD: &str = concat!(
    r#"{"v":1,"name":"quick","hosts":[{"name":"a.example","http3":true}],"resources":[{"host":0,"kind":"document","body":900}]}"#,
    "\n",
    r#"{"v":1,"name":"held","hosts":[{"name":"a.example","http3":true},{"name":"b.example","group":1,"http3":true}],"resources":["#,
    r#"{"host":0,"kind":"document","body":900},{"host":1,"kind":"image","body":900,"complete":0,"wait":55000000}]}"#,
    "\n",
);

/// Starts to load a page whose image is held back, and waits until both its connections are open.
fn hold(folder: &Path, serving: &Serving, more: &[&str]) -> Running {
    let server = format!("127.0.0.1:{}", serving.port);
    let running = Running::quiet(&mut command(folder, &words(&server, more)));
    serving.wait_for("lastbyte_connections{transport=\"tcp\"}", |count| {
        count == 2
    });
    running
}

#[test]
fn a_server_that_dies_during_a_page_fails_the_rest() {
    let folder = folder("compare-load-killed");
    let serving = serve(&folder, HELD, &["--self-signed"]);
    let running = hold(
        &folder,
        &serving,
        &["-k", "--page", "held", "--limit", "2s"],
    );
    serving.kill();
    let (code, printed) = running.wait();
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("2 of 2 page loads failed"), "{printed}");
    let rows = rows(&folder);
    assert!(times(&rows[0], 2)[0].is_some(), "the document was there");
    for row in &rows {
        assert_eq!(row["load_ms"], Value::Null, "{row}");
        assert!(row["error"].is_string(), "{row}");
    }
}

#[test]
fn an_interrupt_keeps_what_is_done() {
    let folder = folder("compare-load-interrupt");
    let serving = serve(&folder, HELD, &["--self-signed"]);
    let running = hold(&folder, &serving, &["-k"]);
    running.signal("-INT");
    let (code, printed) = running.wait();
    assert_eq!(code, Some(130), "{printed}");
    assert!(
        printed.contains("interrupted: 2 of 4 page loads are in `.`"),
        "{printed}"
    );
    let pages: BTreeSet<_> = rows(&folder)
        .iter()
        .map(|row| row["page"].to_string())
        .collect();
    assert_eq!(pages, BTreeSet::from(["\"quick\"".to_owned()]));
    assert!(folder.join("report.html").exists());
}

#[test]
fn a_load_that_takes_too_long_is_given_up() {
    let folder = folder("compare-load-limit");
    let serving = serve(&folder, HELD, &["--self-signed"]);
    let output = load(&folder, &serving, &["-k", "--limit", "500ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows = rows(&folder);
    assert_eq!(rows[2]["error"], "not loaded after 0.5 s");
    assert!(
        rows[2]["first_render_ms"].is_number(),
        "the image does not block"
    );
    assert!(rows[0]["load_ms"].is_number());
}

#[test]
fn errors_name_the_value_and_what_is_expected() {
    let folder = folder("compare-load-errors");
    fs::write(folder.join("corpus.ndjson"), HELD).expect("room");
    fs::write(folder.join("odd.ndjson"), HELD.replace("a.example", "a b")).expect("room");
    for (server, more, expected) in [
        ("nowhere", &[][..], "server `nowhere`"),
        ("127.0.0.1:x", &[], "expected HOST:PORT"),
        (
            "127.0.0.1:4433",
            &["--page", "none"],
            "--page: no page `none` in the corpus (`quick` is the first)",
        ),
        (
            "127.0.0.1:4433",
            &["--http", "2,2"],
            "two arms are named `HTTP/2`",
        ),
        (
            "127.0.0.1:4433",
            &["--http", "4"],
            "unknown HTTP version `4`",
        ),
        (
            "127.0.0.1:4433",
            &["--view", "first,first"],
            "`first` twice",
        ),
        ("127.0.0.1:4433", &["--limit", "0s"], "--limit"),
        (
            "127.0.0.1:4433",
            &["--corpus", "odd.ndjson"],
            "page `quick`: host `a b`",
        ),
    ] {
        let words: Vec<&str> = [&words(server, &[])[..3], &["--out", "out"], more].concat();
        let words = match more {
            ["--corpus", ..] => words,
            _ => [&words[..], &["--corpus", "corpus.ndjson"]].concat(),
        };
        let output = lastbyte(&folder, &words);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{words:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(expected),
            "{words:?}: {}",
            stderr(&output)
        );
    }
    let server = format!("127.0.0.1:{}", free_port());
    let output = lastbyte(&folder, &words(&server, &["-k"]));
    check_failure(&output, 1, "cannot connect to 127.0.0.1");
}
