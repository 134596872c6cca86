//! Connections that move to another local port or address (RFC 9000 §9).

use core::net::SocketAddr;

use lastbyte_quic::{
    Time,
    connection::{MigrateError, NetworkPath},
    endpoint::Endpoint,
};
use lastbyte_udp::{Options, Socket};

use super::{Client, Http3Load, Phase};

impl Http3Load<'_> {
    /// Moves all connections to a new socket, if it is time and the last move of each has ended. Those that are still on the
    /// port before the current one, which is closed now, go on from the new port at once.
    pub(super) fn migrate(&mut self, now: Time, endpoint: &mut Endpoint<usize>) {
        let Some(interval) = self.state.settings.migrate else {
            return;
        };
        if now < *self.migrate_at.get_or_insert(now + interval) {
            return;
        }
        // The server may be slower than the interval: a move is not given up for the next one.
        let is_moving = |client: &Client| client.is_moving && client.phase == Phase::Open;
        if self.clients.iter().any(is_moving) {
            return;
        }
        self.migrate_at = Some(now + interval);
        let to = &self.state.settings.migrate_to;
        let ip = match self.moves.checked_rem(to.len()) {
            Some(index) => to[index],
            None => self.locals[0].ip(),
        };
        self.moves += 1;
        let socket = match Socket::bind(SocketAddr::new(ip, 0), &Options::default()) {
            Ok(socket) => socket,
            Err(error) => {
                let why = format!("cannot open a socket at {ip} to move to: {error}");
                return self.state.recorder.on_error(1, &why);
            }
        };
        let current = core::mem::replace(&mut self.locals[0], socket.local_address());
        self.next_socket.set(socket);
        for client in &mut self.clients {
            let quic = client.handle.and_then(|handle| endpoint.connection(handle));
            let Some(quic) = quic.filter(|_| client.phase == Phase::Open) else {
                continue;
            };
            let path = NetworkPath {
                local: self.locals[0],
                remote: self.remote,
            };
            let is_current = quic.network().local.port() == current.port();
            let moved = if is_current {
                quic.migrate(now, path)
            } else {
                quic.rebind(now, path)
            };
            match moved {
                Ok(()) => client.is_moving = true,
                // It moves the next time.
                Err(MigrateError::NotConfirmed) => {}
                Err(why) => {
                    let why = format!("cannot move: {why}");
                    self.state.recorder.counts.migrations_failed += 1;
                    self.state.recorder.on_error(1, &why);
                }
            }
        }
    }
}
