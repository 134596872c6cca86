//! A handler that receives uploads and discards them, for tests.
//!
//! Owns the limit on the length of an upload. An [exchange](super::exchange) bounds the part of a body in memory.

use lastbyte_http3::Request;

use super::{
    exchange::{Exchange, Piece},
    handler::{FullResponse, Handler, HandlerResponse, Peer},
    inline,
};

#[cfg(test)]
mod tests;

/// The methods of uploads, and of questions about them.
const ALLOW: &str = "PUT, POST, OPTIONS";
/// The most bytes of an upload: 1 TiB, as of generated objects.
pub const UPLOAD_LEN_MAX: u64 = 1 << 40;

/// Reads and discards the bodies of `PUT` and `POST`, and responds with the number of bytes: `{"bytes":1000}`.
#[derive(Clone, Copy, Debug)]
pub struct Sink {
    len_max: u64,
}

impl Sink {
    /// A sink for bodies of at most this length.
    #[must_use]
    pub const fn new(len_max: u64) -> Self {
        Self { len_max }
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
        let len_max = self.len_max;
        HandlerResponse::Task(Box::new(move |exchange| {
            inline::run(receive(exchange, len_max));
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
            None => {
                // If the client only ended its part, it reads the response.
                let text = "The request body ended early\n";
                let _ = outgoing.respond(FullResponse::text(400, text)).await;
                return;
            }
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
