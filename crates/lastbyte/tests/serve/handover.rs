//! Replacement of a running server, over a Unix socket.

use std::{fs, path::Path, process::Stdio};

use super::{
    Serving, folder, lastbyte,
    serving::{Running, certificate, command, free_port, lines},
    stderr,
};

/// A server that takes over from one that runs, if there is one.
fn serving(folder: &Path, port: u16, arguments: &[&str]) -> Serving {
    let listen = format!("127.0.0.1:{port}");
    let mut all = vec!["serve", "--listen", &listen, "--handover", "socket"];
    all.extend([
        "--cert",
        "a.pem",
        "--key",
        "a.key",
        "--metrics",
        "127.0.0.1:0",
    ]);
    all.extend(["--drain", "60s", "--access-log", "access"]);
    all.extend(arguments);
    Serving::spawn(command(folder, &all).stdout(Stdio::null()))
}

/// A count of the final table of `bench`.
fn count(table: &str, name: &str) -> u64 {
    let (before, _) = table
        .split_once(name)
        .unwrap_or_else(|| panic!("no {name}: {table}"));
    let number = before.trim_end().rsplit([' ', ',']).next();
    number.and_then(|it| it.parse().ok()).expect("a number")
}

/// 200 connections with 100 requests per second and version, and a late response of each version, while five servers follow
/// each other.
#[test]
fn no_request_fails_while_the_server_is_replaced_five_times() {
    let folder = folder("serve-handover");
    certificate(&folder, "a");
    let port = free_port();
    let mut old = vec![serving(&folder, port, &["--workers", "2"])];
    let url = format!("https://localhost:{port}/100kB");
    let loads = ["1.1", "2", "3"].map(|version| {
        let connections = if version == "3" { "68" } else { "66" };
        let mut load = command(
            &folder,
            &["bench", "-k", "--http", version, "-c", connections],
        );
        load.args(["-n", "400", "-r", "100", &url]);
        let load = load.stdout(Stdio::piped()).stderr(Stdio::piped());
        (version, load.spawn().expect("it runs"))
    });
    let downloads = ["1.1", "2", "3"].map(|version| {
        let file = format!("got-{version}");
        let arguments = ["--http", version, "-o", &file, "-v"];
        let mut download = old[0].begin(&folder, "/delay/4s/1MB", &arguments);
        // The response starts when the server has been replaced.
        download.until("> GET");
        (version, file, download)
    });
    for _ in 0..5 {
        let new = serving(&folder, port, &[]);
        old.push(new);
        let replaced = old.len() - 2;
        old[replaced].until("a later process has taken over");
    }
    for (version, file, download) in downloads {
        let (code, printed) = download.wait();
        assert_eq!(code, Some(0), "HTTP/{version}: {printed}");
        let len = fs::metadata(folder.join(file)).expect("a file").len();
        assert_eq!(len, 1_000_000);
    }
    for (version, load) in loads {
        let output = load.wait_with_output().expect("it ends");
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{table}{}", stderr(&output));
        assert_eq!(count(&table, " succeeded"), 400, "HTTP/{version}: {table}");
        assert_eq!(count(&table, " failed"), 0, "HTTP/{version}: {table}");
    }
    // Each drains by itself, and the last one serves.
    let last = old.pop().expect("six");
    for (number, serving) in old.into_iter().enumerate() {
        let (code, printed) = serving.process.wait();
        assert_eq!(code, Some(0), "{number}: {printed}");
    }
    assert!(
        last.get(&folder, "/1", &["-o", "/dev/null"])
            .status
            .success()
    );
    assert_eq!(last.end().0, 0);
    assert!(!folder.join("socket").exists());
    // All processes have written to one log.
    let logged = lines(&folder.join("access"));
    let is_complete = |line: &&serde_json::Value| line["complete"] == true;
    assert!(
        logged.iter().filter(is_complete).count() >= 1204,
        "{}",
        logged.len()
    );
}

