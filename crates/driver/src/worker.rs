//! A turn of the loop.
//!
//! Owns: the order in which things happen, the buffers, and how long to wait. Never: knows what an application is about.
//!
//! 1. Wait: for a datagram, for room to send if something waits for that, for the next deadline, for another thread.
//! 2. Datagrams in; those of other workers are handed over.
//! 3. Timers.
//! 4. The application: connections with something new, commands, its own turn.
//! 5. Datagrams out.

use std::{fmt, io, net::IpAddr, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::EcnCodepoint,
    connection::{NetworkPath, Transmit},
    endpoint::{Endpoint, Handle, Route},
};
use lastbyte_udp::{Batch, Ecn, Ready, SendError, Socket, Waiter, sharpen_timers};

use super::{
    application::{Application, Datagram},
    clock::Clock,
    crew::{Commands, Remote, hotline},
    handover::{Handed, Inlet, Outlets},
};

/// How much one turn does at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// System calls that receive, of up to 512 KiB each. Default: 2. With more, senders wait longer for acknowledgments.
    pub receives: usize,
    /// System calls that send. Default: 64, of up to 64 KB each.
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

/// What a worker has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Turns of the loop.
    pub turns: u64,
    /// System calls that received something.
    pub receives: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// System calls that sent something, as long as the system takes all at once.
    pub sends: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Times that the kernel's buffer was full.
    pub sends_blocked: u64,
    /// Datagrams larger than the interface lets through, which probes for a larger size can be.
    pub too_large: u64,
    /// Calls that failed for another reason.
    pub send_errors: u64,
    /// Datagrams that came here and belong to another worker.
    pub handed_over: u64,
    /// Of those, the ones for which there was no room.
    pub handovers_lost: u64,
    /// Datagrams that other workers handed over to this one.
    pub taken_over: u64,
    /// How long the worker had nothing to do.
    pub idle: Duration,
}

/// As much as leaves in one system call.
const SEND_BUFFER_LEN: usize = 65_000;

/// One socket, one endpoint, one application.
pub struct Worker<A: Application> {
    socket: Socket,
    waiter: Waiter,
    endpoint: Endpoint,
    application: A,
    clock: Clock,
    limits: Limits,
    statistics: Statistics,
    /// `None` only while it is being read.
    batch: Option<Batch>,
    buffer: Box<[u8]>,
    /// What is in the buffer and did not leave yet, from this byte on.
    waiting: Option<(Transmit, usize)>,
    /// Connections with something new, each once, and which they are.
    touched: Vec<Handle>,
    is_touched: Vec<bool>,
    outlets: Option<Outlets>,
    inlet: Option<Inlet>,
    commands: Option<Commands<A::Command>>,
}

/// As at the start, when nobody has looked yet.
const EVERYTHING: Ready = Ready {
    readable: true,
    writable: true,
    woken: true,
};

impl<A: Application> Worker<A> {
    /// A worker by itself.
    ///
    /// # Errors
    ///
    /// There are no file descriptors left.
    pub fn new(
        socket: Socket,
        mut endpoint: Endpoint,
        application: A,
        clock: Clock,
    ) -> io::Result<Self> {
        endpoint.set_wall_clock(clock.now(), Clock::wall_time());
        Ok(Self {
            socket,
            waiter: Waiter::new()?,
            endpoint,
            application,
            clock,
            limits: Limits::default(),
            statistics: Statistics::default(),
            batch: Some(Batch::new()),
            buffer: vec![0; SEND_BUFFER_LEN].into_boxed_slice(),
            waiting: None,
            touched: Vec::new(),
            is_touched: Vec::new(),
            outlets: None,
            inlet: None,
            commands: None,
        })
    }

    /// Speaks to this worker from other threads, as long as it is not asked for another.
    pub fn remote(&mut self) -> Remote<A::Command> {
        let (remote, commands) = hotline(&self.waiter);
        self.commands = Some(commands);
        remote
    }

    pub(super) fn of_crew(
        mut self,
        waiter: Waiter,
        outlets: Outlets,
        inlet: Inlet,
        commands: Commands<A::Command>,
    ) -> Self {
        self.waiter = waiter;
        self.outlets = Some(outlets);
        self.inlet = Some(inlet);
        self.commands = Some(commands);
        self
    }

    /// The application.
    pub const fn application(&mut self) -> &mut A {
        &mut self.application
    }

    /// The endpoint.
    pub const fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The socket.
    #[must_use]
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// What was counted.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Takes turns until the application is done.
    ///
    /// # Errors
    ///
    /// The socket is broken.
    pub fn run(&mut self) -> io::Result<()> {
        let _ = sharpen_timers();
        let mut ready = EVERYTHING;
        loop {
            self.statistics.turns += 1;
            let more_to_receive = ready.readable && self.receive()?;
            if ready.woken {
                self.take_parcels();
                self.take_commands();
            }
            let now = self.clock.now();
            while let Some(handle) = self.endpoint.poll_timeout(now) {
                self.touch(handle);
            }
            self.attend(now);
            let turn = self.application.on_turn(now, &mut self.endpoint);
            self.attend(now);
            self.send(now);
            let mut has_closed = false;
            while let Some(closed) = self.endpoint.poll_closed() {
                has_closed = true;
                self.application.on_closed(now, closed);
            }
            if turn.is_done {
                return Ok(());
            }
            let deadline = [self.next_deadline(), turn.deadline]
                .into_iter()
                .flatten()
                .min();
            let wants_write = self.waiting.is_some();
            if has_closed || (more_to_receive && !wants_write) {
                // No need to ask, or the application may have been waiting for that.
                ready = EVERYTHING;
                continue;
            }
            let idle_from = self.clock.now();
            let timeout = deadline.map(|deadline| deadline.since(idle_from));
            let timeout = timeout.map(|timeout| {
                if more_to_receive {
                    Duration::ZERO
                } else {
                    timeout
                }
            });
            ready = self.waiter.wait(&self.socket, wants_write, timeout)?;
            self.statistics.idle += self.clock.now().since(idle_from);
        }
    }

