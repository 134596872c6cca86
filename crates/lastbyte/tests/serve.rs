//! `lastbyte serve` as people run it, and as they misuse it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what a command reads and writes is files and sockets"
)]

use std::fs;

#[path = "serve/activation.rs"]
mod activation;
#[path = "serve/connections.rs"]
mod connections;
#[path = "serve/handover.rs"]
mod handover;
#[path = "serve/proxied.rs"]
mod proxied;
#[path = "serve/qlog.rs"]
mod qlog;
#[path = "serve/reload.rs"]
mod reload;
#[path = "serve/replay.rs"]
mod replay;
#[path = "serve/routes.rs"]
mod routes;
#[path = "common/serving.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod serving;

use serving::{Serving, command_line, folder, lastbyte, stderr};

#[test]
fn each_line_of_the_logs_names_site_connection_thread_and_arm() {
    let folder = folder("serve-site");
    let flags = ["--self-signed", "--log", "log", "--access-log", "access"];
    let mut flags = flags.to_vec();
    flags.extend(["--site", "fra1", "--experiment", "four-arms"]);
    flags.extend(["--site", "/1000=fra1-small"]);
    let serving = Serving::start(&folder, &flags);
    for path in ["/1000", "/2000"] {
        for version in ["1.1", "2", "3"] {
            let got = serving.get(&folder, path, &["--http", version, "-o", "/dev/null"]);
            assert!(got.status.success(), "{}", stderr(&got));
        }
    }
    let (code, printed) = serving.end();
    assert_eq!(code, 0);
    let mut printed = printed.lines();
    let hash = printed.find_map(|line| line.strip_prefix("configuration "));
    let hash = hash.expect("it is printed");
    assert_eq!(hash.len(), 16);
    let (connections, requests) = (folder.join("log"), folder.join("access"));
    let (connections, requests) = (serving::lines(&connections), serving::lines(&requests));
    assert_eq!((connections.len(), requests.len()), (6, 6));
    for request in requests {
        let is_quic = request["http"] == "HTTP/3";
        let connection = connections.iter().find(|connection| {
            connection["conn_id"] == request["conn_id"]
                && connection["transport"].is_null() == is_quic
        });
        let connection = connection.expect("its connection");
        let is_small = request["path"] == "/1000";
        let site = if is_small { "fra1-small" } else { "fra1" };
        for line in [&request, connection] {
            assert_eq!(line["site"], site, "{line}");
            assert_eq!(line["worker"], 0, "{line}");
            assert_eq!(line["config"], hash, "{line}");
        }
        assert_eq!(request["arm"], connection["arm"]);
        assert_eq!(request["arm"].is_string(), is_quic, "{request}");
    }
    let long = "x".repeat(65);
    for (names, expected) in [
        (&[""][..], "expected a name of 1 to 64 bytes"),
        (&["a\nb"], "expected a name of 1 to 64 bytes"),
        (&[long.as_str()], "expected a name of 1 to 64 bytes"),
        (&["=x"], "invalid place ``: empty"),
        (&["/a b?c=x"], "invalid place `/a b?c`"),
        (&["a", "b"], "two names without a place"),
    ] {
        let mut words = vec!["serve", "--self-signed"];
        words.extend(names.iter().flat_map(|name| ["--site", *name]));
        let wrong = lastbyte(&folder, &words);
        assert_eq!(wrong.status.code(), Some(2));
        assert!(stderr(&wrong).contains(expected), "{}", stderr(&wrong));
    }
}

