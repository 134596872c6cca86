//! A fleet of servers, a clock set by hand, and clients, for tests of tickets.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lastbyte_wire::{VarInt, packet::Version, transport_parameters::TransportParameters};
use rustls::crypto::CryptoProvider;

use super::{Tickets, ZeroRtt, clock::WallClock, keys::TicketKeys, replay_filter::ReplayFilter};
use crate::WallTime;
use crate::crypto::{
    ClientCrypto as _, EarlyData, ServerCrypto as _, Session, Space,
    testing::{End, drive, first, handshake_packet},
    tls::{
        TlsClient, TlsServer,
        testing::{Identity, all_suites, client_config, identity, server_config},
    },
};

pub(in crate::crypto) const DAY: Duration = Duration::from_secs(86_400);

/// A clock that is set manually.
#[derive(Debug)]
pub(in crate::crypto) struct Clock(AtomicU64);

impl Clock {
    pub(in crate::crypto) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1_900_000_000)))
    }

    pub(in crate::crypto) fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    pub(in crate::crypto) fn set_back(&self, time: Duration) {
        self.0.fetch_sub(time.as_secs(), Ordering::Relaxed);
    }
}

impl WallClock for Clock {
    fn now(&self) -> WallTime {
        WallTime::from_unix(Duration::from_secs(self.0.load(Ordering::Relaxed)))
    }
}

/// Adapts our clock for a client's rustls.
#[derive(Debug)]
struct ClientTime(Arc<Clock>);

impl rustls::time_provider::TimeProvider for ClientTime {
    fn current_time(&self) -> Option<rustls::pki_types::UnixTime> {
        let now = self.0.now().since_unix_epoch();
        Some(rustls::pki_types::UnixTime::since_unix_epoch(now))
    }
}

/// The server's transport parameters, with this much flow control.
pub(in crate::crypto) fn parameters(initial_max_data: u32) -> Vec<u8> {
    TransportParameters {
        initial_max_data: VarInt::from(initial_max_data),
        max_idle_timeout_ms: VarInt::from(30_000u32),
        ..TransportParameters::default()
    }
    .to_vec()
}

pub(in crate::crypto) const LIMIT: u32 = 1_000_000;

pub(in crate::crypto) fn keys(seeds: &[u8]) -> TicketKeys {
    let secrets: Vec<_> = seeds.iter().map(|seed| [*seed; 32]).collect();
    TicketKeys::new(&secrets).unwrap()
}

/// A replay filter of a server that was started long ago.
pub(in crate::crypto) fn replay_filter() -> Arc<ReplayFilter> {
    Arc::new(ReplayFilter::new(1000, None))
}

/// State shared by clients and servers of a test.
pub(in crate::crypto) struct Fleet {
    pub(in crate::crypto) clock: Arc<Clock>,
    pub(in crate::crypto) identity: Identity,
    pub(in crate::crypto) provider: Arc<CryptoProvider>,
}

impl Fleet {
    pub(in crate::crypto) fn new() -> Self {
        Self::of(all_suites())
    }

    pub(in crate::crypto) fn of(provider: Arc<CryptoProvider>) -> Self {
        Self {
            clock: Clock::new(),
            identity: identity(),
            provider,
        }
    }

    /// Tickets under these keys, with 0-RTT and a replay filter of their own.
    pub(in crate::crypto) fn tickets(&self, seeds: &[u8]) -> Tickets {
        let clock = Arc::clone(&self.clock);
        Tickets::new(keys(seeds), clock).with_zero_rtt(ZeroRtt::AnyServer(replay_filter()))
    }

    pub(in crate::crypto) fn server(&self, tickets: Tickets) -> TlsServer {
        self.server_of(Arc::clone(&self.provider), tickets)
    }

    pub(in crate::crypto) fn server_of(
        &self,
        provider: Arc<CryptoProvider>,
        tickets: Tickets,
    ) -> TlsServer {
        let config = server_config(provider, &self.identity);
        TlsServer::with_tickets(config, Arc::new(tickets)).unwrap()
    }

