//! Requests into the words of handlers, and replies into those of hyper.
//!
//! Owns: which fields are about the connection and go no further (RFC 9110 §7.6.1), where a request is for (RFC 9112 §3.2,
//! §3.3), what becomes of a request's body, and the answers that no handler is asked for.

use std::{
    convert::Infallible, future::poll_fn, net::SocketAddr, pin::Pin, sync::Arc, time::Duration,
};

use http::{StatusCode, header};
use hyper::body::{Body as _, Incoming};
use lastbyte_driver::Clock;
use lastbyte_http3::{Fields, Request, Response, target};
use tokio::time;

use super::{
    Shared,
    body::{Report, ResponseBody, header_map},
    count,
    observed::Observation,
};
use crate::{
    access::AccessLog,
    budget::ConnectionBudget,
    exchange::{Channels, Piece, ResponsePart, channel::Sender, exchange},
    handler::{Answer, Peer, Reply, Version},
    hop_by_hop::{is_hop_by_hop, named_by_connection},
};

/// The most of an unwanted body that is read, so that a client that sends before it reads receives the answer; beyond
/// that, the connection is closed.
const DISCARD_MAX: usize = 256 << 10;

/// Where requests come from.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) remote: SocketAddr,
    pub(super) observation: Option<Arc<Observation>>,
    /// How much of its bodies may wait.
    pub(super) budget: Arc<ConnectionBudget>,
}

/// Answers a request.
pub(super) async fn serve(
    shared: Arc<Shared>,
    connection: Connection,
    request: http::Request<Incoming>,
) -> Result<http::Response<ResponseBody>, Infallible> {
    let Connection {
        remote,
        observation,
        budget,
    } = connection;
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
    let clock = Clock::new();
    let peer = Peer {
        remote,
        version,
        is_early: false,
    };
    let observed = observation.map(|connection| connection.on_request(request.method().as_str()));
    let expects = request.headers().contains_key(header::EXPECT);
    let has_encoding = request.headers().contains_key(header::TRANSFER_ENCODING);
    let (translated, body) = translate(request, version);
    let record = match &translated {
        Ok(request) if shared.access.is_some() => Some(AccessLog::begin(request, &peer)),
        _ => None,
    };
    let report = Report {
        shared: Arc::clone(&shared),
        clock,
        began: clock.now(),
        record,
        observed,
        is_told: false,
    };
    let (is_head, reply) = match translated {
        Ok(request) => {
            let is_head = request.method() == "HEAD";
            (is_head, shared.handler.answer(&request, &peer))
        }
        Err(answer) => (false, answer.into()),
    };
    let response = match reply {
        Reply::Now(answer) => {
            discard(&shared, body, expects).await;
            whole(answer, report)
        }
        Reply::After(span, answer) => {
            time::sleep(span).await;
            discard(&shared, body, expects).await;
            whole(answer(), report)
        }
        Reply::Task(task) => {
            let (exchange, channels) = exchange(&budget);
            task(exchange);
            run(&shared, channels, body, report, is_head).await
        }
    };
    let mut response = finish(&shared, response);
    if has_encoding && version == Version::Http11 {
        // RFC 9112 §6.1: beside a `content-length` the connection has to be closed, whatever the message was taken for. hyper
        // takes that field out before it is seen here, so that all of them are.
        let close = http::HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(response)
}

/// What all responses get.
fn finish(
    shared: &Shared,
    mut response: http::Response<ResponseBody>,
) -> http::Response<ResponseBody> {
    let class = usize::from(response.status().as_u16() / 100);
    if let Some(counter) = shared.counts.responses.get(class) {
        count(counter);
    }
    if let Some(alt_svc) = &shared.alt_svc {
        // RFC 7838 §3. The handler may know better.
        response
            .headers_mut()
            .entry(header::ALT_SVC)
            .or_insert_with(|| alt_svc.clone());
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

fn whole(answer: Answer, mut report: Report) -> http::Response<ResponseBody> {
    if let Some(record) = &mut report.record {
        record.status = answer.response.status();
        record.body_len = answer.body_len();
    }
    head(&answer.response).map(|()| ResponseBody::whole(answer.body, report))
}

/// A request whose answer comes piece by piece.
async fn run(
    shared: &Arc<Shared>,
    channels: Channels,
    body: Incoming,
    mut report: Report,
    is_head: bool,
) -> http::Response<ResponseBody> {
    let Channels { incoming, outgoing } = channels;
    tokio::spawn(forward(Arc::clone(shared), body, incoming));
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
                report.on_head(len);
                if let Some(record) = &mut report.record {
                    record.status = response.status();
                    record.body_len = len.unwrap_or(0);
                }
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
                    Answer::text(502, "Bad gateway: the handler did not respond\n"),
                    report,
                );
            }
        }
    }
}