#[test]
fn a_directory_is_served_until_a_signal_arrives() {
    let folder = folder("serve-directory");
    fs::write(folder.join("hello.txt"), "hello").expect("room");
    let flags = [
        "--self-signed",
        "--log",
        "log",
        "--access-log",
        "access",
        "--drain",
        "60s",
        ".",
    ];
    let serving = Serving::start(&folder, &flags);
    let whole = serving.get(&folder, "/hello.txt", &["-i"]);
    let text = String::from_utf8_lossy(&whole.stdout).into_owned();
    assert!(
        text.starts_with("HTTP/3 200") && text.ends_with("\r\n\r\nhello"),
        "{text}{}",
        stderr(&whole)
    );
    assert!(
        text.contains("content-type: text/plain\r\n") && text.contains("etag: "),
        "{text}"
    );
    let part = serving.get(&folder, "/hello.txt", &["-H", "range: bytes=1-2"]);
    assert_eq!(part.stdout, b"el", "{}", stderr(&part));
    let posted = serving.get(&folder, "/hello.txt", &["-i", "-d", "x=1"]);
    assert!(
        posted.stdout.starts_with(b"HTTP/3 405"),
        "{}",
        stderr(&posted)
    );
    let (code, printed) = serving.end();
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("(HTTP/1.1, HTTP/2, HTTP/3, 1 worker)"),
        "{printed}"
    );
    assert!(
        printed.contains("HTTP/3: 3 connections, 3 requests"),
        "{printed}"
    );
    let access = fs::read_to_string(folder.join("access")).expect("a log");
    assert_eq!(access.lines().count(), 3, "{access}");
    // Whether a line is `complete` hangs on what the client acknowledges before it closes.
    let mut statuses = Vec::new();
    for line in access.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["http"], "HTTP/3");
        assert_eq!(line["path"], "/hello.txt");
        statuses.push(line["status"].as_u64().expect("a number"));
    }
    assert_eq!(statuses, [200, 206, 405]);
    let log = fs::read_to_string(folder.join("log")).expect("a log");
    assert_eq!(log.lines().count(), 3);
    assert!(!log.contains("\"transport\""), "{log}");
}

#[test]
fn certificates_keys_and_arms_are_reloaded() {
    let folder = folder("serve-reload");
    let make = || {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
                .expect("a certificate");
        fs::write(folder.join("cert.pem"), cert.pem()).expect("room");
        fs::write(folder.join("key.pem"), signing_key.serialize_pem()).expect("room");
    };
    make();
    fs::copy(folder.join("cert.pem"), folder.join("old.pem")).expect("room");
    let line = "0123456789abcdef".repeat(4);
    fs::write(folder.join("tickets"), &line).expect("room");
    let config = "cert = \"cert.pem\"\nkey = \"key.pem\"\nticket-keys = \"tickets\"\n";
    fs::write(folder.join("serve.toml"), config).expect("room");
    let mut serving = Serving::start(&folder, &["--config", "serve.toml"]);
    let url = format!("https://localhost:{}/3", serving.port);
    let get = |trusted: &str| {
        lastbyte(&folder, &["get", "--cacert", trusted, &url])
            .status
            .success()
    };
    assert!(get("old.pem"));
    make();
    serving.signal("-HUP");
    let logged = serving.until("reloaded");
    assert!(
        logged.starts_with("reloaded: arms, certificate, ticket keys; configuration "),
        "{logged}"
    );
    assert!(!get("old.pem") && get("cert.pem"));
    // What cannot be used changes nothing.
    fs::write(folder.join("tickets"), "xyz").expect("room");
    serving.signal("-HUP");
    let logged = serving.until("error");
    assert!(
        logged.contains("tickets`: cannot use the ticket keys"),
        "{logged}"
    );
    assert!(get("cert.pem"));
    assert_eq!(serving.end().0, 0);
}

