//! Every example of docs/query.md gives what the page says, and so does what the command's help shows.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads is files, and the page is one"
)]

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

const PAGE: &str = include_str!("../../../docs/query.md");

/// The blocks of the page in this language, without their fences.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let parts = PAGE.split(fence.as_str()).skip(1);
    parts
        .map(|part| part.split("```").next().expect("a block ends"))
        .collect()
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    for (name, language) in [("conns.ndjson", "ndjson"), ("helpers.rb", "ruby")] {
        let [text] = blocks(language)[..] else {
            panic!("one block of {language}");
        };
        fs::write(folder.join(name), text).expect("a file");
    }
    folder
}

/// As a shell runs it that finds the binary.
fn shell(folder: &Path, line: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_lastbyte"));
    let own = binary.parent().expect("a folder").to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([own].into_iter().chain(env::split_paths(&others))).expect("paths");
    Command::new("sh")
        .args(["-c", line])
        .env("PATH", path)
        .current_dir(folder)
        .output()
        .expect("a shell runs")
}

/// Logs of others may contain sequences that terminals obey, in values and outside of them.
#[test]
fn messages_about_files_contain_no_sequences_for_terminals() {
    let folder = folder("query-messages");
    let line = r#"{"arm":"\u001b]0;title\u0007","ttlb":1,"complete":false}"#;
    fs::write(folder.join("arm.ndjson"), format!("{line}\n").repeat(3)).expect("a file");
    fs::write(folder.join("bad.ndjson"), "\x1b]0;title\x07\n").expect("a file");
    for command in [
        "lastbyte query '_[\"a\"]' bad.ndjson",
        "lastbyte report bad.ndjson",
        "lastbyte report arm.ndjson",
    ] {
        let output = shell(&folder, command);
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(text.contains("\\u{1b}]0;title\\u{7}"), "{command}: {text}");
        let is_safe = |c: char| c == '\n' || !c.is_control();
        assert!(text.chars().all(is_safe), "{command}: {text:?}");
    }
}

/// Its examples can be run on a log of `ab` and `serve`.
#[test]
fn the_log_of_the_page_has_keys_and_arms_of_connection_logs() {
    const LOG: &str = include_str!("../../../docs/connection-log.md");
    let [rows] = blocks("ndjson")[..] else {
        panic!("one block of rows");
    };
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("JSON");
        for (key, value) in row.as_object().expect("a row") {
            let is_known = key == "tags" || LOG.contains(&format!("`{key}`"));
            assert!(is_known, "{key}");
            let arms = ["slow-start", "rapid-start"];
            assert!(key != "arm" || arms.contains(&value.as_str().expect("a name")));
        }
    }
}

#[test]
fn examples_of_the_page_print_what_it_shows() {
    let folder = folder("query-page");
    let mut count = 0;
    for block in blocks("console") {
        for example in block.split("$ ").skip(1) {
            let (line, expected) = example.split_once('\n').expect("a line");
            let output = shell(&folder, line);
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8(text).expect("UTF-8");
            assert_eq!(text, expected, "{line}");
            count += 1;
        }
    }
    assert!(count >= 18, "only {count} examples found");
}

#[test]
fn every_example_of_the_help_runs() {
    let folder = folder("query-help");
    let row = |arm: &str, ttlb: u32| {
        format!(
            "{{\"arm\":\"{arm}\",\"conn_id\":{ttlb},\"rtt.minimum\":9,\"ttlb\":{ttlb},\"num-packets.sent\":10,\"num-packets.lost\":1}}\n"
        )
    };
    let rows = [row("a", 700), row("b", 300), row("a", 500)].concat();
    fs::write(folder.join("conns.ndjson"), rows).expect("a file");
    let help = shell(&folder, "lastbyte query --help");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let mut outputs = Vec::new();
    // Lines that go on in the next one.
    let help = ["\\\n    ", "|\n    ", ">>\n    "]
        .into_iter()
        .fold(help, |help, end| {
            let mark = end.trim_end_matches("\n    ").trim_end_matches('\\');
            help.replace(end, &format!("{mark} "))
        });
    for command in help.lines().map(str::trim) {
        if !command.contains("lastbyte query '") && !command.contains("lastbyte query -") {
            continue;
        }
        let output = shell(&folder, command);
        assert!(output.status.success(), "{command}: {output:?}");
        assert!(!output.stdout.is_empty(), "{command}");
        outputs.push(String::from_utf8(output.stdout).expect("UTF-8"));
    }
    assert!(outputs.len() >= 13, "{outputs:?}");
    assert_eq!(outputs[0], "20\n30\n");
    assert_eq!(outputs[1], "{\"x\":1,\"y\":1}\n");
}