/// Hands the body of a request on, as fast as it is taken. Only the time counts in which the client is waited for.
async fn forward(shared: Arc<Shared>, mut body: Incoming, incoming: Sender<Piece>) {
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
                        incoming.push(Piece::Trailers(regular(&map)));
                    }
                }
            },
            Ok(None) => {
                incoming.push(Piece::End);
                return;
            }
            // Cut off, or too slow: dropped without an end.
            Ok(Some(Err(_))) | Err(_) => return,
        }
        if waited >= shared.limits.stall {
            if moved < shared.limits.stall_bytes {
                return;
            }
            (waited, moved) = (Duration::ZERO, 0);
        }
    }
}

/// Reads an unwanted body up to a limit. A client that waits for `100 Continue` is not asked for it.
async fn discard(shared: &Shared, mut body: Incoming, expects: bool) {
    if expects || body.is_end_stream() {
        return;
    }
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

/// The fields that are about the message.
fn regular(map: &http::HeaderMap) -> Fields {
    let named = named_by_connection(map);
    let mut fields = Fields::new();
    for (name, value) in map {
        let name = name.as_str();
        if !is_hop_by_hop(name) && name != "host" && !named.iter().any(|known| known == name) {
            fields.push(name, value.as_bytes());
        }
    }
    fields
}

type Translated = Result<Request, Answer>;

/// The request for the handler, or the response that rejects it.
fn translate(request: http::Request<Incoming>, version: Version) -> (Translated, Incoming) {
    let (head, body) = request.into_parts();
    let refuse = |text: &str| Err(Answer::text(400, text));
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
    // RFC 9112 §3.2.2, RFC 9113 §8.3.1: what stands in the target counts.
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
        let answer = Answer::text(405, "CONNECT is not supported\n");
        return (Err(answer.with("allow", "GET, HEAD, OPTIONS")), body);
    }
    let is_http = |scheme: &http::uri::Scheme| matches!(scheme.as_str(), "http" | "https");
    if !head.uri.scheme().is_none_or(is_http) {
        return (refuse("Invalid scheme (expected https or http)\n"), body);
    }
    let target = head.uri.path_and_query().map_or("", |path| path.as_str());
    // RFC 9112 §3.2.3, §3.2.4: a host alone is for CONNECT, and `*` for OPTIONS.
    if !target::is_path(target, head.method.as_str()) {
        return (refuse("Invalid request target (expected a path)\n"), body);
    }
    let authority = authority.or(host);
    let is_valid = |authority: &String| target::is_authority(authority.as_bytes());
    // RFC 9112 §3.2, RFC 9110 §4.2.2: `https` has no empty host.
    if !authority.as_ref().is_none_or(is_valid) {
        return (
            refuse("Invalid host (expected a name or an address)\n"),
            body,
        );
    }
    let authority = authority.unwrap_or_default();
    let mut translated = Request::new(head.method.as_str(), "https", &authority, target);
    for line in &regular(&head.headers) {
        translated.fields_mut().push(line.name, line.value);
    }
    (Ok(translated), body)
}
