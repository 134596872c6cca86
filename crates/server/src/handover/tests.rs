#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "sockets are handed over, and files are left"
)]

use std::{
    net::{TcpListener, UdpSocket},
    os::unix::net::UnixStream,
};

use super::*;

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder =
        std::env::temp_dir().join(format!("lastbyte-handover-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn offer() -> (Offer, u16) {
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = udp.local_addr().expect("bound").port();
    let offer = Offer {
        sockets: vec![(Purpose::Udp, udp.into()), (Purpose::Tcp, tcp.into())],
        workers: 1,
        remotes: Vec::new(),
        inlet: None,
        metrics: None,
    };
    (offer, port)
}

fn connect_to(path: &Path) -> OwnedFd {
    let stream = open().expect("a socket");
    connect(&stream, &SocketAddrUnix::new(path).expect("short")).expect("it listens");
    stream
}

fn is_closed(stream: &OwnedFd) -> bool {
    loop {
        match receive(stream) {
            Ok(_) => {}
            Err(error) => break error.kind() != io::ErrorKind::TimedOut,
        }
    }
}

#[test]
fn sockets_are_taken_over_and_the_offer_stands_until_the_later_process_serves() {
    let folder = folder("taken");
    let path = folder.join("socket");
    assert!(Takeover::begin(&path).expect("no error").is_none());
    let (offer, port) = offer();
    let mut successor = Successor::listen(&path, offer).expect("a socket");
    let mode = fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // One that fails before it serves, at each step.
    for steps in 0..2 {
        let takeover = Takeover::begin(&path).expect("no error").expect("an offer");
        if steps == 1 {
            takeover.stop_predecessor().expect("it stops");
        }
    }
    assert!(successor.taken.try_recv().is_err());
    let takeover = Takeover::begin(&path).expect("no error").expect("an offer");
    assert_eq!(takeover.workers.get(), 1);
    let purposes: Vec<Purpose> = takeover
        .sockets
        .iter()
        .map(|(purpose, _)| *purpose)
        .collect();
    assert_eq!(purposes, [Purpose::Udp, Purpose::Tcp]);
    let udp = UdpSocket::from(takeover.sockets[0].1.try_clone().expect("a descriptor"));
    assert_eq!(udp.local_addr().expect("bound").port(), port);
    takeover.stop_predecessor().expect("it stops");
    takeover.finish().expect("it is sent");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(successor.taken());
    // The file is the later process's to replace.
    successor.close();
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn the_socket_file_ends_with_the_server_unless_a_later_process_has_replaced_it() {
    let folder = folder("file");
    let path = folder.join("socket");
    let first = Successor::listen(&path, offer().0).expect("a socket");
    let second = Successor::listen(&path, offer().0).expect("a socket");
    first.close();
    assert!(path.exists());
    assert!(Takeover::begin(&path).expect("no error").is_some());
    second.close();
    assert!(!path.exists());
    // A socket file without a listener is treated as absent.
    let unused = open().expect("a socket");
    bind(&unused, &SocketAddrUnix::new(&path).expect("short")).expect("bound");
    drop(unused);
    assert!(path.exists());
    assert!(Takeover::begin(&path).expect("no error").is_none());
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn other_messages_end_a_hand_over_and_the_next_succeeds() {
    let folder = folder("hostile");
    let path = folder.join("socket");
    let successor = Successor::listen(&path, offer().0).expect("a socket");
    for text in ["lastbyte handover 2", "stop", "\0", &"x".repeat(5000)] {
        let stream = connect_to(&path);
        prepare(&stream).expect("the same user");
        send(&stream, text, None).expect("sent");
        assert!(is_closed(&stream), "{text}");
    }
    // A wrong second message, and one with an unexpected descriptor.
    let stream = connect_to(&path);
    prepare(&stream).expect("the same user");
    send(&stream, HELLO, Some(stream.as_fd())).expect("sent");
    send(&stream, SERVING, None).expect("sent");
    assert!(is_closed(&stream));
    // A stream socket is refused by the kernel.
    assert!(UnixStream::connect(&path).is_err());
    assert!(Takeover::begin(&path).expect("no error").is_some());
    successor.close();
    let _ = fs::remove_dir_all(&folder);
}

#[test]
fn a_server_that_sends_anything_else_is_not_taken_over() {
    let folder = folder("server");
    let path = folder.join("socket");
    let listener = open().expect("a socket");
    bind(&listener, &SocketAddrUnix::new(&path).expect("short")).expect("bound");
    listen(&listener, 4).expect("it listens");
    let cases: [&[(&str, bool)]; 5] = [
        &[("udp", false)],
        &[("disk", true)],
        &[("1", false)],
        &[("link", true), ("0", false)],
        &[("link", true), ("many", false)],
    ];
    for messages in cases {
        let begun = thread::scope(|scope| {
            let taking = thread::Builder::new();
            let taking = taking
                .spawn_scoped(scope, || Takeover::begin(&path))
                .expect("a thread");
            let stream = accept_with(&listener, SocketFlags::CLOEXEC).expect("a client");
            for (text, has_socket) in messages {
                send(&stream, text, has_socket.then_some(listener.as_fd())).expect("sent");
            }
            taking.join().expect("no panic")
        });
        let error = begun.expect_err("it is no server of ours");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{messages:?}");
    }
    let _ = fs::remove_dir_all(&folder);
}

/// A wrong path in a configuration does not delete a private key.
#[test]
fn a_file_that_is_not_a_socket_is_neither_replaced_nor_removed() {
    let folder = folder("other");
    let (path, link) = (folder.join("key.pem"), folder.join("link"));
    fs::write(&path, "secret").expect("room");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    for name in [&path, &link, &folder] {
        let error = check(name).expect_err("it is no socket");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let error = Successor::listen(name, offer().0).expect_err("it is no socket");
        assert!(error.to_string().contains("not a socket"), "{error}");
        assert_eq!(fs::read(&path).expect("a file"), b"secret");
    }
    let names = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(names, 2, "nothing is left");
    assert!(check(&folder.join("new")).is_ok());
    let _ = fs::remove_dir_all(&folder);
}
