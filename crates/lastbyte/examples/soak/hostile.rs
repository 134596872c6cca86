//! A client that makes the server work needlessly: requests whose responses it stops in the same packet, and requests whose
//! responses it cannot receive, since it accepts no field section.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use lastbyte_driver::{Application, Clock, Next, Status, Worker};
use lastbyte_http3::{self as http3, Body, Code, Request};
use lastbyte_quic::{
    Time,
    connection::{Connection, NetworkPath, Stage},
    crypto::tls::TlsClient,
    endpoint::{Closed, Endpoint, EndpointConfig, Handle},
};
use lastbyte_udp::{Options, Socket};

use crate::{Outcome, Tally, config, trust::AcceptAny};

/// Requests in each turn, and the time between turns.
const REQUESTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

struct Wasting<'a> {
    path: NetworkPath,
    crypto: Arc<TlsClient>,
    config: Arc<lastbyte_quic::connection::Config>,
    /// Its connection at present, and how many there were.
    current: Option<(Handle, http3::Connection)>,
    connections: u64,
    tally: &'a Tally,
    next: Time,
}

impl Wasting<'_> {
    /// Whether it stops the responses, or accepts none.
    const fn stops(&self) -> bool {
        self.connections.is_multiple_of(2)
    }

    fn connect(&mut self, now: Time, endpoint: &mut Endpoint) -> Option<()> {
        self.connections += 1;
        let mut settings = http3::Config::default();
        if !self.stops() {
            settings.field_section_size_max = 1;
        }
        let crypto = self.crypto.clone();
        let handle = endpoint
            .connect(
                now,
                self.path,
                "localhost",
                &self.config,
                crypto,
                Vec::new(),
            )
            .ok()?;
        self.current = Some((handle, http3::Connection::client(&settings)));
        Some(())
    }

    fn ask(&mut self, now: Time, connection: &mut Connection) {
        let stops = self.stops();
        let Some((_, http3)) = &mut self.current else {
            return;
        };
        let agent = "x".repeat(1000);
        let request = Request::new("GET", "https", "localhost", "/1000").with("user-agent", &agent);
        for _ in 0..REQUESTS {
            let Ok(stream) = http3.request(connection, &request, Body::Empty) else {
                return;
            };
            self.tally.wasted.fetch_add(1, Relaxed);
            if stops {
                http3.stop(connection, now, stream, Code::REQUEST_CANCELLED);
            }
        }
    }
}

impl Application for Wasting<'_> {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_ready(&mut self, now: Time, handle: Handle, connection: &mut Connection, (): &mut ()) {
        while connection.poll_event().is_some() {}
        if let Some((current, http3)) = &mut self.current
            && *current == handle
        {
            while http3.poll(connection, now).is_some() {}
        }
    }

    fn on_closed(&mut self, _: Time, _: Closed) {
        self.current = None;
        self.tally.closed.fetch_add(1, Relaxed);
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        let is_over = self.tally.is_over.load(Relaxed);
        if now >= self.next {
            self.next = now + PAUSE;
            match self.current.as_ref().map(|(handle, _)| *handle) {
                None => {
                    let _ = self.connect(now, endpoint);
                }
                Some(handle) => {
                    if let Some((connection, ())) = endpoint.entry(handle)
                        && connection.stage() != Stage::Handshaking
                    {
                        self.ask(now, connection);
                        if is_over {
                            connection.close(now, Code::NO_ERROR.get());
                        }
                    }
                }
            }
        }
        Next {
            deadline: Some(self.next),
            status: Status::stopped_if(is_over),
        }
    }
}

/// Wastes requests until all is over.
pub(crate) fn waste(server: SocketAddr, tally: &Tally) -> Outcome<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = Socket::bind(address, &Options::default())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAny))
        .with_no_client_auth();
    tls.alpn_protocols = vec![http3::ALPN.to_vec()];
    let clock = Clock::new();
    let wasting = Wasting {
        path: NetworkPath {
            local: socket.local_address(),
            remote: server,
        },
        crypto: Arc::new(TlsClient::new(tls)?),
        config: Arc::new(config()?),
        current: None,
        connections: 0,
        tally,
        next: clock.now(),
    };
    let endpoint = Endpoint::new(EndpointConfig::client(), [3; 32])?;
    Worker::new(socket, endpoint, wasting, clock)?.run()?;
    Ok(())
}
