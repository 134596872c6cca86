//! The server of a flow: what [`lastbyte_origin`] needs to be `lastbyte serve` in virtual time.

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_congestion::Time;
use lastbyte_http3::{self as http3, Request};
use lastbyte_origin::{
    Arms, FullResponse, Handler, HandlerResponse, Peer, Shared,
    generated::{LEN_MAX, Objects},
    sink::{Sink, UPLOAD_LEN_MAX},
};
use lastbyte_quic::{
    connection::Config,
    stream::{Source, SourceError},
    trace::Trace,
};

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

/// The parts of a server whose connections all have this configuration.
pub(crate) fn shared(
    handler: Arc<dyn Handler>,
    http3: http3::Config,
    config: Arc<Config>,
    trace: TraceSlot,
) -> Shared {
    let wall = Arc::new(|now: Time| EPOCH + now.since(Time::ZERO));
    Shared {
        http3,
        trace: Some(Arc::new(move |_, _| take_trace(&trace))),
        ..Shared::new(handler, Arms::one(config), wall)
    }
}
