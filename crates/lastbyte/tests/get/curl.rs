//! Beside curl: the same command brings the same bytes and the same exit code.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use super::{
    alone,
    raw::{ScriptedServer, body},
    stderr,
};

/// The arguments of both.
struct Case<'a> {
    words: &'a [&'a str],
    stdin: &'a [u8],
}

/// Without what its user's files and environment would add.
pub(crate) fn command() -> Command {
    let mut command = alone("curl");
    command.args(["-q"]);
    command
}

fn run(program: &str, first: &[&str], folder: &PathBuf, case: &Case<'_>) -> Output {
    fs::create_dir_all(folder).expect("a folder");
    let mut child = alone(program)
        .args(first)
        .args(case.words)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("piped");
    // Who wants nothing of it has closed it.
    let _ = stdin.write_all(case.stdin);
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

pub(crate) fn has_curl() -> bool {
    let found = Command::new("curl").arg("--version").output();
    if found.is_err() {
        lastbyte_testkit::skip("no `curl`");
    }
    found.is_ok()
}

/// Runs both, each in its own folder, and returns ours.
fn beside_curl(name: &str, words: &[&str], stdin: &[u8]) -> (Output, Output, [PathBuf; 2]) {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let folders = [place.join("curl"), place.join("ours")];
    for folder in &folders {
        fs::create_dir_all(folder).expect("a folder");
        fs::write(folder.join("file"), body(70_000)).expect("a file");
    }
    let case = Case { words, stdin };
    let curl = run("curl", &["-q", "-s"], &folders[0], &case);
    let ours = run(
        env!("CARGO_BIN_EXE_lastbyte"),
        &["get", "-s"],
        &folders[1],
        &case,
    );
    (curl, ours, folders)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_same_command_returns_the_bytes_and_exit_code_of_curl() {
    if !has_curl() {
        return;
    }
    let server = ScriptedServer::start();
    let url = |path: &str| server.url(path);
    let [thousand, echo, early, part, gzip] = ["1000", "echo", "early", "part", "gzip"].map(url);
    let [cut, chunk, empty, missing, never] =
        ["cut", "cut-chunk", "empty", "no-such", "never"].map(url);
    let [twice, circle, chunked, close, none] =
        ["to?301,/to?302,/7", "loop", "chunked", "close", "none"].map(url);
    let [post303, post307, plain] = ["to?303,/echo", "to?307,/echo", "not-gzip"].map(url);
    let stalled = url("never-ends");
    let away = url("to?301,http://127.0.0.1:1/");
    let detour = format!("somewhere.invalid:80:127.0.0.1:{}", server.port);
    let write_out = "%{http_code} %{num_redirects} %{size_download} %{size_upload} %{url_effective} \
                %{content_type} %{http_version} %{remote_ip} %{redirect_url}\\n%%";
    let cases: &[(&[&str], &[u8], i32)] = &[
        (&[&thousand], b"", 0),
        (&["-I", &thousand], b"", 0),
        (&["-i", &thousand], b"", 0),
        (&["-i", &early], b"", 0),
        (&["-i", "-L", &twice], b"", 0),
        (&["-L", &twice, "-w", write_out], b"", 0),
        (&[&twice, "-w", write_out], b"", 0),
        (&["-L", &circle], b"", 47),
        (
            &["-L", &away, "-w", "%{http_code} %{num_redirects}"],
            b"",
            7,
        ),
        (&["-L", "-d", "a=1", &post303], b"", 0),
        (&["-L", "-d", "a=1", &post307], b"", 0),
        (&["-L", "-X", "PUT", "-d", "a=1", &post307], b"", 0),
        (
            &["-d", "a=1", "-d", "b=2", "--data-binary", "c", &echo],
            b"",
            0,
        ),
        (&["-d", "@-", &echo], b"a\r\nb\n", 0),
        (&["--data-binary", "@-", &echo], b"a\r\nb\n", 0),
        (&["--data-binary", "@file", &echo], b"", 0),
        (&["-d", "", &echo, "-w", "%{size_upload}"], b"", 0),
        (&["-T", "file", &echo], b"", 0),
        (&["-T", "-", &echo], b"from standard input", 0),
        (&["-T", "missing", &echo], b"", 26),
        (&["-r", "100-199", &part], b"", 0),
        (&["-r", "-100", &part], b"", 0),
        (&["--compressed", &gzip], b"", 0),
        (&["--compressed", &plain], b"", 61),
        (&[&gzip], b"", 0),
        (&[&chunked], b"", 0),
        (&[&close], b"", 0),
        (&["-i", &none], b"", 0),
        (&[&cut], b"", 18),
        (&[&chunk], b"", 18),
        (&[&empty], b"", 52),
        (&[&missing], b"", 0),
        (&["-f", &missing], b"", 22),
        (&["-m", "0.3", &never], b"", 28),
        (&["-o", "/dev/full", &thousand], b"", 23),
        (&["-o", "no/such/folder", &thousand], b"", 23),
        (&["-O", &thousand], b"", 0),
        (&["-o", "one", &thousand, "-o", "two", &chunked], b"", 0),
        (&[&thousand, &chunked], b"", 0),
        (&["-m", "1", "-o", "one", &stalled], b"", 28),
        (
            &["--connect-to", &detour, "http://somewhere.invalid/1000"],
            b"",
            0,
        ),
        // The last one applies.
        (&["-s", "-sSL", "-L", "-m", "9", "-m", "8", &twice], b"", 0),
        (&["-X", "PUT", "-X", "GET", "-o", "one", &thousand], b"", 0),
        (&["-4", "-6", "-4", &thousand], b"", 0),
        (
            &["--http2", "--http1.1", "-w", "%{http_version}", &thousand],
            b"",
            0,
        ),
        (&["-k", "-k", "--cacert", "file", &thousand], b"", 0),
        (&["http://127.0.0.1:1/"], b"", 7),
        (&["http://no-such-name.invalid/"], b"", 6),
        (&["nothing://127.0.0.1/"], b"", 1),
        (&["http://127.0.0.1:99999/"], b"", 3),
    ];
    for (number, (words, stdin, expected)) in cases.iter().enumerate() {
        let (curl, ours, folders) = beside_curl(&format!("curl-{number}"), words, stdin);
        assert_eq!(
            ours.status.code(),
            Some(*expected),
            "{words:?}: {}",
            stderr(&ours)
        );
        assert_eq!(curl.status.code(), Some(*expected), "curl {words:?}");
        let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            curl.stdout == ours.stdout,
            "{words:?}: {} and not {}",
            text(&ours),
            text(&curl)
        );
        for name in ["1000", "one", "two"] {
            let [theirs, ours] = folders
                .clone()
                .map(|folder| fs::read(folder.join(name)).ok());
            assert!(theirs == ours, "{words:?}: `{name}`");
        }
    }
}

#[test]
fn requests_match_those_of_curl() {
    if !has_curl() {
        return;
    }
    let server = ScriptedServer::start();
    let there = server.url("head");
    for words in [
        &[
            "-H",
            "user-agent: me",
            "-H",
            "referer: https://from.example/",
        ][..],
        &["-H", "user-agent: me", "-H", "x-none;", "-H", "accept:"],
        &["-H", "user-agent: me", "-u", "me:se cret"],
        &["-H", "user-agent: me", "-d", "x=1"],
        &[
            "-H",
            "user-agent:",
            "-d",
            "x=1",
            "-H",
            "content-type: text/x",
        ],
        &["-H", "user-agent: me", "-r", "0-9"],
        &["-H", "user-agent: me", "-X", "PATCH"],
        &["-H", "user-agent: me", "-H", "host: elsewhere.example"],
        // "name:" removes what other options add, too.
        &["-H", "user-agent: me", "-d", "x=1", "-H", "content-type:"],
        &[
            "-H",
            "user-agent: me",
            "-d",
            "x=1",
            "-H",
            "expect: 100-continue",
        ],
        &["-H", "user-agent: me", "-d", "x=1", "-H", "Expect: other"],
        &["-H", "user-agent: me", "-T", "-", "-H", "Expect:"],
        &[
            "-H",
            "user-agent: me",
            "--compressed",
            "-H",
            "accept-encoding:",
        ],
        &[
            "-H",
            "user-agent: me",
            "-u",
            "me:secret",
            "-H",
            "authorization:",
        ],
    ] {
        let words = [words, &[&there]].concat();
        let (curl, ours, _) = beside_curl("curl-asks", &words, b"");
        let lines = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let mut lines: Vec<String> = text
                .lines()
                .map(|line| line.trim_end().to_owned())
                .collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&ours), lines(&curl), "{words:?}");
    }
}