    /// When the endpoint wants to be called; while something waits for the socket, nothing can be sent anyway.
    fn next_deadline(&self) -> Option<Time> {
        let deadline = self.endpoint.deadline();
        deadline.filter(|deadline| self.waiting.is_none() || *deadline > Time::ZERO)
    }

    /// Returns whether there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        for _ in 0..self.limits.receives {
            let mut batch = self.batch.take().unwrap_or_default();
            let filled = self.socket.receive(&mut batch)?;
            self.statistics.receives += u64::from(filled > 0);
            let now = self.clock.now();
            for received in batch.received() {
                let path = NetworkPath {
                    local: self.local(received.local),
                    remote: received.remote,
                };
                let ecn = codepoint(received.ecn);
                for datagram in received.bytes.chunks_mut(received.segment_len) {
                    self.statistics.datagrams_received += 1;
                    let outlets = self.outlets.as_ref();
                    match outlets.map(|outlets| outlets.hand_over(&path, ecn, datagram)) {
                        None | Some(Handed::Kept) => self.take(now, path, ecn, datagram),
                        Some(Handed::Over) => self.statistics.handed_over += 1,
                        Some(Handed::Lost) => {
                            self.statistics.handed_over += 1;
                            self.statistics.handovers_lost += 1;
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

    /// Our address that a datagram came to.
    fn local(&self, address: Option<IpAddr>) -> std::net::SocketAddr {
        let mut local = self.socket.local_address();
        if let Some(address) = address {
            local.set_ip(address);
        }
        local
    }

    /// A datagram of this worker's.
    fn take(&mut self, now: Time, path: NetworkPath, ecn: EcnCodepoint, bytes: &mut [u8]) {
        let (handle, is_new) = match self.endpoint.route(now, &path, bytes) {
            Route::Connection(handle) => (handle, false),
            Route::Accepted(handle) => (handle, true),
            Route::Reset(handle) => return self.touch(handle),
            Route::Answered(_) | Route::Kept | Route::Dropped(_) => return,
        };
        let Some(connection) = self.endpoint.connection(handle) else {
            return;
        };
        if is_new {
            self.application.on_accepted(now, handle, connection);
        }
        let datagram = Datagram { path, ecn, bytes };
        self.application
            .on_datagram(now, handle, connection, datagram);
        self.touch(handle);
    }

    fn take_parcels(&mut self) {
        let now = self.clock.now();
        while let Some(mut parcel) = self.inlet.as_ref().and_then(Inlet::next) {
            self.statistics.taken_over += 1;
            self.take(now, parcel.path, parcel.ecn, &mut parcel.bytes);
        }
    }

    fn take_commands(&mut self) {
        let now = self.clock.now();
        self.application.on_statistics(&self.statistics);
        while let Some(command) = self.commands.as_ref().and_then(Commands::next) {
            self.application
                .on_command(now, &mut self.endpoint, command);
        }
    }

    /// Notes that a connection may have events.
    fn touch(&mut self, handle: Handle) {
        let index = handle.index() as usize;
        if self.is_touched.len() <= index {
            self.is_touched.resize(index + 1, false);
        }
        if let Some(is_touched) = self.is_touched.get_mut(index)
            && !std::mem::replace(is_touched, true)
        {
            self.touched.push(handle);
        }
    }

    /// Shows the application the connections that may have events.
    fn attend(&mut self, now: Time) {
        for handle in self.touched.drain(..) {
            if let Some(is_touched) = self.is_touched.get_mut(handle.index() as usize) {
                *is_touched = false;
            }
            if let Some(connection) = self.endpoint.connection(handle) {
                self.application.on_ready(now, handle, connection);
            }
        }
    }

    fn send(&mut self, now: Time) {
        if let Some((transmit, from)) = self.waiting.take()
            && !self.send_from(now, transmit, from)
        {
            return;
        }
        for _ in 0..self.limits.sends {
            let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) else {
                return;
            };
            if !self.send_from(now, transmit, 0) {
                return;
            }
        }
    }

    /// Returns whether more can be sent.
    fn send_from(&mut self, now: Time, transmit: Transmit, from: usize) -> bool {
        let bytes = &self.buffer[from..transmit.len];
        let message = lastbyte_udp::Transmit {
            remote: transmit.path.remote,
            local: Some(transmit.path.local.ip()),
            ecn: mark(transmit.ecn),
            bytes,
            segment_len: transmit.segment_len,
        };
        let datagrams = bytes.len().div_ceil(transmit.segment_len.max(1)) as u64;
        match self.socket.send(&message) {
            Ok(()) => {
                self.statistics.sends += 1;
                self.statistics.datagrams_sent += datagrams;
            }
            Err(SendError::Full { sent }) => {
                self.statistics.sends_blocked += 1;
                self.waiting = Some((transmit, from + sent));
                return false;
            }
            Err(SendError::TooLarge) => self.statistics.too_large += datagrams,
            Err(SendError::Failed(error)) => {
                self.statistics.send_errors += 1;
                self.application.on_send_error(now, &transmit.path, &error);
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

const fn codepoint(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::NotEct => EcnCodepoint::NotEct,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}

const fn mark(ecn: EcnCodepoint) -> Ecn {
    match ecn {
        EcnCodepoint::NotEct => Ecn::NotEct,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}
