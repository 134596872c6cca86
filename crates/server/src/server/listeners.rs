//! Sockets that a server listens on.
//!
//! UDP and TCP have the same port, even if any free port is requested.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    num::NonZeroUsize,
    os::fd::{AsFd, OwnedFd},
    thread,
};

use lastbyte_udp::{
    Socket, Steering, bind_group, limit_unsent, set_tcp_congestion, tcp_congestion,
};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, listen, socket_with,
    sockopt::{set_socket_reuseaddr, set_socket_reuseport},
};

use super::{Settings, StartError, inherited::Inherited, worker_byte};
use crate::handover::Purpose;

/// All listening sockets.
pub(super) struct Listeners {
    pub(super) address: SocketAddr,
    /// One per HTTP/3 worker.
    pub(super) udp: Option<(Vec<Socket>, Steering)>,
    /// None, one for all threads of HTTP/1.1 and 2, or one per thread.
    pub(super) tcp: Vec<TcpListener>,
    pub(super) plain: Option<TcpListener>,
    pub(super) metrics: Option<TcpListener>,
}

impl Listeners {
    /// Further descriptors of all sockets, with what each is for, for a later process.
    pub(super) fn duplicate(&self) -> io::Result<Vec<(Purpose, OwnedFd)>> {
        let udp = self.udp.iter().flat_map(|(sockets, _)| sockets);
        let udp = udp.map(|socket| (Purpose::Udp, socket.as_fd()));
        let tcp = self.tcp.iter().map(|it| (Purpose::Tcp, it.as_fd()));
        let plain = self.plain.iter().map(|it| (Purpose::Plain, it.as_fd()));
        let metrics = self.metrics.iter().map(|it| (Purpose::Metrics, it.as_fd()));
        udp.chain(tcp)
            .chain(plain)
            .chain(metrics)
            .map(|(purpose, fd)| Ok((purpose, fd.try_clone_to_owned()?)))
            .collect()
    }
}

/// Bytes of responses over TCP that wait in the kernel for its congestion window. They were sent in the order that was right
/// when they were passed to it.
const UNSENT_MAX: u32 = 64 << 10;
/// Number of attempts to find a port that is free over both transports.
const TRIES: usize = 20;

/// The number of threads of each transport.
pub(super) fn threads(settings: &Settings) -> usize {
    settings
        .workers
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
        .min(usize::from(u8::MAX))
}

/// Takes the passed sockets, and opens the others.
pub(super) fn bind(settings: &mut Settings) -> Result<Listeners, StartError> {
    let mut listeners = match Inherited::take_main(settings)? {
        Some(main) => Listeners {
            address: main.address,
            udp: main.udp,
            tcp: main.tcp,
            plain: None,
            metrics: None,
        },
        None => bind_main(settings)?,
    };
    listeners.plain = match settings.inherited.take_plain() {
        Some(listener) => Some(listener),
        None => settings.plain.map(open_one).transpose()?,
    };
    listeners.metrics = match settings.inherited.take_metrics() {
        Some(listener) => Some(listener),
        None => settings.metrics.map(open_one).transpose()?,
    };
    for listener in &listeners.tcp {
        // Without it, urgent responses only wait longer.
        let _ = limit_unsent(listener, UNSENT_MAX);
    }
    set_congestion(settings, &listeners.tcp)?;
    let others = listeners.plain.iter().chain(&listeners.metrics);
    for listener in listeners.tcp.iter().chain(others) {
        listener.set_nonblocking(true).map_err(StartError::System)?;
    }
    Ok(listeners)
}

/// Sets the congestion control of the connections that are accepted. Sockets of an earlier process have that of its
/// configuration, so without one in this configuration they get the system's.
fn set_congestion(settings: &Settings, listeners: &[TcpListener]) -> Result<(), StartError> {
    let of_system = || tcp_congestion(unbound(settings.address).ok()?);
    let is_taken_over = settings.predecessor.is_some();
    let name = settings.tcp_congestion.clone();
    let Some(name) = name.or_else(|| is_taken_over.then(of_system).flatten()) else {
        return Ok(());
    };
    listeners.iter().try_for_each(|listener| {
        set_tcp_congestion(listener, &name)
            .map_err(|error| StartError::TcpCongestion(name.clone(), error))
    })
}

