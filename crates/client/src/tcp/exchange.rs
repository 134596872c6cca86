//! A request and its response, over HTTP/1.1 and HTTP/2.

use core::{error::Error, time::Duration};
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use hyper::{
    HeaderMap, Method, Uri,
    body::{Body as _, Incoming},
    client::conn::{TrySendError, http1, http2},
    header::{HeaderName, HeaderValue},
};
use lastbyte_driver::{Clock, WriteError};
use lastbyte_http3::{Fields, Request, Response};
use tokio::sync::{oneshot, oneshot::Receiver};

use super::{Command, Event, ExchangeError, OwnedHead, WINDOW_LEN, outgoing::Outgoing};
use crate::{
    fetch_state::{INTERIM_MAX, is_100_continue},
    head::Version,
    mailbox::Sender,
};

/// How long to wait for `100 Continue` before the body is sent; the same as curl.
const EXPECT_TIMEOUT: Duration = Duration::from_secs(1);

/// State shared by the exchanges of one connection.
#[derive(Clone)]
pub(super) struct ExchangeContext {
    pub(super) events: Sender<Event>,
    pub(super) clock: Clock,
}

/// Performs an exchange over HTTP/1.1. Returns whether the connection may be reused.
pub(super) async fn http1(
    context: &ExchangeContext,
    sender: &mut http1::SendRequest<Outgoing>,
    write_error: &WriteError,
    command: Command,
) -> bool {
    let exchange = command.exchange;
    let sent = Arc::clone(&command.sent);
    let (mut request, mut cancelled, window) = match prepare(command, true) {
        Ok(prepared) => prepared,
        Err(why) => {
            context.events.post(Event::ExchangeFailed { exchange, why });
            return true;
        }
    };
    let is_done = request.body().is_done();
    let interim = context.clone();
    let gate = request.extensions_mut().remove::<Arc<Gate>>();
    let interim_count = AtomicU32::new(0);
    hyper::ext::on_informational(&mut request, move |response| {
        // The first one beyond the limit ends the exchange. Those that hyper reads until then are not reported.
        if interim_count.fetch_add(1, Ordering::Relaxed) > INTERIM_MAX {
            return;
        }
        if response.status() == 100
            && let Some(gate) = &gate
        {
            gate.open();
        }
        let head = OwnedHead {
            version: version(response.version()),
            response: head_of(response.status().as_u16(), response.headers()),
            reason: reason(response.status()),
        };
        interim.events.post(Event::Interim { exchange, head });
    });
    let response = tokio::select! {
        biased;
        _ = &mut cancelled => return false,
        response = sender.try_send_request(request) => response,
    };
    let response = response.map_err(|error| match write_error.get() {
        // hyper's error is only that there is no response.
        Some(cause) if error.message().is_none() => {
            ExchangeError::Other(format!("cannot send the request: {cause}"))
        }
        _ => not_received(error),
    });
    let Some(status) = receive(context, exchange, response, &mut cancelled, &window).await else {
        return false;
    };
    // A server that has sent an error, or a final response before any of the body, does not read the rest of the request.
    let is_refused = status >= 400 || sent.load(Ordering::Relaxed) == 0;
    is_done.load(Ordering::Relaxed) || !is_refused
}

/// Performs an exchange over HTTP/2.
pub(super) async fn http2(
    context: ExchangeContext,
    mut sender: http2::SendRequest<Outgoing>,
    command: Command,
) {
    let exchange = command.exchange;
    let (request, mut cancelled, window) = match prepare(command, false) {
        Ok(prepared) => prepared,
        Err(why) => return context.events.post(Event::ExchangeFailed { exchange, why }),
    };
    let response = tokio::select! {
        biased;
        _ = &mut cancelled => return,
        response = sender.try_send_request(request) => response.map_err(not_received),
    };
    receive(&context, exchange, response, &mut cancelled, &window).await;
}

type Prepared = (
    hyper::Request<Outgoing>,
    Receiver<()>,
    Arc<tokio::sync::Semaphore>,
);

