//! The UDP relay: one thread between the clients and the server.
//!
//! This module owns the socket to which clients send, one upstream socket per client, and the clock. What happens to a
//! datagram is decided by [`Paths`].
//!
//! A client has one upstream socket and one entry of the next rebinding, from its first datagram until [`Paths::expire`] removes
//! it. The number of clients is bounded by [`Plan::clients_max`].

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "path emulation runs in real time"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use lastbyte_link::{ConfigError, Time};
use lastbyte_udp::{Batch, Options, Poller, Socket, Transmit, socket::loopback};

use self::train::Train;
use crate::{
    paths::{Direction, Paths, Plan, Report},
    running::Running,
};

#[cfg(test)]
mod tests;
mod train;

/// The configuration of a relay.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to which clients send. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The address of the server.
    pub to: SocketAddr,
    /// The emulated paths.
    pub plan: Plan,
    /// The interval at which each client gets another port towards the server, as behind a NAT that loses its bindings;
    /// datagrams to the previous port are lost. Default: never.
    pub rebind: Option<Duration>,
}

/// A relay could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting of a link is out of range.
    #[error("invalid path: {0}")]
    Path(ConfigError),
    /// The relay cannot listen on the address.
    #[error("cannot listen on `{0}`: {1}")]
    Listen(SocketAddr, io::Error),
    /// A system resource, such as a file descriptor or thread, is not available.
    #[error("cannot start the relay: {0}")]
    System(io::Error),
}

/// A running relay. It stops when it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    running: Running,
}

impl Relay {
    /// Starts a relay.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::Path`] if a link setting is out of range, [`StartError::Listen`] if the address cannot be
    /// bound, and [`StartError::System`] if a system resource is not available.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        let paths = Paths::new(settings.plan).map_err(StartError::Path)?;
        let listener = Socket::bind(settings.listen, &Options::default())
            .map_err(|error| StartError::Listen(settings.listen, error))?;
        let address = loopback(listener.local_address());
        let poller = Poller::new().map_err(StartError::System)?;
        poller
            .add(&listener, LISTENER)
            .map_err(StartError::System)?;
        let waker = poller.waker();
        let running = Running::start("relay", waker, paths.refusals(), |is_over| {
            let mut event_loop = EventLoop {
                to: settings.to,
                paths,
                listener,
                upstreams: BTreeMap::new(),
                rebind: settings.rebind,
                rebinds: BTreeSet::new(),
                poller,
                batch: Batch::new(),
                train: Train::new(),
                start: Instant::now(),
                is_over,
            };
            move || event_loop.run()
        })
        .map_err(StartError::System)?;
        Ok(Self { address, running })
    }

    /// The address to which clients send.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The handle of the relay's thread.
    pub const fn running(&self) -> &Running {
        &self.running
    }

    /// Stops the relay and returns its report. Datagrams in transit are dropped.
    ///
    /// # Errors
    ///
    /// Returns the I/O error that ended the relay's thread.
    pub fn stop(self) -> io::Result<Report> {
        self.running.stop()
    }
}

/// The poller key of the socket to which clients send. Upstream sockets use the client number.
const LISTENER: u64 = u64::MAX - 1;
/// The interval at which idle clients are removed.
const SWEEP: Duration = Duration::from_secs(1);
/// The maximum number of batches received from one socket before other sockets and due datagrams are handled.
const BATCHES: usize = 4;

struct EventLoop {
    to: SocketAddr,
    paths: Paths,
    listener: Socket,
    upstreams: BTreeMap<u64, Upstream>,
    rebind: Option<Duration>,
    /// When a client gets its next port.
    rebinds: BTreeSet<(Time, u64)>,
    poller: Poller,
    batch: Batch,
    /// Datagrams that are due and not sent yet.
    train: Train,
    start: Instant,
    is_over: Arc<AtomicBool>,
}

/// The socket of a client towards the server.
struct Upstream {
    socket: Socket,
    /// The length of the longest datagram sent to the server.
    proven_up: usize,
    /// The same to the client.
    proven_down: usize,
}

