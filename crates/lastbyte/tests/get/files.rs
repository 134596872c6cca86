//! What is kept in files: sessions, bodies. How bodies are written.

use std::{
    fs,
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    time::Duration,
};

use super::{Place, body, code, command, stderr};

/// A line buffer would write up to the last newline, and the rest by itself. stdout is a socket on which each write is a
/// datagram.
#[test]
fn a_body_is_written_to_stdout_as_it_arrives() {
    // Less than the buffer, so that it is written at the end.
    const LEN: usize = 100_000;
    let place = Place::new("get-pieces");
    let (reader, stdout) = UnixDatagram::pair().expect("two sockets");
    let patience = Duration::from_secs(60);
    reader.set_read_timeout(Some(patience)).expect("a timeout");
    let mut child = command()
        .args(["--cacert", "ca.pem", &place.url(&LEN.to_string())])
        .current_dir(&place.folder)
        .stdout(OwnedFd::from(stdout))
        .spawn()
        .expect("the binary runs");
    let mut received = Vec::new();
    let mut buffer = vec![0; 2 * LEN];
    while received.len() < LEN {
        let len = reader.recv(&mut buffer).expect("a piece");
        received.extend_from_slice(&buffer[..len]);
        assert_ne!(received.last(), Some(&b'\n'), "after {}", received.len());
    }
    assert!(child.wait().expect("it ends").success());
    assert!(received == body(LEN) && received.contains(&b'\n'));
}

#[test]
fn sessions_are_resumed_by_the_next_run() {
    let place = Place::new("get-sessions");
    let url = place.url("100");
    let words = [
        "-v",
        "-o",
        "x",
        "--http3-only",
        "--session-store",
        "kept",
        "--0rtt",
        &url,
    ];
    let output = place.get(&words);
    assert!(
        stderr(&output).contains("full handshake"),
        "{}",
        stderr(&output)
    );
    for _ in 0..3 {
        let output = place.get(&words);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(
            stderr(&output).contains("0-RTT accepted"),
            "{}",
            stderr(&output)
        );
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let about = fs::metadata(place.folder.join("kept")).expect("a file");
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
    }
    // Two at once use no session twice, and lose none of the new ones.
    let before = fs::read_to_string(place.folder.join("kept")).expect("text");
    let used: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| place.get(&words))).collect();
        runs.into_iter()
            .map(|run| run.join().expect("no panic"))
            .collect()
    });
    for output in &used {
        assert_eq!(code(output), 0, "{}", stderr(output));
    }
    let sessions = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("session "));
        lines
            .map(str::to_owned)
            .collect::<std::collections::BTreeSet<_>>()
    };
    let after = fs::read_to_string(place.folder.join("kept")).expect("text");
    assert!(
        sessions(&before).is_disjoint(&sessions(&after)),
        "they are used up"
    );
    assert_eq!(sessions(&after).len(), 4);

    // Damaged sessions are reported, and lead to a full handshake.
    let cut = &after[..after.len() - 100];
    fs::write(
        place.folder.join("kept"),
        cut.replace("session ", "session 00"),
    )
    .expect("a file");
    let output = place.get(&words);
    let printed = stderr(&output);
    assert_eq!(code(&output), 0, "{printed}");
    assert!(
        printed.contains("warning: `kept`: ignored damaged lines: 4"),
        "{printed}"
    );
    assert!(printed.contains("full handshake"), "{printed}");
    let output = place.get(&words);
    assert!(
        stderr(&output).contains("0-RTT accepted"),
        "{}",
        stderr(&output)
    );
    // A folder that is not there is no reason not to fetch.
    let output = place.get(&["--session-store", "no/such/kept", "-o", "x", &url]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("warning: `no/such/kept`"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn standard_input_is_uploaded_over_quic_too() {
    use std::{
        io::Write as _,
        process::{Command, Stdio},
    };
    let place = Place::new("get-stdin");
    let sent = super::raw::body(3_000_000);
    let mut child = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .args([
            "get",
            "--http3-only",
            "--cacert",
            "ca.pem",
            "-T",
            "-",
            "-o",
            "back",
        ])
        .arg(place.url("echo"))
        .current_dir(&place.folder)
        .stdin(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(&sent).expect("it is read");
    drop(stdin);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(place.read("back") == sent);
}
