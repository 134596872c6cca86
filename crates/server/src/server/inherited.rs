//! Sockets opened by another process: socket activation.
//!
//! Owns the purpose of each socket, and checks its type. The caller finds the descriptors (`sd_listen_fds(3)`).

use std::{
    fmt,
    net::{SocketAddr, TcpListener, UdpSocket},
    num::NonZeroUsize,
    os::fd::OwnedFd,
    sync::Arc,
    thread,
};

use lastbyte_udp::{Socket, Steering, adopt_group, shares_its_port};
use rustix::net::sockopt::socket_acceptconn;

use super::{Settings, StartError, worker_byte};
use crate::handover::{Purpose, Takeover};

#[cfg(test)]
mod tests;

/// The name of a plain-HTTP socket that redirects to HTTPS (`FileDescriptorName=`).
const PLAIN: &str = "http";
/// The name of a socket for metrics and health checks.
const METRICS: &str = "metrics";

/// Sockets passed by a service manager. They replace the addresses in [`Settings`]. Default: none.
#[derive(Default)]
pub struct Inherited {
    /// For HTTP/3, one per worker, all with one address.
    udp: Vec<UdpSocket>,
    /// For HTTP/1.1 and 2: one for all threads, or, from an earlier process, one per thread.
    tcp: Vec<TcpListener>,
    plain: Option<TcpListener>,
    metrics: Option<TcpListener>,
}

impl Inherited {
    /// Adds a socket of an earlier process.
    fn add_from_predecessor(&mut self, purpose: Purpose, socket: OwnedFd) {
        match purpose {
            Purpose::Udp => self.udp.push(socket.into()),
            Purpose::Tcp => self.tcp.push(socket.into()),
            Purpose::Plain => self.plain = Some(socket.into()),
            Purpose::Metrics => self.metrics = Some(socket.into()),
        }
    }

    /// Adds a UDP socket, for HTTP/3.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if the name is that of a TCP socket.
    pub fn add_udp(&mut self, name: &str, socket: UdpSocket) -> Result<(), StartError> {
        if matches!(name, PLAIN | METRICS) {
            return wrong(format!(
                "the socket `{name}` is a UDP socket (expected `ListenStream=` in its unit)"
            ));
        }
        self.udp.push(socket);
        Ok(())
    }

    /// Adds a TCP socket: for redirects to HTTPS if its name is `http`, for metrics if it is `metrics`, and otherwise
    /// for HTTP/1.1 and 2.
    ///
    /// # Errors
    ///
    /// Returns a [`StartError`] if the socket is not listening, or there is already one of this name.
    pub fn add_tcp(&mut self, name: &str, listener: TcpListener) -> Result<(), StartError> {
        if !socket_acceptconn(&listener).unwrap_or(false) {
            return wrong(format!(
                "the TCP socket `{name}` is not listening (remove `Accept=yes` from its unit)"
            ));
        }
        let is_taken = match name {
            PLAIN => self.plain.is_some(),
            METRICS => self.metrics.is_some(),
            _ => !self.tcp.is_empty(),
        };
        if is_taken {
            return wrong(format!(
                "there is a second TCP socket for the same, `{name}`: one is enough for all workers; those for clear text \
                 and for metrics are named by `FileDescriptorName={PLAIN}` and `FileDescriptorName={METRICS}`"
            ));
        }
        match name {
            PLAIN => self.plain = Some(listener),
            METRICS => self.metrics = Some(listener),
            _ => self.tcp.push(listener),
        }
        Ok(())
    }

    /// The number of UDP sockets.
    pub fn udp_count(&self) -> usize {
        self.udp.len()
    }

    pub(super) const fn take_plain(&mut self) -> Option<TcpListener> {
        self.plain.take()
    }

    pub(super) const fn take_metrics(&mut self) -> Option<TcpListener> {
        self.metrics.take()
    }

