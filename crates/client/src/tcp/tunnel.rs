//! A way through a proxy (RFC 9110 §9.3.6): CONNECT, and then whatever is said to the server.

use hyper::{Method, Request, Uri, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{HEAD_LEN_MAX, ProxyRoute, exchange};
use crate::failure::Failure;

/// Asks a proxy to connect to somebody, and returns the way there, and the status of its answer.
pub(super) async fn open(
    stream: TcpStream,
    proxy: &ProxyRoute,
    authority: &str,
) -> Result<(TokioIo<hyper::upgrade::Upgraded>, u16), Failure> {
    let failed = |error: &hyper::Error| {
        Failure::Response(format!(
            "the proxy does not answer: {}",
            exchange::error_chain(error)
        ))
    };
    let uri: Uri = authority
        .parse()
        .map_err(|_| Failure::Request(format!("`{authority}` cannot be asked for")))?;
    let mut builder = Request::builder()
        .method(Method::CONNECT)
        .uri(uri)
        .header("host", authority);
    if let Some(authorization) = &proxy.authorization {
        builder = builder.header("proxy-authorization", authorization);
    }
    let request = builder
        .body(String::new())
        .map_err(|error| Failure::Request(format!("the proxy cannot be asked: {error}")))?;
    let (mut sender, driver) = http1::Builder::new()
        .max_buf_size(HEAD_LEN_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    // It ends when the way is handed over, or the proxy has failed.
    tokio::spawn(driver.with_upgrades());
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| failed(&error))?;
    let status = response.status();
    if !status.is_success() {
        let what = match status.as_u16() {
            407 => "; name and password for it are wanted".to_owned(),
            _ => String::new(),
        };
        return Err(Failure::Response(format!(
            "the proxy answers {status} and does not connect to {authority}{what}"
        )));
    }
    let upgraded = hyper::upgrade::on(response).await;
    let upgraded = upgraded.map_err(|error| failed(&error))?;
    Ok((TokioIo::new(upgraded), status.as_u16()))
}