impl EventLoop {
    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    fn run(&mut self) -> io::Result<Report> {
        let mut ready = Vec::new();
        let mut sweep = self.now() + SWEEP;
        loop {
            self.send_due();
            let now = self.now();
            if now >= sweep {
                self.expire(now);
                sweep = now + SWEEP;
            }
            self.rebind_due(now);
            let due = self.rebinds.first().map_or(sweep, |(at, _)| sweep.min(*at));
            let deadline = self.paths.deadline().map_or(due, |at| at.min(due));
            self.poller.wait(Some(deadline.since(now)), &mut ready)?;
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(self.paths.report());
            }
            for key in &ready {
                self.receive(*key)?;
            }
        }
    }

    /// Forwards all datagrams that are due, in as few system calls as possible. Reads the clock for each datagram, because
    /// sending a burst takes time.
    fn send_due(&mut self) {
        while let Some(arrival) = self.paths.poll(self.now()) {
            if !self.train.push(&arrival) {
                self.send_train();
                self.train.push(&arrival);
            }
            self.paths.recycle(arrival.bytes);
        }
        self.send_train();
    }

    fn send_train(&mut self) {
        let train = &mut self.train;
        let Some(upstream) = self.upstreams.get_mut(&train.client) else {
            train.clear();
            return;
        };
        let (socket, remote, proven) = match train.direction {
            Direction::Up => (&upstream.socket, self.to, &mut upstream.proven_up),
            Direction::Down => (&self.listener, train.address, &mut upstream.proven_down),
        };
        let ecn = train.ecn;
        let unsent = train.send(proven, |bytes, segment_len| {
            socket.send(&Transmit {
                remote,
                local: None,
                ecn,
                bytes,
                segment_len,
            })
        });
        for _ in 0..unsent {
            self.paths.unsent();
        }
    }

    fn receive(&mut self, key: u64) -> io::Result<()> {
        for _ in 0..BATCHES {
            let socket = if key == LISTENER {
                &self.listener
            } else {
                match self.upstreams.get(&key) {
                    Some(upstream) => &upstream.socket,
                    None => return Ok(()),
                }
            };
            if socket.receive(&mut self.batch)? == 0 {
                return Ok(());
            }
            let now = Time::ZERO + self.start.elapsed();
            for received in self.batch.received() {
                let client = if key == LISTENER {
                    let Ok((client, is_new)) = self.paths.client(now, received.remote) else {
                        continue;
                    };
                    if is_new {
                        let Ok(socket) = upstream(self.to, &self.poller, client) else {
                            self.paths.refused();
                            self.paths.forget(client);
                            continue;
                        };
                        let upstream = Upstream {
                            socket,
                            proven_up: 0,
                            proven_down: 0,
                        };
                        self.upstreams.insert(client, upstream);
                        if let Some(interval) = self.rebind {
                            self.rebinds.insert((now + interval, client));
                        }
                    }
                    client
                } else {
                    key
                };
                let direction = if key == LISTENER {
                    Direction::Up
                } else {
                    Direction::Down
                };
                let ecn = received.ecn;
                for datagram in received.bytes.chunks(received.segment_len) {
                    self.paths.send(now, client, direction, ecn, datagram);
                }
            }
        }
        Ok(())
    }

    /// Replaces the upstream sockets of clients whose bindings end. Without a file descriptor, a client keeps its own.
    fn rebind_due(&mut self, now: Time) {
        while let (Some(interval), Some((at, client))) =
            (self.rebind, self.rebinds.first().copied())
            && at <= now
        {
            self.rebinds.pop_first();
            // A client that has been removed has no socket.
            let Some(current) = self.upstreams.get_mut(&client) else {
                continue;
            };
            if let Ok(socket) = upstream(self.to, &self.poller, client) {
                let previous = std::mem::replace(&mut current.socket, socket);
                // Cannot matter: closing the socket removes it too.
                let _ = self.poller.remove(&previous);
            }
            self.rebinds.insert((now + interval, client));
        }
    }

    fn expire(&mut self, now: Time) {
        for client in self.paths.expire(now) {
            if let Some(upstream) = self.upstreams.remove(&client) {
                // Cannot matter: closing the socket removes it too.
                let _ = self.poller.remove(&upstream.socket);
            }
        }
        let upstreams = &self.upstreams;
        self.rebinds
            .retain(|(_, client)| upstreams.contains_key(client));
    }
}

/// Creates the upstream socket of a client.
fn upstream(to: SocketAddr, poller: &Poller, client: u64) -> io::Result<Socket> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = Socket::bind(SocketAddr::new(any, 0), &Options::default())?;
    poller.add(&socket, client)?;
    Ok(socket)
}