#[test]
fn a_process_that_cannot_start_leaves_the_running_one_as_it_was() {
    let folder = folder("serve-handover-failed");
    certificate(&folder, "a");
    let port = free_port();
    let first = serving(&folder, port, &["--workers", "2"]);
    let listen = format!("127.0.0.1:{port}");
    for (arguments, code, expected) in [
        (&["--workers", "3"][..], 2, "has 2 workers, not 3"),
        // It has the sockets by then, and the other does not read them any more.
        (&["--http", "3"], 1, "HTTP/1.1 and 2 is disabled"),
        (
            &["--metrics", "192.0.2.1:1", "--http-listen", "192.0.2.1:2"],
            1,
            "cannot listen on",
        ),
    ] {
        let mut all = vec!["serve", "--listen", &listen, "--handover", "socket"];
        all.extend(["--cert", "a.pem", "--key", "a.key"]);
        all.extend(arguments);
        let output = lastbyte(&folder, &all);
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(code));
        for version in ["1.1", "2", "3"] {
            let got = first.get(&folder, "/1000", &["--http", version, "-o", "/dev/null"]);
            assert!(got.status.success(), "{}", stderr(&got));
        }
    }
    // A check of the configuration takes nothing over.
    let check = ["serve", "--check", "--self-signed", "--handover", "socket"];
    assert!(lastbyte(&folder, &check).status.success());
    let second = serving(&folder, port, &[]);
    assert_eq!(first.process.wait().0, Some(0));
    assert_eq!(second.end().0, 0);
}

/// Packets of a connection reach the process that has it through all that came after.
#[test]
fn a_process_between_two_others_stays_until_the_earliest_has_finished() {
    let folder = folder("serve-handover-chain");
    certificate(&folder, "a");
    let port = free_port();
    let first = serving(&folder, port, &["--workers", "1", "--http", "3"]);
    let arguments = ["--http", "3", "-o", "got", "-v"];
    let mut download: Running = first.begin(&folder, "/delay/3s/1MB", &arguments);
    download.until("> GET");
    let second = serving(&folder, port, &["--http", "3"]);
    let third = serving(&folder, port, &["--http", "3"]);
    let (code, printed) = download.wait();
    assert_eq!(code, Some(0), "{printed}");
    let relayed = third.metric("lastbyte_worker_relayed_total{worker=\"0\"}");
    assert!(relayed > 0);
    for serving in [first, second] {
        assert_eq!(serving.process.wait().0, Some(0));
    }
    assert_eq!(third.end().0, 0);
}

/// A file at the path of the socket is not taken for an old socket, by a check or a start.
#[test]
fn a_file_at_the_path_of_the_socket_stays() {
    let folder = folder("serve-handover-file");
    fs::write(folder.join("key.pem"), "secret").expect("room");
    fs::write(folder.join("serve.toml"), "handover = \"key.pem\"\n").expect("room");
    for arguments in [
        &["--handover", "key.pem", "--check"][..],
        &["--handover", "key.pem"],
        &["--config", "serve.toml"],
        &["--handover", "nowhere/socket"],
    ] {
        let listen = ["serve", "--self-signed", "--listen", "127.0.0.1:0"];
        let output = lastbyte(&folder, &[&listen[..], arguments].concat());
        let printed = stderr(&output);
        assert!(!output.status.success(), "{arguments:?}: {printed}");
        let is_named = printed.contains("--handover: `key.pem`: a file that is not a socket")
            || printed.contains("cannot write `nowhere/socket`");
        assert!(is_named, "{arguments:?}: {printed}");
        let key = fs::read(folder.join("key.pem")).expect("the file");
        assert_eq!(key, b"secret");
    }
}

/// Sockets are taken over with their addresses; another address is not silently ignored.
#[test]
fn addresses_without_effect_are_warned_of() {
    let folder = folder("serve-handover-address");
    certificate(&folder, "a");
    let (port, other) = (free_port(), free_port());
    let first = serving(&folder, port, &[]);
    let same = serving(&folder, port, &[]);
    assert_eq!(first.process.wait().0, Some(0));
    let printed = same.process.printed.clone();
    assert!(!printed.contains("has no effect"), "{printed}");
    let moved = serving(&folder, other, &[]);
    assert_eq!(same.process.wait().0, Some(0));
    let printed = moved.process.printed.clone();
    let expected = format!("warning: --listen 127.0.0.1:{other} has no effect");
    assert!(printed.contains(&expected), "{printed}");
    assert_eq!(moved.port, port);
    assert_eq!(moved.end().0, 0);
}