fn prepare(command: Command, is_http1: bool) -> Result<Prepared, ExchangeError> {
    let expectation = command.request.fields().get("expect");
    // Over HTTP/2 the body is not held back, which RFC 9110 §10.1.1 permits.
    let expects = is_http1 && expectation.is_some_and(is_100_continue);
    let (gate, opened) = Gate::new();
    let wait: Option<core::pin::Pin<Box<dyn Future<Output = ()> + Send>>> = if expects {
        Some(Box::pin(async move {
            // Old servers ignore `expect`, so the body is sent after the timeout. After a final response it is not sent.
            let answer = tokio::time::timeout(EXPECT_TIMEOUT, opened).await;
            if matches!(answer, Ok(Err(_))) {
                core::future::pending::<()>().await;
            }
        }))
    } else {
        None
    };
    let body = Outgoing::new(command.content, command.sent, wait);
    let mut request =
        hyper_request(&command.request, body, is_http1).map_err(ExchangeError::Request)?;
    if expects {
        request.extensions_mut().insert(Arc::new(gate));
    }
    Ok((request, command.cancelled, command.window))
}

/// Holds a body back until the server permits it.
struct Gate(Mutex<Option<oneshot::Sender<()>>>);

impl Gate {
    fn new() -> (Self, Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Mutex::new(Some(sender))), receiver)
    }

    fn open(&self) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The exchange may have ended.
            let _ = sender.send(());
        }
    }
}

fn hyper_request(
    request: &Request,
    body: Outgoing,
    is_http1: bool,
) -> Result<hyper::Request<Outgoing>, String> {
    let is_chunked = is_http1 && body.size_hint().exact().is_none();
    let method = Method::from_bytes(request.method().as_bytes())
        .map_err(|_| format!("invalid method `{}`", request.method()))?;
    let path = request.path().unwrap_or("/");
    let authority = request.authority().unwrap_or_default();
    // HTTP/1.1 sends the authority in the `host` field (RFC 9112 §3.2).
    let uri: Result<Uri, _> = if is_http1 {
        path.parse()
    } else {
        let scheme = request.scheme().unwrap_or("https");
        format!("{scheme}://{authority}{path}").parse()
    };
    let uri =
        uri.map_err(|error| format!("invalid request target `{authority}{path}`: {error}"))?;
    let mut prepared = hyper::Request::new(body);
    *prepared.method_mut() = method;
    *prepared.uri_mut() = uri;
    let headers = prepared.headers_mut();
    let mut add = |name: &str, value: &[u8]| {
        let invalid = || format!("invalid field `{}`", name.escape_debug());
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let value = HeaderValue::from_bytes(value).map_err(|_| invalid())?;
        headers.append(name, value);
        Ok::<(), String>(())
    };
    if is_http1 {
        add("host", authority.as_bytes())?;
    }
    for field in request.fields() {
        add(field.name, field.value)?;
    }
    if is_chunked && request.fields().get("transfer-encoding").is_none() {
        // Without it, hyper sends no body of unknown length for GET and HEAD, and reports no error.
        add("transfer-encoding", b"chunked")?;
    }
    Ok(prepared)
}

/// Reads a response and reports it. Returns the status if the response is complete.
async fn receive(
    context: &ExchangeContext,
    exchange: u64,
    response: Result<hyper::Response<Incoming>, ExchangeError>,
    cancelled: &mut Receiver<()>,
    window: &tokio::sync::Semaphore,
) -> Option<u16> {
    let response = match response {
        Ok(response) => response,
        Err(why) => {
            context.events.post(Event::ExchangeFailed { exchange, why });
            return None;
        }
    };
    let mut codings = response.headers().get_all("transfer-encoding").iter();
    let unknown = codings.find(|value| !value.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if let Some(value) = unknown {
        let why = format!("unknown transfer coding {value:?} (expected chunked)");
        let why = ExchangeError::Protocol(why);
        context.events.post(Event::ExchangeFailed { exchange, why });
        return None;
    }
    let phrase = response.extensions().get::<hyper::ext::ReasonPhrase>();
    let phrase = phrase.map(|phrase| String::from_utf8_lossy(phrase.as_bytes()).into_owned());
    let http_version = response.version();
    let version = version(http_version);
    let reason = match version {
        Version::Http2 | Version::Http3 => String::new(),
        _ => phrase.unwrap_or_else(|| reason(response.status())),
    };
    let head = OwnedHead {
        version,
        response: head_of(response.status().as_u16(), response.headers()),
        reason,
    };
    let status = head.response.status();
    let at = context.clock.now();
    context.events.post(Event::Head { exchange, at, head });
    let mut body = response.into_body();
    loop {
        let frame =
            core::future::poll_fn(|context| core::pin::Pin::new(&mut body).poll_frame(context));
        let frame = tokio::select! {
            biased;
            _ = &mut *cancelled => return None,
            frame = frame => frame,
        };
        let frame = match frame {
            None if is_cut_off(&body, http_version) => {
                let why = "the server reset the stream before the end of the response";
                let why = ExchangeError::Other(why.to_owned());
                context.events.post(Event::ExchangeFailed { exchange, why });
                return None;
            }
            None => break,
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                let why = classify(&error, true);
                context.events.post(Event::ExchangeFailed { exchange, why });
                return None;
            }
        };
        match frame.into_data() {
            Ok(bytes) => {
                let len = bytes.len().clamp(1, WINDOW_LEN) as u32;
                let permit = tokio::select! {
                    biased;
                    _ = &mut *cancelled => return None,
                    permit = window.acquire_many(len) => permit,
                };
                // The client returns the permits when it has processed the bytes.
                let Ok(permit) = permit else { return None };
                permit.forget();
                context.events.post(Event::Body { exchange, bytes });
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    let fields = fields_of(&trailers);
                    context.events.post(Event::Trailers { exchange, fields });
                }
            }
        }
    }
    let at = context.clock.now();
    context.events.post(Event::End { exchange, at });
    Some(status)
}