/// No option of curl is unknown: it is accepted, or refused by its name without a guess at another one.
#[test]
fn every_option_of_curl_is_accepted_or_refused_by_name() {
    if !has_curl() {
        return;
    }
    let output = command().args(["--help", "all"]).output().expect("it runs");
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let options = help.lines().flat_map(|line| {
        let words = line.split_whitespace().take(2);
        words.filter(|word| word.starts_with('-'))
    });
    let options: Vec<&str> = options.map(|word| word.trim_end_matches(',')).collect();
    assert!(options.len() > 250, "{help}");
    let mut refused = 0;
    for option in options {
        // Without a URL nothing is fetched; an option with a value lacks it.
        let output = alone(env!("CARGO_BIN_EXE_lastbyte"))
            .args(["get", option])
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let errors = stderr(&output);
        assert!(
            !errors.contains("unexpected argument"),
            "{option}: {errors}"
        );
        if errors.contains("is not supported") {
            assert!(errors.contains(&format!("curl's `{option}`")), "{errors}");
            assert!(!errors.contains("Usage"), "{errors}");
            assert_eq!(output.status.code(), Some(2));
            refused += 1;
        }
    }
    assert!((200..300).contains(&refused), "{refused}");
}

#[test]
fn guesses_at_options_are_near() {
    for (words, expected) in [
        (
            &["get", "--hedaer", "a: b", "https://a/"][..],
            Some("'--header'"),
        ),
        (&["get", "--insecur", "https://a/"], Some("'--insecure'")),
        (&["get", "--banana", "https://a/"], None),
        (&["serve", "--port", "1"], None),
        (&["sim", "--jbos", "3"], Some("'--jobs'")),
    ] {
        let output = alone(env!("CARGO_BIN_EXE_lastbyte")).args(words).output();
        let output = output.expect("it runs");
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(&format!("'{}'", words[1])), "{errors}");
        match expected {
            Some(expected) => assert!(errors.contains(expected), "{errors}"),
            None => assert!(!errors.contains("similar"), "{errors}"),
        }
        assert!(
            !errors.contains("Usage") && !errors.contains("as a value"),
            "{errors}"
        );
    }
}

