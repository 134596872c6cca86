//! The sockets and threads of a balancer.
//!
//! This module owns the listening sockets, one upstream socket per flow, the clock, and the published [`Table`]. Where a
//! datagram goes is decided by [`Table`] and [`Flows`].
//!
//! | what is kept | at most | until |
//! |---|---|---|
//! | an upstream socket, also known to the poller | one for each flow | its flow expires or is displaced: closing it removes it from the poller |
//! | an event of the poller for a flow | those of one wait | the turn ends; if the flow has ended meanwhile, nothing is received |
//! | counters of a server | [`SERVERS_MAX`](crate::fleet::SERVERS_MAX) | a table without the server is published |
//! | datagrams | one batch, in buffers of sockets otherwise | they are sent or dropped in the same turn |
//!
//! # Decisions
//!
//! - *Threads share no flows*: the kernel distributes client addresses to the sockets of a group, and each thread has the
//!   flows of its addresses. After a change of its address, a client may reach another thread, which routes it to the same
//!   server by its connection ID.
//! - *Datagrams are not copied*: those that arrived together, by GRO, leave in one system call from the same buffer, by
//!   GSO, if they go to the same server. Nothing is allocated per datagram.
//! - *Nothing waits*: a datagram that cannot be sent at once is dropped and counted, as on a congested path.
//! - *Each thread sends Retry packets by itself*, without state: what it needs is in the token.
//! - *Answers are accepted only from addresses of servers*: upstream ports are reachable from elsewhere, and other
//!   datagrams must not reach clients.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "datagrams are forwarded in real time"
)]

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use lastbyte_quic::{
    WallTime,
    endpoint::{OffloadDecision, RetryOffload},
};
use lastbyte_udp::{
    Batch, Ecn, Options, Poller, Received, Socket, Steering, Transmit, Waker, bind_group,
};
use lastbyte_units::Time;
use lastbyte_wire::packet::{InitialHeader, Invariant};

use crate::{
    counts::{Counter, Counts},
    flows::{FlowIndex, FlowKey, FlowLimits, Flows, Opening, Refused},
    table::{Route, ServerIndex, Table},
};

#[cfg(test)]
mod tests;

/// The configuration of a forwarder.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The address to which clients send. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The number of threads, at least 1.
    pub workers: usize,
    /// The limits of all threads together.
    pub limits: FlowLimits,
    /// The key of the flow tables, and the seed of Retry packets: random bytes.
    pub key: [u8; 16],
    /// When clients have to validate their address, if the table has keys for Retry packets.
    pub retry: Retry,
}

/// When clients have to validate their address with a Retry (RFC 9000 §8.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Always.
    Always,
    /// If there are many new clients ([`Flows::is_under_load`]).
    UnderLoad,
    /// Never.
    Never,
}

/// A running forwarder. It stops when it is dropped.
#[derive(Debug)]
pub struct Forwarder {
    address: SocketAddr,
    shared: Arc<Shared>,
    wakers: Vec<Waker>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

#[derive(Debug)]
struct Shared {
    published: Mutex<Arc<Published>>,
    /// Incremented after each publication.
    version: AtomicU64,
    is_over: AtomicBool,
    /// By thread, so that they do not write to the same memory.
    counts: Vec<Counts>,
}

/// A table, and the datagrams sent to each of its servers.
#[derive(Debug)]
struct Published {
    table: Arc<Table>,
    sent: Vec<Arc<AtomicU64>>,
}

impl Forwarder {
    /// Starts a forwarder.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the address cannot be bound, or no thread or descriptor is available.
    pub fn start(settings: &Settings, table: Arc<Table>) -> io::Result<Self> {
        let workers = settings.workers.max(1);
        let (listeners, _) = bind_group(
            settings.listen,
            workers,
            &Options::default(),
            Steering::ByAddress,
        )?;
        let address = listeners
            .first()
            .map_or(settings.listen, Socket::local_address);
        let shared = Arc::new(Shared::new(table, workers));
        let mut forwarder = Self {
            address,
            shared: Arc::clone(&shared),
            wakers: Vec::new(),
            threads: Vec::new(),
        };
        let limits = FlowLimits {
            flows: settings.limits.flows.div_ceil(workers),
            new_per_second: settings.limits.new_per_second.div_ceil(workers as u32),
            ..settings.limits
        };
        for (number, listener) in listeners.into_iter().enumerate() {
            let settings = Settings {
                limits,
                ..*settings
            };
            let mut worker = Worker::new(number, listener, &settings, &shared)?;
            forwarder.wakers.push(worker.poller.waker());
            let thread = thread::Builder::new().name(format!("lb-{number}"));
            forwarder.threads.push(thread.spawn(move || worker.run())?);
        }
        Ok(forwarder)
    }