/// Without a signal, by server name, and the alternative for a client whose name is in no certificate.
#[test]
fn certificates_that_were_written_are_used_without_a_reload() {
    let folder = folder("serve-renewal");
    let make = |file: &str, name: &str| {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("a certificate");
        fs::write(folder.join(format!("{file}.pem")), cert.pem()).expect("room");
        let key = signing_key.serialize_pem();
        fs::write(folder.join(format!("{file}.key")), key).expect("room");
    };
    make("a", "a.example");
    make("b", "b.example");
    let config = "cert = [\"a.pem\", \"b.pem\"]\nkey = [\"a.key\", \"b.key\"]\ngenerated = true\n";
    fs::write(folder.join("serve.toml"), config).expect("room");
    let mut serving = Serving::start(&folder, &["--config", "serve.toml"]);
    let get = |serving: &Serving, name: &str, trusted: &str, version: &str| {
        let url = format!("https://{name}:{}/3", serving.port);
        let to = format!("{name}:{}:127.0.0.1", serving.port);
        let arguments = [
            "get",
            "--http",
            version,
            "--cacert",
            trusted,
            "--resolve",
            &to,
            &url,
        ];
        lastbyte(&folder, &arguments).status.success()
    };
    for version in ["1.1", "2", "3"] {
        assert!(get(&serving, "a.example", "a.pem", version));
        assert!(get(&serving, "b.example", "b.pem", version));
        assert!(!get(&serving, "a.example", "b.pem", version));
    }
    assert!(serving.metric("lastbyte_certificate_not_after_seconds{name=\"b.example\"}") > 0);
    assert_eq!(serving.metric("lastbyte_last_reload_successful"), 1);
    fs::copy(folder.join("b.pem"), folder.join("old.pem")).expect("room");
    make("b", "b.example");
    let logged = serving.until("certificates: ");
    assert!(
        logged.starts_with("certificates: `a.example` until "),
        "{logged}"
    );
    for version in ["1.1", "2", "3"] {
        assert!(get(&serving, "b.example", "b.pem", version));
        assert!(!get(&serving, "b.example", "old.pem", version));
    }
    // A certificate without its key changes nothing, and is reported.
    fs::copy(folder.join("a.pem"), folder.join("b.pem")).expect("room");
    serving.until("the certificate files changed and cannot be used");
    assert!(get(&serving, "a.example", "a.pem", "3"));
    assert_eq!(serving.metric("lastbyte_last_reload_successful"), 0);
    // Usable certificates do not make a refused configuration valid.
    fs::write(folder.join("serve.toml"), format!("{config}unknown = 1\n")).expect("room");
    serving.signal("-HUP");
    serving.until("reload failed; keeping the current configuration");
    make("b", "b.example");
    serving.until("certificates: ");
    assert_eq!(serving.metric("lastbyte_last_reload_successful"), 0);
    fs::write(folder.join("serve.toml"), config).expect("room");
    serving.signal("-HUP");
    serving.until("reloaded: ");
    serving.wait_for("lastbyte_last_reload_successful", |value| value == 1);
    assert_eq!(serving.end().0, 0);
}

