//! The worker pool: one thread per socket, the queues between workers, and the channels to them.
//!
//! Responsible for starting the workers and waiting for their end. No datagram passes through this module.

use std::{
    fmt, io,
    os::fd::OwnedFd,
    sync::Arc,
    thread::{self, JoinHandle},
};

use lastbyte_engine::Application;
use lastbyte_quic::endpoint::Endpoint;
use lastbyte_udp::{Socket, Waiter, Waker};

use super::{
    clock::Clock,
    command::{Remote, command_channel},
    forward::{self, SteeringRule},
    relay::{Inlet, Predecessor},
    statistics::Statistics,
    worker::Worker,
};

#[cfg(test)]
mod tests;

/// A running set of workers, one thread each.
pub struct WorkerPool<C> {
    remotes: Vec<Remote<C>>,
    threads: Vec<JoinHandle<io::Result<Statistics>>>,
    inlet: Arc<Inlet>,
}

impl<C: Send + 'static> WorkerPool<C> {
    /// Starts one worker per socket. `predecessor` is the link to an earlier process that finishes connections on the same
    /// address: datagrams that belong to none of the connections here are forwarded to it, until it ends. `make` is called in
    /// the worker's thread with its index, and creates its endpoint and its application.
    ///
    /// # Errors
    ///
    /// Returns the system's error if a thread or a file descriptor cannot be created. An error of `make` or of a running
    /// worker is returned by [`join`](Self::join).
    pub fn start<A, M>(
        sockets: Vec<Socket>,
        steering: SteeringRule,
        clock: Clock,
        predecessor: Option<&Arc<OwnedFd>>,
        make: M,
    ) -> io::Result<Self>
    where
        A: Application<Command = C>,
        M: Fn(usize) -> io::Result<(Endpoint<A::Data>, A)> + Clone + Send + 'static,
    {
        let waiters: Vec<Waiter> = sockets
            .iter()
            .map(|_| Waiter::new())
            .collect::<io::Result<_>>()?;
        let wakers: Vec<Waker> = waiters.iter().map(Waiter::waker).collect();
        let (links, senders) = forward::connect(steering, &wakers);
        let mut pool = Self {
            remotes: Vec::new(),
            threads: Vec::new(),
            inlet: Arc::new(Inlet::new(senders)),
        };
        let all = sockets.into_iter().zip(waiters).zip(links).enumerate();
        for (number, ((socket, waiter), (forwarder, queue))) in all {
            let (remote, commands) = command_channel(&waiter);
            pool.remotes.push(remote);
            let make = make.clone();
            let predecessor =
                predecessor.map(|link| Predecessor::new(Arc::clone(link), number as u8));
            let work = move || {
                let (endpoint, application) = make(number)?;
                // The thread opens no descriptor, so that it cannot fail for want of one after the pool has started.
                let mut worker = Worker::with_waiter(socket, endpoint, application, clock, waiter)
                    .in_pool(forwarder, queue, commands, predecessor);
                worker.run()?;
                Ok(*worker.statistics())
            };
            let thread = thread::Builder::new()
                .name(format!("quic-{number}"))
                .spawn(work)?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// The command channels of the workers, by index.
    pub fn remotes(&self) -> &[Remote<C>] {
        &self.remotes
    }

    /// The entrance for datagrams that another process forwards to the workers.
    pub fn inlet(&self) -> Arc<Inlet> {
        Arc::clone(&self.inlet)
    }

    /// Waits until all workers have ended. Returns each worker's counters, or the error that ended it.
    pub fn join(self) -> Vec<io::Result<Statistics>> {
        let ends = self.threads.into_iter().map(JoinHandle::join);
        let ends = ends
            .map(|end| end.unwrap_or_else(|_| Err(io::Error::other("a worker panicked"))))
            .collect();
        self.inlet.close();
        ends
    }
}

impl<C> fmt::Debug for WorkerPool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool")
            .field("workers", &self.threads.len())
            .finish_non_exhaustive()
    }
}
