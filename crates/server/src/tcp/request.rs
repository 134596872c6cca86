//! Requests converted for handlers, and replies converted for hyper.
//!
//! Removes the fields that concern one connection only (RFC 9110 §7.6.1), checks the target (RFC 9112 §3.2, §3.3), reads or
//! discards the body, and gives the responses that need no handler.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{StatusCode, header};
use hyper::body::{Body as _, Incoming};
use lastbyte_http3::{Fields, Priority, Request, Response, target};
use tokio::time;

use super::{
    Shared,
    body::{Report, ResponseBody, header_map},
    count,
    in_flight::{Connection, InFlight},
};
use crate::{
    access::{AccessLog, ConnectionRef},
    arms::Origin,
    exchange::{Channels, Piece, ResponsePart, channel::Sender, exchange},
    handler::{FullResponse, HandlerResponse, Peer, Version},
    hop_by_hop::{has_unknown_coding, is_hop_by_hop, named_by_connection},
};

/// The most of an unwanted body that is read, so that a client that sends before it reads receives the response; beyond
/// that, the connection is closed.
const DISCARD_MAX: usize = 256 << 10;

/// The response to a request, as a future.
///
/// hyper moves it several times, and keeps it as long as the response. So it is small: only a response that is not known at
/// once has an allocation of its own.
pub(super) struct Responding {
    received: Option<(InFlight, http::Request<Incoming>)>,
    later: Option<DelayedResponse>,
}

type DelayedResponse = Pin<Box<dyn Future<Output = http::Response<ResponseBody>> + Send>>;

/// Responds to a request of a connection.
pub(super) fn serve(connection: &Arc<Connection>, request: http::Request<Incoming>) -> Responding {
    let in_flight = connection.begin(|| priority(request.headers()));
    Responding {
        received: Some((in_flight, request)),
        later: None,
    }
}

impl Future for Responding {
    type Output = Result<http::Response<ResponseBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some((in_flight, request)) = self.received.take() {
            match respond(in_flight, request) {
                Responded::Now(response) => return Poll::Ready(Ok(response)),
                Responded::DelayedResponse(later) => self.later = Some(later),
            }
        }
        match &mut self.later {
            Some(later) => later.as_mut().poll(context).map(Ok),
            // Polled after it was complete.
            None => Poll::Pending,
        }
    }
}

/// The priority in the `priority` fields (RFC 9218 §5), of which several are one list (RFC 8941 §4.2).
fn priority(fields: &http::HeaderMap) -> Priority {
    let mut lines = fields.get_all("priority").iter();
    let default = Priority::default();
    match (lines.next(), lines.next()) {
        (None, _) => default,
        (Some(line), None) => default.updated(line.as_bytes()),
        _ => {
            let lines = fields
                .get_all("priority")
                .iter()
                .map(http::HeaderValue::as_bytes);
            default.updated(&lines.collect::<Vec<_>>().join(&b", "[..]))
        }
    }
}

enum Responded {
    Now(http::Response<ResponseBody>),
    DelayedResponse(DelayedResponse),
}

fn respond(in_flight: InFlight, request: http::Request<Incoming>) -> Responded {
    let connection = Arc::clone(&in_flight.connection);
    let shared = &connection.shared;
    let version = match request.version() {
        http::Version::HTTP_2 => Version::Http2,
        http::Version::HTTP_10 => Version::Http10,
        _ => Version::Http11,
    };
    count(if version == Version::Http2 {
        &shared.counts.requests_http2
    } else {
        &shared.counts.requests_http1
    });
    let peer = Peer {
        remote: connection.remote,
        version,
        is_early: false,
    };
    let observation = connection.observation.as_ref();
    let observed = observation.map(|it| it.on_request(request.method().as_str()));
    let expects = request.headers().contains_key(header::EXPECT);
    // RFC 9112 §6.1: with `transfer-encoding` and `content-length` the connection must be closed, however the message
    // was parsed. hyper removes the latter before it is visible here, so all such connections are closed.
    let is_ambiguous =
        version == Version::Http11 && request.headers().contains_key(header::TRANSFER_ENCODING);
    let stopped = shared.stopped.clone();
    let must_close = move || is_ambiguous || (version != Version::Http2 && *stopped.borrow());
    let (translated, body) = translate(request, version);
    let record = match &translated {
        Ok(request) if shared.access.is_some() => {
            let connection_ref = ConnectionRef {
                conn_id: connection.number,
                worker: shared.thread,
                origin: Origin {
                    arm: None,
                    config_hash: connection.config_hash.clone(),
                },
            };
            let record = AccessLog::begin(request, &peer, connection_ref);
            Some((record, connection.clock.now()))
        }
        _ => None,
    };
    if let (Some(observed), Ok(request)) = (&observed, &translated) {
        observed.on_target(request);
    }
    let report = Report::new(in_flight, record, observed);
    let (is_head, reply) = match translated {
        Ok(request) => {
            let is_head = request.method() == "HEAD";
            (is_head, shared.handler.handle(&request, &peer))
        }
        Err(answer) => (false, answer.into()),
    };
    // A client that waits for `100 Continue` does not receive it.
    let body = (!expects && !body.is_end_stream() || matches!(reply, HandlerResponse::Task(_)))
        .then_some(body);
    match (reply, body) {
        (HandlerResponse::Now(answer), None) => {
            Responded::Now(finish(&connection, whole(answer, report), must_close()))
        }
        (reply, body) => Responded::DelayedResponse(Box::pin(async move {
            let response = match reply {
                HandlerResponse::Now(answer) => {
                    discard(&connection.shared, body).await;
                    whole(answer, report)
                }
                HandlerResponse::After(span, answer) | HandlerResponse::Hinted(_, span, answer) => {
                    time::sleep(span).await;
                    discard(&connection.shared, body).await;
                    whole(answer(), report)
                }
                HandlerResponse::Task(task) => {
                    let (exchange, channels) = exchange(&connection.budget);
                    task(exchange);
                    run(
                        &connection.shared,
                        channels,
                        (version, body),
                        report,
                        is_head,
                    )
                    .await
                }
            };
            finish(&connection, response, must_close())
        })),
    }
}

