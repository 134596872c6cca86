//! Virtual hosts, upload sinks and hints.

use std::fs;

use super::{Serving, folder, serving::lastbyte, stderr};

/// Two hosts with their own directories, an upstream server, a sink, and nothing else.
#[test]
fn requests_are_routed_by_host_and_path() {
    let folder = folder("serve-routes");
    for name in ["a", "b"] {
        fs::create_dir(folder.join(name)).expect("a folder");
        fs::write(folder.join(name).join("index.html"), name).expect("room");
    }
    fs::write(folder.join("upload"), vec![7; 3_000_000]).expect("room");
    let upstream = Serving::start(&folder, &["--self-signed"]);
    // Its certificate is not one of an authority.
    let pem = folder.join("none.pem");
    super::serving::certificate(&folder, "none");
    let api = format!("127.0.0.1/1MB={}", upstream.url("/"));
    let open = format!("/open={}", folder.display());
    fs::write(folder.join("open"), "open").expect("room");
    let flags = [
        "--self-signed",
        "--route",
        "localhost=a",
        "--route",
        "127.0.0.1=b",
        "--route",
        "localhost/upload=sink",
        "--route",
        &open,
        "--route",
        &api,
        "--proxy-ca",
        pem.to_str().expect("UTF-8"),
        "--hint",
        "/1MB=</app.css>; rel=preload; as=style",
        "--hint",
        "/=</app.css>; rel=preload; as=style",
    ];
    let serving = Serving::start(&folder, &flags);
    let other = format!("https://127.0.0.1:{}", serving.port);
    for version in ["1.1", "2", "3"] {
        let get = |url: &str, more: &[&str]| {
            lastbyte(
                &folder,
                &[&["get", "-k", "-i", "--http", version, url], more].concat(),
            )
        };
        let text = |url: &str, more: &[&str]| {
            let output = get(url, more);
            assert!(output.status.success(), "{}", stderr(&output));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        // By host; a response that is known at once has the hint itself.
        let of_a = text(&serving.url("/"), &[]);
        assert!(of_a.ends_with("\r\n\r\na"), "{of_a}");
        assert!(
            of_a.contains("link: </app.css>; rel=preload; as=style\r\n"),
            "{of_a}"
        );
        assert!(text(&format!("{other}/"), &[]).ends_with("\r\n\r\nb"));
        // Objects by size only where they are asked for.
        assert!(text(&serving.url("/1000"), &[]).contains(" 404"));
        // By path. A host without a path has all of its requests.
        let counted = text(&serving.url("/upload"), &["-T", "upload"]);
        assert!(counted.ends_with("{\"bytes\":3000000}\n"), "{counted}");
        assert!(text(&serving.url("/upload"), &[]).contains(" 405"));
        assert!(text(&serving.url("/open"), &[]).contains(" 404"));
        let elsewhere = format!("https://other.test:{}/open", serving.port);
        let resolve = format!("other.test:{}:127.0.0.1", serving.port);
        assert!(text(&elsewhere, &["--resolve", &resolve]).ends_with("\r\n\r\nopen"));
        // The upstream server cannot be verified; until that is known, clients of HTTP/3 have the hint.
        let failed = text(&format!("{other}/1MB"), &[]);
        assert!(failed.contains(" 502"), "{failed}");
        assert_eq!(failed.contains("HTTP/3 103"), version == "3", "{failed}");
    }
    assert_eq!(serving.end().0, 0);
}

#[test]
fn invalid_routes_are_usage_errors() {
    let folder = folder("serve-routes-invalid");
    for (route, why) in [
        ("/a", "missing `=`"),
        ("/a=", "no target"),
        ("a:443=sink", "without a port"),
        ("/a/../b=sink", "dot segments"),
        ("/a=ftp://b", "`ftp://b`"),
        ("/a=nowhere", "cannot serve `nowhere`"),
    ] {
        let output = lastbyte(
            &folder,
            &["serve", "--self-signed", "--check", "--route", route],
        );
        assert_eq!(output.status.code(), Some(2), "{route}");
        assert!(
            stderr(&output).contains(why),
            "{route}: {}",
            stderr(&output)
        );
    }
    for (option, values) in [
        ("--route", ["X.example/a=sink", "x.example/a/=generated"]),
        ("--site", ["X.example/a=one", "x.example/a/=two"]),
    ] {
        let [first, second] = values;
        let words = [
            "serve",
            "--self-signed",
            "--check",
            option,
            first,
            option,
            second,
        ];
        let said = stderr(&lastbyte(&folder, &words));
        assert!(
            said.contains("`x.example/a` is given twice (expected once)"),
            "{said}"
        );
    }
    // The logs can be written, and are not.
    for log in ["--log", "--access-log", "--keylog"] {
        let output = lastbyte(
            &folder,
            &["serve", "--self-signed", "--check", log, "none/x"],
        );
        assert!(!output.status.success(), "{log}");
        assert!(stderr(&output).contains("`none/x`"), "{}", stderr(&output));
        let output = lastbyte(&folder, &["serve", "--self-signed", "--check", log, "x"]);
        assert!(
            output.status.success() && !folder.join("x").exists(),
            "{log}"
        );
    }
    let many: Vec<String> = (0..65)
        .map(|path| format!("--route=/{path}=sink"))
        .collect();
    let mut words = vec!["serve", "--self-signed", "--check"];
    words.extend(many.iter().map(String::as_str));
    let output = lastbyte(&folder, &words);
    assert!(
        stderr(&output).contains("expected at most 64"),
        "{}",
        stderr(&output)
    );
}
