//! One turn of the event loop.
//!
//! The shell around an [`Engine`]: responsible for the socket, the buffers, commands from other threads, and the time to wait.
//!
//! 1. If nothing is due: wait for a datagram, for space in the send buffer if datagrams are pending, for the next deadline,
//!    or for a command.
//! 2. Receive datagrams; forward those that belong to other workers.
//! 3. Pass on commands.
//! 4. Run the engine: timers and the application.
//! 5. Send datagrams.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use lastbyte_congestion::Time;
use lastbyte_engine::{Application, Engine, Status};
use lastbyte_quic::{
    connection::{NetworkPath, Transmit},
    endpoint::Endpoint,
};
use lastbyte_udp::{Batch, Ecn, Ready, SendError, Socket, Waiter, Wanted, sharpen_timers};

use super::{
    clock::Clock,
    command::{Command, Commands, Remote, command_channel},
    forward::{ForwardedQueue, Forwarder, Outcome},
    next_socket::NextSocket,
    relay::{Predecessor, Relayed},
    statistics::Statistics,
};

/// The most work that one turn does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Receiving system calls, of up to 512 KiB each. Default: 2. More delay the acknowledgments of what was received.
    pub receives: usize,
    /// Sending system calls, of up to 64 KB each. Default: 64.
    pub sends: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            receives: 2,
            sends: 64,
        }
    }
}

/// Interval at which a worker whose application has finished checks whether an earlier process still has connections.
const PREDECESSOR_INTERVAL: Duration = Duration::from_millis(50);

/// Size of the send buffer, in bytes: one system call with segmentation offload.
const SEND_BUFFER_LEN: usize = 65_000;

/// An event loop over one socket and one engine.
pub struct Worker<A: Application> {
    socket: Socket,
    /// The socket that the application replaced: connections that have not moved use it.
    previous: Option<Socket>,
    next_socket: NextSocket,
    waiter: Waiter,
    engine: Engine<A>,
    clock: Clock,
    limits: Limits,
    statistics: Statistics,
    /// `None` only while its datagrams are processed.
    batch: Option<Batch>,
    buffer: Box<[u8]>,
    /// Datagrams in the buffer that the kernel has not accepted yet, from this offset on.
    waiting: Option<(Transmit, usize)>,
    forwarder: Option<Forwarder>,
    queue: Option<ForwardedQueue>,
    commands: Option<Commands<A::Command>>,
    /// Whether this worker reads its socket, and not another process.
    is_receiving: bool,
    /// An earlier process that finishes its connections, until it has ended.
    predecessor: Option<Predecessor>,
}

/// The state without a wait: everything has to be tried.
const EVERYTHING: Ready = Ready {
    readable: true,
    writable: true,
    woken: true,
};

impl<A: Application> Worker<A> {
    /// Creates a worker that is not part of a pool.
    ///
    /// # Errors
    ///
    /// Returns the system's error if no file descriptor can be created.
    pub fn new(
        socket: Socket,
        endpoint: Endpoint<A::Data>,
        application: A,
        clock: Clock,
    ) -> io::Result<Self> {
        let waiter = Waiter::new()?;
        Ok(Self::with_waiter(
            socket,
            endpoint,
            application,
            clock,
            waiter,
        ))
    }

    /// Opens no file descriptor.
    pub(super) fn with_waiter(
        socket: Socket,
        endpoint: Endpoint<A::Data>,
        application: A,
        clock: Clock,
        waiter: Waiter,
    ) -> Self {
        let mut engine = Engine::new(endpoint, application);
        engine.set_wall_clock(clock.now(), Clock::wall_time());
        Self {
            socket,
            previous: None,
            next_socket: NextSocket::default(),
            waiter,
            engine,
            clock,
            limits: Limits::default(),
            statistics: Statistics::default(),
            batch: Some(Batch::new()),
            buffer: vec![0; SEND_BUFFER_LEN].into_boxed_slice(),
            waiting: None,
            forwarder: None,
            queue: None,
            commands: None,
            is_receiving: true,
            predecessor: None,
        }
    }

    /// Takes the sockets by which the application replaces the current one from this place.
    #[must_use]
    pub fn with_next_socket(mut self, next: NextSocket) -> Self {
        self.next_socket = next;
        self
    }

    /// Creates a channel for commands from other threads. It replaces the channel of an earlier call.
    pub fn remote(&mut self) -> Remote<A::Command> {
        let (remote, commands) = command_channel(&self.waiter);
        self.commands = Some(commands);
        remote
    }

