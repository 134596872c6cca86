//! Handshakes of a flow: full or resumed, with TLS or with simulated TLS.
//!
//! Creates the credentials of both ends, and runs the earlier connection whose ticket a client resumes. That connection is
//! outside of the simulation: it takes no virtual time, sends nothing over the links, and draws no randomness from the scenario.
//!
//! By default TLS is simulated, with messages of the same length and the same round trips: this is fast, and draws no randomness.
//! Real TLS draws new keys in each run. All its messages have a fixed length here (`tls`), so the same seed gives the same times
//! and sizes, though not the same bytes.

use core::time::Duration;
use std::sync::Arc;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::Ecn,
    connection::Config,
    crypto::{
        ClientCrypto, ServerCrypto,
        plain::{Limits, PlainClient, PlainServer, Resumption, Sizes},
    },
    endpoint::{Endpoint, EndpointConfig, RetryPolicy, Route},
    random::Seed,
    stream::KeepAll,
};
use lastbyte_scenario::{Handshake, Security, Transport};
use lastbyte_wire::Side;

use crate::{SERVER_NAME, error::SimError, node::addresses, server::ServerSettings};

mod tls;

/// TLS configurations of both ends.
pub(crate) struct Credentials {
    pub(crate) client: Arc<dyn ClientCrypto>,
    pub(crate) server: Arc<dyn ServerCrypto>,
}

/// Creates the credentials of both ends for the handshake of `transport`.
pub(crate) fn credentials(
    transport: &Transport,
    server: &ServerSettings,
    config: &Arc<Config>,
    seeds: &[Seed; 2],
) -> Result<Credentials, SimError> {
    match transport.security {
        Security::Simulated => simulated_tls(transport, server, config, seeds),
        Security::Tls => {
            let credentials = tls::credentials(transport, server.takes_zero_rtt)?;
            if transport.handshake != Handshake::Full {
                // Its ticket is in the client's session store.
                earlier_connection(config, &credentials)?;
            }
            Ok(credentials)
        }
    }
}

fn simulated_tls(
    transport: &Transport,
    settings: &ServerSettings,
    config: &Arc<Config>,
    seeds: &[Seed; 2],
) -> Result<Credentials, SimError> {
    let alpn = vec![lastbyte_http3::ALPN.to_vec()];
    let [client_seed, server_seed] = seeds.map(|seed| number(&seed));
    let mut client = PlainClient::new(client_seed, alpn.clone());
    let mut server = PlainServer::new(server_seed, alpn);
    // Links drop and delay datagrams, but change no bytes.
    let limits = Limits {
        tags_bytes: false,
        ..Limits::default()
    };
    client.limits = limits;
    server.limits = limits;
    server.sizes = Sizes {
        certificate: transport.certificate_chain,
        ..Sizes::default()
    };
    let server: Arc<dyn ServerCrypto> = Arc::new(server);
    if transport.handshake != Handshake::Full {
        let before = Credentials {
            client: Arc::new(client.clone()),
            server: Arc::clone(&server),
        };
        client.resumption = Some(Resumption {
            parameters: earlier_connection(config, &before)?,
            // Without 0-RTT, tickets do not permit it.
            early_data: transport.handshake == Handshake::ZeroRtt && settings.takes_zero_rtt,
        });
    }
    Ok(Credentials {
        client: Arc::new(client),
        server,
    })
}

/// Runs an earlier connection between the same two ends, without a path, until the client has a ticket. Returns the server's transport
/// parameters.
fn earlier_connection(
    config: &Arc<Config>,
    credentials: &Credentials,
) -> Result<Vec<u8>, SimError> {
    let failed = |what: &dyn core::fmt::Display| {
        SimError::Handshake(format!("the visit before failed: {what}"))
    };
    let mut server = EndpointConfig::server(Arc::clone(config), Arc::clone(&credentials.server));
    if let Some(server) = &mut server.server {
        server.retry = RetryPolicy::Never;
    }
    let mut client =
        Endpoint::new(EndpointConfig::client(), [1; 32]).map_err(|error| failed(&error))?;
    let mut server = Endpoint::new(server, [2; 32]).map_err(|error| failed(&error))?;
    let paths = [Side::Client, Side::Server].map(|side| addresses(0, side));
    let crypto = Arc::clone(&credentials.client);
    let mut now = Time::ZERO;
    let handle = client
        .connect(now, paths[0], SERVER_NAME, config, crypto, Vec::new())
        .map_err(|error| failed(&error))?;
    let mut buffer = vec![0; 65_535];
    for _ in 0..STEPS_MAX {
        now = now + STEP;
        for [from, to] in [[0, 1], [1, 0]] {
            let (sender, receiver) = if from == 0 {
                (&mut client, &mut server)
            } else {
                (&mut server, &mut client)
            };
            while sender.poll_timeout(now).is_some() {}
            while let Some(transmit) = sender.poll_transmit(now, &mut buffer) {
                let segments = buffer.get_mut(..transmit.len).unwrap_or_default();
                for datagram in segments.chunks_mut(transmit.segment_len.max(1)) {
                    let (Route::Accepted(handle) | Route::Connection(handle)) =
                        receiver.route(now, &paths[to], datagram)
                    else {
                        continue;
                    };
                    if let Some(connection) = receiver.connection(handle) {
                        let ecn = Ecn::NotEct;
                        connection.handle_datagram(now, &paths[to], ecn, datagram, &mut KeepAll);
                    }
                }
            }
        }
        let Some(connection) = client.peek(handle) else {
            break;
        };
        if let Some(reason) = connection.close_reason() {
            return Err(failed(&reason));
        }
        let session = connection.session();
        if session.tickets_received() > 0
            && let Some(parameters) = session.peer_parameters()
        {
            return Ok(parameters.to_vec());
        }
    }
    Err(failed(&"there was no ticket"))
}

/// A step of 1 ms is enough for pacing.
const STEP: Duration = Duration::from_millis(1);
/// A handshake and its tickets take about ten steps with the longest certificate chain.
const STEPS_MAX: usize = 1000;

fn number(seed: &Seed) -> u64 {
    seed.first_chunk().copied().map_or(0, u64::from_le_bytes)
}
