//! A server that is killed and there again, and clients that are.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::PathBuf,
};

use crate::serving::{Serving, certificate, folder, free_port, lines, stderr};

const LEN: u64 = 1 << 30;

/// Also the server of before, on the same port.
fn start(folder: &std::path::Path, port: u16) -> Serving {
    let flags = [
        "--cert",
        "a.pem",
        "--key",
        "a.key",
        "--access-log",
        "access",
    ];
    Serving::start_as(folder, &[], &format!("127.0.0.1:{port}"), &flags)
}

#[test]
fn a_transfer_from_a_killed_server_is_partial_and_the_rest_is_a_range() {
    let folder = folder("hostile-killed");
    certificate(&folder, "a");
    let port = free_port();
    let serving = start(&folder, port);
    let mut client = serving.begin(&folder, "/1g", &["-v", "-o", "body", "--http", "3"]);
    client.until("< HTTP/3 200");
    serving.kill();
    let serving = start(&folder, port);
    let (code, printed) = client.wait();
    assert_eq!(code, Some(18), "{printed}");
    // Its next packet, ten seconds later at most, is answered by the new server.
    assert!(printed.contains("stateless reset"), "{printed}");
    let body = folder.join("body");
    let broken = fs::metadata(&body).expect("a file").len();
    assert!((1..LEN).contains(&broken), "{broken} bytes came");
    let range = format!("{broken}-");
    let flags = ["-r", &range, "-o", "rest", "--http", "3"];
    let output = serving.get(&folder, "/1g", &flags);
    assert!(output.status.success(), "{}", stderr(&output));
    let rest = folder.join("rest");
    let len = fs::metadata(&rest).expect("a file").len();
    assert_eq!(broken + len, LEN);
    // At the joint it is as if it had come in one.
    let near = broken.min(1000);
    let range = format!("{}-{}", broken - near, broken + 999);
    let joint = serving.get(&folder, "/1g", &["-r", &range]);
    let mut kept = vec![0; near as usize + 1000];
    let (end, start) = kept.split_at_mut(near as usize);
    let read = |path: &PathBuf, into: &mut [u8], from| {
        let file = File::open(path).expect("a file");
        file.read_exact_at(into, from).expect("bytes");
    };
    read(&body, end, broken - near);
    read(&rest, start, 0);
    assert!(kept == joint.stdout);
    fs::remove_file(rest).expect("it was there");
    fs::remove_file(body).expect("it was there");
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_request_pending_at_a_killed_server_is_retried_on_its_successor() {
    let folder = folder("hostile-owed");
    certificate(&folder, "a");
    let port = free_port();
    let serving = start(&folder, port);
    let path = "/delay/20s/1000";
    let flags = ["-v", "-o", "body", "--http", "3"];
    let client = serving.begin(&folder, path, &flags);
    serving.wait_for("lastbyte_requests_total{http=\"3\"}", |count| count > 0);
    serving.kill();
    let serving = start(&folder, port);
    let (code, printed) = client.wait();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("stateless reset"), "{printed}");
    assert_eq!(
        fs::metadata(folder.join("body")).expect("a file").len(),
        1000
    );
    assert_eq!(serving.end().0, 0);
    // A killed server writes nothing of what it had not finished.
    let access = lines(&folder.join("access"));
    assert_eq!(access.len(), 1, "{access:?}");
    assert_eq!(access[0]["path"], path);
}

#[test]
fn clients_that_vanish_mid_transfer_leak_no_resources() {
    let folder = folder("hostile-vanished");
    // Larger than what any socket takes at once.
    let big = File::create(folder.join("big")).expect("room");
    big.set_len(8 << 30).expect("room for a hole");
    let flags = [
        "--self-signed",
        "--access-log",
        "access",
        "--log",
        "log",
        ".",
    ];
    let serving = Serving::start(&folder, &flags);
    // Once it answers, it has closed what it read at the start.
    serving.wait_for("lastbyte_connections{transport=\"tcp\"}", |count| {
        count == 0
    });
    let before = serving.descriptors().len();
    for version in ["1.1", "2", "3"] {
        let flags = ["-v", "-o", "/dev/null", "--http", version];
        let mut client = serving.begin(&folder, "/big", &flags);
        client.until("< HTTP/");
        let open = serving.descriptors();
        let is_big = |file: &PathBuf| file.ends_with("big");
        assert!(open.iter().any(is_big), "HTTP/{version}: {open:?}");
        client.child.kill().expect("it was there");
        client.wait();
    }
    // Over TCP the system reports it at once; over UDP the idle timeout has to pass.
    serving.wait_for("lastbyte_connections{transport=\"tcp\"}", |count| {
        count == 0
    });
    serving.wait_for("lastbyte_connections{transport=\"quic\"}", |count| {
        count == 0
    });
    // The metrics' own connection may still be there.
    let after = serving.descriptors();
    assert!(after.len() <= before + 1, "{before}, then {after:?}");
    assert_eq!(serving.end().0, 0);
    let access = lines(&folder.join("access"));
    assert_eq!(access.len(), 3, "{access:?}");
    for line in &access {
        assert_eq!(line["complete"], false, "{line}");
        assert_eq!(line["status"], 200, "{line}");
    }
    let log = lines(&folder.join("log"));
    let quic: Vec<_> = log
        .iter()
        .filter(|line| line["type"] == "connection" && line["num-packets.sent"].is_u64())
        .collect();
    assert_eq!(quic.len(), 1, "{log:?}");
    assert_eq!(quic[0]["complete"], false, "{}", quic[0]);
    drop(fs::remove_file(folder.join("big")));
}