/// A folder with the files that go wrong, and one row in `good`.
fn bad_files(name: &str) -> PathBuf {
    let folder = folder(name);
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("a file");
    let rows: Vec<u8> = (0..90_000)
        .flat_map(|at| format!("{{\"a\":{at}}}\n").into_bytes())
        .collect();
    write("rows", &rows);
    write("good", b"{\"a\":1}\n");
    write("empty", b"");
    write("blank", b"\n \t\r\n\n");
    write("latin1", b"{\"a\":1}\n{\"a\":\"\xe9\"}\n{\"a\":2}\n");
    write("binary", b"\x7fELF\x00\x01\n\x00\xff\n");
    write("broken", b"{\"a\":1}\n{\"a\":\n{\"a\":2}\n");
    write("no-end", b"{\"a\":1}\n{\"a\":2}");
    fs::create_dir_all(folder.join("directory")).expect("a folder");
    shell(
        &folder,
        "gzip -k rows && head -c 50000 rows.gz > cut.gz && head -c 5 rows.gz > head.gz && cat rows.gz rows.gz > twice.gz",
    );
    folder
}

/// What a command prints on both streams, and its exit code: the same for any number of threads.
fn run_with_threads(folder: &Path, line: &str) -> (String, String, Option<i32>) {
    let all: Vec<_> = ["1", "2", "5"]
        .map(|threads| {
            let output = shell(
                folder,
                &line.replace("QUERY", &format!("lastbyte query -P {threads}")),
            );
            let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
            (
                text(output.stdout),
                text(output.stderr),
                output.status.code(),
            )
        })
        .into();
    assert_eq!(all[0], all[1], "{line}");
    assert_eq!(all[0], all[2], "{line}");
    all[0].clone()
}

#[test]
fn bad_input_is_reported_and_other_files_are_read() {
    let folder = bad_files("query-bad");
    for (files, out, errors) in [
        (
            "good absent good",
            "2",
            "error: absent: No such file or directory\n",
        ),
        (
            "absent rows good",
            "90001",
            "error: absent: No such file or directory\n",
        ),
        (
            "rows absent good",
            "90001",
            "error: absent: No such file or directory\n",
        ),
        (
            "rows directory good",
            "90001",
            "error: directory: Is a directory\n",
        ),
        (
            "good latin1 good",
            "3",
            "error: latin1: invalid UTF-8 in a string at line 2 column 7 (JSON::ParserError)\n",
        ),
        (
            "rows broken rows",
            "180001",
            "error: broken: unexpected end of input at line 2 column 6 (JSON::ParserError)\n",
        ),
        ("good head.gz rows", "90001", "error: head.gz: "),
        ("rows cut.gz", "", "error: cut.gz: "),
        ("good binary", "1", "error: binary: unexpected character"),
    ] {
        let (stdout, stderr, exit) = run_with_threads(&folder, &format!("QUERY 'count()' {files}"));
        if !out.is_empty() {
            assert_eq!(stdout.trim_end(), out, "{files}");
        }
        assert!(stderr.starts_with(errors), "{files}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{files}: {stderr}");
        assert_eq!(exit, Some(1), "{files}");
    }
    // What was whole before the cut counts.
    let (stdout, ..) = run_with_threads(&folder, "QUERY 'count()' cut.gz");
    let count: u32 = stdout.trim_end().parse().expect("a number");
    assert!((10_000..90_000).contains(&count), "{count}");
}

