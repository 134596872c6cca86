//! Sockets that a server listens on.
//!
//! Owns: that UDP and TCP have the same port, also where any free one is asked for.

use std::net::{SocketAddr, TcpListener};

use lastbyte_udp::{Socket, Steering, bind_group};

use super::{Settings, StartError, WORKER_BYTE};

/// All of them.
pub(super) struct Listeners {
    pub(super) address: SocketAddr,
    pub(super) udp: Option<(Vec<Socket>, Steering)>,
    pub(super) tcp: Option<TcpListener>,
    pub(super) plain: Option<TcpListener>,
    pub(super) metrics: Option<TcpListener>,
}

/// So often a free port is looked for that nobody has over the other transport.
const TRIES: usize = 20;

pub(super) fn bind(settings: &Settings, workers: usize) -> Result<Listeners, StartError> {
    let wanted = settings.address;
    let mut tries = 0;
    loop {
        tries += 1;
        let mut address = wanted;
        let udp = if settings.versions.http3 {
            let steering = Steering::ByConnectionId { byte: WORKER_BYTE };
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
                // Somebody has it over TCP; another may be free for both.
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
            plain: settings.plain.map(listen).transpose()?,
            metrics: settings.metrics.map(listen).transpose()?,
        });
    }
}

/// As `std` does it: with `SO_REUSEADDR`, so that a server can come again at once, and IPv4 too on all of IPv6.
fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    let fail = |error| StartError::Bind(address, error);
    let listener = TcpListener::bind(address).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    Ok(listener)
}
