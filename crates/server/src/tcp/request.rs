//! Requests converted for handlers, and their replies converted back, over HTTP/1.1 and 2; responses over HTTP/1.1.
//!
//! Removes the fields that concern one connection only (RFC 9110 §7.6.1), checks the target (RFC 9112 §3.2, §3.3), and gives the
//! responses that need no handler.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::ext::Protocol;
use http::{StatusCode, header};
use hyper::body::Incoming;
use lastbyte_driver::Clock;
use lastbyte_http3::{Priority, Request, Response, target};
use tokio::time;

use super::{
    body::{Report, ResponseBody, ends_now, header_map},
    count,
    in_flight::{Connection, InFlight},
    interim::{INTERIM_MAX, Interim},
    request_body::{RequestBody, add_regular, discard, forward},
    tunnel::{self, Upgrade},
};
use crate::{
    access::{AccessLog, ConnectionRef},
    arms::Origin,
    exchange::{
        Channels, Piece, ResponsePart,
        channel::{Receiver, Sender},
        exchange,
    },
    handler::{FullResponse, HandlerResponse, Peer, Version},
    hop_by_hop::has_unknown_coding,
};

/// The response to a request over HTTP/1.1, as a future.
///
/// hyper moves it several times, and keeps it as long as the response. So it is small: only a response that is not known at
/// once has an allocation of its own.
pub(super) struct Responding {
    received: Option<(InFlight, http::Request<Incoming>)>,
    later: Option<DelayedResponse>,
}

type DelayedResponse = Pin<Box<dyn Future<Output = http::Response<ResponseBody>> + Send>>;

/// Responds to a request of a connection of HTTP/1.1.
pub(super) fn serve(connection: &Arc<Connection>, request: http::Request<Incoming>) -> Responding {
    let in_flight = connection.begin(Priority::default);
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
pub(super) fn priority(fields: &http::HeaderMap) -> Priority {
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

#[expect(
    clippy::large_enum_variant,
    reason = "it is there for the length of a call"
)]
enum Responded {
    Now(http::Response<ResponseBody>),
    DelayedResponse(DelayedResponse),
}

/// A request, and the handler's reply to it.
pub(super) struct Received {
    pub(super) reply: HandlerResponse,
    pub(super) report: Report,
    pub(super) is_head: bool,
    /// Whether it asks for a tunnel.
    pub(super) is_tunnel: bool,
    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    pub(super) is_expecting: bool,
}

/// Passes a request to the handler.
pub(super) fn receive(
    in_flight: InFlight,
    head: &http::request::Parts,
    version: Version,
) -> Received {
    let connection = Arc::clone(&in_flight.connection);
    let shared = &connection.shared;
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
    let observed = observation.map(|it| it.on_request(head.method.as_str()));
    let translated = translate(head, version)
        .and_then(|request| tunnel::translate(request, head, version, &*shared.handler));
    let is_tunnel = matches!(&translated, Ok(request) if request.protocol().is_some());
    let record = match &translated {
        Ok(request) if shared.access.is_some() => {
            let connection_ref = ConnectionRef {
                conn_id: connection.number,
                worker: shared.thread,
                origin: Origin {
                    config_hash: connection.config_hash.clone(),
                    ..Origin::default()
                },
            };
            let time = Clock::since_epoch();
            Some(AccessLog::begin(request, &peer, connection_ref, time))
        }
        _ => None,
    };
    if let (Some(observed), Ok(request)) = (&observed, &translated) {
        observed.on_target(request);
    }
    let mut report = Report::new(in_flight, record, observed);
    if is_tunnel {
        report.set_tunnel();
    }
    let reply = match translated {
        Ok(request) => {
            let (reply, route) = shared.handler.handle_routed(&request, &peer);
            report.set_route(route);
            reply
        }
        Err(answer) => answer.into(),
    };
    let is_head = head.method == http::Method::HEAD;
    Received {
        reply: if is_head { reply.head_only() } else { reply },
        report,
        is_head,
        is_tunnel,
        // RFC 9110 §10.1.1: HTTP/1.0 has no interim responses.
        is_expecting: version != Version::Http10 && head.headers.contains_key(header::EXPECT),
    }
}

