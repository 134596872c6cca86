//! A plain-HTTP listener that redirects to HTTPS (RFC 9110 §15.4.9), and answers challenges of a certificate authority.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::net::TcpStream;

use super::{Limits, stalled::Stalled};
use crate::challenges::Challenges;

/// A complete body.
#[derive(Debug)]
pub(crate) struct Text(Option<Bytes>);

impl Text {
    pub(crate) fn new(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self((!text.is_empty()).then_some(text))
    }
}

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |text| text.len() as u64))
    }
}

pub(super) async fn serve(
    stream: TcpStream,
    limits: Limits,
    https_port: u16,
    challenges: Challenges,
) {
    let service = service_fn(|request: http::Request<Incoming>| {
        let proof = challenges.proof(request.uri().path());
        let response = match proof {
            Some(proof) if matches!(*request.method(), Method::GET | Method::HEAD) => {
                http::Response::new(Text::new(proof))
            }
            _ => redirect(&request, https_port),
        };
        async move { Ok::<_, Infallible>(response) }
    });
    // The error concerns only the client.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_header_size(limits.head_size)
        .keep_alive(false)
        .serve_connection(TokioIo::new(Stalled::new(stream, limits.stall)), service)
        .await;
}

fn redirect(request: &http::Request<Incoming>, https_port: u16) -> http::Response<Text> {
    let host = request.uri().host().map(str::to_owned).or_else(|| {
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let host = hosts.next().filter(|_| hosts.next().is_none())?;
        let authority: http::uri::Authority = host.to_str().ok()?.parse().ok()?;
        Some(authority.host().to_owned())
    });
    let target = request
        .uri()
        .path_and_query()
        .map_or("", |all| all.as_str());
    // Other targets, of OPTIONS and CONNECT, would be parts of the host.
    let host = host.filter(|_| target.starts_with('/'));
    let location = host.and_then(|host| {
        let port = match https_port {
            443 => String::new(),
            port => format!(":{port}"),
        };
        HeaderValue::try_from(format!("https://{host}{port}{target}")).ok()
    });
    if let Some(location) = location {
        let mut response = http::Response::new(Text::new("Redirecting to HTTPS\n"));
        // With the same method and body (RFC 9110 §15.4.9).
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
        response.headers_mut().insert(header::LOCATION, location);
        response
    } else {
        let mut response = http::Response::new(Text::new(
            "Invalid request target, or not one valid Host header field\n",
        ));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response
    }
}
