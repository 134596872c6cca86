//! A handler that receives uploads and discards them, for tests.
//!
//! Owns the limit on the length of an upload. An [exchange](super::exchange) bounds the part of a body in memory.

use std::{fmt, io};

use lastbyte_http3::Request;
use tokio::runtime;

use super::{
    exchange::{Exchange, Piece},
    handler::{FullResponse, Handler, HandlerResponse, Peer},
};

#[cfg(test)]
mod tests;

/// The methods of uploads, and of questions about them.
const ALLOW: &str = "PUT, POST, OPTIONS";
/// The most bytes of an upload: 1 TiB, as of generated objects.
pub const UPLOAD_LEN_MAX: u64 = 1 << 40;

/// Reads and discards the bodies of `PUT` and `POST`, and responds with the number of bytes: `{"bytes":1000}`.
pub struct Sink {
    len_max: u64,
    /// `None` only while it is dropped.
    runtime: Option<runtime::Runtime>,
}

impl Sink {
    /// A sink for bodies of at most this length. It has a thread of its own.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub fn new(len_max: u64) -> io::Result<Self> {
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("sink")
            .build()?;
        Ok(Self {
            len_max,
            runtime: Some(runtime),
        })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // The last reference may be dropped by a thread that must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("len_max", &self.len_max)
            .finish_non_exhaustive()
    }
}

impl Handler for Sink {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        match request.method() {
            "PUT" | "POST" => {}
            "OPTIONS" => return FullResponse::bare(204).with("allow", ALLOW).into(),
            _ => {
                return FullResponse::text(
                    405,
                    "Method not allowed (expected PUT, POST or OPTIONS)\n",
                )
                .with("allow", ALLOW)
                .into();
            }
        }
        let Some(runtime) = self.runtime.as_ref().map(runtime::Runtime::handle).cloned() else {
            return FullResponse::text(503, "Service unavailable: the server is shutting down\n")
                .into();
        };
        let len_max = self.len_max;
        HandlerResponse::Task(Box::new(move |exchange| {
            runtime.spawn(receive(exchange, len_max));
        }))
    }
}

/// Reads a body to its end.
async fn receive(exchange: Exchange, len_max: u64) {
    let Exchange {
        mut incoming,
        outgoing,
    } = exchange;
    let mut len = 0;
    loop {
        match incoming.next().await {
            Some(Piece::Data(bytes)) => len += bytes.len() as u64,
            Some(Piece::Trailers(_) | Piece::End) => break,
            // The client cancelled.
            None => return,
        }
        if len > len_max {
            let text = format!("The body is too long (expected at most {len_max} bytes)\n");
            // The client may be gone.
            let _ = outgoing.respond(FullResponse::text(413, text)).await;
            return;
        }
    }
    let body = format!("{{\"bytes\":{len}}}\n").into_bytes();
    let answer = FullResponse::source(200, "application/json", Box::new(body));
    let _ = outgoing.respond(answer).await;
}