/// Responds to a request over HTTP/1.0 or 1.1.
fn respond(in_flight: InFlight, request: http::Request<Incoming>) -> Responded {
    let connection = Arc::clone(&in_flight.connection);
    let (mut head, body) = request.into_parts();
    let version = match head.version {
        http::Version::HTTP_10 => Version::Http10,
        _ => Version::Http11,
    };
    // RFC 9112 §6.1: with `transfer-encoding` and `content-length` the connection must be closed, however the message
    // was parsed. hyper removes the latter before it is visible here, so all such connections are closed.
    let is_ambiguous =
        version == Version::Http11 && head.headers.contains_key(header::TRANSFER_ENCODING);
    let stopped = connection.shared.stopped.clone();
    let must_close = move || is_ambiguous || *stopped.borrow();
    let Received {
        reply,
        mut report,
        is_head,
        is_tunnel,
        is_expecting,
    } = receive(in_flight, &head, version);
    let upgrade = is_tunnel.then(|| Upgrade::take(&mut head)).flatten();
    let body = RequestBody::Http1(body);
    // Not read if the client waits for `100 Continue`: hyper would send it.
    let is_wanted = !is_expecting && !body.is_end() || matches!(reply, HandlerResponse::Task(_));
    let body = is_wanted.then_some(body).filter(|_| upgrade.is_none());
    match (reply, body) {
        (HandlerResponse::Now(answer), None) => {
            Responded::Now(finish(&connection, whole(answer, report), must_close()))
        }
        (reply, body) => Responded::DelayedResponse(Box::pin(async move {
            let shared = &connection.shared;
            // RFC 9110 §15.2: HTTP/1.0 has none.
            let interim = connection.interim.as_deref();
            let interim = interim.filter(|_| version == Version::Http11);
            let response = match reply {
                HandlerResponse::Now(answer) => {
                    discard(shared, body).await;
                    whole(answer, report)
                }
                HandlerResponse::After(span, answer) => {
                    time::sleep(span).await;
                    discard(shared, body).await;
                    whole(answer(), report)
                }
                HandlerResponse::Hinted(hint, span, answer) => {
                    let sent = async {
                        if let Some(interim) = interim {
                            interim.send(encode(&hint));
                            poll_fn(|context| interim.poll_written(context)).await;
                        }
                    };
                    // Both at once: a response is not delayed by its hint.
                    tokio::join!(sent, time::sleep(span));
                    discard(shared, body).await;
                    whole(answer(), report)
                }
                HandlerResponse::Task(task) => {
                    let (exchange, channels) = exchange(&connection.budget);
                    task(exchange);
                    let Channels {
                        incoming,
                        outgoing,
                        notes,
                    } = channels;
                    report.set_notes(notes);
                    let mut incoming = Some(incoming);
                    if let Some((body, incoming)) = body.zip(incoming.take_if(|_| !is_tunnel)) {
                        tokio::spawn(receive_body(
                            Arc::clone(&connection),
                            body,
                            incoming,
                            is_expecting,
                        ));
                    }
                    let part = await_final(&outgoing, interim).await;
                    match (upgrade.zip(incoming), part) {
                        (Some((upgrade, incoming)), Some(ResponsePart::Head(response)))
                            if response.status() == 101 =>
                        {
                            report.on_response(&response);
                            let switch = self::head(&response, false);
                            let body = ResponseBody::whole(None, report.of_switch());
                            let switch = finish(&connection, switch.map(|()| body), false);
                            return upgrade.start(switch, (incoming, outgoing), report);
                        }
                        (_, part) => begin(part, outgoing, report, is_head),
                    }
                }
            };
            finish(&connection, response, must_close())
        })),
    }
}

/// Passes on the body of a request; if its client waits for `100 Continue`, once the handler reads it: hyper sends that response
/// before the body is read.
async fn receive_body(
    connection: Arc<Connection>,
    body: RequestBody,
    incoming: Sender<Piece>,
    is_expecting: bool,
) {
    if is_expecting {
        // An error: the handler does not need it.
        let _ = poll_fn(|context| incoming.poll_awaited(context)).await;
    }
    forward(connection, body, incoming).await;
}