    /// Takes those for HTTP, if any: then all required ones must be present.
    pub(super) fn take_main(settings: &mut Settings) -> Result<Option<Main>, StartError> {
        let (versions, inherited) = (settings.versions, &mut settings.inherited);
        let (udp, tcp) = (
            std::mem::take(&mut inherited.udp),
            std::mem::take(&mut inherited.tcp),
        );
        if udp.is_empty() && tcp.is_empty() {
            return Ok(None);
        }
        for (is_spoken, is_there, transport, directive, versions) in [
            (versions.http3, !udp.is_empty(), "UDP", "Datagram", "3"),
            (
                versions.are_over_tcp(),
                !tcp.is_empty(),
                "TCP",
                "Stream",
                "1.1 and 2",
            ),
        ] {
            if is_spoken && !is_there {
                return wrong(format!(
                    "no {transport} socket was passed (add `Listen{directive}=` to the unit, or disable HTTP/{versions})"
                ));
            }
            if is_there && !is_spoken {
                return wrong(format!(
                    "a {transport} socket was passed, but HTTP/{versions} is disabled (remove `Listen{directive}=` from the unit)"
                ));
            }
        }
        let addresses = udp.iter().map(UdpSocket::local_addr);
        let addresses = addresses.chain(tcp.iter().map(TcpListener::local_addr));
        let addresses = addresses
            .collect::<Result<Vec<SocketAddr>, _>>()
            .map_err(StartError::System)?;
        let Some(address) = addresses.first().copied() else {
            return Ok(None);
        };
        if let Some(other) = addresses
            .iter()
            .find(|other| other.port() != address.port())
        {
            return wrong(format!(
                "`{address}` and `{other}` have different ports (expected the same port for all HTTP versions)"
            ));
        }
        if let Some(other) = addresses[..udp.len()]
            .iter()
            .find(|other| **other != address)
        {
            return wrong(format!(
                "`{address}` and `{other}` differ (expected the same address for all UDP sockets)"
            ));
        }
        let udp = if udp.is_empty() {
            None
        } else {
            Some(workers_of(settings, udp, address)?)
        };
        Ok(Some(Main { address, udp, tcp }))
    }
}

impl Settings {
    /// Takes sockets and link of the running server that this one takes over from.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::Inherited`] if another number of workers is set than there are sockets for.
    pub fn take_over(&mut self, takeover: &mut Takeover) -> Result<(), StartError> {
        let workers = takeover.workers;
        if let Some(wanted) = self.workers.filter(|wanted| *wanted != workers) {
            return wrong(format!(
                "the running server has {workers} workers, not {wanted} (stop it to change the number)"
            ));
        }
        self.workers = Some(workers);
        self.inherited = Inherited::default();
        for (purpose, socket) in takeover.sockets.drain(..) {
            self.inherited.add_from_predecessor(purpose, socket);
        }
        self.predecessor = Some(Arc::clone(&takeover.link));
        Ok(())
    }
}

/// The sockets for HTTP.
pub(super) struct Main {
    pub(super) address: SocketAddr,
    pub(super) udp: Option<(Vec<Socket>, Steering)>,
    pub(super) tcp: Vec<TcpListener>,
}

/// A socket for each worker.
fn workers_of(
    settings: &Settings,
    given: Vec<UdpSocket>,
    address: SocketAddr,
) -> Result<(Vec<Socket>, Steering), StartError> {
    let count = given.len();
    let adopt = |given, count| {
        let steering = Steering::ByConnectionId {
            byte: worker_byte(settings),
        };
        adopt_group(given, count, &settings.sockets, steering)
    };
    let wanted = settings.workers.map(NonZeroUsize::get);
    let advice = format!(
        "repeat `ListenDatagram={}` for each worker, with `ReusePort=yes`",
        address.port()
    );
    if let Some(wanted) = wanted.filter(|wanted| *wanted < count) {
        return wrong(format!(
            "{count} UDP sockets for {wanted} workers: datagrams to the others would be lost ({advice})"
        ));
    }
    if count > 1 {
        return match wanted {
            Some(wanted) if wanted > count => wrong(format!(
                "{count} UDP sockets for {wanted} workers ({advice})"
            )),
            _ => adopt(given, count).map_err(StartError::System),
        };
    }
    // Further sockets with the same address: permitted only if the same user opened the first.
    let others = wanted.or_else(|| thread::available_parallelism().ok().map(NonZeroUsize::get));
    let others = others.unwrap_or(1).min(usize::from(u8::MAX));
    if others > 1 && given.iter().all(shares_its_port) {
        let again: Result<Vec<UdpSocket>, _> = given.iter().map(UdpSocket::try_clone).collect();
        if let Ok(group) = adopt(again.map_err(StartError::System)?, others) {
            return Ok(group);
        }
    }
    match wanted {
        Some(wanted) if wanted > 1 => wrong(format!(
            "one UDP socket for {wanted} workers, and no more can be opened ({advice})"
        )),
        _ => adopt(given, 1).map_err(StartError::System),
    }
}

fn wrong<T>(what: String) -> Result<T, StartError> {
    Err(StartError::Inherited(what))
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inherited")
            .field("udp", &self.udp.len())
            .field("tcp", &self.tcp.len())
            .field("plain", &self.plain.is_some())
            .field("metrics", &self.metrics.is_some())
            .finish()
    }
}
