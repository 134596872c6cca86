//! Every example of docs/query.md gives what the page says, and so does what the command's help shows.

#![expect(
    clippy::disallowed_methods,
    reason = "what a command reads is files, and the page is one"
)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
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

#[test]
fn every_example_of_the_page_gives_what_it_says() {
    let folder = folder("query-page");
    let mut count = 0;
    for block in blocks("console") {
        for example in block.split("$ ").skip(1) {
            let (line, expected) = example.split_once('\n').expect("a line");
            let output = shell(&folder, line);
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8(said).expect("UTF-8");
            assert_eq!(said, expected, "{line}");
            count += 1;
        }
    }
    assert!(count >= 18, "only {count} examples found");
}

#[test]
fn every_example_of_the_help_runs() {
    let folder = folder("query-help");
    let help = shell(&folder, "lastbyte query --help");
    let help = String::from_utf8(help.stdout).expect("UTF-8");
    let mut count = 0;
    for line in help.lines() {
        let Some(rest) = line.trim().strip_prefix("lastbyte query ") else {
            continue;
        };
        // What stands behind the last quote is what it is for, or the file.
        let Some((query, _)) = rest.rsplit_once('\'') else {
            continue;
        };
        let query = query.replace("slow?(_)", "loss(_) > 3");
        let output = shell(&folder, &format!("lastbyte query {query}' conns.ndjson"));
        // A row of the page has no time: that is said, and no other fault.
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(
            stderr.is_empty() || stderr.contains("for nil"),
            "{query}: {stderr}"
        );
        count += 1;
    }
    assert!(count >= 6, "{help}");
}