/// Adds the fields of all responses.
pub(super) fn finish(
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

pub(super) fn head(response: &Response, is_http2: bool) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() =
        StatusCode::from_u16(response.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *head.headers_mut() = header_map(response.fields(), is_http2);
    head
}

pub(super) fn whole(answer: FullResponse, mut report: Report) -> http::Response<ResponseBody> {
    report.on_response(&answer.response);
    head(&answer.response, report.is_http2()).map(|()| ResponseBody::whole(answer.body, report))
}

/// The first part of a response after the interim ones, which are passed to `inform`.
pub(super) fn poll_final(
    outgoing: &Receiver<ResponsePart>,
    context: &mut Context<'_>,
    mut inform: impl FnMut(&Response),
) -> Poll<Option<ResponsePart>> {
    loop {
        match ready!(outgoing.poll_next(context)) {
            Some(ResponsePart::Interim(response)) => inform(&response),
            part => return Poll::Ready(part),
        }
    }
}

/// An interim response over HTTP/1.1. Invalid fields are omitted, and those of a connection.
fn encode(response: &Response) -> Bytes {
    let head = head(response, true);
    let status = head.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in head.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.into()
}

/// Over HTTP/1.1: the first part of a response after the interim ones, of which each is written before the next is taken.
async fn await_final(
    outgoing: &Receiver<ResponsePart>,
    interim: Option<&Interim>,
) -> Option<ResponsePart> {
    let mut count = 0;
    poll_fn(|context| {
        loop {
            if let Some(interim) = interim {
                ready!(interim.poll_written(context));
            }
            match (ready!(outgoing.poll_next(context)), interim) {
                (Some(ResponsePart::Interim(response)), Some(interim)) => {
                    // 101 would end HTTP on this connection, and was not requested.
                    if count < INTERIM_MAX && response.status() != 101 {
                        count += 1;
                        interim.send(encode(&response));
                    }
                }
                (Some(ResponsePart::Interim(_)), None) => {}
                (part, _) => return Poll::Ready(part),
            }
        }
    })
    .await
}

/// A response that starts with this part, and arrives piece by piece.
pub(super) fn begin(
    part: Option<ResponsePart>,
    outgoing: Receiver<ResponsePart>,
    mut report: Report,
    is_head: bool,
) -> http::Response<ResponseBody> {
    match part {
        Some(ResponsePart::Whole(answer)) => {
            let answer = if is_head { answer.head_only() } else { answer };
            whole(answer, report)
        }
        Some(ResponsePart::Head(response)) => {
            let len = response.fields().get("content-length");
            let len = len.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            report.on_content_length(len);
            report.on_response(&response);
            let has_no_body = is_head || matches!(response.status(), 204 | 304);
            let is_empty = has_no_body || len.unwrap_or(0) == 0 && ends_now(&outgoing);
            head(&response, report.is_http2()).map(|()| {
                if is_empty {
                    ResponseBody::whole(None, report)
                } else {
                    ResponseBody::pieces(outgoing, len, report)
                }
            })
        }
        _ => {
            let text = "Bad gateway: the handler did not respond\n";
            whole(FullResponse::text(502, text), report)
        }
    }
}

fn is_100_continue(value: &http::HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"100-continue")
}

type Translated = Result<Request, FullResponse>;

/// The request for the handler, or the response that rejects it.
fn translate(head: &http::request::Parts, version: Version) -> Translated {
    let refuse = |text: &str| Err(FullResponse::text(400, text));
    // RFC 9112 §6.1
    if version != Version::Http2 && has_unknown_coding(&head.headers) {
        let answer = FullResponse::text(501, "Unknown transfer coding (expected chunked)\n");
        return Err(answer);
    }
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return refuse("More than one Host header field\n");
    }
    let host = match host.map(|host| host.to_str()) {
        None => None,
        Some(Ok(host)) => Some(host.to_owned()),
        Some(Err(_)) => return refuse("Invalid Host header field\n"),
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
        return refuse("`:authority` and `host` differ\n");
    }
    // RFC 9112 §3.2: an HTTP/1.1 request without it is invalid.
    if host.is_none() && authority.is_none() && version == Version::Http11 {
        return refuse("Missing Host header field\n");
    }
    let is_connect = head.method == http::Method::CONNECT;
    if is_connect && head.extensions.get::<Protocol>().is_none() {
        return Err(FullResponse::no_connect());
    }
    if version != Version::Http10
        && !head
            .headers
            .get_all(header::EXPECT)
            .iter()
            .all(is_100_continue)
    {
        return Err(FullResponse::unknown_expectation());
    }
    let is_http = |scheme: &http::uri::Scheme| matches!(scheme.as_str(), "http" | "https");
    if !head.uri.scheme().is_none_or(is_http) {
        return refuse("Invalid scheme (expected https or http)\n");
    }
    let target = head.uri.path_and_query().map_or("", |path| path.as_str());
    // RFC 9112 §3.2.3, §3.2.4: the authority form is for CONNECT, and `*` for OPTIONS.
    // That of an extended CONNECT is as of other methods (RFC 8441 §4).
    let method = if is_connect {
        "GET"
    } else {
        head.method.as_str()
    };
    if !target::is_path(target, method) {
        return refuse("Invalid request target (expected a path)\n");
    }
    let authority = authority.or(host);
    let is_valid = |authority: &String| target::is_authority(authority.as_bytes());
    // RFC 9112 §3.2, RFC 9110 §4.2.2: the host of `https` is not empty.
    if !authority.as_ref().is_none_or(is_valid) {
        return refuse("Invalid host (expected a name or an address)\n");
    }
    let authority = authority.unwrap_or_default();
    let mut translated = Request::new(head.method.as_str(), "https", &authority, target);
    add_regular(&head.headers, translated.fields_mut());
    Ok(translated)
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
