//! Tunnels over HTTP/1.1 and 2: WebSocket.
//!
//! Owns which requests ask for one, and the bytes of a tunnel over HTTP/1.1. Over HTTP/2 a tunnel is a stream whose two bodies have no
//! length (RFC 8441); only the time limit of request bodies does not apply.

use std::{future::poll_fn, io};

use bytes::Bytes;
use h2::ext::Protocol;
use http::{HeaderValue, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use lastbyte_http3::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use super::body::{End, Report, ResponseBody};
use crate::{
    exchange::{
        PIECE_LEN, Piece, ResponsePart,
        channel::{Receiver, Sender},
    },
    handler::{FullResponse, Handler, Version},
    websocket,
};

/// The protocol of tunnels.
const WEBSOCKET: &str = "websocket";

/// The request as an extended CONNECT, if it asks for a tunnel that the handler takes. An upgrade that it does not take is an
/// ordinary request (RFC 9110 §7.8); CONNECT without it is refused (RFC 8441 §4).
pub(super) fn translate(
    request: Request,
    parts: &http::request::Parts,
    version: Version,
    handler: &dyn Handler,
) -> Result<Request, FullResponse> {
    let protocol = parts.extensions.get::<Protocol>();
    let is_connect = parts.method == http::Method::CONNECT;
    let asks = match version {
        Version::Http2 => protocol.is_some_and(|it| it.as_str() == WEBSOCKET) && is_connect,
        Version::Http11 => {
            parts.method == http::Method::GET
                && parts.extensions.get::<OnUpgrade>().is_some()
                && websocket::key_of(&parts.headers).is_some()
        }
        Version::Http10 | Version::Http3 => false,
    };
    if asks {
        let (authority, path) = (request.authority(), request.path());
        let (authority, path) = (authority.unwrap_or_default(), path.unwrap_or_default());
        let mut tunnel = Request::extended_connect(WEBSOCKET, "https", authority, path);
        for line in request.fields() {
            tunnel.fields_mut().push(line.name, line.value);
        }
        if handler.takes_tunnel(&tunnel) {
            return Ok(tunnel);
        }
    }
    if is_connect {
        return Err(FullResponse::no_tunnel());
    }
    Ok(request)
}

/// An upgrade of a connection of HTTP/1.1 that was asked for.
pub(super) struct Upgrade {
    on_upgrade: OnUpgrade,
    accept: String,
}

impl Upgrade {
    /// That of a request which [`translate`] took for a tunnel.
    pub(super) fn take(parts: &mut http::request::Parts) -> Option<Self> {
        let key = websocket::key_of(&parts.headers)?;
        Some(Self {
            on_upgrade: parts.extensions.remove()?,
            accept: websocket::accept(&key),
        })
    }

    /// Switches protocols with this response, and passes bytes on in a task until the tunnel ends.
    pub(super) fn start(
        self,
        mut switch: http::Response<ResponseBody>,
        (incoming, outgoing): (Sender<Piece>, Receiver<ResponsePart>),
        report: Report,
    ) -> http::Response<ResponseBody> {
        let fields = switch.headers_mut();
        fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        fields.insert(header::UPGRADE, HeaderValue::from_static(WEBSOCKET));
        if let Ok(accept) = HeaderValue::try_from(self.accept) {
            fields.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        tokio::spawn(async move {
            // Otherwise the client is gone.
            if let Ok(upgraded) = self.on_upgrade.await {
                pass(upgraded, (incoming, outgoing), report).await;
            }
        });
        switch
    }
}

type Stream = TokioIo<Upgraded>;

/// Passes bytes on. The handler ends a tunnel; it also limits the time in which nothing moves.
async fn pass(
    upgraded: Upgraded,
    (incoming, outgoing): (Sender<Piece>, Receiver<ResponsePart>),
    mut report: Report,
) {
    let (read, mut write) = tokio::io::split(TokioIo::new(upgraded));
    let mut has_left = false;
    let sent = {
        let (from, to) = (
            receive(read, incoming),
            send(&mut write, &outgoing, &mut report),
        );
        tokio::pin!(from, to);
        tokio::select! {
            sent = &mut to => sent,
            left = &mut from => {
                has_left = left;
                to.await
            }
        }
    };
    match sent {
        Ok(true) if write.shutdown().await.is_ok() => report.finish(End::Complete),
        Ok(false) if !has_left => report.finish(End::CutOff),
        // The client is gone.
        _ => report.drop_rest(),
    }
}

/// From the client to the handler. Returns whether the client has left: its connection is broken, or its direction has ended, which is
/// the end of a client that sends no close (RFC 6455 §7.1.1).
async fn receive(mut read: ReadHalf<Stream>, incoming: Sender<Piece>) -> bool {
    let mut buffer = vec![0; PIECE_LEN];
    loop {
        if poll_fn(|context| incoming.poll_ready(context))
            .await
            .is_err()
        {
            return false;
        }
        let aborted = poll_fn(|context| incoming.poll_aborted(context));
        let len = tokio::select! {
            read = read.read(&mut buffer) => read,
            () = aborted => return false,
        };
        match len.map(|len| buffer.get(..len).unwrap_or_default()) {
            Ok([]) => {
                incoming.push(Piece::End);
                return true;
            }
            Ok(bytes) => incoming.push(Piece::Data(Bytes::copy_from_slice(bytes))),
            Err(_) => return true,
        }
    }
}

/// From the handler to the client. Returns whether the handler ended it.
async fn send(
    write: &mut WriteHalf<Stream>,
    outgoing: &Receiver<ResponsePart>,
    report: &mut Report,
) -> io::Result<bool> {
    loop {
        match poll_fn(|context| outgoing.poll_next(context)).await {
            Some(ResponsePart::Data(bytes)) => {
                write.write_all(&bytes).await?;
                write.flush().await?;
                report.on_body(bytes.len());
            }
            Some(ResponsePart::End(_)) => return Ok(true),
            Some(_) => {}
            None => return Ok(false),
        }
    }
}