    pub(super) fn in_pool(
        mut self,
        forwarder: Forwarder,
        queue: ForwardedQueue,
        commands: Commands<A::Command>,
        predecessor: Option<Predecessor>,
    ) -> Self {
        self.forwarder = Some(forwarder);
        self.queue = Some(queue);
        self.commands = Some(commands);
        self.predecessor = predecessor;
        self
    }

    /// The application.
    pub const fn application(&mut self) -> &mut A {
        self.engine.application()
    }

    /// The counters.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Runs turns until the application is [finished or stopped](Status) and all is sent ([`Engine::finish`]). A worker whose
    /// application is finished goes on while it passes on datagrams to an earlier process. It can be called again.
    ///
    /// # Errors
    ///
    /// Returns the system's error if receiving or waiting fails. Sending errors go to [`Application::on_send_error`].
    pub fn run(&mut self) -> io::Result<()> {
        let _ = sharpen_timers();
        self.engine.resume();
        let mut ready = EVERYTHING;
        loop {
            self.statistics.turns += 1;
            let more_to_receive = ready.readable && self.receive()?;
            if ready.woken {
                self.take_forwarded();
                self.take_commands();
            }
            let now = self.clock.now();
            self.engine.run(now);
            if let Some(socket) = self.next_socket.take() {
                self.previous = Some(std::mem::replace(&mut self.socket, socket));
            }
            self.send(now);
            let next = self.engine.finish(now, self.waiting.is_some());
            let is_between = next.status == Status::Finished && self.has_predecessor();
            if next.status != Status::Running && !is_between {
                // Without connections nothing is done with them, and further ones count as dropped where they are sent.
                while let Some(_unused) = self.queue.as_ref().and_then(ForwardedQueue::next) {
                    self.statistics.forwards_received += 1;
                }
                self.queue = None;
                return Ok(());
            }
            let check = is_between.then_some(now + PREDECESSOR_INTERVAL);
            let deadline = next.deadline.into_iter().chain(check).min();
            let idle_from = self.clock.now();
            let is_due = deadline.is_some_and(|deadline| deadline <= idle_from);
            if is_due || more_to_receive {
                // There is work: whether more was received is what the next turn asks the socket anyway.
                ready = EVERYTHING;
                continue;
            }
            let timeout = deadline.map(|deadline| deadline.since(idle_from));
            let [wanted, of_previous] = self.wanted();
            let previous = self.previous.as_ref();
            let previous = previous.map(|socket| (socket, of_previous));
            ready = self
                .waiter
                .wait_both((&self.socket, wanted), previous, timeout)?;
            self.statistics.idle += self.clock.now().since(idle_from);
        }
    }

    /// The events that the current socket and the previous one are polled for: where datagrams wait, room in the socket that
    /// they leave from.
    fn wanted(&self) -> [Wanted; 2] {
        let full = self.waiting.as_ref();
        let full = full.map(|(transmit, _)| self.socket_of(&transmit.path));
        [Some(&self.socket), self.previous.as_ref()].map(|socket| Wanted {
            read: self.is_receiving,
            write: full.is_some_and(|full| socket.is_some_and(|socket| std::ptr::eq(socket, full))),
        })
    }

    /// The socket that datagrams on this path leave from.
    fn socket_of(&self, path: &NetworkPath) -> &Socket {
        let port = path.local.port();
        let previous = self.previous.as_ref();
        let previous = previous.filter(|socket| socket.local_address().port() == port);
        previous.unwrap_or(&self.socket)
    }

    /// Whether an earlier process still has connections, whose datagrams reach it through this one.
    fn has_predecessor(&self) -> bool {
        self.predecessor.as_ref().is_some_and(Predecessor::is_open)
    }

