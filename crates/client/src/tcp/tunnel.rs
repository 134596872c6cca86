//! CONNECT tunnels through a proxy (RFC 9110 §9.3.6).

use hyper::{Method, Request, Uri, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{HEAD_LEN_MAX, ProxyRoute, exchange};
use crate::failure::Failure;

/// Opens a tunnel to `authority`. Returns the tunnel and the status of the proxy's response.
pub(super) async fn open(
    stream: TcpStream,
    proxy: &ProxyRoute,
    authority: &str,
) -> Result<(TokioIo<hyper::upgrade::Upgraded>, u16), Failure> {
    let failed = |error: &hyper::Error| {
        Failure::Response(format!(
            "no response from the proxy: {}",
            exchange::error_chain(error)
        ))
    };
    let uri: Uri = authority
        .parse()
        .map_err(|_| Failure::Request(format!("invalid tunnel target `{authority}`")))?;
    let mut builder = Request::builder()
        .method(Method::CONNECT)
        .uri(uri)
        .header("host", authority);
    if let Some(authorization) = &proxy.authorization {
        builder = builder.header("proxy-authorization", authorization);
    }
    let request = builder
        .body(String::new())
        .map_err(|error| Failure::Request(format!("invalid request to the proxy: {error}")))?;
    let (mut sender, driver) = http1::Builder::new()
        .max_buf_size(HEAD_LEN_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    // The driver ends when the connection has become a tunnel, or has failed.
    tokio::spawn(driver.with_upgrades());
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| failed(&error))?;
    let status = response.status();
    if !status.is_success() {
        let what = match status.as_u16() {
            407 => " (user name and password required)".to_owned(),
            _ => String::new(),
        };
        return Err(Failure::Response(format!(
            "the proxy refused to connect to {authority}: {status}{what}"
        )));
    }
    let upgraded = hyper::upgrade::on(response).await;
    let upgraded = upgraded.map_err(|error| failed(&error))?;
    Ok((TokioIo::new(upgraded), status.as_u16()))
}
