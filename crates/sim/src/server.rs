//! The server of a flow: what [`lastbyte_origin`] needs to be `lastbyte serve` in virtual time.
//!
//! Owns the [`ServerSettings`] of a simulation, and the handler of transfers.

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_congestion::{ControllerFactory, Spec, Time};
use lastbyte_http3::{self as http3, Request};
use lastbyte_origin::{
    Arms, FullResponse, Handler, HandlerResponse, Peer, Shared, UPLOAD_WINDOW_MAX,
    budget::{self, Budget},
    generated::{LEN_MAX, Objects},
    sink::{Sink, UPLOAD_LEN_MAX},
    upload_window,
};
use lastbyte_quic::{
    connection::Config,
    endpoint::RetryPolicy,
    flow::WindowSize,
    path::MtuConfig,
    recovery::LossThresholds,
    stream::{Source, SourceError},
    trace::Trace,
};
use lastbyte_scenario::Transport;

/// Settings of the server: what of `lastbyte serve` has a meaning in virtual time.
///
/// A simulated server has one client, so limits on numbers of connections and handshakes are not among them.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The configuration of connections. Its congestion control is replaced by that of each flow.
    pub connections: Config,
    /// Settings of HTTP/3.
    pub http3: http3::Config,
    /// When clients must validate their address.
    pub retry: RetryPolicy,
    /// Time limit for handshakes.
    pub handshake_timeout: Duration,
    /// Whether 0-RTT is accepted.
    pub takes_zero_rtt: bool,
    /// The memory for buffered bodies.
    pub buffers: budget::Limits,
    /// The memory for windows of request bodies, in bytes. `None`: each connection has its largest windows.
    pub window_memory: Option<u64>,
}

impl ServerSettings {
    /// The settings of simulations without a configuration file: datagram size, ECN, thresholds and acknowledgments of
    /// `transport`, windows of `lastbyte serve`, no idle timeout, no Retry, and an hour for handshakes and request headers, since
    /// pauses and the longest paths are part of a scenario.
    #[must_use]
    pub fn of(transport: &Transport, congestion: &Spec) -> Self {
        Self {
            connections: config(transport, Arc::new(congestion.clone())),
            http3: http3_config(),
            retry: RetryPolicy::Never,
            handshake_timeout: PATIENCE,
            takes_zero_rtt: true,
            buffers: budget::Limits::default(),
            window_memory: None,
        }
    }

    /// The configuration of connections with this congestion control.
    pub(crate) fn config(&self, congestion: &Spec) -> Arc<Config> {
        Arc::new(Config {
            congestion: Arc::new(congestion.clone()),
            ..self.connections.clone()
        })
    }

    /// What the workers of the server share. All connections have this configuration.
    pub(crate) fn shared(
        &self,
        handler: Arc<dyn Handler>,
        config: Arc<Config>,
        trace: TraceSlot,
    ) -> Shared {
        let wall = Arc::new(|now: Time| EPOCH + now.since(Time::ZERO));
        Shared {
            http3: self.http3.clone(),
            budget: Budget::new(self.buffers),
            trace: Some(Arc::new(move |_, _| take_trace(&trace))),
            ..Shared::new(handler, Arms::one(config), wall)
        }
    }
}

/// The connection configuration of a server, with the windows of `lastbyte serve`.
pub(crate) fn config(transport: &Transport, congestion: Arc<dyn ControllerFactory>) -> Config {
    let mut config = Config::with_controllers(congestion);
    if !transport.adapts_to_reordering {
        config.thresholds = LossThresholds::fixed();
    }
    config.mtu = MtuConfig {
        initial: transport.datagram_size,
        maximum: transport.datagram_size,
    };
    config.ecn = transport.ecn;
    config.ack_frequency = transport.ack_frequency;
    config.max_ack_delay = transport.max_ack_delay;
    // Pauses between requests are part of a scenario, however long.
    config.max_idle_timeout = Duration::ZERO;
    [
        config.streams.stream_window,
        config.streams.connection_window,
    ] = server_windows();
    config
}

/// Receive windows of a server with the defaults of `lastbyte serve`: of a stream, and of the connection.
pub(crate) fn server_windows() -> [WindowSize; 2] {
    [upload_window(UPLOAD_WINDOW_MAX); 2]
}

/// The settings of HTTP/3 of both ends. On the longest paths a header takes longer than a server's default timeout.
pub(crate) fn http3_config() -> http3::Config {
    let mut config = http3::Config::default();
    config.limits.head_timeout = PATIENCE;
    config
}

/// A time limit that no path reaches.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3600);

/// The wall-clock time at the start of a simulation, since the Unix epoch: 14 November 2023.
const EPOCH: Duration = Duration::from_secs(1_700_000_000);

/// A body of this length, in bytes. Its content is undefined: nothing reads it, so nothing is written.
pub(crate) struct AnyBytes(pub(crate) u64);

impl Source for AnyBytes {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), SourceError> {
        Ok(())
    }
}

/// The handler of transfers: generated objects, whose content nothing reads, and uploads, which are discarded.
pub(crate) struct Transfers;

impl Handler for Transfers {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        if request.method() == "POST" {
            return Sink::new(UPLOAD_LEN_MAX).handle(request, peer);
        }
        let path = request.path().unwrap_or_default();
        // Cross traffic without an end.
        if let Some(Ok(len)) = path.strip_prefix('/').map(str::parse)
            && len > LEN_MAX
        {
            let body = Box::new(AnyBytes(len));
            return FullResponse::source(200, "application/octet-stream", body).into();
        }
        match Objects.handle(request, peer) {
            HandlerResponse::Now(response) => FullResponse {
                body: response
                    .body
                    .map(|body| Box::new(AnyBytes(body.len())) as _),
                ..response
            }
            .into(),
            other => other,
        }
    }
}

/// A trace for a connection that is about to be accepted.
pub(crate) type TraceSlot = Arc<Mutex<Option<Box<dyn Trace>>>>;

/// Takes the trace of a connection.
pub(crate) fn take_trace(slot: &TraceSlot) -> Option<Box<dyn Trace>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}