    /// Receives datagrams. Returns whether there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        if !self.is_receiving {
            return Ok(false);
        }
        let has_more = self.receive_from(false)?;
        Ok(has_more | (self.previous.is_some() && self.receive_from(true)?))
    }

    /// Receives datagrams from one of the sockets.
    fn receive_from(&mut self, is_previous: bool) -> io::Result<bool> {
        for _ in 0..self.limits.receives {
            let previous = self.previous.as_ref().filter(|_| is_previous);
            let socket = previous.unwrap_or(&self.socket);
            let address = socket.local_address();
            let mut batch = self.batch.take().unwrap_or_default();
            let filled = socket.receive(&mut batch)?;
            self.statistics.receives += u64::from(filled > 0);
            let now = self.clock.now();
            for received in batch.received() {
                let path = NetworkPath {
                    local: local(address, received.local),
                    remote: received.remote,
                };
                let ecn = received.ecn;
                for datagram in received.bytes.chunks_mut(received.segment_len) {
                    self.statistics.datagrams_received += 1;
                    let forwarder = self.forwarder.as_ref();
                    match forwarder.map(|forwarder| forwarder.forward(&path, ecn, datagram)) {
                        None | Some(Outcome::Kept) => self.take(now, path, ecn, datagram),
                        Some(Outcome::Queued) => self.statistics.forwarded += 1,
                        Some(Outcome::Dropped) => {
                            self.statistics.forwarded += 1;
                            self.statistics.forwards_dropped += 1;
                        }
                    }
                }
            }
            let is_full = filled == batch.capacity();
            self.batch = Some(batch);
            if !is_full {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Processes a datagram of one of this worker's connections, or of an earlier process.
    fn take(&mut self, now: Time, path: NetworkPath, ecn: Ecn, bytes: &mut [u8]) {
        if let Some(predecessor) = &self.predecessor
            && self.engine.endpoint().is_foreign(&path, bytes)
        {
            match predecessor.forward(&path, ecn, bytes) {
                Relayed::Sent => {
                    self.statistics.relayed += 1;
                    return;
                }
                Relayed::Dropped => {
                    self.statistics.relayed += 1;
                    self.statistics.relays_dropped += 1;
                    return;
                }
                // It has ended, and its connections with it.
                Relayed::Closed => self.predecessor = None,
            }
        }
        self.engine.receive(now, path, ecn, bytes);
    }

    fn take_forwarded(&mut self) {
        let now = self.clock.now();
        while let Some(mut datagram) = self.queue.as_ref().and_then(ForwardedQueue::next) {
            self.statistics.forwards_received += 1;
            self.take(now, datagram.path, datagram.ecn, &mut datagram.bytes);
        }
    }

    fn take_commands(&mut self) {
        let now = self.clock.now();
        while let Some(command) = self.commands.as_ref().and_then(Commands::next) {
            match command {
                Command::Application(command) => self.engine.command(now, command),
                Command::Pause(paused) => {
                    self.is_receiving = false;
                    paused(());
                }
                Command::Resume => self.is_receiving = true,
                Command::Measure(measured) => measured(self.statistics),
            }
        }
    }

    /// Sends datagrams, as many as a turn may.
    fn send(&mut self, now: Time) {
        if let Some((transmit, from)) = self.waiting.take()
            && !self.send_from(now, transmit, from)
        {
            return;
        }
        for _ in 0..self.limits.sends {
            let Some(transmit) = self.engine.poll_transmit(now, &mut self.buffer) else {
                return;
            };
            if !self.send_from(now, transmit, 0) {
                return;
            }
        }
    }

    /// Sends what is in the buffer from this offset on. Returns whether more can be sent.
    fn send_from(&mut self, now: Time, transmit: Transmit, from: usize) -> bool {
        let bytes = &self.buffer[from..transmit.len];
        let message = lastbyte_udp::Transmit {
            remote: transmit.path.remote,
            local: Some(transmit.path.local.ip()),
            ecn: transmit.ecn,
            bytes,
            segment_len: transmit.segment_len,
        };
        let datagrams = bytes.len().div_ceil(transmit.segment_len.max(1)) as u64;
        let socket = self.socket_of(&transmit.path);
        #[cfg(not(test))]
        let sent = socket.send(&message);
        #[cfg(test)]
        let sent = tests::send(socket, &message);
        match sent {
            Ok(()) => {
                self.statistics.sends += 1;
                self.statistics.datagrams_sent += datagrams;
            }
            Err(SendError::Full { sent }) => {
                self.statistics.sends_blocked += 1;
                self.statistics.datagrams_sent += (sent / transmit.segment_len.max(1)) as u64;
                self.waiting = Some((transmit, from + sent));
                return false;
            }
            Err(SendError::TooLarge) => self.statistics.too_large += datagrams,
            // Loss recovery and congestion control react to it as to a loss on the path.
            Err(SendError::Dropped) => self.statistics.datagrams_dropped += datagrams,
            Err(SendError::Failed(error)) => {
                self.statistics.send_errors += 1;
                self.engine.on_send_error(now, &transmit.path, &error);
            }
        }
        true
    }
}

impl<A: Application> fmt::Debug for Worker<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("socket", &self.socket)
            .field("statistics", &self.statistics)
            .finish_non_exhaustive()
    }
}

/// The local address that a datagram was received on, by a socket with this address.
fn local(mut socket: SocketAddr, address: Option<IpAddr>) -> SocketAddr {
    if let Some(address) = address {
        socket.set_ip(address);
    }
    socket
}

#[cfg(test)]
mod tests;