#[test]
fn invalid_settings_are_errors_before_the_server_starts() {
    let folder = folder("serve-wrong");
    fs::write(folder.join("empty"), "").expect("room");
    fs::write(folder.join("serve.toml"), "\nlistening = \"x\"\n").expect("room");
    let requires = "self-signed = true\nearly-hints = true\n";
    fs::write(folder.join("requires.toml"), requires).expect("room");
    serving::certificate(&folder, "a");
    for name in ["pem", "key"] {
        let whole = fs::read_to_string(folder.join(format!("a.{name}"))).expect("a file");
        let cut = folder.join(format!("cut.{name}"));
        fs::write(cut, &whole[..whole.len() / 2]).expect("room");
    }
    for (flags, code, expected) in [
        ("--self-signed nowhere", 2, "cannot serve `nowhere`"),
        (
            "--cert empty --key empty",
            2,
            "cannot read `empty`: no certificate found",
        ),
        ("--cert nowhere --key empty", 2, "cannot read `nowhere`"),
        (
            "--cert a.key --key a.pem",
            2,
            "error: cannot read `a.key`: a private key (expected a certificate chain in PEM)",
        ),
        (
            "--cert cut.pem --key a.key",
            2,
            "cannot read `cut.pem`: cut off or damaged (expected PEM)",
        ),
        (
            "--cert a.pem --key cut.key",
            2,
            "error: cannot read `cut.key`: cut off or damaged (expected PEM)",
        ),
        (
            "--self-signed --proxy https://localhost:1 --proxy-ca cut.pem",
            2,
            "cannot use `cut.pem`: cut off or damaged (expected PEM)",
        ),
        (
            "--self-signed --http2-stream 5",
            2,
            "error: unknown option `--http2-stream`; `http2-streams` is a key of the configuration file only",
        ),
        (
            "--config nowhere --config requires.toml --check",
            2,
            "error: `requires.toml` line 2: `early-hints` requires `pages`\n",
        ),
        ("--config nowhere", 2, "cannot read `nowhere`"),
        (
            "--config serve.toml",
            2,
            "`serve.toml` line 2: unknown key `listening`; did you mean `listing`?",
        ),
        ("--self-signed --ticket-keys empty", 2, "no ticket key"),
        (
            "--self-signed --experiment nowhere",
            2,
            "cannot read `nowhere`: No such file or directory (os error 2) (expected a file, or `four-arms`)",
        ),
        (
            "--self-signed --experiment four-arm",
            2,
            "cannot read `four-arm`: No such file or directory (os error 2); did you mean `four-arms`?",
        ),
        (
            "--self-signed --header x",
            2,
            "missing colon (expected `name: value`)",
        ),
        (
            "--self-signed --listen 192.0.2.1:1",
            1,
            "cannot listen on `192.0.2.1:1`",
        ),
        (
            "--self-signed --log nowhere/log",
            1,
            "cannot write `nowhere/log`",
        ),
        ("--self-signed --check", 0, "configuration OK"),
    ] {
        let output = lastbyte(&folder, &command_line(&format!("serve {flags}")));
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{flags}: {printed}");
        assert!(printed.contains(expected), "{flags}: {printed}");
        // Of files that cannot be used, only what is wrong with them counts.
        assert!(!printed.contains("any user can read"), "{flags}: {printed}");
    }
}

#[test]
fn lines_lost_on_a_full_disk_are_reported_on_exit() {
    let folder = folder("serve-full");
    let serving = Serving::start(&folder, &["--self-signed", "--access-log", "/dev/full"]);
    assert!(
        serving
            .get(&folder, "/100", &["-o", "/dev/null"])
            .status
            .success()
    );
    let (code, printed) = serving.end();
    assert_eq!(code, 1, "{printed}");
    assert!(
        printed.contains("1 of 1 lines could not be written to `/dev/full`"),
        "{printed}"
    );
    // Of each log.
    for name in ["a", "c"] {
        std::os::unix::fs::symlink("/dev/full", folder.join(name)).expect("a link");
    }
    let flags = ["--self-signed", "--access-log", "a", "--log", "c"];
    let serving = Serving::start(&folder, &flags);
    let got = serving.get(&folder, "/100", &["--http", "3", "-o", "/dev/null"]);
    assert!(got.status.success(), "{}", stderr(&got));
    let (code, printed) = serving.end();
    assert_eq!(code, 1, "{printed}");
    for name in ["a", "c"] {
        let expected = format!("error: 1 of 1 lines could not be written to `{name}`");
        assert!(printed.contains(&expected), "{printed}");
    }
}

/// What `openssl req -x509` makes by default.
#[test]
fn a_ca_certificate_as_server_certificate_is_named_in_the_error() {
    let folder = folder("serve-authority");
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    fs::write(folder.join("cert.pem"), certificate.pem()).expect("room");
    fs::write(folder.join("key.pem"), key.serialize_pem()).expect("room");
    let serving = Serving::start(&folder, &["--cert", "cert.pem", "--key", "key.pem"]);
    for version in ["2", "3"] {
        let words = [
            "get",
            "--cacert",
            "cert.pem",
            "--http",
            version,
            &serving.url("/1"),
        ];
        let output = lastbyte(&folder, &words);
        assert_eq!(output.status.code(), Some(60));
        assert!(stderr(&output).contains("(CA:TRUE)"), "{}", stderr(&output));
    }
    assert_eq!(serving.end().0, 0);
}