/// Adds the fields of all responses.
fn finish(
    connection: &Connection,
    mut response: http::Response<ResponseBody>,
    must_close: bool,
) -> http::Response<ResponseBody> {
    let shared = &connection.shared;
    let class = usize::from(response.status().as_u16() / 100);
    if let Some(counter) = shared.counts.responses.get(class) {
        count(counter);
    }
    let fields = response.headers_mut();
    if let Some(alt_svc) = &shared.alt_svc {
        // RFC 7838 §3. A field of the handler takes precedence.
        fields
            .entry(header::ALT_SVC)
            .or_insert_with(|| alt_svc.clone());
    }
    if must_close {
        let close = http::HeaderValue::from_static("close");
        fields.insert(header::CONNECTION, close);
    }
    response
}

fn head(response: &Response) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() =
        StatusCode::from_u16(response.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *head.headers_mut() = header_map(response.fields());
    head
}

fn whole(answer: FullResponse, mut report: Report) -> http::Response<ResponseBody> {
    report.on_response(&answer.response, answer.body_len());
    head(&answer.response).map(|()| ResponseBody::whole(answer.body, report))
}

/// A request whose response arrives piece by piece.
async fn run(
    shared: &Arc<Shared>,
    channels: Channels,
    (version, body): (Version, Option<Incoming>),
    mut report: Report,
    is_head: bool,
) -> http::Response<ResponseBody> {
    let Channels { incoming, outgoing } = channels;
    if let Some(body) = body {
        tokio::spawn(forward(Arc::clone(shared), version, body, incoming));
    }
    loop {
        match poll_fn(|context| outgoing.poll_next(context)).await {
            // hyper cannot send interim responses.
            Some(ResponsePart::Interim(_)) => {}
            Some(ResponsePart::Whole(answer)) => {
                let answer = if is_head { answer.head_only() } else { answer };
                return whole(answer, report);
            }
            Some(ResponsePart::Head(response)) => {
                let len = response.fields().get("content-length");
                let len = len.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                report.on_content_length(len);
                report.on_response(&response, len.unwrap_or(0));
                let has_no_body = is_head || matches!(response.status(), 204 | 304);
                return head(&response).map(|()| {
                    if has_no_body {
                        ResponseBody::whole(None, report)
                    } else {
                        ResponseBody::pieces(outgoing, len, report)
                    }
                });
            }
            Some(ResponsePart::Data(_) | ResponsePart::End(_)) | None => {
                return whole(
                    FullResponse::text(502, "Bad gateway: the handler did not respond\n"),
                    report,
                );
            }
        }
    }
}