    /// The address it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the table. Flows stay open.
    pub fn publish(&self, table: Arc<Table>) {
        let mut published = self.shared.lock();
        let before: BTreeMap<u64, &Arc<AtomicU64>> = published
            .table
            .servers()
            .iter()
            .map(|server| server.id)
            .zip(&published.sent)
            .collect();
        let sent = table.servers().iter().map(|server| {
            let counted = before.get(&server.id);
            counted.map_or_else(Arc::default, |sent| Arc::clone(sent))
        });
        let sent = sent.collect();
        *published = Arc::new(Published { table, sent });
        drop(published);
        self.shared.version.fetch_add(1, Ordering::Release);
    }

    /// The current table, and the number of datagrams sent to each of its servers.
    pub fn sent(&self) -> (Arc<Table>, Vec<u64>) {
        let published = self.shared.published();
        let sent = published.sent.iter();
        let sent = sent.map(|sent| sent.load(Ordering::Relaxed)).collect();
        (Arc::clone(&published.table), sent)
    }

    /// The sum of a counter over all threads.
    pub fn count(&self, counter: Counter) -> u64 {
        let counts = self.shared.counts.iter();
        counts.map(|counts| counts.get(counter)).sum()
    }

    /// Whether a thread ended because of an error, which [`stop`](Self::stop) returns.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops all threads.
    ///
    /// # Errors
    ///
    /// Returns the error that ended a thread.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for waker in &self.wakers {
            waker.wake();
        }
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            let ended = ended.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            result = result.and(ended);
        }
        result
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // The caller is not interested.
        let _ = self.end();
    }
}