/// `script` gives the program a terminal.
#[test]
fn binary_content_is_not_written_to_a_terminal() {
    let server = ScriptedServer::start();
    let program = env!("CARGO_BIN_EXE_lastbyte");
    let (binary, text) = (server.url("gzip"), server.url("chunked"));
    for (options, url, expected, shown) in [
        ("", &binary, 23, "-o FILE"),
        ("-o -", &binary, 0, "\0"),
        ("-o /dev/null", &binary, 0, ""),
        ("", &text, 0, "hello world"),
    ] {
        let line = format!("{program} get {options} {url}");
        let output = alone("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::null())
            .output();
        let Ok(output) = output else {
            lastbyte_testkit::skip("no `script`");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(expected), "{line}: {text}");
        assert!(text.contains(shown), "{line}: {text}");
        assert_eq!(text.contains('\0'), shown == "\0", "{line}: {text}");
    }
}

/// Fields may contain controls of C1. A file or a pipe gets them, a terminal does not.
#[test]
fn fields_contain_no_sequences_for_terminals() {
    let server = ScriptedServer::start();
    let program = env!("CARGO_BIN_EXE_lastbyte");
    let url = server.url("c1");
    let written = "-o /dev/null -w '%header{x-utf-8} %header{x-latin-1}'";
    for options in ["-i", written, "-v"] {
        let line = format!("{program} get {options} {url}");
        let output = alone("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::null())
            .output();
        let Ok(output) = output else {
            lastbyte_testkit::skip("no `script`");
            return;
        };
        let text = String::from_utf8(output.stdout).expect("no Latin-1");
        assert!(text.contains("31m"), "{line}: {text}");
        let is_safe = |c: char| matches!(c, '\r' | '\n' | '\t') || !c.is_control();
        assert!(text.chars().all(is_safe), "{line}: {text:?}");
    }
    let piped = alone(program).args(["get", "-i", &url]).output();
    let piped = piped.expect("the command runs").stdout;
    let has = |bytes: &[u8]| piped.windows(bytes.len()).any(|it| it == bytes);
    assert!(has("x-utf-8: \u{9b}31m\r\n".as_bytes()) && has(b"x-latin-1: \x9b31m\r\n"));
}

/// Errors name the options that help.
#[test]
fn errors_name_what_helps() {
    let place = super::Place::new("get-errors");
    let output = super::get(&[&place.url("1")]);
    assert_eq!(output.status.code(), Some(60));
    let errors = stderr(&output);
    assert!(errors.contains("unknown issuer"), "{errors}");
    assert!(
        errors.contains("--cacert FILE") && errors.contains("-k"),
        "{errors}"
    );
    let output = super::get(&["-k", "https://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(7));
    let errors = stderr(&output);
    assert!(
        errors.contains("no QUIC server") && errors.contains("; cannot connect to"),
        "{errors}"
    );
}
