//! Any datagrams, at any time, for a server endpoint: it stays within its limits, and forgets them all in the end. Shared
//! by the replay of the corpus and the fuzz target.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::Ecn,
    connection::{Config, NetworkPath},
    crypto::plain::PlainServer,
    endpoint::{Endpoint, EndpointConfig, ResetSecret, RetryPolicy, Route},
    stream::KeepAll,
};

const CONNECTIONS: usize = 8;

fn server(retry: RetryPolicy) -> Endpoint {
    let connection = Config::new("cubic".parse().expect("a spec"));
    let crypto = PlainServer::new(1, vec![b"bulk".to_vec()]);
    let mut config = EndpointConfig::server(Arc::new(connection), Arc::new(crypto));
    config.limits.connections = CONNECTIONS;
    config.limits.answers = 4;
    config.reset_key = Some(ResetSecret([1; 32]));
    if let Some(server) = &mut config.server {
        server.retry = retry;
    }
    Endpoint::new(config, [2; 32]).expect("an endpoint")
}

fn path(client: u8) -> NetworkPath {
    NetworkPath {
        local: SocketAddr::from(([192, 0, 2, 1], 443)),
        remote: SocketAddr::from(([192, 0, 2, 2], 1000 + u16::from(client))),
    }
}

/// Each datagram comes behind two bytes: how it comes, and how long it is, in units of eight bytes.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[how, len], rest) = bytes.split_first_chunk()?;
    let len = (usize::from(len) * 8).min(rest.len());
    let (datagram, rest) = rest.split_at_checked(len)?;
    *bytes = rest;
    Some((how, datagram))
}

/// Hands in the datagrams that the bytes say, as they say.
pub(crate) fn play(bytes: &[u8]) {
    let mut bytes = bytes;
    let retry = match bytes.first() {
        Some(0..100) => RetryPolicy::Never,
        Some(100..200) => RetryPolicy::Always,
        _ => RetryPolicy::UnderLoad { handshakes: 2 },
    };
    let mut server = server(retry);
    let mut now = Time::from_nanos(1_000_000_000);
    let mut buffer = [0; 1500];
    while let Some((how, datagram)) = next(&mut bytes) {
        now = now + Duration::from_millis(u64::from(how >> 4) * 100);
        let path = path(how & 3);
        let mut datagram = datagram.to_vec();
        // Zeros make an Initial packet long enough.
        if how & 4 != 0 {
            datagram.resize(1200.max(datagram.len()), 0);
        }
        if let Route::Connection(handle) | Route::Accepted(handle) =
            server.route(now, &path, &mut datagram)
        {
            let connection = server.connection(handle).expect("just found");
            connection.handle_datagram(now, &path, Ecn::NotEct, &mut datagram, &mut KeepAll);
        }
        if how & 8 != 0 {
            while server.poll_timeout(now).is_some() {}
            while server.poll_transmit(now, &mut buffer).is_some() {}
        }
        assert!(server.connections() <= CONNECTIONS);
    }
    while server.poll_transmit(now, &mut buffer).is_some() {}
    while let Some(at) = server.deadline() {
        now = now.max(at);
        while server.poll_timeout(now).is_some() {}
        while server.poll_transmit(now, &mut buffer).is_some() {}
    }
    assert_eq!(server.connections(), 0);
}