/// Why there is no response.
fn not_received(mut error: TrySendError<hyper::Request<Outgoing>>) -> ExchangeError {
    let was_sent = error.take_message().is_none();
    classify(&error.into_error(), was_sent)
}

/// Classifies an error of hyper by its meaning for the request.
fn classify(error: &hyper::Error, was_sent: bool) -> ExchangeError {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(reset) = cause.downcast_ref::<h2::Error>()
            && is_unprocessed(reset)
        {
            return ExchangeError::NotProcessed(error_chain(error));
        }
        if let Some(violation) = cause.downcast_ref::<h2::Error>()
            && violation.is_library()
        {
            return ExchangeError::Protocol(error_chain(error));
        }
        source = cause.source();
    }
    if !was_sent || error.is_canceled() {
        ExchangeError::NotProcessed(error_chain(error))
    } else if error.is_parse_too_large() {
        // hyper has one error for both.
        let why = "the response header, or the length it announces, is too large";
        ExchangeError::Protocol(why.to_owned())
    } else if error.is_parse() {
        ExchangeError::Protocol(error_chain(error))
    } else if error.is_user() {
        ExchangeError::Upload
    } else if error.is_incomplete_message() {
        ExchangeError::Empty
    } else {
        ExchangeError::Other(error_chain(error))
    }
}

/// Whether a request failed before the server processed it, so that any request can be sent again (RFC 9113 §8.7): the server
/// refused its stream, or shut the connection down gracefully before (RFC 9113 §6.8). The h2 crate returns the latter only for
/// streams above the last stream ID of the GOAWAY frame.
pub fn is_unprocessed(error: &h2::Error) -> bool {
    let is_beyond_goaway =
        error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR);
    error.reason() == Some(h2::Reason::REFUSED_STREAM) || is_beyond_goaway
}

/// Whether a body that has no more frames was reset before its end (RFC 9113 §8.1). hyper reports a reset with the code
/// `NO_ERROR` as the end.
fn is_cut_off(body: &Incoming, version: hyper::Version) -> bool {
    version == hyper::Version::HTTP_2 && !body.is_end_stream()
}

/// An error with its causes, in one line.
pub(super) fn error_chain(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let of_io = cause.downcast_ref::<std::io::Error>();
        let is_cut = of_io.is_some_and(|it| it.kind() == std::io::ErrorKind::UnexpectedEof);
        if is_cut {
            return "the connection was closed unexpectedly".to_owned();
        }
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

fn version(version: hyper::Version) -> Version {
    match version {
        hyper::Version::HTTP_2 => Version::Http2,
        hyper::Version::HTTP_10 | hyper::Version::HTTP_09 => Version::Http10,
        _ => Version::Http11,
    }
}

fn reason(status: hyper::StatusCode) -> String {
    status.canonical_reason().unwrap_or_default().to_owned()
}

fn head_of(status: u16, headers: &HeaderMap) -> Response {
    let mut response = Response::new(status);
    for (name, value) in headers {
        response.fields_mut().push(name.as_str(), value.as_bytes());
    }
    response
}

fn fields_of(headers: &HeaderMap) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in headers {
        fields.push(name.as_str(), value.as_bytes());
    }
    fields
}
