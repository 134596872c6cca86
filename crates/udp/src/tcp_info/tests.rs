#![expect(clippy::disallowed_types, reason = "TCP needs a connection")]

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
};

use super::*;

#[test]
fn sent_and_acknowledged_bytes_are_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut client = TcpStream::connect(address).expect("a connection");
    let (mut server, _) = listener.accept().expect("it is there");
    server.write_all(&[7; 5000]).expect("room");
    client.read_exact(&mut [0; 5000]).expect("all of it");
    client.write_all(b"thanks").expect("room");
    server.read_exact(&mut [0; 6]).expect("an answer");
    let info = TcpInfo::of(&server).expect("Linux tells");
    assert_eq!(info.bytes_sent, Some(5000));
    assert_eq!(info.bytes_acked, Some(5000));
    assert_eq!(info.bytes_received, Some(6));
    assert_eq!((info.unacked, info.not_sent), (0, 0));
    assert_eq!(info.segments_retransmitted, Some(0));
    assert!(
        info.window > Some(1) && info.segment_len > Some(500),
        "{info:?}"
    );
    let limit = Duration::from_secs(10);
    assert!(
        info.rtt > Some(Duration::ZERO) && info.rtt < Some(limit),
        "{info:?}"
    );
    assert!(info.rtt_min <= info.rtt, "{info:?}");
    assert_eq!(info.slow_start_threshold, None);
    let name = tcp_congestion(&server).expect("a name");
    assert!(
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'),
        "{name:?}"
    );
    // Data that the peer does not read remains unsent.
    server.set_nonblocking(true).expect("a mode");
    while server.write(&vec![7; 100_000]).is_ok() {}
    assert!(TcpInfo::of(&server).expect("Linux tells").not_sent > 0);
}

#[test]
fn values_that_older_kernels_lack_are_none() {
    let mut bytes = [1; size_of::<tcp_info>()];
    let whole = TcpInfo::parse(&bytes);
    assert!(whole.delivery_rate.is_some() && whole.bytes_sent.is_some());
    bytes[offset_of!(tcp_info, tcpi_min_rtt)..][..4].fill(0xff);
    assert_eq!(TcpInfo::parse(&bytes).rtt_min, None, "there is no sample");
    let old = TcpInfo::parse(&bytes[..offset_of!(tcp_info, tcpi_pacing_rate)]);
    assert!(old.rtt.is_some() && old.segments_retransmitted.is_some());
    assert_eq!((old.bytes_acked, old.busy), (None, None));
    assert_eq!(TcpInfo::parse(&[]), TcpInfo::default());
}

#[test]
fn other_sockets_have_no_tcp_info() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    assert!(TcpInfo::of(&socket).is_err());
    assert_eq!(tcp_congestion(&socket), None);
}

#[test]
fn accepted_sockets_have_the_limit_of_their_listener() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    limit_unsent(&listener, 12_345).expect("Linux has it");
    let address = listener.local_addr().expect("an address");
    let client = TcpStream::connect(address).expect("a connection");
    let (server, _) = listener.accept().expect("it is there");
    let limit = |socket: &TcpStream| socket2::SockRef::from(socket).tcp_notsent_lowat();
    assert_eq!(limit(&server).expect("Linux has it"), 12_345);
    assert_ne!(limit(&client).expect("Linux has it"), 12_345);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    limit_unsent(&socket, 1).expect_err("it is not TCP");
}
