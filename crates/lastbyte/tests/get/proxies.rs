//! Through a proxy, in clear text and by a tunnel, beside curl.

use std::process::Output;

use super::{
    Place, code, command,
    curl::has_curl,
    proxy::Proxy,
    raw::ScriptedServer,
    raw::body,
    stderr,
    tls::{Tls, TlsOptions},
};

fn get(words: &[&str]) -> Output {
    command().args(words).output().expect("the binary runs")
}

#[test]
fn a_tunnel_carries_any_http_version_over_tcp() {
    let proxy = Proxy::start();
    let there = proxy.url();
    let server = Tls::start(&TlsOptions::default());
    let url = server.url("5000");
    let output_flags = [
        "-so",
        "/dev/null",
        "-w",
        "%{http_version} %{http_connect} %{size_download}",
    ];
    for (flags, expected) in [
        (&[][..], "2 200 5000"),
        (&["--http", "2"], "2 200 5000"),
        (&["--http", "1.1"], "1.1 200 5000"),
    ] {
        let words = [&["-k", "-x", &there], flags, &output_flags, &[&url]].concat();
        let output = get(&words);
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
    let authority = format!("localhost:{}", server.port);
    for head in proxy.heads() {
        assert!(
            head.starts_with(&format!("CONNECT {authority} HTTP/1.1\r\n")),
            "{head}"
        );
    }
    assert_eq!(proxy.heads().len(), 3, "nothing went past it");
    // Who is named is asked directly; the environment says what the command line does not.
    let before = proxy.heads().len();
    for list in ["localhost", "*", ".localhost,x"] {
        let output = get(&[
            "-k",
            "-x",
            &there,
            "--noproxy",
            list,
            "-o",
            "/dev/null",
            &url,
        ]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    for (name, value, more) in [
        ("https_proxy", &*there, 1),
        ("HTTPS_PROXY", &there, 1),
        ("ALL_PROXY", &there, 1),
        ("http_proxy", &there, 0),
    ] {
        let before = proxy.heads().len();
        let mut get = command();
        get.args(["-k", "-o", "/dev/null", &url]).env(name, value);
        let output = get.output().expect("the binary runs");
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_eq!(proxy.heads().len() - before, more, "{name}");
        // Nothing in place of it.
        let output = get.args(["-x", ""]).output().expect("the binary runs");
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_eq!(proxy.heads().len() - before, more, "{name}");
    }
    assert_eq!(proxy.heads().len() - before, 3);
}

#[test]
fn http3_does_not_go_through_a_proxy() {
    let place = Place::new("get-proxy-http3");
    let proxy = Proxy::start();
    let url = place.url("10");
    let output = place.get(&["--http3-only", "-x", &proxy.url(), &url]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("HTTP/3 cannot be used through the proxy"));
    let output = place.get(&[
        "--http3-only",
        "-x",
        &proxy.url(),
        "--noproxy",
        "localhost",
        &url,
    ]);
    assert_eq!(output.stdout, body(10), "{}", stderr(&output));
    // There is no listener over TCP, and UDP is not tried.
    let output = place.get(&["-x", &proxy.url(), &url]);
    assert_eq!(code(&output), 56, "{}", stderr(&output));
    assert_eq!(place.server.connections(), 1);
}

/// The same exit codes as curl, and in clear text the same request.
#[test]
fn proxy_requests_match_those_of_curl() {
    let proxy = Proxy::start();
    let (there, raw) = (proxy.url(), ScriptedServer::start());
    let (tunnelled, server) = (raw.url("300"), Tls::start(&TlsOptions::default()));
    let secure = server.url("300");
    let cases: [(&[&str], i32); 13] = [
        (&["-x", &there, "http://somewhere.invalid/a?b"], 0),
        (
            &[
                "-x",
                &there,
                "-U",
                "me:secret",
                "http://somewhere.invalid:81/",
            ],
            0,
        ),
        (
            &[
                "-x",
                &there.replace("//", "//me:secret@"),
                "http://somewhere.invalid/",
            ],
            0,
        ),
        (
            &[
                "-x",
                &there,
                "-d",
                "x=1",
                "-b",
                "a=b",
                "-u",
                "a:b",
                "http://somewhere.invalid/",
            ],
            0,
        ),
        (&["-x", &there, "-I", "http://somewhere.invalid/"], 0),
        (&["-x", &there, "-p", &tunnelled], 0),
        (&["-x", &there, "-k", &secure], 0),
        (&["-x", &there, "-k", "https://forbidden.example/"], 56),
        (&["-x", &there, "-k", "https://locked.example/"], 56),
        (&["-x", &there, "-k", "https://mute.example/"], 56),
        (&["-x", "http://no-such-proxy.invalid:1", &tunnelled], 5),
        (&["-x", "http://127.0.0.1:1", &tunnelled], 7),
        (&["-x", &there, "--noproxy", "127.0.0.0/8", &tunnelled], 0),
    ];
    for (words, expected) in cases {
        let words = [&["-s", "-A", "me"], words].concat();
        let ours = get(&words);
        assert_eq!(code(&ours), expected, "{words:?}: {}", stderr(&ours));
        if !has_curl() {
            continue;
        }
        let curl = super::curl::command()
            .args(&words)
            .output()
            .expect("curl runs");
        assert_eq!(code(&curl), expected, "curl {words:?}");
        let lines = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stdout).to_ascii_lowercase();
            let mut lines: Vec<String> = text
                .lines()
                .map(|line| line.trim_end().to_owned())
                // Older than HTTP/1.1, and without a standard.
                .filter(|line| !line.starts_with("proxy-connection"))
                .filter(|line| !line.starts_with("content-length"))
                .collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&ours), lines(&curl), "{words:?}");
    }
    // With the right password, the request continues to a port without a listener.
    let output = get(&[
        "-x",
        &there,
        "-U",
        "me:secret",
        "-k",
        "https://locked.example:1/",
    ]);
    assert!(!stderr(&output).contains("407"), "{}", stderr(&output));
    for wrong in ["socks5://127.0.0.1", "http://a b"] {
        let output = get(&["-x", wrong, &tunnelled]);
        assert_eq!(code(&output), 5, "{}", stderr(&output));
    }
}
