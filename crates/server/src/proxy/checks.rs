//! Checks of an upstream's servers: a GET request to each at an interval (active health).
//!
//! A check passes if the header of a response with a status of 2xx or 3xx arrives in time. Each has a connection of its own,
//! which is closed without reading the body, so that it shows whether the server accepts connections, and takes none from
//! requests.
//!
//! | the server | costs |
//! |---|---|
//! | is silent, or sends slowly | one descriptor for [`Checks::timeout`]: the next check starts an [interval](Checks::interval) after that |
//! | sends a large header, or a body without end | the buffer of a connection |
//!
//! The first check is a random part of an interval after the start, so that several proxies do not check at the same moment.
//! Checks end with the threads of their proxy: those of servers that a later configuration does not have end with it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use http::{Request, header};
use tokio::time;

use super::{
    Shared,
    pool::Pool,
    upstream::{Checks, Server, Upstream},
};

/// Checks a server until its proxy is gone. `first`: the time until the first check.
pub(super) async fn run(shared: Weak<Shared>, pool: Arc<Pool>, index: usize, first: Duration) {
    let mut wait = first;
    loop {
        time::sleep(wait).await;
        let request = shared.upgrade().and_then(|shared| {
            let checks = shared.upstream.checks.clone()?;
            let head = head(&shared.upstream, index, &checks)?;
            Some((head, checks))
        });
        let Some((head, checks)) = request else {
            return;
        };
        let checked = time::timeout(checks.timeout, pool.check(&head)).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let has_passed = checked.unwrap_or(false);
        shared.balance.check(index, has_passed, checks.failures_max);
        shared.connector.counts.on_check(index, has_passed);
        wait = checks.interval;
    }
}

/// The request of a check.
fn head(upstream: &Upstream, index: usize, checks: &Checks) -> Option<http::request::Parts> {
    let host = match upstream.servers.get(index)? {
        Server::Tcp { host, port } => upstream.authority_of(host, *port),
        Server::Unix(_) => "localhost".to_owned(),
    };
    let request = Request::get(http::Uri::from(checks.path.clone()))
        .header(header::HOST, host)
        .header(
            header::USER_AGENT,
            concat!("lastbyte/", env!("CARGO_PKG_VERSION")),
        );
    Some(request.body(()).ok()?.into_parts().0)
}
