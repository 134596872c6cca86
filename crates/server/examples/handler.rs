//! A server with a custom handler, over HTTP/1.1, 2 and 3: responses at once, and responses written
//! piece by piece from another thread.
//!
//!     cargo run -p lastbyte-server --example handler
//!     curl -k https://localhost:4433/          # client address and HTTP version
//!     curl -kN https://localhost:4433/count    # ten lines, one a second
//!     curl -k https://localhost:4433/ -d hello # the length of the body

use std::{error::Error, io::Read as _, sync::Arc, time::Duration};

use bytes::Bytes;
use lastbyte_http3::{Request, Response};
use lastbyte_quic::connection::Config;
use lastbyte_server::{
    Arm, Arms, FullResponse, Handler, HandlerResponse, Identity, Peer, Server, Settings,
    exchange::{Exchange, Piece},
};
use tokio::{runtime, time};

struct Example {
    runtime: runtime::Handle,
}

impl Handler for Example {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        let runtime = self.runtime.clone();
        match (request.method(), request.path()) {
            ("GET", Some("/")) => {
                let text = format!("{} from {}\n", peer.version.name(), peer.remote);
                FullResponse::text(200, text).into()
            }
            ("GET", Some("/count")) => HandlerResponse::Task(Box::new(move |exchange| {
                runtime.spawn(count(exchange));
            })),
            ("POST", _) => HandlerResponse::Task(Box::new(move |exchange| {
                runtime.spawn(measure(exchange));
            })),
            _ => FullResponse::text(404, "not found\n").into(),
        }
    }
}

/// Ends when the client disconnects.
async fn count(mut exchange: Exchange) {
    let head = Response::new(200).with("content-type", "text/plain");
    let mut result = exchange.outgoing.begin(head).await;
    for number in 1..=10 {
        if result.is_err() {
            return;
        }
        result = exchange
            .outgoing
            .data(Bytes::from(format!("{number}\n")))
            .await;
        time::sleep(Duration::from_secs(1)).await;
    }
    let _ = exchange.outgoing.end(None).await;
}

/// Reads no faster than it is done with what was read: flow control holds the client back.
async fn measure(mut exchange: Exchange) {
    let mut len = 0;
    while let Some(piece) = exchange.incoming.next().await {
        match piece {
            Piece::Data(bytes) => len += bytes.len(),
            Piece::Trailers(_) => {}
            Piece::End => {
                let _ = exchange
                    .outgoing
                    .respond(FullResponse::text(200, format!("{len}\n")))
                    .await;
                return;
            }
        }
    }
    // Without an end, the client gave up; what is dropped here is reset.
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let arm = Arm {
        name: "rapid-start".into(),
        share: 1.0,
        config: Arc::new(Config::new("rapid-start".parse()?)),
    };
    let arms = Arms::new(vec![arm]).ok_or("no arm")?;
    let days = lastbyte_driver::Clock::since_epoch().as_secs() / 86_400;
    let identity = Identity::self_signed(&["localhost".into()], days.cast_signed())?;
    let handler = Example {
        runtime: runtime.handle().clone(),
    };
    let settings = Settings::new("[::]:4433".parse()?, identity, arms, Arc::new(handler));
    let server = Server::start(settings)?;
    // Until its input ends.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(server.shut_down(Duration::from_secs(5)));
    Ok(())
}
