use std::time::Duration;

use super::*;
use crate::wait::Waiter;

fn bind(address: &str) -> Socket {
    let address = address.parse().expect("an address");
    Socket::bind(address, &Options::default()).expect("a socket")
}

/// Receives `count` datagrams, with ECN codepoint, source and local address.
fn receive(socket: &Socket, count: usize) -> Vec<(Vec<u8>, Ecn, SocketAddr, Option<IpAddr>)> {
    let mut waiter = Waiter::new().expect("a waiter");
    let mut batch = Batch::new();
    let mut all = Vec::new();
    while all.len() < count {
        let limit = Some(Duration::from_secs(10));
        let ready = waiter.wait(socket, false, limit).expect("a wait");
        assert!(ready.readable, "{} of {count} came", all.len());
        socket.receive(&mut batch).expect("a receive");
        for received in batch.received() {
            for datagram in received.bytes.chunks(received.segment_len) {
                let (ecn, remote, local) = (received.ecn, received.remote, received.local);
                all.push((datagram.to_vec(), ecn, remote, local));
            }
        }
    }
    all
}

#[test]
fn datagrams_sent_in_one_call_arrive_separately_with_their_ecn_mark() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (sender, receiver) = (bind(address), bind(address));
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let bytes: Vec<u8> = (0..9 * 1200 + 77).map(|index| (index / 7) as u8).collect();
            let transmit = Transmit {
                remote: receiver.local_address(),
                local: None,
                ecn,
                bytes: &bytes,
                segment_len: 1200,
            };
            sender.send(&transmit).expect("to be sent");
            let arrived = receive(&receiver, 10);
            let datagrams: Vec<&[u8]> = arrived.iter().map(|(bytes, ..)| &bytes[..]).collect();
            assert_eq!(datagrams, bytes.chunks(1200).collect::<Vec<_>>());
            for (_, mark, remote, local) in &arrived {
                assert_eq!(*mark, ecn, "{address}");
                assert_eq!(*remote, sender.local_address());
                assert_eq!(*local, Some(receiver.local_address().ip()));
            }
        }
    }
}

#[test]
fn dual_stack_sockets_report_ipv4_addresses_and_reply_from_the_local_address() {
    let server = bind("[::]:0");
    let client = bind("127.0.0.1:0");
    let port = server.local_address().port();
    let ask = |address: [u8; 4]| {
        let transmit = Transmit {
            remote: (address, port).into(),
            local: None,
            ecn: Ecn::Ect0,
            bytes: b"ask",
            segment_len: 3,
        };
        client.send(&transmit).expect("to be sent");
        let (bytes, ecn, remote, local) = receive(&server, 1).remove(0);
        assert_eq!((&bytes[..], ecn), (&b"ask"[..], Ecn::Ect0));
        assert_eq!(remote, client.local_address());
        assert_eq!(local, Some(address.into()));
        let answer = Transmit {
            remote,
            local,
            ecn: Ecn::Ce,
            bytes: b"answer",
            segment_len: 1200,
        };
        server.send(&answer).expect("to be sent");
        let (bytes, ecn, remote, _) = receive(&client, 1).remove(0);
        assert_eq!((&bytes[..], ecn), (&b"answer"[..], Ecn::Ce));
        assert_eq!(remote, (address, port).into());
    };
    ask([127, 0, 0, 1]);
    ask([127, 3, 2, 1]);
}

#[test]
fn datagrams_above_the_mtu_are_reported_as_too_large() {
    let (sender, receiver) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let transmit = Transmit {
        remote: receiver.local_address(),
        local: None,
        ecn: Ecn::NotEct,
        bytes: &vec![0; 65_530],
        segment_len: 65_530,
    };
    let error = sender.send(&transmit).expect_err("more than UDP can have");
    assert!(matches!(error, SendError::TooLarge), "{error:?}");
}

#[test]
fn receiving_without_datagrams_is_not_an_error() {
    let socket = bind("127.0.0.1:0");
    let mut batch = Batch::new();
    assert_eq!(socket.receive(&mut batch).expect("a receive"), 0);
    assert_eq!(batch.received().count(), 0);
}

#[test]
fn a_port_in_use_is_an_error() {
    let first = bind("127.0.0.1:0");
    let second = Socket::bind(first.local_address(), &Options::default());
    assert_eq!(
        second.map(|_| ()).expect_err("it is taken").kind(),
        io::ErrorKind::AddrInUse
    );
}

#[test]
fn sockets_on_all_addresses_are_reachable_over_loopback() {
    let on = |address: &str| loopback(address.parse().expect("an address")).to_string();
    assert_eq!(on("0.0.0.0:5"), "127.0.0.1:5");
    assert_eq!(on("[::]:5"), "[::1]:5");
    assert_eq!(on("192.0.2.1:5"), "192.0.2.1:5");
}

#[test]
fn each_error_of_a_send_has_its_meaning() {
    let of = |errno| SendError::of(io::Error::from_raw_os_error(errno));
    assert!(matches!(of(libc::EAGAIN), SendError::Full { sent: 0 }));
    for errno in [libc::ENOBUFS, libc::ENOMEM] {
        assert!(matches!(of(errno), SendError::Dropped), "{errno}");
    }
    assert!(matches!(of(libc::EMSGSIZE), SendError::TooLarge));
    for errno in [
        libc::EPERM,
        libc::EACCES,
        libc::ENETUNREACH,
        libc::EHOSTUNREACH,
        libc::ENETDOWN,
        libc::EADDRNOTAVAIL,
        libc::ECONNREFUSED,
        libc::EINVAL,
        libc::EIO,
    ] {
        let SendError::Failed(error) = of(errno) else {
            panic!("{errno}");
        };
        assert_eq!(error.raw_os_error(), Some(errno));
    }
}

#[test]
fn an_interface_without_segmentation_offload_gets_all_datagrams_one_by_one() {
    for errno in [libc::EIO, libc::EINVAL] {
        let (segments, mut calls) = (std::cell::Cell::new(64), Vec::new());
        let sent = send_in_parts(
            &[7; 25],
            10,
            || segments.get(),
            |bytes| {
                calls.push(bytes.len());
                if segments.replace(1) == 1 {
                    return Ok(());
                }
                Err(SendError::of(io::Error::from_raw_os_error(errno)))
            },
        );
        assert!(sent.is_ok(), "{sent:?}");
        assert_eq!(calls, [25, 10, 10, 5]);
    }
    // Without the offload, the same error is one of the datagram.
    let mut calls = 0;
    let sent = send_in_parts(
        &[7; 25],
        10,
        || 1,
        |_| {
            calls += 1;
            Err(SendError::of(io::Error::from_raw_os_error(libc::EIO)))
        },
    );
    assert!(matches!(sent, Err(SendError::Failed(_))), "{sent:?}");
    assert_eq!(calls, 1);
}

#[test]
fn receiving_goes_on_after_errors_that_concern_other_datagrams_or_pass() {
    for (errno, passes) in [
        (libc::EAGAIN, true),
        (libc::ECONNREFUSED, true),
        (libc::EHOSTUNREACH, true),
        (libc::ENETUNREACH, true),
        (libc::ENOMEM, true),
        (libc::ENOBUFS, true),
        (libc::EBADF, false),
        (libc::EINVAL, false),
    ] {
        let error = io::Error::from_raw_os_error(errno);
        assert_eq!(is_transient(&error), passes, "{error}");
    }
}
