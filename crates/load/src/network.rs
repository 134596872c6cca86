//! Connections over model paths: a shell around an [`Engine`] in which each connection has a socket, and a path with links of
//! its own.
//!
//! Owns the sockets. [`Paths`] decides what happens to a datagram; the engine decides what is sent.
//!
//! 1. Deliver the datagrams that have left their links: to the server, or to the engine.
//! 2. Run the engine.
//! 3. Put the datagrams of the engine into their links.
//! 4. Wait for a datagram of the server, or for the next deadline; put the received datagrams into the links.

use core::time::Duration;
use std::{collections::BTreeMap, io, net::SocketAddr};

use lastbyte_driver::{Application, Clock, Engine, Status};
use lastbyte_emulate::{
    PathModel, Plan, Report,
    paths::{Arrival, Direction, Paths},
};
use lastbyte_link::Config;
use lastbyte_quic::{Time, connection::NetworkPath};
use lastbyte_udp::{Batch, Options, Poller, SendError, Socket, Transmit, sharpen_timers};

/// The most bytes inside the links of all connections of a thread, in both directions.
const INSIDE_MAX: u64 = 1 << 30;
/// The fewest that a direction of a path may hold.
const INSIDE_MIN: u64 = 1 << 20;
/// The maximum number of batches received from a socket before others have their turn.
const BATCHES: usize = 4;
/// The maximum number of transmits of a turn.
const SENDS: usize = 64;
/// How long the last packets of the connections may take to the server after the end of the run.
const DRAIN: Duration = Duration::from_secs(1);
/// The size of the send buffer in bytes.
const SEND_BUFFER_LEN: usize = 65_000;

/// The connections of a thread, each with a socket and a path.
pub(crate) struct ModelPaths {
    sockets: Vec<Socket>,
    by_address: BTreeMap<SocketAddr, u64>,
    paths: Paths<u64>,
    poller: Poller,
    remote: SocketAddr,
    /// UDP datagrams sent to the server, and received from it.
    pub(crate) datagrams: (u64, u64),
}

impl ModelPaths {
    /// Opens a socket for each path. The paths' time starts now.
    pub(crate) fn new(
        now: Time,
        local: SocketAddr,
        remote: SocketAddr,
        models: &[PathModel],
    ) -> io::Result<Self> {
        let directions = 2 * models.len().max(1) as u64;
        let plan = Plan {
            inside_max: (INSIDE_MAX / directions).max(INSIDE_MIN),
            ..Plan::new(Config::default(), Config::default())
        };
        let mut all = Self {
            sockets: Vec::with_capacity(models.len()),
            by_address: BTreeMap::new(),
            paths: Paths::new(plan).map_err(io::Error::other)?,
            poller: Poller::new()?,
            remote,
            datagrams: (0, 0),
        };
        for (index, model) in (0..).zip(models) {
            let socket = Socket::bind(local, &Options::default())?;
            let number = all.paths.add(now, index, model).map_err(io::Error::other)?;
            all.poller.add(&socket, number)?;
            all.by_address.insert(socket.local_address(), number);
            all.sockets.push(socket);
        }
        Ok(all)
    }

    /// The local address of each connection.
    pub(crate) fn locals(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(Socket::local_address).collect()
    }

    /// The counters of the links.
    pub(crate) fn report(&self) -> Report {
        self.paths.report()
    }

    /// Sends a datagram that has left its link to the server.
    fn send(&mut self, arrival: &Arrival<u64>) -> Result<(), io::Error> {
        let Some(socket) = self.socket(arrival.client) else {
            return Ok(());
        };
        let sent = socket.send(&Transmit {
            remote: self.remote,
            local: None,
            ecn: arrival.ecn,
            bytes: &arrival.bytes,
            segment_len: arrival.bytes.len(),
        });
        match sent {
            Ok(()) => self.datagrams.0 += 1,
            Err(SendError::Failed(error)) => {
                self.paths.unsent();
                return Err(error);
            }
            Err(_) => self.paths.unsent(),
        }
        Ok(())
    }

    fn socket(&self, number: u64) -> Option<&Socket> {
        self.sockets.get(usize::try_from(number).ok()?)
    }

    /// Puts datagrams of the server into the links.
    fn receive(&mut self, clock: &Clock, batch: &mut Batch, number: u64) -> io::Result<()> {
        for _ in 0..BATCHES {
            let Some(socket) = self.socket(number) else {
                return Ok(());
            };
            let filled = socket.receive(batch)?;
            if filled == 0 {
                return Ok(());
            }
            let now = clock.now();
            for received in batch.received() {
                if received.remote != self.remote {
                    continue;
                }
                let ecn = received.ecn;
                for datagram in received.bytes.chunks(received.segment_len) {
                    self.datagrams.1 += 1;
                    self.paths.send(now, number, Direction::Down, ecn, datagram);
                }
            }
            if filled < batch.capacity() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Runs turns until the engine is done, and its last packets have left their links.
pub(crate) fn run<A: Application>(
    network: &mut ModelPaths,
    engine: &mut Engine<A>,
    clock: &Clock,
) -> io::Result<()> {
    let _ = sharpen_timers();
    engine.set_wall_clock(clock.now(), Clock::wall_time());
    let mut batch = Batch::new();
    let mut buffer = vec![0; SEND_BUFFER_LEN].into_boxed_slice();
    let mut ready = Vec::new();
    // Set when the engine is done: the last packets are still inside the links.
    let mut until = None;
    loop {
        deliver(network, engine, clock);
        let now = clock.now();
        engine.run(now);
        transmit(network, engine, now, &mut buffer);
        let next = engine.finish(now, false);
        if next.status != Status::Running {
            until.get_or_insert(now + DRAIN);
        }
        if until.is_some_and(|until| now >= until || network.paths.deadline().is_none()) {
            return Ok(());
        }
        let deadlines = [next.deadline, network.paths.deadline(), until];
        let deadline = deadlines.into_iter().flatten().min();
        let timeout = deadline.map(|deadline| deadline.since(clock.now()));
        network.poller.wait(timeout, &mut ready)?;
        for number in &ready {
            network.receive(clock, &mut batch, *number)?;
        }
    }
}

/// Delivers all datagrams that have left their links. Reads the clock for each, because a burst takes time.
fn deliver<A: Application>(network: &mut ModelPaths, engine: &mut Engine<A>, clock: &Clock) {
    while let Some(mut arrival) = network.paths.poll(clock.now()) {
        let now = clock.now();
        let Some(local) = network.socket(arrival.client).map(Socket::local_address) else {
            continue;
        };
        let path = NetworkPath {
            local,
            remote: network.remote,
        };
        if arrival.direction == Direction::Up {
            if let Err(error) = network.send(&arrival) {
                engine.on_send_error(now, &path, &error);
            }
            continue;
        }
        engine.receive(now, path, arrival.ecn, &mut arrival.bytes);
        network.paths.recycle(arrival.bytes);
    }
}

/// Puts the datagrams of the engine into their links, as many as a turn may.
fn transmit<A: Application>(
    network: &mut ModelPaths,
    engine: &mut Engine<A>,
    now: Time,
    buffer: &mut [u8],
) {
    for _ in 0..SENDS {
        let Some(transmit) = engine.poll_transmit(now, buffer) else {
            return;
        };
        let Some(number) = network.by_address.get(&transmit.path.local).copied() else {
            continue;
        };
        let ecn = transmit.ecn;
        for datagram in buffer[..transmit.len].chunks(transmit.segment_len.max(1)) {
            let up = Direction::Up;
            network.paths.send(now, number, up, ecn, datagram);
        }
    }
}