/// Passes on the body of a request, as fast as it is read. Only the time spent waiting for the client counts.
async fn forward(
    shared: Arc<Shared>,
    version: Version,
    mut body: Incoming,
    incoming: Sender<Piece>,
) {
    let (mut waited, mut moved) = (Duration::ZERO, 0);
    loop {
        let has_room = poll_fn(|context| incoming.poll_ready(context)).await;
        if has_room.is_err() {
            // The handler does not need the rest: it is not read, and an HTTP/1.1 connection is closed.
            return;
        }
        let began = time::Instant::now();
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let next = time::timeout(shared.limits.stall, next).await;
        waited += began.elapsed();
        match next {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) => {
                    moved += bytes.len() as u64;
                    incoming.push(Piece::Data(bytes));
                }
                Err(frame) => {
                    if let Ok(map) = frame.into_trailers() {
                        let mut fields = Fields::new();
                        add_regular(&map, &mut fields);
                        incoming.push(Piece::Trailers(fields));
                    }
                }
            },
            // hyper reports a reset with `NO_ERROR` as the end, too (RFC 9113 §8.1).
            Ok(None) if version != Version::Http2 || body.is_end_stream() => {
                incoming.push(Piece::End);
                return;
            }
            // Truncated or too slow: dropped without an end.
            Ok(None | Some(Err(_))) | Err(_) => return,
        }
        if waited >= shared.limits.stall {
            if moved < shared.limits.stall_bytes {
                return;
            }
            (waited, moved) = (Duration::ZERO, 0);
        }
    }
}

/// Reads an unwanted body up to a limit.
async fn discard(shared: &Shared, body: Option<Incoming>) {
    let Some(mut body) = body else {
        return;
    };
    let mut left = DISCARD_MAX;
    let all = async {
        while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, bytes::Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    let _ = time::timeout(shared.limits.stall, all).await;
}

/// Adds the fields of the message.
fn add_regular(map: &http::HeaderMap, fields: &mut Fields) {
    let named = named_by_connection(map);
    for (name, value) in map {
        let name = name.as_str();
        if !is_hop_by_hop(name) && name != "host" && !named.iter().any(|known| known == name) {
            fields.push(name, value.as_bytes());
        }
    }
}

type Translated = Result<Request, FullResponse>;

/// The request for the handler, or the response that rejects it.
fn translate(request: http::Request<Incoming>, version: Version) -> (Translated, Incoming) {
    let (head, body) = request.into_parts();
    let refuse = |text: &str| Err(FullResponse::text(400, text));
    // RFC 9112 §6.1
    if version != Version::Http2 && has_unknown_coding(&head.headers) {
        let answer = FullResponse::text(501, "Unknown transfer coding (expected chunked)\n");
        return (Err(answer), body);
    }
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return (refuse("More than one Host header field\n"), body);
    }
    let host = match host.map(|host| host.to_str()) {
        None => None,
        Some(Ok(host)) => Some(host.to_owned()),
        Some(Err(_)) => return (refuse("Invalid Host header field\n"), body),
    };
    // RFC 9112 §3.2.2, RFC 9113 §8.3.1: the target takes precedence.
    let authority = head
        .uri
        .authority()
        .map(|authority| authority.as_str().to_owned());
    if version == Version::Http2
        && let (Some(authority), Some(host)) = (&authority, &host)
        && authority != host
    {
        return (refuse("`:authority` and `host` differ\n"), body);
    }
    // RFC 9112 §3.2: an HTTP/1.1 request without it is invalid.
    if host.is_none() && authority.is_none() && version == Version::Http11 {
        return (refuse("Missing Host header field\n"), body);
    }
    if head.method == http::Method::CONNECT {
        let answer = FullResponse::text(405, "CONNECT is not supported\n");
        return (Err(answer.with("allow", "GET, HEAD, OPTIONS")), body);
    }
    let is_http = |scheme: &http::uri::Scheme| matches!(scheme.as_str(), "http" | "https");
    if !head.uri.scheme().is_none_or(is_http) {
        return (refuse("Invalid scheme (expected https or http)\n"), body);
    }
    let target = head.uri.path_and_query().map_or("", |path| path.as_str());
    // RFC 9112 §3.2.3, §3.2.4: the authority form is for CONNECT, and `*` for OPTIONS.
    if !target::is_path(target, head.method.as_str()) {
        return (refuse("Invalid request target (expected a path)\n"), body);
    }
    let authority = authority.or(host);
    let is_valid = |authority: &String| target::is_authority(authority.as_bytes());
    // RFC 9112 §3.2, RFC 9110 §4.2.2: the host of `https` is not empty.
    if !authority.as_ref().is_none_or(is_valid) {
        return (
            refuse("Invalid host (expected a name or an address)\n"),
            body,
        );
    }
    let authority = authority.unwrap_or_default();
    let mut translated = Request::new(head.method.as_str(), "https", &authority, target);
    add_regular(&head.headers, translated.fields_mut());
    (Ok(translated), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// hyper and tokio move it about ten times for each request: with the state of all ways to respond in it, it had 3 KB.
    #[test]
    fn the_future_of_a_response_is_small() {
        assert!(
            size_of::<Responding>() <= 320,
            "{}",
            size_of::<Responding>()
        );
        assert!(
            size_of::<ResponseBody>() <= 320,
            "{}",
            size_of::<ResponseBody>()
        );
    }
}
