//! QUIC connections follow a change of the local address (RFC 9000 §9).
//!
//! When the system reports a change of its network, each connection is asked whether packets to its server now have
//! another source address. If so, it moves to a new socket: if the previous address still exists, by a probe (§9.1), and
//! otherwise at once (§9.2). Both use a new connection ID, and a new congestion controller and RTT estimator (§9.4, §9.5).

use core::net::{IpAddr, SocketAddr};

use lastbyte_quic::{
    Time,
    connection::{MigrateError, NetworkPath},
    endpoint::{Endpoint, Handle},
};
use lastbyte_udp::{has_address, source_address};

use super::{Client, Event};
use crate::{
    link::{Link, Source},
    listener::Move,
    network::NetworkWatch,
};

impl Client<'_> {
    /// Watches the network while QUIC connections are open. Called at each tick, so that short runs do not start a thread.
    pub(super) fn watch_network(&mut self, now: Time, endpoint: &mut Endpoint) {
        if self.has_network_watch || !self.links.values().any(|link| link.is_open) {
            // A connection could not move when the network changed.
            if core::mem::take(&mut self.is_move_pending) {
                self.follow_network(now, endpoint);
            }
            return;
        }
        self.has_network_watch = true;
        self.network = NetworkWatch::start(self.mailbox.sender(|()| Event::NetworkChanged));
        if self.network.is_some() {
            // For changes before the watch.
            self.follow_network(now, endpoint);
        }
    }

    /// Moves connections whose packets have another source address now.
    pub(super) fn follow_network(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some(network) = &self.network {
            network.take();
        }
        if self.next_socket.is_set() {
            // The worker does not have the previous one yet.
            self.is_move_pending = true;
            return;
        }
        let open = self.links.iter().filter(|(_, link)| link.is_open);
        let moves: Vec<(Handle, IpAddr)> = open
            .filter_map(|(handle, link)| Some((*handle, new_source(link, *handle, endpoint)?)))
            .collect();
        let current = self.local.port();
        let is_on_current = |(handle, _): &(Handle, IpAddr)| {
            port(*handle, endpoint).is_some_and(|port| port == current)
        };
        let needs_socket = moves.iter().any(is_on_current);
        if needs_socket {
            let Ok(socket) = self.settings.family.bind() else {
                // Without a file descriptor, the connections stay where they are; tried again.
                self.is_move_pending = true;
                return;
            };
            self.local = socket.local_address();
            self.next_socket.set(socket);
        }
        for handle in self.links.keys().copied().collect::<Vec<_>>() {
            let to = moves.iter().find(|(moved, _)| *moved == handle);
            let Some(used) = port(handle, endpoint) else {
                continue;
            };
            // The socket before the previous one is closed when there is a new one.
            let is_closing = needs_socket && used != current;
            let to = to.map(|(_, address)| *address);
            let to = to.or_else(|| self.links[&handle].source.current.filter(|_| is_closing));
            if let Some(to) = to {
                self.move_link(now, handle, to, is_closing, endpoint);
            }
        }
    }

    fn move_link(
        &mut self,
        now: Time,
        handle: Handle,
        to: IpAddr,
        is_closing: bool,
        endpoint: &mut Endpoint,
    ) {
        let (Some(link), Some(quic)) = (self.links.get_mut(&handle), endpoint.connection(handle))
        else {
            return;
        };
        let path = NetworkPath {
            local: SocketAddr::new(to, self.local.port()),
            remote: quic.network().remote,
        };
        let is_usable = !is_closing && link.source.current.is_some_and(has_address);
        let moved = if is_usable {
            quic.migrate(now, path)
        } else {
            quic.rebind(now, path)
        };
        let step = match moved {
            Ok(()) => {
                link.source.probed = Some(to);
                Move::Started(to)
            }
            Err(MigrateError::NotConfirmed | MigrateError::NoConnectionId) => {
                self.is_move_pending = true;
                return;
            }
            Err(why) => {
                link.source.probed = Some(to);
                Move::Failed(to, why.to_string())
            }
        };
        let number = link.number;
        self.fetches.listener.on_move(number, &step);
    }

    /// A connection uses another path now.
    pub(super) fn on_moved(&mut self, handle: Handle, path: NetworkPath) {
        let to = path.local.ip();
        if let Some(link) = self.links.get_mut(&handle)
            && !to.is_unspecified()
        {
            link.source.current = Some(to);
            link.source.probed = None;
            // The routes may have changed meanwhile.
            self.is_move_pending = true;
            self.fetches.listener.on_move(link.number, &Move::Done(to));
        }
    }

    /// A path did not respond; the connection stays where it is until the network changes again.
    pub(super) fn on_move_failed(&mut self, handle: Handle, path: NetworkPath) {
        if let Some(link) = self.links.get_mut(&handle) {
            link.source.probed = None;
            let step = Move::Failed(path.local.ip(), "the path does not respond".to_owned());
            self.fetches.listener.on_move(link.number, &step);
        }
    }
}

/// The local address to which a connection should move.
fn new_source(link: &Link, handle: Handle, endpoint: &mut Endpoint) -> Option<IpAddr> {
    let remote = endpoint.connection(handle)?.network().remote;
    // Without a route, wait for one.
    let source = source_address(remote).ok()?;
    let Source { current, probed } = link.source;
    (current != Some(source) && probed != Some(source)).then_some(source)
}

fn port(handle: Handle, endpoint: &mut Endpoint) -> Option<u16> {
    let quic = endpoint.connection(handle)?;
    Some(quic.network().local.port())
}