/// Private keys and key logs decrypt recorded traffic: key logs and qlog are for their owner only, and serve reports them.
#[test]
fn secrets_on_disk_are_private_and_announced() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("serve-secrets");
    serving::certificate(&folder, "a");
    let mode = |name: &str| {
        let about = fs::metadata(folder.join(name)).expect("it is there");
        about.permissions().mode() & 0o777
    };
    fs::set_permissions(folder.join("a.key"), fs::Permissions::from_mode(0o644)).expect("ours");
    let flags = [
        "--cert", "a.pem", "--key", "a.key", "--keylog", "keys", "--qlog", "qlog",
    ];
    let serving = Serving::start(&folder, &flags);
    let printed = serving.process.printed.clone();
    assert!(
        printed.contains("warning: any user can read `a.key`: mode 0644 (expected 0600)\n"),
        "{printed}"
    );
    assert!(
        printed.contains("writing TLS secrets to `keys`"),
        "{printed}"
    );
    assert!(
        printed.contains("writing a qlog file for each connection to `qlog`"),
        "{printed}"
    );
    let got = serving.get(&folder, "/10", &["--http", "3", "--keylog", "theirs"]);
    assert!(got.status.success(), "{}", stderr(&got));
    assert_eq!(serving.end().0, 0);
    let secrets = fs::read_to_string(folder.join("keys")).expect("a key log");
    assert!(secrets.contains("SERVER_TRAFFIC_SECRET_0 "), "{secrets}");
    let qlogs = || {
        let files = fs::read_dir(folder.join("qlog")).expect("a folder");
        let names = files.map(|file| file.expect("a file").file_name());
        let names = names.map(|name| format!("qlog/{}", name.to_string_lossy()));
        names.collect::<Vec<_>>()
    };
    let [first] = &qlogs()[..] else {
        panic!("one file: {:?}", qlogs());
    };
    assert!(first.ends_with("-0_server.sqlog"), "{first}");
    for name in ["keys", "theirs", first] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    // Another process, as in a rolling restart, has its own files.
    let content = fs::read(folder.join(first)).expect("a qlog");
    let serving = Serving::start(&folder, &flags);
    let got = serving.get(&folder, "/10", &["--http", "3"]);
    assert!(got.status.success(), "{}", stderr(&got));
    assert_eq!(serving.end().0, 0);
    assert_eq!(qlogs().len(), 2);
    assert_eq!(fs::read(folder.join(first)).expect("a qlog"), content);
    // As SSLKEYLOGFILE does, which an environment may hold without the operator's knowing.
    let mut command = serving::command(
        &folder,
        &["serve", "--self-signed", "--listen", "127.0.0.1:0"],
    );
    let serving = Serving::spawn(command.env("SSLKEYLOGFILE", "environment"));
    let printed = serving.process.printed.clone();
    assert!(
        printed.contains("writing TLS secrets to `environment`"),
        "{printed}"
    );
    assert_eq!(mode("environment"), 0o600);
    assert_eq!(serving.end().0, 0);
}

/// RFC 9002 §7.2: at most 10 packets, unless more is asked for.
#[test]
fn rfc9002_7_2_the_first_flight_is_ten_packets_by_default() {
    let folder = folder("serve-window");
    for (flags, packets) in [
        (&[][..], 10),
        (&["--congestion", "hystart:initial-window=10p"][..], 10),
        (&["--congestion", "rapid-start"][..], 30),
    ] {
        let mut all = vec!["--self-signed", "--log", "log", "--http", "3"];
        all.extend(flags);
        let serving = Serving::start(&folder, &all);
        let got = serving.get(&folder, "/1000", &["-o", "/dev/null"]);
        assert!(got.status.success(), "{}", stderr(&got));
        assert_eq!(serving.end().0, 0);
        let line = serving::lines(&folder.join("log")).pop().expect("a line");
        // In packets of the size that is known by then.
        let window = line["cc.cwnd-initial"].as_u64().expect("bytes");
        assert!(
            [1200, 1472].map(|size| packets * size).contains(&window),
            "{flags:?}: {line}"
        );
    }
}

