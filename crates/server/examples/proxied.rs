//! The work that `bench/instructions` counts with callgrind: requests that the reverse proxy forwards over HTTP/1.1.
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*::counted' target/release/examples/proxied
//! ```
//!
//! The upstream is a task in memory, whose part is small. Only what happens inside `counted` is collected; the program prints
//! how many requests that was.

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::{error::Error, future::poll_fn, hint::black_box, sync::Arc};

use lastbyte_http3::Request;
use lastbyte_server::{
    Handler as _, HandlerResponse, Peer, Version,
    budget::{self, Budget, ConnectionBudget},
    exchange::{Channels, Piece, ResponsePart, exchange},
    proxy::{Limits, Proxy},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    runtime::{Builder, Runtime},
};

const REQUESTS: u64 = 2_000;
/// Requests before the first that counts: the connection is open then.
const WARM_UP: u64 = 100;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nserver: nginx\r\ndate: Thu, 26 Nov 2026 21:00:00 GMT\r\n\
    content-type: text/plain\r\ncontent-length: 1\r\nlast-modified: Thu, 26 Nov 2026 20:00:00 GMT\r\n\
    etag: \"1-1\"\r\naccept-ranges: bytes\r\n\r\nx";

/// Collected by callgrind.
#[inline(never)]
fn counted<R>(work: impl FnOnce() -> R) -> R {
    black_box(work())
}

/// The other end of a connection to the upstream.
async fn answer(mut stream: DuplexStream) {
    let mut buffer = [0; 4096];
    while matches!(stream.read(&mut buffer).await, Ok(1..)) {
        if stream.write_all(RESPONSE).await.is_err() {
            return;
        }
    }
}

fn ask(
    runtime: &Runtime,
    proxy: &Proxy,
    peer: &Peer,
    budget: &Arc<ConnectionBudget>,
) -> Result<(), &'static str> {
    let request = Request::new("GET", "https", "localhost", "/1").with("user-agent", "bench");
    let HandlerResponse::Task(task) = proxy.handle(&request, peer) else {
        return Err("not forwarded");
    };
    let (
        exchange,
        Channels {
            incoming, outgoing, ..
        },
    ) = exchange(budget);
    incoming.push(Piece::End);
    task(exchange);
    runtime.block_on(async {
        loop {
            match poll_fn(|context| outgoing.poll_next(context)).await {
                Some(ResponsePart::Head(response)) if response.status() != 200 => {
                    return Err("not answered");
                }
                Some(ResponsePart::End(_)) => return Ok(()),
                Some(_) => {}
                None => return Err("truncated"),
            }
        }
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let connect = move |_: &_| {
        let (near, far) = duplex(16 << 10);
        drop(handle.spawn(answer(far)));
        Ok(near)
    };
    let proxy = {
        let _context = runtime.enter();
        let handle = runtime.handle().clone();
        Proxy::over(
            "http://upstream".parse()?,
            Limits::default(),
            handle,
            0,
            connect,
        )
    };
    let peer = Peer {
        remote: "192.0.2.1:5000".parse()?,
        version: Version::Http3,
        is_early: false,
    };
    let budget = Budget::new(budget::Limits::default()).connection();
    let requests = |count| (0..count).try_for_each(|_| ask(&runtime, &proxy, &peer, &budget));
    requests(WARM_UP)?;
    counted(|| requests(REQUESTS))?;
    print!("{REQUESTS}");
    Ok(())
}