#[test]
fn zero_write_bytes_are_refused() {
    let folder = folder("query-writes");
    for bytes in ["0", "-1", "many"] {
        let output = shell(
            &folder,
            &format!("echo 1 | lastbyte query --atomic-write-bytes={bytes} _"),
        );
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        let fix = "--atomic-write-bytes requires a positive integer";
        assert!(text.contains(fix), "{text}");
        assert_eq!(output.status.code(), Some(2), "{bytes}");
        assert!(output.stdout.is_empty(), "{bytes}");
    }
}

#[test]
fn standard_input_has_a_name() {
    let folder = folder("query-names");
    for (words, name) in [
        ("--stdin-name 'a log' '[$FILENAME, _]'", "a log"),
        ("--stdin-name a --stdin-name b '[$FILENAME, _]' -", "b"),
    ] {
        let command = format!("printf '1\\n{{' | lastbyte query {words}");
        let output = shell(&folder, &command);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(text, format!("[\"{name}\",1]\n"), "{command}");
        let errors = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(errors.starts_with(&format!("error: {name}: ")), "{errors}");
    }
}

#[test]
fn fields_of_standard_input_are_listed() {
    let folder = folder("query-schema-stdin");
    for words in ["--schema", "--schema -"] {
        let command = format!("printf '{{\"ttlb\":5}}\\n' | lastbyte query {words}");
        let (text, errors) = run_once(&folder, &command);
        assert!(text.contains("\"min\":5"), "{words}: {text}{errors}");
    }
}

#[test]
fn usage_errors_exit_with_2() {
    let folder = folder("query-usage");
    for words in [
        "-P 0 _",
        "--jobs x _",
        "-r absent.rb _",
        "--lax --skip-bad-lines _",
        "--max-memory 5 _",
        "--follow _",
        "--follow _ conns.ndjson -",
        "--follow --lax _ conns.ndjson",
        "--follow --partial 'count()' conns.ndjson",
        "--partial _ conns.ndjson",
        "--merge 'reduce(0) { 1 }' conns.ndjson",
        "--input xml _",
        "--schema=0 conns.ndjson",
        "-o parquet --follow _ conns.ndjson",
        "-o parquet --merge 'count()' conns.ndjson",
        "-o parquet -v _ conns.ndjson",
        "-o table --follow _ conns.ndjson",
        "-o chart --partial 'count()' conns.ndjson",
        "--schema -o chart conns.ndjson",
    ] {
        let output = shell(&folder, &format!("lastbyte query {words}"));
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(output.stdout.is_empty(), "{words}");
        assert!(!output.stderr.is_empty(), "{words}");
    }
    for (words, expected) in [
        ("'_[“arm”]' conns.ndjson", "typographic quotes"),
        (
            "conns.ndjson",
            "no query: `conns.ndjson` is a file (expected a query, and then files)",
        ),
        (
            "conns.ndjson 'count()'",
            "no query: `conns.ndjson` is a file (expected a query, and then files)",
        ),
        (
            "-r '_[\"arm\"]' conns.ndjson",
            "(-r expects a file of helper methods, or `h2o`; `-o tsv` prints texts without quotes)",
        ),
        ("-i tsv 'count()' conns.ndjson", "expected json or csv"),
        ("'count()' -o xml conns.ndjson", "invalid value 'xml'"),
        (
            "'lookup(\"/dev/zero\", 1)' conns.ndjson",
            "error: /dev/zero: not a regular file",
        ),
        (
            "'lookup(\"absent.csv\", 1)' conns.ndjson",
            "error: absent.csv: No such file or directory",
        ),
    ] {
        let output = shell(&folder, &format!("lastbyte query {words}"));
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(text.contains(expected), "{text}");
        assert!(!text.contains("similar"), "{text}");
    }
}

/// As any other argument that is invalid.
#[test]
fn a_query_that_is_refused_is_a_usage_error() {
    let folder = folder("query-refused");
    for words in [
        "'_[' conns.ndjson",
        "'_.percntile' conns.ndjson",
        "'Time.strptime(_)' conns.ndjson",
        "'sort(_, reverse: true)' conns.ndjson",
    ] {
        let output = shell(&folder, &format!("lastbyte query {words}"));
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(output.stdout.is_empty(), "{words}");
        assert!(output.stderr.starts_with(b"error: query:1:"), "{words}");
    }
}

