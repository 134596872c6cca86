//! Sockets that a server listens on.
//!
//! Owns: that UDP and TCP have the same port, also where any free one is asked for.

use std::{
    net::{SocketAddr, TcpListener},
    num::NonZeroUsize,
    thread,
};

use lastbyte_udp::{Socket, Steering, bind_group};

use super::{Settings, StartError, WORKER_BYTE, inherited::Inherited};

/// All of them.
pub(super) struct Listeners {
    pub(super) address: SocketAddr,
    /// One for each worker of HTTP/3.
    pub(super) udp: Option<(Vec<Socket>, Steering)>,
    pub(super) tcp: Option<TcpListener>,
    pub(super) plain: Option<TcpListener>,
    pub(super) metrics: Option<TcpListener>,
}

/// Number of attempts to find a port that is free over both transports.
const TRIES: usize = 20;

/// How many threads there are for one transport.
pub(super) fn threads(settings: &Settings) -> usize {
    settings
        .workers
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
        .min(usize::from(u8::MAX))
}

/// Takes those that were handed over, and opens the others.
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
        None => settings.plain.map(listen).transpose()?,
    };
    listeners.metrics = match settings.inherited.take_metrics() {
        Some(listener) => Some(listener),
        None => settings.metrics.map(listen).transpose()?,
    };
    let all = [&listeners.tcp, &listeners.plain, &listeners.metrics];
    for listener in all.into_iter().flatten() {
        listener.set_nonblocking(true).map_err(StartError::System)?;
    }
    Ok(listeners)
}

fn bind_main(settings: &Settings) -> Result<Listeners, StartError> {
    let wanted = settings.address;
    let mut tries = 0;
    loop {
        tries += 1;
        let mut address = wanted;
        let udp = if settings.versions.http3 {
            let steering = Steering::ByConnectionId { byte: WORKER_BYTE };
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
            match listen(address) {
                Ok(listener) => {
                    address = listener.local_addr().unwrap_or(address);
                    Some(listener)
                }
                // The port is in use over TCP; another may be free for both.
                Err(_) if wanted.port() == 0 && tries < TRIES => continue,
                Err(error) => return Err(error),
            }
        } else {
            None
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

/// As `std` does it: with `SO_REUSEADDR`, so that a server can come again at once, and IPv4 too on all of IPv6.
fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).map_err(|error| StartError::Bind(address, error))
}
