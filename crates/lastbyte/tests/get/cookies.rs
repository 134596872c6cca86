//! Cookies in files, beside curl.

use std::{fs, path::Path, process::Output};

use super::{
    command,
    curl::{self, has_curl},
    raw::ScriptedServer,
    stderr,
};

/// What runs in a folder, with what is in it before.
fn both(name: &str, file: &str, words: &[&str]) -> Vec<(Output, std::path::PathBuf)> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut all = Vec::new();
    for is_ours in [true, false] {
        if !is_ours && !has_curl() {
            continue;
        }
        let folder = place.join(if is_ours { "ours" } else { "curl" });
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("file"), file).expect("a file");
        let mut program = if is_ours { command() } else { curl::command() };
        let output = program
            .args(["-s", "-A", "me"])
            .args(words)
            .current_dir(&folder)
            .output();
        all.push((output.expect("it runs"), folder));
    }
    all
}

/// Without remarks, in an order of its own; so are cookies of the same path, of which curl sends the last that was set first.
fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let is_content = |line: &&str| !line.starts_with("# ") && !line.trim().is_empty();
    let mut lines: Vec<String> = text
        .lines()
        .filter(is_content)
        .map(|line| {
            let line = line.trim_end_matches('\r');
            let Some(cookies) = line.strip_prefix("cookie: ") else {
                return line.to_owned();
            };
            let mut cookies: Vec<&str> = cookies.split("; ").collect();
            cookies.sort_unstable();
            cookies.join("; ")
        })
        .collect();
    lines.sort();
    lines
}

const FILE: &str = "# Netscape HTTP Cookie File\n\
    127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\told\n\
    127.0.0.1\tFALSE\t/\tTRUE\t4133980799\tsafe\tyes\n\
    #HttpOnly_127.0.0.1\tFALSE\t/head\tFALSE\t4133980799\tlong\tpath\n\
    127.0.0.1\tFALSE\t/heads\tFALSE\t4133980799\tother\tpath\n\
    127.0.0.1\tFALSE\t/\tFALSE\t1000\tended\tlong ago\n\
    other.example\tTRUE\t/\tFALSE\t4133980799\tforeign\t1\n";

#[test]
fn cookies_are_stored_and_sent_like_in_curl() {
    let server = ScriptedServer::start();
    let (head, set, led) = (
        server.url("head"),
        server.url("cookies?/7"),
        server.url("cookies?/head"),
    );
    for (number, words) in [
        &["-b", "file", &*head][..],
        &["-b", "file", "-b", "own=1", &head],
        &["-b", "file", "-j", &head],
        &["-b", "missing", &head],
        &["-b", "", &set, "-o", "first", &head],
        &["-b", "", "-L", &led],
        &["-c", "jar", &set],
        &["-b", "file", "-c", "jar", &set],
        &["-b", "file", "-c", "jar", "-j", &set],
        &["-c", "-", &set],
        &["-c", "no/such/folder", &head],
    ]
    .into_iter()
    .enumerate()
    {
        // One after the other: at the same time, it is chance who knows of the other's cookies.
        let words = [words, &["--parallel-max", "1"]].concat();
        let all = both(&format!("cookies-{number}"), FILE, &words);
        for (output, _) in &all {
            assert_eq!(
                output.status.code(),
                Some(0),
                "{words:?}: {}",
                stderr(output)
            );
        }
        if let [(ours, folder), (theirs, their_folder)] = &all[..] {
            assert_eq!(lines(&ours.stdout), lines(&theirs.stdout), "{words:?}");
            let [ours, theirs] = [folder, their_folder].map(|at| fs::read(at.join("jar")).ok());
            let [ours, theirs] = [ours, theirs].map(|text| text.map(|text| lines(&text)));
            assert_eq!(ours, theirs, "{words:?}");
        }
        let text = String::from_utf8_lossy(&all[0].0.stdout).into_owned();
        match number {
            0 => assert!(text.contains("long=path; session=old; safe=yes"), "{text}"),
            5 => assert!(
                text.contains("cookie: safe=2; session=1; lasting=a b"),
                "{text}"
            ),
            _ => {}
        }
    }
}

/// As newer curls have it: that of the age that is compared with sends both.
#[test]
fn an_explicit_cookie_field_replaces_all_cookies() {
    let server = ScriptedServer::start();
    let words = [
        "-b",
        "file",
        "-b",
        "own=1",
        "-H",
        "Cookie: mine=2",
        &server.url("head"),
    ];
    let all = both("cookies-field", FILE, &words);
    let text = String::from_utf8_lossy(&all[0].0.stdout).into_owned();
    let sent: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("cookie"))
        .collect();
    assert_eq!(sent, ["cookie: mine=2"]);
}

/// Other users cannot read it.
#[cfg(unix)]
#[test]
fn the_cookie_file_is_private_and_devices_are_not_replaced() {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    let server = ScriptedServer::start();
    let all = both(
        "cookies-mode",
        FILE,
        &["-c", "jar", &server.url("cookies?/7")],
    );
    let about = fs::metadata(all[0].1.join("jar")).expect("a file");
    assert_eq!(about.permissions().mode() & 0o777, 0o600);
    both(
        "cookies-device",
        FILE,
        &["-c", "/dev/null", &server.url("7")],
    );
    let about = fs::metadata("/dev/null").expect("a device");
    assert!(about.file_type().is_char_device());
}
