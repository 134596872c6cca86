//! The server that all connections go to.

use core::{net::SocketAddr, time::Duration};
use std::{net::IpAddr, sync::mpsc, thread};

use lastbyte_client::{Family, Scheme, connect_target, resolve_blocking};
use lastbyte_udp::{Options, Socket};

use crate::{
    error::Error,
    settings::{Settings, Version},
};

/// The server that all connections go to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// The name in its certificate.
    pub(crate) server_name: String,
    pub(crate) is_tls: bool,
}

impl Target {
    /// Checks that all requests have the same origin, and resolves its name.
    pub(crate) fn find(settings: &Settings) -> Result<Self, Error> {
        let invalid = |what: String| Err(Error::Settings(what));
        let Some(first) = settings.requests.first() else {
            return invalid("no URL (expected at least one)".to_owned());
        };
        let origin = first.url.origin();
        for request in &settings.requests {
            let other = request.url.origin();
            if other != origin {
                return invalid(format!(
                    "URL of another origin: `{}` (expected that of the first URL, `{}://{origin}`)",
                    request.url,
                    origin.scheme.name()
                ));
            }
        }
        let is_tls = origin.scheme == Scheme::Https;
        if !is_tls && settings.version == Version::Http3 {
            return invalid(format!(
                "`{}` cannot be requested over HTTP/3 (expected `https`)",
                first.url
            ));
        }
        settings.check(is_tls)?;
        let target = connect_target(origin, &settings.client.connect_to);
        let client = &settings.client;
        let ip = resolve(&target.host, client.family, client.connect_timeout)?;
        for local in &settings.migrate_to {
            let socket = Socket::bind(SocketAddr::new(*local, 0), &Options::default());
            let expected = match (local.is_ipv6() == ip.is_ipv6(), socket) {
                (true, Ok(_)) => continue,
                (true, Err(error)) => format!("{error}; expected an address of this machine"),
                (false, _) => format!("expected an address of the same family as {ip}"),
            };
            return invalid(format!("connections cannot move to `{local}` ({expected})"));
        }
        Ok(Self {
            address: SocketAddr::new(ip, target.port),
            server_name: origin.host.clone(),
            is_tls,
        })
    }
}

/// The address of a host: the first IPv4 address, and otherwise the first, since nothing else is tried. The resolver
/// cannot be interrupted, so it runs in a thread that is abandoned if it takes too long.
fn resolve(host: &str, family: Family, timeout: Duration) -> Result<IpAddr, Error> {
    let (sender, receiver) = mpsc::channel();
    let cannot = |why: &dyn core::fmt::Display| {
        Error::Resolve(format!("could not resolve host `{host}`: {why}"))
    };
    let name = host.to_owned();
    let spawned = thread::Builder::new()
        .name("resolver".to_owned())
        .spawn(move || {
            // The receiver has gone if this took too long.
            let _ = sender.send(resolve_blocking(&name, family));
        });
    spawned.map_err(|error| cannot(&error))?;
    let Ok(found) = receiver.recv_timeout(timeout) else {
        let limit = timeout.as_millis();
        return Err(cannot(&format_args!("no answer within {limit} ms")));
    };
    let found = found.map_err(|why| cannot(&why))?;
    let ipv4 = found.iter().find(|ip| ip.is_ipv4());
    let chosen = ipv4.or_else(|| found.first()).copied();
    chosen.ok_or_else(|| cannot(&"no address"))
}

#[cfg(test)]
mod tests;
