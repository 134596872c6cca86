//! An endpoint allocates nothing for each datagram: neither to find its connection, nor to look at that and its timer, nor
//! to answer one that leads nowhere with a Version Negotiation packet.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::Ecn,
    connection::{Config, NetworkPath},
    crypto::plain::{PlainClient, PlainServer},
    endpoint::{Answer, Endpoint, EndpointConfig, Route},
    stream::KeepAll,
};
use lastbyte_testkit::{CountingAllocator, allocation_count};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const CONNECTIONS: u16 = 200;

fn path(client: u16, is_at_server: bool) -> NetworkPath {
    let server = SocketAddr::from(([192, 0, 2, 1], 443));
    let client = SocketAddr::from(([192, 0, 2, 2], 10_000 + client));
    if is_at_server {
        NetworkPath {
            local: server,
            remote: client,
        }
    } else {
        NetworkPath {
            local: client,
            remote: server,
        }
    }
}

fn drain(endpoint: &mut Endpoint, now: Time, buffer: &mut [u8]) -> usize {
    let mut count = 0;
    while endpoint.poll_transmit(now, buffer).is_some() {
        count += 1;
    }
    count
}

/// A server with connections, and a short header for each.
fn server(now: Time) -> (Endpoint, Vec<Vec<u8>>) {
    let alpn = || vec![b"bulk".to_vec()];
    let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
    let crypto = Arc::new(PlainServer::new(1, alpn()));
    let server_config = EndpointConfig::server(Arc::clone(&config), crypto);
    let mut server = Endpoint::new(server_config, [1; 32]).expect("an endpoint");
    let mut client = Endpoint::new(EndpointConfig::client(), [2; 32]).expect("an endpoint");
    let mut buffer = [0; 1500];
    let mut datagrams = Vec::new();
    for index in 0..CONNECTIONS {
        let crypto = Arc::new(PlainClient::new(index.into(), alpn()));
        client
            .connect(
                now,
                path(index, false),
                "localhost",
                &config,
                crypto,
                Vec::new(),
            )
            .expect("a connection");
        let transmit = client.poll_transmit(now, &mut buffer).expect("an Initial");
        let datagram = &mut buffer[..transmit.len];
        let Route::Accepted(handle) = server.route(now, &path(index, true), datagram) else {
            panic!("accepted");
        };
        let connection = server.connection(handle).expect("lives");
        connection.handle_datagram(now, &path(index, true), Ecn::NotEct, datagram, &mut KeepAll);
        let id = connection.local_ids().next().expect("one");
        datagrams.push([&[0x41][..], id.as_slice(), &[0; 40]].concat());
        drain(&mut server, now, &mut buffer);
        drain(&mut client, now, &mut buffer);
    }
    (server, datagrams)
}

#[test]
fn nothing_is_allocated_for_a_datagram() {
    let mut now = Time::from_nanos(1_000_000_000);
    let (mut server, mut datagrams) = server(now);
    let mut unknown = vec![0; 1200];
    unknown[..5].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a]);
    let mut buffer = [0; 1500];
    let mut answered = 0;
    let mut before = 0;
    for round in 0..20 {
        if round == 1 {
            // Queues have their size now.
            before = allocation_count();
        }
        now = now + Duration::from_millis(100);
        for (index, datagram) in (0..).zip(&mut datagrams) {
            let path = path(index, true);
            let Route::Connection(handle) = server.route(now, &path, datagram) else {
                panic!("known");
            };
            assert!(server.connection(handle).is_some());
        }
        assert_eq!(drain(&mut server, now, &mut buffer), 0);
        let route = server.route(now, &path(999, true), &mut unknown);
        assert_eq!(route, Route::Answered(Answer::VersionNegotiation));
        answered += drain(&mut server, now, &mut buffer);
        assert!(server.deadline().is_some());
    }
    let allocations = allocation_count() - before;
    assert_eq!(answered, 20);
    assert_eq!(allocations, 0, "in 3819 datagrams");
}
