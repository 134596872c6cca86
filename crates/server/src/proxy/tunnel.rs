//! WebSocket (RFC 6455) to the upstream, over any version of HTTP: an upgrade over HTTP/1.1, extended CONNECT over HTTP/2 and 3
//! (RFC 8441, RFC 9220).
//!
//! To the upstream it is an upgrade of HTTP/1.1, on a connection of its own that serves nothing else, before or after.
//! Bytes are passed on as they are, in both directions; frames are not read.
//!
//! # Decisions
//!
//! - *A tunnel exists once the upstream has answered 101 as RFC 6455 §4.1 requires*, with the proof of its key. So a server that does not
//!   take the upgrade, but answers 101 or 200 to anything, gets no bytes that it could take for requests. Another 101 is 502, and so is
//!   a 2xx to extended CONNECT, where it would begin a tunnel. Other responses are passed on.
//! - *The key is the proxy's*, and so is its proof: the client's own are of its connection.
//! - A tunnel has a slot, as a request has; those of an address are limited to a share ([`slots`](super::slots)). It ends when nothing was passed on in either direction for [`Limits::stall`](super::Limits).

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use lastbyte_http3::Request;
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf},
    time,
};

use super::{
    counts::{Observed, READ_TIMEOUT},
    slots::Client,
};
use crate::{
    exchange::{Incoming, Outgoing, Piece},
    handler::Version,
    websocket,
};

/// Bytes that are read from the upstream at a time.
const PIECE: usize = 16 << 10;

/// The request for the upstream, without the fields of the upgrade: those that concern a body are dropped.
pub(super) fn request(tunnel: &Request) -> Request {
    let authority = tunnel.authority().unwrap_or_default();
    let path = tunnel.path().unwrap_or_default();
    let mut request = Request::new("GET", "https", authority, path);
    for line in tunnel.fields() {
        if !matches!(line.name, "content-length" | "te") {
            request.fields_mut().push(line.name, line.value);
        }
    }
    request
}

/// The status that begins a tunnel, by the version of the client's HTTP: 101 over HTTP/1.1, where 200 is the answer of a server
/// that does not upgrade (RFC 9110 §7.8), else 200 (RFC 8441 §5).
pub(super) const fn begun(version: Version) -> u16 {
    match version {
        Version::Http10 | Version::Http11 => 101,
        Version::Http2 | Version::Http3 => 200,
    }
}

/// Sets the fields of an upgrade (RFC 6455 §4.1).
pub(super) fn set_fields(fields: &mut HeaderMap, key: &HeaderValue) {
    let websocket = HeaderValue::from_static("websocket");
    fields.remove(header::TE);
    fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(header::UPGRADE, websocket);
    fields.insert(header::SEC_WEBSOCKET_KEY, key.clone());
    fields
        .entry(header::SEC_WEBSOCKET_VERSION)
        .or_insert_with(|| HeaderValue::from_static(websocket::VERSION));
}

/// When something was passed on last.
struct Activity {
    began: time::Instant,
    /// In milliseconds since `began`.
    last: AtomicU64,
}

impl Activity {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn mark(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    /// Waits until nothing was passed on for this long.
    async fn idle(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
            let until = self.began + last + limit;
            if until <= time::Instant::now() {
                return;
            }
            time::sleep_until(until).await;
        }
    }
}

type Stream = TokioIo<Upgraded>;

/// Passes bytes on in both directions. The upstream ends a tunnel; what the client ends is only its direction.
pub(super) async fn pump(
    stall: Duration,
    upgraded: Upgraded,
    (mut incoming, mut outgoing): (Incoming, Outgoing),
    (client, observed): (&Client, &Observed),
) {
    let activity = Activity {
        began: time::Instant::now(),
        last: AtomicU64::new(0),
    };
    let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
    let is_ended = {
        let up = upwards(&mut incoming, &mut write, (&activity, stall));
        let down = downwards(stall, &mut read, &mut outgoing, (&activity, client));
        tokio::pin!(up, down);
        let mut is_half = false;
        loop {
            tokio::select! {
                biased;
                ended = &mut down => break ended.is_ok(),
                ended = &mut up, if !is_half => match ended {
                    Ok(()) => is_half = true,
                    Err(_) => break false,
                },
                () = activity.idle(stall) => {
                    observed.on_error(READ_TIMEOUT);
                    break false;
                }
            }
        }
    };
    if is_ended {
        // The client may be gone.
        let _ = client.sent(stall, outgoing.end(None)).await;
    }
}

/// From the client to the upstream, until the client ends its direction.
async fn upwards(
    incoming: &mut Incoming,
    write: &mut (impl AsyncWrite + Unpin),
    (activity, stall): (&Activity, Duration),
) -> io::Result<()> {
    loop {
        match incoming.next().await {
            Some(Piece::Data(bytes)) => {
                let written = async {
                    write.write_all(&bytes).await?;
                    write.flush().await
                };
                time::timeout(stall, written).await??;
                activity.mark();
            }
            Some(Piece::Trailers(_)) => {}
            Some(Piece::End) => return write.shutdown().await,
            None => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

/// From the upstream to the client, until the upstream ends.
async fn downwards(
    stall: Duration,
    read: &mut ReadHalf<Stream>,
    outgoing: &mut Outgoing,
    (activity, client): (&Activity, &Client),
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        let len = tokio::select! {
            biased;
            () = outgoing.aborted() => return Err(io::ErrorKind::ConnectionAborted.into()),
            len = read.read(&mut buffer) => len?,
        };
        let Some(bytes) = buffer.get(..len).filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        let sent = outgoing.data(Bytes::copy_from_slice(bytes));
        if client.sent(stall, sent).await.is_err() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        activity.mark();
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use tokio::{io::duplex, runtime};

    use super::*;
    use crate::{
        budget::{Budget, Limits},
        exchange::exchange,
    };

    #[test]
    fn a_tunnel_is_idle_once_nothing_was_passed_on_for_the_limit() {
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.expect("a runtime").block_on(async {
            let limit = Duration::from_secs(4);
            let activity = Activity {
                began: time::Instant::now(),
                last: AtomicU64::new(0),
            };
            let budget = Budget::new(Limits::default()).connection();
            let (mut exchange, channels) = exchange(&budget);
            let (mut upstream, _far) = duplex(1 << 10);
            let speaks = async {
                for _ in 0..5 {
                    time::sleep(Duration::from_secs(3)).await;
                    let bytes = Bytes::from_static(b"x");
                    channels.incoming.push(Piece::Data(bytes));
                }
                future::pending::<()>().await;
            };
            tokio::select! {
                ended = upwards(&mut exchange.incoming, &mut upstream, (&activity, limit)) => {
                    panic!("{ended:?}");
                }
                () = speaks => {}
                () = activity.idle(limit) => {}
            }
            assert_eq!(activity.began.elapsed().as_secs(), 5 * 3 + 4);
        });
    }
}
