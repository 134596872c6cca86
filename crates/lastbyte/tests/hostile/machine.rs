//! No descriptor left; a clock that jumps.

use std::{fs, net::TcpStream, path::Path};

use crate::serving::{Serving, folder, lines, stderr};

/// The processor time that a process has used, in ticks of 10 ms.
fn ticks(id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let (_, rest) = stat.rsplit_once(") ").expect("its name ends");
    let fields: Vec<_> = rest.split(' ').collect();
    let time = |index: usize| fields[index].parse::<u64>().expect("a number");
    time(11) + time(12)
}

/// A limit below which all are taken. Lower than that, and `poll` refuses to look at those that are.
const NO_MORE: &str = "4:4096";

/// How many files a process may open from now on; those that are open stay so.
fn limit(serving: &Serving, count: &str) {
    let id = serving.process.child.id().to_string();
    let flags = ["--pid", &id, &format!("--nofile={count}")];
    let output = std::process::Command::new("prlimit").args(flags).output();
    let output = output.expect("prlimit, of util-linux");
    assert!(output.status.success(), "{}", stderr(&output));
}

fn limited(folder: &Path, descriptors: &str, flags: &[&str]) -> Serving {
    let script = format!("ulimit -n {descriptors}; exec \"$@\"");
    let by = ["sh", "-c", &script, "sh"];
    Serving::start_as(folder, &by, "127.0.0.1:0", flags)
}

#[test]
fn idle_clients_cannot_exhaust_the_descriptors() {
    let folder = folder("hostile-descriptors");
    fs::write(folder.join("page"), "hello").expect("room");
    fs::write(folder.join("serve.toml"), "head-timeout = \"600s\"\n").expect("room");
    let serving = limited(
        &folder,
        "100",
        &["--self-signed", "--config", "serve.toml", "."],
    );
    assert!(
        serving
            .process
            .printed
            .contains("limiting TCP connections to 18 (expected 10000)"),
        "{}",
        serving.process.printed
    );
    // They connect, and say nothing. One address has half of the connections at most.
    let idle: Vec<_> = (0..60)
        .map(|_| TcpStream::connect(("127.0.0.1", serving.port)).expect("it listens"))
        .collect();
    serving.wait_for("lastbyte_connections{transport=\"tcp\"}", |count| {
        count == 9
    });
    serving.wait_for("lastbyte_tcp_refused_total", |count| count == 51);
    for _ in 0..20 {
        let page = serving.get(&folder, "/page", &["--http", "3"]);
        assert_eq!(page.stdout, b"hello", "{}", stderr(&page));
    }
    assert_eq!(serving.metric("lastbyte_tcp_accepts_failed_total"), 0);
    assert_eq!(serving.get_plain("/healthz").0, 200);
    drop(idle);
    let page = serving.get(&folder, "/page", &["--http", "2"]);
    assert_eq!(page.stdout, b"hello", "{}", stderr(&page));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn without_a_free_descriptor_a_file_is_answered_with_503() {
    let folder = folder("hostile-exhausted");
    fs::write(folder.join("page"), "hello").expect("room");
    let serving = Serving::start(&folder, &["--self-signed", "--http", "3", "."]);
    assert_eq!(serving.get(&folder, "/page", &[]).stdout, b"hello");
    limit(&serving, NO_MORE);
    let refused = serving.get(&folder, "/page", &["-i"]);
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(text.starts_with("HTTP/3 503"), "{text}{}", stderr(&refused));
    assert!(text.contains("retry-after: 1\r\n"), "{text}");
    limit(&serving, "4096:4096");
    assert_eq!(serving.get(&folder, "/page", &[]).stdout, b"hello");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_server_without_free_descriptors_waits_and_does_not_spin() {
    let folder = folder("hostile-accept");
    let serving = Serving::start(&folder, &["--self-signed", "--http", "1.1,2,3"]);
    let id = serving.process.child.id();
    limit(&serving, NO_MORE);
    let waiting = TcpStream::connect(("127.0.0.1", serving.port)).expect("it listens");
    let before = ticks(id);
    // Two seconds of the server's time, in which HTTP/3 continues.
    let answer = serving.get(&folder, "/delay/2s/1000", &["--http", "3"]);
    assert_eq!(answer.stdout.len(), 1000, "{}", stderr(&answer));
    let used = ticks(id) - before;
    assert!(used < 50, "{used} ticks of 200 while nothing could be done");
    limit(&serving, "4096:4096");
    assert!(serving.metric("lastbyte_tcp_accepts_failed_total") > 0);
    drop(waiting);
    let answer = serving.get(&folder, "/1000", &["--http", "2"]);
    assert_eq!(answer.stdout.len(), 1000, "{}", stderr(&answer));
    assert_eq!(serving.end().0, 0);
}

/// Debian's `faketime`, which comes between a program and the clock of the system.
const FAKE_TIME: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
];

#[test]
fn clock_jumps_do_not_interrupt_the_server() {
    let Some(library) = FAKE_TIME.iter().find(|path| Path::new(path).exists()) else {
        return lastbyte_testkit::skip("no libfaketime (Debian: faketime)");
    };
    let folder = folder("hostile-clock");
    let control = folder.join("clock");
    let set = |text: &str| {
        let next = folder.join("clock.next");
        fs::write(&next, text).expect("room");
        fs::rename(next, &control).expect("it is replaced");
    };
    set("+0\n");
    let preload = format!("LD_PRELOAD={library}");
    let file = format!("FAKETIME_TIMESTAMP_FILE={}", control.display());
    let by = [
        "env",
        &preload,
        &file,
        "FAKETIME_NO_CACHE=1",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
    ];
    let flags = ["--self-signed", "--access-log", "access", "--log", "log"];
    let serving = Serving::start_as(&folder, &by, "127.0.0.1:0", &flags);
    let days = ["+0", "+10d", "-10d", "+0", "+400d", "+0"];
    for day in days {
        set(&format!("{day}\n"));
        for _ in 0..2 {
            let flags = ["--session-store", "sessions", "--0rtt", "--http", "3"];
            let answer = serving.get(&folder, "/delay/100ms/1000", &flags);
            assert_eq!(answer.stdout.len(), 1000, "{day}: {}", stderr(&answer));
        }
        let answer = serving.get(&folder, "/delay/100ms/1000", &["--http", "2"]);
        assert_eq!(answer.stdout.len(), 1000, "{day}: {}", stderr(&answer));
    }
    // A transfer on its way does not see the clock.
    let mut client = serving.begin(
        &folder,
        "/delay/1s/1000000",
        &["-v", "-o", "body", "--http", "3"],
    );
    client.until("> GET");
    set("+400d\n");
    let (code, printed) = client.wait();
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(serving.end().0, 0);
    let access = lines(&folder.join("access"));
    assert_eq!(access.len(), 3 * days.len() + 1);
    for line in &access {
        let took = line["ms"].as_f64().expect("a number");
        assert!((99.0..60_000.0).contains(&took), "{line}");
    }
    let day_of = |line: &serde_json::Value| line["time"].as_f64().expect("a number") / 86_400_000.0;
    let first = day_of(&access[0]);
    for (lines, day) in access.chunks(3).zip([0.0, 10.0, -10.0, 0.0, 400.0, 0.0]) {
        for line in lines {
            assert!((day_of(line) - first - day).abs() < 0.1, "{day}: {line}");
        }
    }
    for line in lines(&folder.join("log")) {
        let ttlb = line["ttlb"].as_f64().unwrap_or(0.0);
        assert!((0.0..60_000.0).contains(&ttlb), "{line}");
    }
}