/// As with jq.
#[test]
fn options_follow_the_query_or_precede_it() {
    let folder = folder("query-order");
    for line in [
        "lastbyte query -o tsv '{n: count()}' conns.ndjson",
        "lastbyte query '{n: count()}' -o tsv conns.ndjson",
        "lastbyte query '{n: count()}' conns.ndjson -o tsv",
        "cp conns.ndjson ./-o; lastbyte query -o tsv -- '{n: count()}' -o",
    ] {
        let output = shell(&folder, line);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "\"n\"\t5\n",
            "{line}"
        );
    }
}

#[test]
fn files_named_csv_are_tables() {
    let folder = folder("query-csv");
    let table = "site,ttlb\nEU,1\n\"N,A\",2\n";
    for name in ["t.csv", "T.CSV", "other"] {
        fs::write(folder.join(name), table).expect("a file");
    }
    fs::write(folder.join("json.csv"), "{\"ttlb\":3}\n").expect("a file");
    let packed = shell(&folder, "gzip -k t.csv");
    assert!(packed.status.success());
    for (words, out) in [
        (
            "'_[\"site\"]' t.csv T.CSV t.csv.gz",
            "\"EU\"\n\"N,A\"\n".repeat(3),
        ),
        (
            "-i csv '_[\"ttlb\"]' other t.csv",
            "1\n2\n1\n2\n".to_owned(),
        ),
        ("-i json '_[\"ttlb\"]' json.csv", "3\n".to_owned()),
        ("-i csv '_[\"ttlb\"]' < t.csv", "1\n2\n".to_owned()),
        // Each file in its format.
        ("'sum(_[\"ttlb\"])' t.csv conns.ndjson", "768\n".to_owned()),
    ] {
        let output = shell(&folder, &format!("lastbyte query {words}"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), out, "{words}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_have_the_records_of_the_results() {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    let folder = folder("query-parquet");
    let line =
        |sent: u32, ssthresh: u64| format!("{{\"sent\":{sent},\"cc.ssthresh\":{ssthresh}}}\n");
    let rows = line(1, 4_294_967_295) + &line(2, 7);
    fs::write(folder.join("log"), rows).expect("a file");
    let output = shell(&folder, "lastbyte query -o parquet _ log > log.parquet");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let file = fs::read(folder.join("log.parquet")).expect("a file");
    let file = SerializedFileReader::new(Bytes::from(file)).expect("a Parquet file");
    let rows: Vec<String> = file
        .get_row_iter(None)
        .expect("rows")
        .map(|row| row.expect("a row").to_string())
        .collect();
    assert_eq!(
        rows,
        ["{sent: 1, cc.ssthresh: null}", "{sent: 2, cc.ssthresh: 7}"]
    );
    // What was written before an error is a whole file.
    let output = shell(
        &folder,
        "printf '{\"a\":1}\\n{\"a\":\\n' | lastbyte query -o parquet _ > cut.parquet",
    );
    assert_eq!(output.status.code(), Some(1));
    let file = fs::read(folder.join("cut.parquet")).expect("a file");
    let file = SerializedFileReader::new(Bytes::from(file)).expect("a Parquet file");
    assert_eq!(file.metadata().file_metadata().num_rows(), 1);
    // Without a record, the columns are unknown.
    let output = shell(&folder, "lastbyte query -o parquet 'select(false)' log");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("no records"));
    let output = shell(&folder, "lastbyte query -o parquet _ log > /dev/full");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write"));
    // A reader that ends early is not an error: the file is larger than a pipe.
    let query = "seq 200000 | lastbyte query -o parquet _";
    let (_, errors) = run_once(&folder, &format!("{{ {query}; echo $? >&2; }} | head -c 4"));
    assert_eq!(errors, "0\n");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_are_read() {
    let folder = folder("query-parquet-in");
    let written = shell(
        &folder,
        "lastbyte query -o parquet _ conns.ndjson > conns.parquet",
    );
    assert!(written.status.success());
    for query in [
        "sum(_[\"ttlb\"])",
        "count()",
        "group_by(_[\"arm\"]) { |r| [count(), r[\"site\"]] }",
        "select(_[\"num-packets.lost\"] > 5) >> _[\"arm\"]",
        "[$FILENAME.sub(\"parquet\", \"ndjson\"), _[\"site\"]]",
    ] {
        let (out, errors) = run_once(&folder, &format!("lastbyte query '{query}' conns.parquet"));
        assert_eq!(errors, "", "{query}");
        let of_text = run_once(&folder, &format!("lastbyte query '{query}' conns.ndjson"));
        assert_eq!(out, of_text.0, "{query}");
    }
    // Nested values are written as texts.
    let (out, _) = run_once(&folder, "lastbyte query 'limit(1)' conns.parquet");
    let row = "{\"arm\":\"slow-start\",\"site\":\"EU\",\"ttlb\":120,\"num-packets.sent\":100,\"num-packets.lost\":0,\"tags\":\"[\\\"a\\\",\\\"b\\\"]\"}\n";
    assert_eq!(out, row);
    // The rows before the damage count.
    let cut = "head -c 300 conns.parquet > cut.parquet; lastbyte query 'count()' cut.parquet conns.ndjson";
    let output = shell(&folder, cut);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "5\n");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        errors.starts_with("error: cut.parquet: invalid Parquet: "),
        "{errors}"
    );
    // Other places than a file cannot be read from their end.
    let output = shell(&folder, "lastbyte query 'count()' < conns.parquet");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        errors.contains("this is a Parquet file (expected "),
        "{errors}"
    );
}

