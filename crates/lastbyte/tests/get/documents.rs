//! What the page and the help show works.

use std::process::Stdio;

use super::{Place, alone, code, get, raw::ScriptedServer, stderr};

const PAGE: &str = include_str!("../../../../docs/get.md");

/// Every example of the page and of the help runs, with its hosts on this machine.
#[test]
fn every_example_runs() {
    let output = get(&["--help"]);
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    // A command may go on in the next line, after a backslash.
    let page: String = PAGE
        .split_inclusive('\n')
        .filter(|line| line.starts_with("    "))
        .collect();
    let (_, help) = help.split_once("Examples:\n").expect("examples");
    let (help, _) = help.split_once("\n\n").expect("options");
    let text = [page.as_str(), help].concat().replace("\\\n", " ");
    let is_example = |line: &&str| line.contains("lastbyte get ") && !line.contains("[OPTIONS]");
    let examples: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter(is_example)
        .collect();
    assert!(examples.len() > 12, "{examples:?}");
    let place = Place::new("get-examples");
    let plain = ScriptedServer::start();
    std::fs::write(place.folder.join("backup.tar"), b"content").expect("a file");
    for example in examples {
        let (before, words) = example.split_once("lastbyte get ").expect("an example");
        let words = words.split(" #").next().expect("words").trim();
        // Whatever it asks for is there, by a name that the servers know.
        let secure = format!("https://localhost:{}", place.server.port);
        let clear = format!("http://127.0.0.1:{}", plain.port);
        let line = words
            .replace("https://localhost:4433/32k", &format!("{secure}/32000"))
            .replace("https://example.com/form", &format!("{secure}/echo"))
            .replace("https://example.com/backup.tar", &format!("{secure}/echo"))
            .replace("https://example.com/backups/", &format!("{secure}/echo"))
            .replace("--resolve example.com:443:127.0.0.1", "")
            .replace("https://example.com/b.bin", &format!("{secure}/700"))
            .replace("https://example.com/", &format!("{secure}/100"))
            .replace("http://example.com/", &format!("{clear}/100"))
            .replace("--http 2", "--http 3");
        assert!(!line.contains("example.com"), "{line}");
        let feed = if before.trim().is_empty() {
            ""
        } else {
            "echo content | "
        };
        let binary = env!("CARGO_BIN_EXE_lastbyte");
        let trust = if line.contains("--cacert") || line.contains("-k ") {
            ""
        } else {
            "--cacert ca.pem"
        };
        let output = alone("sh")
            .arg("-c")
            .arg(format!("{feed}{binary} get {trust} {line}"))
            .stdin(Stdio::null())
            .current_dir(&place.folder)
            .output()
            .expect("a shell");
        assert_eq!(code(&output), 0, "{line}: {}", stderr(&output));
    }
}

#[test]
fn an_error_quotes_at_most_200_characters_of_a_redirect() {
    let server = ScriptedServer::start();
    let far = server.url(&format!("to?nosuch://{}", "x".repeat(20_000)));
    let output = get(&["-L", &far]);
    let text = stderr(&output);
    assert_eq!(code(&output), 1, "{text}");
    assert!(text.contains("unsupported URL scheme `nosuch`"), "{text}");
    assert!(text.contains("xxx…xxx") && text.len() < 1000, "{text}");
}