/// Returns an error if the congestion control cannot be set.
pub(super) fn check_congestion(address: SocketAddr, name: &str) -> Result<(), StartError> {
    unbound(address)
        .and_then(|socket| set_tcp_congestion(socket, name))
        .map_err(|error| StartError::TcpCongestion(name.to_owned(), error))
}

fn bind_main(settings: &Settings) -> Result<Listeners, StartError> {
    let wanted = settings.address;
    let mut tries = 0;
    loop {
        tries += 1;
        let mut address = wanted;
        let udp = if settings.versions.http3 {
            let steering = Steering::ByConnectionId {
                byte: worker_byte(settings),
            };
            let workers = threads(settings);
            let (sockets, steering) = bind_group(address, workers, &settings.sockets, steering)
                .map_err(|error| StartError::Bind(address, error))?;
            if let Some(socket) = sockets.first() {
                address = socket.local_address();
            }
            Some((sockets, steering))
        } else {
            None
        };
        let tcp = if settings.versions.are_over_tcp() {
            match open_group(address, threads(settings)) {
                Ok(listeners) => {
                    let first = listeners.first().map(TcpListener::local_addr);
                    address = first.and_then(Result::ok).unwrap_or(address);
                    listeners
                }
                // The port is in use over TCP; another may be free for both.
                Err(_) if wanted.port() == 0 && tries < TRIES => continue,
                Err(error) => return Err(StartError::Bind(address, error)),
            }
        } else {
            Vec::new()
        };
        return Ok(Listeners {
            address,
            udp,
            tcp,
            plain: None,
            metrics: None,
        });
    }
}

/// Maximum connections that wait to be accepted, for each listener. The system may permit fewer (`net.core.somaxconn`).
const BACKLOG: i32 = 1024;

/// A listener for each of `count` threads, among which the kernel distributes connections. One for all threads on systems
/// whose kernel does not distribute them.
fn open_group(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    if count < 2 || !cfg!(target_os = "linux") {
        return Ok(vec![open(address, false)?]);
    }
    if address.port() != 0 {
        // The kernel would silently join this group with another one of the same user, and each would receive a part of
        // the connections. Binding a socket without `SO_REUSEPORT` first fails if the address is in use.
        drop(bound(address, false)?);
    }
    let mut address = address;
    let mut listeners = Vec::with_capacity(count);
    for _ in 0..count {
        let listener = open(address, true)?;
        // If the port is 0, the first listener receives a free port, which the others use too.
        address.set_port(listener.local_addr()?.port());
        listeners.push(listener);
    }
    Ok(listeners)
}

fn open_one(address: SocketAddr) -> Result<TcpListener, StartError> {
    open(address, false).map_err(|error| StartError::Bind(address, error))
}

fn open(address: SocketAddr, shares_address: bool) -> io::Result<TcpListener> {
    let socket = bound(address, shares_address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// A socket as `std` makes it for a listener, with `SO_REUSEADDR`, so that a server can be restarted at once; and with
/// `SO_REUSEPORT` if it shares its address with others.
fn bound(address: SocketAddr, shares_address: bool) -> io::Result<OwnedFd> {
    let socket = unbound(address)?;
    set_socket_reuseaddr(&socket, true)?;
    set_socket_reuseport(&socket, shares_address)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

fn unbound(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    Ok(socket_with(
        family,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    #[test]
    fn each_thread_has_a_listener_of_the_same_address() {
        for count in [1, 3] {
            let group = open_group(ANY, count).expect("a free port");
            assert_eq!(group.len(), count);
            let addresses = group.iter().map(|it| it.local_addr().expect("it is bound"));
            let mut addresses: Vec<_> = addresses.collect();
            addresses.dedup();
            assert_eq!(addresses.len(), 1);
            assert_ne!(addresses[0].port(), 0);
        }
    }

    /// `SO_REUSEPORT` alone would let a second server of the same user take a part of the connections.
    #[test]
    fn a_second_server_cannot_listen_on_the_same_address() {
        for (first, second) in [(3, 3), (3, 1), (1, 3), (1, 1)] {
            let group = open_group(ANY, first).expect("a free port");
            let address = group[0].local_addr().expect("it is bound");
            let error = open_group(address, second).expect_err("it is in use");
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
            drop(group);
            open_group(address, second).expect("it is free again");
        }
    }
}