#[test]
fn ctrl_c_prints_the_results_so_far() {
    for threads in ["1", "2"] {
        let mut query = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .args(["query", "-P", threads, "[count(), max(_[\"a\"])]"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut stdin = query.stdin.take().expect("a pipe");
        // More than a pipe holds: once it is written, rows have been read, and signals are listened to.
        for at in 0..200_000 {
            stdin
                .write_all(format!("{{\"a\":{at}}}\n").as_bytes())
                .expect("it reads");
        }
        let killed = Command::new("kill")
            .args(["-INT", &query.id().to_string()])
            .status()
            .expect("a signal");
        assert!(killed.success());
        // Its input is still open.
        let output = query.wait_with_output().expect("it ends");
        drop(stdin);
        assert_eq!(output.status.code(), Some(130));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let answer: Vec<u64> = serde_json::from_slice(&output.stdout).expect("a row");
        assert_eq!(answer[0], answer[1] + 1);
        assert!((1000..=200_000).contains(&answer[0]), "{answer:?}");
    }
}

/// Reads results until this one.
fn read_until(out: &mut impl BufRead, wanted: &str) {
    let mut line = String::new();
    while line.trim_end() != wanted {
        line.clear();
        let count = out.read_line(&mut line).expect("it prints");
        assert!(count > 0, "no result {wanted}");
    }
}

#[test]
fn a_growing_file_is_followed_through_rotation_and_truncation() {
    let folder = folder("query-follow");
    let log = folder.join("log");
    let append = |path: &Path, rows: &str| {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        let mut file = file.expect("a file");
        file.write_all(rows.as_bytes()).expect("it writes");
    };
    append(&log, "1\n");
    append(&folder.join("log.0"), "10\n");
    let mut query = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .args([
            "query",
            "--follow",
            "group(_) >> _.join(\" \")",
            "log.0",
            "log",
        ])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut out = BufReader::new(query.stdout.take().expect("a pipe"));
    read_until(&mut out, "\"10 1\"");
    append(&log, "2\n3");
    append(&log, "4\n");
    read_until(&mut out, "\"10 1 2 34\"");
    // The old file is read to its end, although its last line has none.
    fs::rename(&log, folder.join("log.1")).expect("a name");
    append(&folder.join("log.1"), "5");
    append(&log, "600000\n7\n");
    read_until(&mut out, "\"10 1 2 34 5 600000 7\"");
    fs::write(&log, "8\n").expect("a file");
    read_until(&mut out, "\"10 1 2 34 5 600000 7 8\"");
    // Truncated under a writer that does not append: it goes on behind zeros.
    let mut file = fs::OpenOptions::new().write(true).open(&log);
    let file = file.as_mut().expect("a file");
    file.set_len(0).expect("a size");
    file.write_all_at(b"9\n", 100_000).expect("it writes");
    read_until(&mut out, "\"10 1 2 34 5 600000 7 8 9\"");
    let killed = Command::new("kill")
        .args(["-INT", &query.id().to_string()])
        .status()
        .expect("a signal");
    assert!(killed.success());
    // The last results are printed once more.
    read_until(&mut out, "\"10 1 2 34 5 600000 7 8 9\"");
    let output = query.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn the_built_in_helpers_know_the_startups() {
    let folder = folder("query-h2o");
    let row = |rapid: u32, cwnd: u32, paced: u32, sent: u32| {
        format!(
            "{{\"num-jumpstart-applicable\":1,\"num-paced\":{paced},\"jumpstart.prev-rate\":0,\"content_length\":226578,\"num-rapid-start\":{rapid},\"jumpstart.cwnd\":{cwnd},\"num-packets.sent\":{sent},\"num-packets.lost\":1}}\n"
        )
    };
    let rows = [
        row(0, 0, 1, 4),
        row(0, 9, 1, 0),
        row(1, 9, 1, 2),
        row(1, 0, 1, 1),
        row(1, 0, 0, 1),
    ];
    fs::write(folder.join("rows"), rows.concat()).expect("a file");
    let line = "lastbyte query -r h2o 'select(base_cond(_, 200000, 400000)) >> [group_name(_), loss_ratio(_)]' rows";
    let (out, errors) = run_once(&folder, line);
    assert_eq!(errors, "");
    assert_eq!(
        out,
        "[\"slow-start\",0.25]\n[\"jumpstart\",null]\n[\"rapid-start\",0.5]\n[\"rapid-no-jump\",1.0]\n"
    );
    // A line of ours names its arm, which the flags of H2O do not show.
    let ours = row(0, 0, 1, 4).replacen('{', "{\"arm\":\"cubic\",", 1);
    fs::write(folder.join("ours"), ours).expect("a file");
    let (out, _) = run_once(&folder, "lastbyte query -r h2o 'group_name(_)' ours");
    assert_eq!(out, "\"cubic\"\n");
    let (out, _) = run_once(
        &folder,
        "lastbyte query -r h2o 'select(base_cond(_, 0, 226578)) >> 1' rows",
    );
    assert_eq!(out, "");
    // Keys of helpers are not those of the query: rows may lack some.
    fs::write(folder.join("few"), r#"{"num-paced":0,"a":1}"#).expect("a file");
    let (out, errors) = run_once(&folder, "lastbyte query -r h2o 'base_cond(_)' few");
    assert_eq!((out.as_str(), errors.as_str()), ("false\n", ""));
    let (_, errors) = run_once(&folder, "lastbyte query -r h2o 'loss_ratio(_)' few");
    let absent =
        "none of the rows read has a key that `loss_ratio` reads, such as `num-packets.sent`\n";
    assert!(errors.ends_with(absent), "{errors}");
}

#[test]
fn memory_is_bounded() {
    let folder = bad_files("query-memory");
    for query in [
        "x = \"a\"; 40.times { x = x + x }",
        "a = [1]; a.each { a << 1 }",
        "(1..100_000_000).to_a",
        "x = []; loop { x << [1] }",
    ] {
        let line = format!("lastbyte query --max-memory 200MiB '[count(), ({query})]' rows");
        let output = shell(&folder, &line);
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(
            text.contains("(expected at most 209715200) (NoMemoryError)"),
            "{query}: {text}"
        );
        assert_eq!(output.status.code(), Some(1), "{query}");
    }
    let line = "lastbyte query --max-memory 100MiB '[count(), group(_.to_s * 3000)]' rows";
    let output = shell(&folder, &format!("{line} | cut -c 1-5"));
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(text.contains("NoMemoryError"), "{text}");
    assert!(output.stdout.starts_with(b"["), "what the rows before made");
    let (stdout, _) = run_once(
        &folder,
        "lastbyte query --max-memory 200MiB 'sum((1..3_000_000).count { |x| x > 0 })' good",
    );
    assert_eq!(stdout, "3000000\n");
}

#[test]
fn groups_beyond_the_memory_limit_are_reduced_in_temporary_files() {
    let folder = bad_files("query-groups");
    let query = "'group_by((_[\"a\"] / 2).to_s * 200) { |r| sum(r[\"a\"] * 0.1) }' rows | cksum";
    let (whole, _) = run_once(&folder, &format!("lastbyte query {query}"));
    for threads in 1..=3 {
        let line = format!("lastbyte query -P {threads} --max-memory 70M {query}");
        let (in_files, errors) = run_once(&folder, &line);
        assert_eq!((&in_files, errors.as_str()), (&whole, ""), "{line}");
    }
    let line = format!("TMPDIR=/absent lastbyte query --max-memory 70M {query}");
    let (_, errors) = run_once(&folder, &line);
    assert!(
        errors.contains("a temporary file in /absent: No such file or directory"),
        "{errors}"
    );
}

#[test]
fn rows_beyond_the_memory_limit_are_sorted_in_temporary_files() {
    let folder = bad_files("query-spill");
    let query = "'[_[\"a\"] % 1000, \"x\" * 600] >> sort(-_[0]) >> _[0]' rows | cksum";
    let (whole, _) = run_once(&folder, &format!("lastbyte query {query}"));
    let (sorted, errors) = run_once(&folder, &format!("lastbyte query --max-memory 70M {query}"));
    assert_eq!((sorted, errors), (whole, String::new()));
    let (_, errors) = run_once(
        &folder,
        &format!("TMPDIR=/absent lastbyte query --max-memory 70M {query}"),
    );
    assert!(
        errors.contains("a temporary file in /absent: No such file or directory"),
        "{errors}"
    );
}

/// Parts of threads with a group for each row were kept beside the groups, up to the limit and beyond.
#[test]
fn groups_of_a_row_each_need_no_more_memory_on_more_threads() {
    let folder = folder("query-distinct");
    let padding = "x".repeat(40);
    let row = |at: u64| {
        format!(
            "{{\"k\":\"{}-{padding}\",\"v\":{at}}}\n",
            at * 7919 % 200_003
        )
    };
    let rows: Vec<String> = (0..300_000).map(row).collect();
    fs::write(folder.join("distinct"), rows.concat()).expect("room");
    let query = "'group_by(_[\"k\"]) { |r| [count(), sum(r[\"v\"])] }' distinct | cksum";
    let whole = run_once(&folder, &format!("lastbyte query -P 1 {query}"));
    for threads in 2..=3 {
        let line = format!("lastbyte query -P {threads} --max-memory 100M {query}");
        assert_eq!(run_once(&folder, &line), whole, "{threads}");
    }
    assert_eq!(whole.1, "");
    fs::remove_file(folder.join("distinct")).expect("its own");
}

/// What the program itself and its input take does not count for rows: 63 MB of wide rows within 52 MiB.
#[test]
fn wide_rows_are_sorted_within_a_small_limit() {
    let folder = folder("query-wide");
    let padding = "x".repeat(3900);
    let row = |at: u64| format!("{{\"a\":{},\"b\":\"{padding}\"}}\n", at * 7919 % 16_000);
    let rows: Vec<String> = (0..16_000).map(row).collect();
    fs::write(folder.join("wide"), rows.concat()).expect("room");
    let query = "'sort(_[\"a\"])' wide | cksum";
    let whole = run_once(&folder, &format!("lastbyte query -P 2 {query}"));
    let line = format!("lastbyte query -P 2 --max-memory 52M {query}");
    assert_eq!(run_once(&folder, &line), whole);
    assert_eq!(whole.1, "");
    fs::remove_file(folder.join("wide")).expect("its own");
}

fn run_once(folder: &Path, line: &str) -> (String, String) {
    let output = shell(folder, line);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr))
}

#[test]
fn good_input_of_every_kind_is_read() {
    let folder = bad_files("query-good");
    for (line, out) in [
        ("QUERY 'count()' empty", ""),
        ("QUERY 'count()' blank empty good", "1\n"),
        ("QUERY 'count()' /dev/null", ""),
        ("QUERY '_[\"a\"]' no-end good", "1\n2\n1\n"),
        ("QUERY 'count()' twice.gz rows", "270000\n"),
        ("QUERY 'sum(_[\"a\"])' < rows.gz", "4049955000\n"),
        ("cat rows | QUERY 'sum(_[\"a\"])'", "4049955000\n"),
        ("cat rows | QUERY 'count()' good - good", "90002\n"),
        // A byte order mark, also in compressed text.
        (
            "printf '\\357\\273\\277{\"a\":7}\\n' | gzip | QUERY '_[\"a\"]' -",
            "7\n",
        ),
        (
            "QUERY '_[\"a\"]' rows twice.gz | cksum",
            "1180735001 1586670\n",
        ),
        (
            "QUERY --lax '_[\"a\"]' rows twice.gz | cksum",
            "1180735001 1586670\n",
        ),
        ("printf '{\"a\":\\n1}{' | QUERY --lax '_[\"a\"]' - good", ""),
        (
            "printf '\\036{\"a\":\\n1}\\n\\036 2' | QUERY --lax '_' - good",
            "{\"a\":1}\n2\n{\"a\":1}\n",
        ),
    ] {
        let (stdout, stderr, exit) = run_with_threads(&folder, line);
        if line.contains("}{") {
            assert_eq!(stdout, "1\n1\n", "{line}: {stderr}");
            assert_eq!(exit, Some(1), "{line}");
            continue;
        }
        assert_eq!(
            (stdout.as_str(), stderr.as_str(), exit),
            (out, "", Some(0)),
            "{line}"
        );
    }
}

#[test]
fn results_before_an_error_are_printed_and_none_after() {
    let folder = bad_files("query-stop");
    let (stdout, stderr, exit) =
        run_with_threads(&folder, "QUERY '10 / (_[\"a\"] - 70000)' rows absent");
    assert_eq!(stdout.lines().count(), 70_000);
    assert_eq!(
        stderr,
        "error: divided by 0 (ZeroDivisionError) at rows:70001, stage 0\n"
    );
    assert_eq!(exit, Some(1));
    let (stdout, ..) = run_with_threads(
        &folder,
        "QUERY 'sum(10 / (_[\"a\"] - 70000) * 0 + 1)' rows absent",
    );
    assert_eq!(stdout, "70000\n");
    let (stdout, ..) = run_with_threads(
        &folder,
        "QUERY -o tsv '10 / (_[\"a\"] - 70000)' rows absent",
    );
    assert_eq!(stdout, "");
}

#[test]
fn a_closed_pipe_ends_silently_and_a_full_disk_is_an_error() {
    let folder = bad_files("query-pipe");
    // The shell reports the exit code of the query, not of `head`.
    let line = "{ QUERY '_[\"a\"]' rows rows; echo $? >&2; } | head -n 1";
    let (stdout, stderr, _) = run_with_threads(&folder, line);
    assert_eq!((stdout.as_str(), stderr.as_str()), ("0\n", "0\n"));
    if Path::new("/dev/full").exists() {
        for query in ["count()", "_[\"a\"]"] {
            let (_, stderr, exit) =
                run_with_threads(&folder, &format!("QUERY '{query}' rows > /dev/full"));
            assert!(
                stderr.starts_with("error: cannot write: No space left"),
                "{stderr}"
            );
            assert_eq!(exit, Some(1));
        }
    }
}

#[test]
fn rows_are_printed_before_the_next_one_arrives() {
    let folder = bad_files("query-live");
    // The second row is written only when the first one's answer has been read.
    let line = "mkfifo -m 600 there back; QUERY --atomic-write-bytes 1 '_[\"a\"]' < there > back & \
        exec 3> there 4< back; echo '{\"a\":1}' >&3; read one <&4; echo '{\"a\":2}' >&3; read two <&4; \
        exec 3>&-; echo \"$one $two\"; rm there back";
    let (stdout, stderr, _) = run_with_threads(&folder, line);
    assert_eq!((stdout.as_str(), stderr.as_str()), ("1 2\n", ""));
}
