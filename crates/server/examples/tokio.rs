//! A server inside a tokio program: starting it, a handler that waits for another task of the program, and a graceful
//! shutdown.
//!
//!     cargo run -p lastbyte-server --example tokio
//!     curl -k https://localhost:4433/     # the number of requests so far
//!
//! All versions of HTTP run on the server's own threads. A handler passes its exchange to the program's runtime and returns at
//! once. Starting and shutting down the server block, so they are called by `spawn_blocking`.

use std::{error::Error, sync::Arc, time::Duration};

use lastbyte_http3::Request;
use lastbyte_quic::connection::Config;
use lastbyte_server::{
    Arm, Arms, FullResponse, Handler, HandlerResponse, Identity, Peer, Server, Settings,
};
use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    task,
};

/// Asks another task of the program.
struct Asking {
    runtime: runtime::Handle,
    counter: mpsc::Sender<oneshot::Sender<u64>>,
}

impl Handler for Asking {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let (runtime, counter) = (self.runtime.clone(), self.counter.clone());
        HandlerResponse::Task(Box::new(move |exchange| {
            runtime.spawn(async move {
                let (answer, answered) = oneshot::channel();
                let count = match counter.send(answer).await {
                    Ok(()) => answered.await.ok(),
                    Err(_) => None,
                };
                let answer = match count {
                    Some(count) => FullResponse::text(200, format!("request {count}\n")),
                    None => FullResponse::text(503, "the program is ending\n"),
                };
                // The client may have cancelled the request.
                let _ = exchange.outgoing.respond(answer).await;
            });
        }))
    }
}

/// The rest of the program.
async fn count(mut asked: mpsc::Receiver<oneshot::Sender<u64>>) {
    let mut count = 0;
    while let Some(answer) = asked.recv().await {
        count += 1;
        let _ = answer.send(count);
    }
}

fn settings(handler: Asking) -> Result<Settings, Box<dyn Error + Send + Sync>> {
    let arm = Arm {
        name: "rapid-start".into(),
        share: 1.0,
        config: Arc::new(Config::new("rapid-start".parse()?)),
    };
    let arms = Arms::new(vec![arm]).ok_or("no arm")?;
    let days = lastbyte_driver::Clock::since_epoch().as_secs() / 86_400;
    let identity = Identity::self_signed(&["localhost".into()], days.cast_signed())?;
    let address = "[::]:4433".parse()?;
    Ok(Settings::new(address, identity, arms, Arc::new(handler)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (counter, asked) = mpsc::channel(64);
    task::spawn(count(asked));
    let handler = Asking {
        runtime: runtime::Handle::current(),
        counter,
    };
    let settings = settings(handler)?;
    let server = task::spawn_blocking(move || Server::start(settings)).await??;
    tokio::signal::ctrl_c().await?;
    // Requests in flight are answered meanwhile, since this thread keeps running.
    let report = task::spawn_blocking(move || server.shut_down(Duration::from_secs(5))).await?;
    let text = format!("{} requests over HTTP/3\n", report.statistics.requests);
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?;
    Ok(())
}
