//! Sockets handed over as service managers do: from descriptor 3 on, announced in the environment.
//!
//! A shell moves its stdin and stdout there, so that there are two sockets at most.

#![expect(
    clippy::disallowed_types,
    reason = "what is handed over has to be opened"
)]

use std::{
    net::{TcpListener, UdpSocket},
    os::fd::OwnedFd,
    process::{Command, Stdio},
};

use socket2::SockRef;

use super::{Serving, folder, lastbyte, stderr};

/// What a service manager runs.
fn activated(first: OwnedFd, second: OwnedFd, names: &str, arguments: &[&str]) -> Command {
    // The shell's number is that of the program which takes its place.
    let script = "LISTEN_PID=$$ LISTEN_FDS=2 exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_lastbyte"), "serve"])
        .args(["--self-signed", "--listen", "192.0.2.1:1"])
        .args(arguments)
        .env("LISTEN_FDNAMES", names)
        .env_remove("SSLKEYLOGFILE")
        .stdin(Stdio::from(first))
        .stdout(Stdio::from(second));
    command
}

fn udp() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a socket")
}

/// Bound to one port, over UDP and TCP.
fn pair() -> (UdpSocket, TcpListener) {
    loop {
        let udp = udp();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().expect("an address")) {
            return (udp, tcp);
        }
    }
}

/// Two that share a port: what a unit with `ReusePort=yes` and two lines has.
fn group() -> (OwnedFd, OwnedFd) {
    // The kernel may choose the port of another group for a socket that has the option when it is bound.
    let first = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let shared = |socket: &SockRef<'_>| socket.set_reuse_port(true).expect("Linux has it");
    shared(&SockRef::from(&first));
    let second = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None);
    let second = second.expect("a socket");
    shared(&SockRef::from(&second));
    let address = first.local_addr().expect("an address");
    second.bind(&address.into()).expect("it is shared");
    let second = UdpSocket::from(second);
    (first.into(), second.into())
}

fn gets(serving: &Serving, version: &str) {
    let folder = folder(&format!("serve-activated-{}-{version}", serving.port));
    let got = serving.get(&folder, "/1000", &["-i", "--http", version]);
    let text = String::from_utf8_lossy(&got.stdout).into_owned();
    assert!(
        text.starts_with(&format!("HTTP/{version} 200")),
        "{text}{}",
        stderr(&got)
    );
}

#[test]
fn passed_sockets_replace_the_address_and_outlive_the_server() {
    let (udp, tcp) = pair();
    let port = udp.local_addr().expect("an address").port();
    let start = || {
        let udp = udp.try_clone().expect("a descriptor");
        let tcp = tcp.try_clone().expect("a descriptor");
        let names = "lastbyte.socket:lastbyte.socket";
        Serving::spawn(&mut activated(udp.into(), tcp.into(), names, &[]))
    };
    let serving = start();
    assert_eq!(serving.port, port);
    assert!(
        serving.process.printed.contains("one UDP socket"),
        "{}",
        serving.process.printed
    );
    for version in ["1.1", "2", "3"] {
        gets(&serving, version);
    }
    assert_eq!(serving.end().0, 0);
    // A client that connects while no server runs is served by the next.
    let url = format!("https://127.0.0.1:{port}/1000");
    let between = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
        .args(["get", "-k", "--http", "3", "-o", "/dev/null", &url])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let serving = start();
    let output = between.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(serving.end().0, 0);
}

#[test]
fn a_passed_reuseport_socket_is_joined_by_one_for_each_other_worker() {
    let (first, _) = group();
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let arguments = ["--http", "3", "--workers", "3"];
    let command = &mut activated(first, tcp.into(), "lastbyte.socket:metrics", &arguments);
    let serving = Serving::spawn(command);
    assert!(
        serving.process.printed.contains("(HTTP/3, 3 workers)"),
        "{}",
        serving.process.printed
    );
    assert!(
        serving.process.printed.contains("serving metrics"),
        "{}",
        serving.process.printed
    );
    for _ in 0..5 {
        gets(&serving, "3");
    }
    let (code, printed) = serving.end();
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("HTTP/3: 5 connections, 5 requests"),
        "{printed}"
    );
}

#[test]
fn each_passed_socket_has_a_worker() {
    let (first, second) = group();
    let serving = Serving::spawn(&mut activated(first, second, "", &["--http", "3"]));
    assert!(
        serving.process.printed.contains("(HTTP/3, 2 workers)"),
        "{}",
        serving.process.printed
    );
    for _ in 0..5 {
        gets(&serving, "3");
    }
    assert_eq!(serving.end().0, 0);
}

#[test]
fn errors_of_passed_sockets_name_the_setting_of_the_unit() {
    for (first, second, names, arguments, code, expected) in [
        (
            udp().into(),
            pair().1.into(),
            "a:b",
            &["--workers", "1"][..],
            1,
            "have different ports",
        ),
        (
            pair().1.into(),
            pair().1.into(),
            "a:b",
            &[],
            2,
            "one is enough for all workers",
        ),
        (
            udp().into(),
            OwnedFd::from(std::fs::File::open("/dev/null").expect("a device")),
            "a:b",
            &[],
            2,
            "descriptor 4 (`b`) is neither a UDP nor a TCP socket",
        ),
    ] {
        let output = activated(first, second, names, arguments)
            .output()
            .expect("it ends");
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(printed.contains(expected), "{printed}");
    }
}

/// As when a program that was activated starts another without hiding its environment.
#[test]
fn sockets_for_another_process_are_ignored() {
    let folder = folder("serve-activated-not");
    for id in ["1", ""] {
        let output = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .args(["serve", "--self-signed", "--listen", "192.0.2.1:1"])
            .env("LISTEN_PID", id)
            .env("LISTEN_FDS", "1")
            .current_dir(&folder)
            .output()
            .expect("it ends");
        assert!(stderr(&output).contains("cannot listen on `192.0.2.1:1`"));
    }
    // And none are needed to try a configuration.
    let tried = lastbyte(&folder, &["serve", "--self-signed", "--check"]);
    assert_eq!(tried.status.code(), Some(0));
}