#[test]
fn packets_and_records_are_protected_by_the_library_of_the_option() {
    let folder = folder("serve-aead");
    let body = vec![b'x'; 300_000];
    fs::write(folder.join("file"), &body).expect("room");
    for at_server in ["aws-lc", "ring"] {
        let flags = ["--self-signed", "--aead", at_server, "."];
        let serving = Serving::start(&folder, &flags);
        let printed = format!("AES-GCM by {at_server} (set by an option)\n");
        assert!(
            serving.process.printed.contains(&printed),
            "{}",
            serving.process.printed
        );
        for at_client in ["aws-lc", "ring", "auto"] {
            for version in ["3", "2"] {
                let flags = ["--aead", at_client, "--http", version];
                let got = serving.get(&folder, "/file", &flags);
                assert!(
                    got.stdout == body,
                    "{at_server} {at_client} {}",
                    stderr(&got)
                );
            }
        }
        let (code, printed) = serving.end();
        assert_eq!(code, 0, "{printed}");
    }
}

#[test]
fn the_faster_library_is_measured_unless_one_is_set() {
    let folder = folder("serve-aead-auto");
    let serving = Serving::start(&folder, &["--self-signed", "."]);
    let printed = &serving.process.printed;
    assert!(
        printed.contains("\nAES-GCM by ") || printed.starts_with("AES-GCM by "),
        "{printed}"
    );
    assert!(
        printed.contains(" (measured for 1424 bytes: aws-lc "),
        "{printed}"
    );
    let wrong = lastbyte(&folder, &["get", "--aead", "openssl", "https://localhost/"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("[possible values: auto, aws-lc, ring]"),
        "{}",
        stderr(&wrong)
    );
    let (code, printed) = serving.end();
    assert_eq!(code, 0, "{printed}");
}

#[test]
fn the_verbose_version_names_the_libraries() {
    let folder = folder("version");
    let version = String::from_utf8(lastbyte(&folder, &["-V"]).stdout).expect("UTF-8");
    assert!(version.starts_with("lastbyte ") && version.lines().count() == 1);
    let long = lastbyte(&folder, &["--version"]);
    assert_eq!(String::from_utf8_lossy(&long.stdout), version);
    for flags in [&["-vV"][..], &["--version", "-v"]] {
        let verbose = lastbyte(&folder, flags);
        let text = String::from_utf8_lossy(&verbose.stdout).into_owned();
        let rest = text.strip_prefix(&version).expect("the version first");
        assert!(
            rest.contains("handshake: aws-lc\n") && rest.contains("AES-GCM"),
            "{text}"
        );
        assert_eq!(verbose.status.code(), Some(0));
    }
    // Without `--version` there is nothing to be verbose about; beside a command it is an error.
    for flags in [&["-v"][..], &["-V", "specs"]] {
        assert_eq!(lastbyte(&folder, flags).status.code(), Some(2), "{flags:?}");
    }
}

/// `.cargo/config.toml` reaches the build of aws-lc. The names of functions are in binaries that are not stripped.
#[test]
fn the_random_generator_is_built_without_jitter_entropy() {
    let binary = fs::read(env!("CARGO_BIN_EXE_lastbyte")).expect("the binary");
    let has = |name: &[u8]| {
        let mut starts = binary
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == name[0]);
        starts.any(|(at, _)| binary[at..].starts_with(name))
    };
    assert!(has(b"_RAND_bytes"));
    assert!(!has(b"_jent_"));
}