impl Shared {
    fn new(table: Arc<Table>, workers: usize) -> Self {
        let sent = table.servers().iter().map(|_| Arc::default()).collect();
        Self {
            published: Mutex::new(Arc::new(Published { table, sent })),
            version: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            counts: (0..workers).map(|_| Counts::default()).collect(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Published>> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn published(&self) -> Arc<Published> {
        Arc::clone(&self.lock())
    }
}

/// The poller key of the listener. Upstream sockets use the index of their flow.
const LISTENER: u64 = u64::MAX - 1;
/// The interval at which inactive flows are removed.
const SWEEP: Duration = Duration::from_secs(1);
/// Maximum batches from one socket before others are handled.
const BATCHES: usize = 4;
/// The minimum size of a datagram with a client's first packet (RFC 9000 §14.1).
const INITIAL_LEN_MIN: usize = 1200;

struct Worker {
    number: usize,
    listener: Socket,
    poller: Poller,
    flows: Flows<Socket>,
    current: Arc<Published>,
    version: u64,
    shared: Arc<Shared>,
    start: Instant,
    /// When inactive flows are removed next.
    sweep: Time,
    batch: Option<Batch>,
    ready: Vec<u64>,
    settings: Settings,
    /// With the keys of the current table.
    retry: Option<RetryOffload>,
}

/// Consecutive datagrams of a buffer that go to the same server.
#[derive(Clone, Copy)]
struct Run {
    from: usize,
    to: usize,
    server: ServerIndex,
}

impl Worker {
    fn new(
        number: usize,
        listener: Socket,
        settings: &Settings,
        shared: &Arc<Shared>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER)?;
        let mut worker = Self {
            number,
            listener,
            poller,
            flows: Flows::new(settings.limits, settings.key),
            current: shared.published(),
            version: 0,
            shared: Arc::clone(shared),
            start: Instant::now(),
            sweep: Time::ZERO,
            batch: None,
            ready: Vec::new(),
            settings: *settings,
            retry: None,
        };
        worker.set_retry_keys();
        Ok(worker)
    }

    fn set_retry_keys(&mut self) {
        let mut seed = [0; 32];
        let (key, rest) = seed.split_at_mut(16);
        let (number, version) = rest.split_at_mut(8);
        key.copy_from_slice(&self.settings.key);
        number.copy_from_slice(&(self.number as u64).to_be_bytes());
        version.copy_from_slice(&self.version.to_be_bytes());
        let sends_retries = self.settings.retry != Retry::Never;
        self.retry = sends_retries
            .then(|| RetryOffload::new(self.current.table.retry_secrets(), seed))
            .flatten();
    }

    fn now(&self) -> Time {
        // A time of its own, far enough from zero to subtract from.
        Time::ZERO + self.start.elapsed() + Duration::from_secs(60)
    }

    fn count(&self, counter: Counter, count: usize) {
        if let Some(counts) = self.shared.counts.get(self.number) {
            counts.add(counter, count as u64);
        }
    }

    fn run(&mut self) -> io::Result<()> {
        while !self.shared.is_over.load(Ordering::Relaxed) {
            self.turn()?;
        }
        Ok(())
    }

    /// Waits, and handles what arrived.
    fn turn(&mut self) -> io::Result<()> {
        let wait = self.sweep.since(self.now());
        self.poller.wait(Some(wait), &mut self.ready)?;
        let now = self.now();
        if now >= self.sweep {
            let mut expired = 0;
            self.flows.expire(now, |_| expired += 1);
            self.count(Counter::FlowsExpired, expired);
            self.sweep = now + SWEEP;
        }
        let version = self.shared.version.load(Ordering::Acquire);
        if version != self.version {
            self.current = self.shared.published();
            self.version = version;
            self.set_retry_keys();
        }
        // Both are lent to this turn.
        let ready = std::mem::take(&mut self.ready);
        let mut batch = self.batch.take().unwrap_or_default();
        for key in &ready {
            if *key == LISTENER {
                self.receive_from_clients(now, &mut batch)?;
            } else {
                self.receive_from_server(now, *key as usize, &mut batch);
            }
        }
        (self.ready, self.batch) = (ready, Some(batch));
        Ok(())
    }

    fn receive_from_clients(&mut self, now: Time, batch: &mut Batch) -> io::Result<()> {
        for _ in 0..BATCHES {
            let filled = self.listener.receive(batch)?;
            for received in batch.received() {
                self.forward_to_servers(now, &received);
            }
            if filled < batch.capacity() {
                break;
            }
        }
        Ok(())
    }

    /// Forwards the datagrams of a buffer, which one client sent.
    fn forward_to_servers(&mut self, now: Time, received: &Received<'_>) {
        let (bytes, segment_len) = (&*received.bytes, received.segment_len);
        let key = FlowKey {
            client: received.remote,
            local: received.local,
        };
        self.count(Counter::FromClients, bytes.len().div_ceil(segment_len));
        self.count(Counter::FromClientsBytes, bytes.len());
        let mut flow = self.flows.find(&key);
        let mut run: Option<Run> = None;
        // The previous datagram, its counter, and how many datagrams after it are not counted yet.
        let mut previous: Option<(&[u8], Counter, usize)> = None;
        for (index, datagram) in bytes.chunks(segment_len).enumerate() {
            let (from, to) = (index * segment_len, index * segment_len + datagram.len());
            if let (Some(run), Some((earlier, _, uncounted))) = (&mut run, &mut previous)
                && self.current.table.is_same_destination(earlier, datagram)
            {
                run.to = to;
                *uncounted += 1;
                continue;
            }
            if let Some((_, counter, uncounted)) = previous {
                self.count(counter, uncounted);
            }
            let chosen = self.choose(now, &key, &mut flow, datagram);
            previous = chosen.map(|(_, counter)| (datagram, counter, 0));
            match (&mut run, chosen) {
                (Some(run), Some((server, _))) if run.server == server => run.to = to,
                (_, chosen) => {
                    let next = chosen.map(|(server, _)| Run { from, to, server });
                    if let Some(run) = std::mem::replace(&mut run, next) {
                        self.send_run(now, flow, received, run);
                    }
                }
            }
        }
        if let Some((_, counter, uncounted)) = previous {
            self.count(counter, uncounted);
        }
        if let Some(run) = run {
            self.send_run(now, flow, received, run);
        }
    }

    /// The server of a datagram, which is counted, and the rule that chose it. Opens a flow if there is none.
    fn choose(
        &mut self,
        now: Time,
        key: &FlowKey,
        flow: &mut Option<FlowIndex>,
        datagram: &[u8],
    ) -> Option<(ServerIndex, Counter)> {
        let published = Arc::clone(&self.current);
        let table = &published.table;
        let Some(route) = table.route(datagram) else {
            self.count(Counter::Malformed, 1);
            return None;
        };
        let is_validated = self.is_validated(now, key, *flow, datagram)?;
        let mut id_hash = None;
        let (server, counter) = match route {
            Route::ConnectionId(server) => (server, Counter::ByConnectionId),
            Route::Hash {
                is_long,
                destination,
            } => {
                if flow.is_none() && is_long && datagram.len() < INITIAL_LEN_MIN {
                    self.count(Counter::Malformed, 1);
                    return None;
                }
                let hash = table.id_hash(destination);
                let remembered = flow.and_then(|flow| self.flows.unroutable(flow, hash));
                if let Some(server) = remembered.and_then(|id| table.by_server_id(id)) {
                    (server, Counter::ByFlow)
                } else {
                    let listener = self.listener.local_address();
                    let ip = key.local.unwrap_or(listener.ip());
                    let local = SocketAddr::new(ip, listener.port());
                    let Some(server) = table.by_addresses(key.client, local) else {
                        self.count(Counter::NoServer, 1);
                        return None;
                    };
                    id_hash = Some(hash);
                    (server, Counter::ByHash)
                }
            }
        };
        let index = if let Some(index) = *flow {
            index
        } else {
            let is_initial =
                datagram.len() >= INITIAL_LEN_MIN && InitialHeader::decode(datagram).is_some();
            let opening = match counter {
                _ if is_validated => Opening::Validated,
                _ if is_initial => Opening::Initial,
                Counter::ByConnectionId => Opening::Moved,
                _ if self.is_token_due(datagram) => {
                    self.count(Counter::InvalidToken, 1);
                    return None;
                }
                _ => Opening::Other,
            };
            self.open(now, *key, opening, table)?
        };
        *flow = Some(index);
        if is_validated {
            self.flows.set_proven(now, index);
        }
        if let (Some(hash), Some(server)) = (id_hash, table.server(server)) {
            self.flows.set_unroutable(index, hash, server.id);
        }
        self.count(counter, 1);
        Some((server, counter))
    }

    /// Whether a packet of no known connection is dropped, because its client has to begin with a token. Servers answer packets
    /// of unknown versions with Version Negotiation, and those have no tokens.
    fn is_token_due(&self, datagram: &[u8]) -> bool {
        let is_unknown_version = matches!(Invariant::decode(datagram), Ok(Invariant::Long(long)) if long.version.known().is_none());
        self.settings.retry == Retry::Always && self.retry.is_some() && !is_unknown_version
    }

    /// Whether the token of a client's first packet validates its address; `None` if the packet is not to be forwarded: then
    /// it is counted, and may have been answered with a Retry.
    fn is_validated(
        &mut self,
        now: Time,
        key: &FlowKey,
        flow: Option<FlowIndex>,
        datagram: &[u8],
    ) -> Option<bool> {
        let is_required = self.settings.retry == Retry::Always || self.flows.is_under_load(now);
        let Some(retry) = self.retry.as_mut().filter(|_| is_required) else {
            return Some(false);
        };
        let Ok(Invariant::Long(long)) = Invariant::decode(datagram) else {
            return Some(false);
        };
        let is_known =
            |flow| self.flows.is_proven(flow) || self.flows.is_offered(flow, long.destination);
        if flow.is_some_and(is_known) {
            return Some(false);
        }
        let since_unix_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall_time = WallTime::from_unix(since_unix_epoch.unwrap_or_default());
        let mut buffer = [0; RetryOffload::RETRY_LEN_MAX];
        let len = match retry.decide(wall_time, key.client, datagram, &mut buffer) {
            OffloadDecision::NotInitial => return Some(false),
            OffloadDecision::Validated => {
                self.count(Counter::ValidTokens, 1);
                return Some(true);
            }
            OffloadDecision::Invalid => {
                self.count(Counter::InvalidToken, 1);
                return None;
            }
            OffloadDecision::Retry(len) => len,
        };
        let transmit = Transmit {
            remote: key.client,
            local: key.local,
            ecn: Ecn::NotEct,
            bytes: buffer.get(..len).unwrap_or_default(),
            segment_len: len,
        };
        let counter = match self.listener.send(&transmit) {
            Ok(()) => Counter::Retries,
            Err(_) => Counter::RetryFailed,
        };
        self.count(counter, 1);
        None
    }

    fn open(
        &mut self,
        now: Time,
        key: FlowKey,
        opening: Opening,
        table: &Table,
    ) -> Option<FlowIndex> {
        let is_v6 = table
            .servers()
            .iter()
            .any(|server| server.address.is_ipv6());
        let (poller, before) = (&self.poller, self.flows.len());
        let opened = self.flows.open(now, key, opening, |index| {
            let socket = upstream(is_v6).ok()?;
            poller.add(&socket, index as u64).ok()?;
            Some(socket)
        });
        match opened {
            Ok((index, displaced)) => {
                self.count(Counter::FlowsOpened, 1);
                self.count(Counter::FlowsDisplaced, displaced.iter().count());
                Some(index)
            }
            Err(Refused::Rate | Refused::Full) => {
                self.count(Counter::FlowLimit, 1);
                None
            }
            Err(Refused::Empty) => {
                self.count(Counter::NoSocket, 1);
                self.count(Counter::FlowsDisplaced, before - self.flows.len());
                None
            }
        }
    }

    fn send_run(&mut self, now: Time, flow: Option<FlowIndex>, received: &Received<'_>, run: Run) {
        let Some(bytes) = received.bytes.get(run.from..run.to) else {
            return;
        };
        let datagrams = bytes.len().div_ceil(received.segment_len);
        let server = self.current.table.server(run.server);
        let (Some(server), Some(flow)) = (server, flow) else {
            return;
        };
        let Some((_, socket)) = self.flows.get(flow) else {
            return;
        };
        let transmit = Transmit {
            remote: server.address,
            local: None,
            ecn: received.ecn,
            bytes,
            segment_len: received.segment_len,
        };
        if socket.send(&transmit).is_err() {
            self.count(Counter::UpstreamFailed, datagrams);
        } else if let Some(sent) = self.current.sent.get(run.server) {
            sent.fetch_add(datagrams as u64, Ordering::Relaxed);
        }
        let destination = match bytes.first() {
            Some(first) if first & 0x80 == 0 => bytes.get(1..),
            // Behind the version and the length.
            Some(_) => bytes.get(6..),
            None => None,
        };
        let destination = destination.unwrap_or_default();
        self.flows.on_client(now, flow, bytes.len(), destination);
    }

    fn receive_from_server(&mut self, now: Time, flow: FlowIndex, batch: &mut Batch) {
        for _ in 0..BATCHES {
            let Some((key, socket)) = self.flows.get(flow) else {
                // It ended after the poller reported it.
                return;
            };
            let key = *key;
            // An error concerns an earlier datagram.
            let filled = socket.receive(batch).unwrap_or(0);
            for received in batch.received() {
                self.forward_to_client(now, flow, &key, &received);
            }
            if filled < batch.capacity() {
                return;
            }
        }
    }

    fn forward_to_client(
        &mut self,
        now: Time,
        flow: FlowIndex,
        key: &FlowKey,
        received: &Received<'_>,
    ) {
        let (bytes, segment_len) = (&*received.bytes, received.segment_len);
        let datagrams = bytes.len().div_ceil(segment_len);
        self.count(Counter::FromServers, datagrams);
        self.count(Counter::FromServersBytes, bytes.len());
        if !self.current.table.has_address(received.remote) {
            self.count(Counter::Stray, datagrams);
            return;
        }
        let transmit = Transmit {
            remote: key.client,
            local: key.local,
            ecn: received.ecn,
            bytes,
            segment_len,
        };
        let counter = match self.listener.send(&transmit) {
            Ok(()) => Counter::ToClients,
            Err(_) => Counter::DownstreamFailed,
        };
        self.count(counter, datagrams);
        self.flows.on_server(now, flow, bytes.len(), bytes);
    }
}

/// Creates the upstream socket of a flow.
fn upstream(is_v6: bool) -> io::Result<Socket> {
    let any: IpAddr = if is_v6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    Socket::bind(SocketAddr::new(any, 0), &UPSTREAM)
}

/// 1 MiB per direction: there are many of these sockets.
const UPSTREAM: Options = Options {
    receive_buffer: 1 << 20,
    send_buffer: 1 << 20,
    dual_stack: true,
};