    pub(in crate::crypto) fn plain_server(&self, seeds: &[u8]) -> TlsServer {
        self.server(self.tickets(seeds))
    }

    /// A client with rustls' own store, and a clock.
    pub(in crate::crypto) fn client_with(&self, clock: &Arc<Clock>) -> TlsClient {
        let mut config = client_config(Arc::clone(&self.provider), &self.identity.roots);
        config.time_provider = Arc::new(ClientTime(Arc::clone(clock)));
        TlsClient::new(config).unwrap()
    }

    pub(in crate::crypto) fn client(&self) -> TlsClient {
        self.client_with(&self.clock)
    }
}

pub(in crate::crypto) fn start_client(client: &TlsClient) -> End {
    End::new(client.start(Version::V1, "localhost", b"client").unwrap())
}

pub(in crate::crypto) fn start_server(server: &TlsServer) -> End {
    End::new(server.start(Version::V1, &parameters(LIMIT)).unwrap())
}

/// Whether a 0-RTT packet sealed by the client opens at the server.
pub(in crate::crypto) fn early_flows(client: &End, server: &End) -> bool {
    let (Some(client), Some(server)) = (&client.early, &server.early) else {
        return false;
    };
    let mut packet = handshake_packet(client, 0, b"early");
    let packet = first(&mut packet, 8).unwrap();
    server
        .unprotect(packet, None)
        .is_ok_and(|opened| opened.payload() == b"early")
}

/// The kind of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::crypto) enum Kind {
    /// By a full handshake.
    Full,
    /// Resumed, without 0-RTT.
    Resumed,
    /// Resumed, with 0-RTT that the server opened and accepted.
    Early,
}

/// The result on which both ends agree; everything reported about 0-RTT must be consistent with it.
pub(in crate::crypto) fn kind(client: &End, server: &End) -> Kind {
    let resumed = client.session.is_resumed().unwrap();
    assert_eq!(server.session.is_resumed(), Some(resumed));
    let accepted = client.session.early_data() == EarlyData::Accepted;
    assert_eq!(server.session.early_data() == EarlyData::Accepted, accepted);
    assert_eq!(early_flows(client, server), accepted);
    match (resumed, accepted) {
        (false, false) => Kind::Full,
        (true, false) => Kind::Resumed,
        (true, true) => Kind::Early,
        (false, true) => panic!("early data without resumption"),
    }
}

/// A complete connection.
pub(in crate::crypto) fn connect(client: &TlsClient, server: &TlsServer) -> Kind {
    let (mut client, mut server) = (start_client(client), start_server(server));
    drive(&mut client, &mut server, usize::MAX).unwrap();
    kind(&client, &server)
}

/// Replays a `ClientHello` on a new connection of a server, and runs that to its end.
pub(in crate::crypto) fn replay(
    hello: &[(Space, Vec<u8>)],
    server: &TlsServer,
) -> (EarlyData, Option<super::Refusal>, Box<dyn Session>) {
    let mut end = start_server(server);
    end.receive(hello, usize::MAX).unwrap();
    let refusal = end
        .session
        .resumed_ticket()
        .and_then(|ticket| ticket.refusal);
    (end.session.early_data(), refusal, end.session)
}

/// The tickets in a server's output, as complete messages.
pub(in crate::crypto) fn sent_tickets(end: &End) -> Vec<Vec<u8>> {
    let mut messages = super::message::Messages::default();
    for (space, data) in &end.sent_data {
        if *space == Space::Application {
            messages.push(data);
        }
    }
    std::iter::from_fn(|| messages.next()).collect()
}

/// A client, a server whose tickets permit 0-RTT, and one that has the same keys and forbids it.
pub(crate) fn client_and_servers() -> (TlsClient, [TlsServer; 2]) {
    let fleet = Fleet::new();
    let forbids = fleet.tickets(&[1]).with_zero_rtt(ZeroRtt::Off);
    let servers = [fleet.plain_server(&[1]), fleet.server(forbids)];
    (fleet.client(), servers)
}
