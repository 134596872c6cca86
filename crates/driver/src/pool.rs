//! The worker pool: one thread per socket, the queues between workers, and the channels to them.
//!
//! Responsible for starting the workers and waiting for their end. No datagram passes through this module.

use std::{
    fmt, io,
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread::{self, JoinHandle},
};

use lastbyte_quic::endpoint::Endpoint;
use lastbyte_udp::{Socket, Waiter, Waker};

use super::{
    application::Application,
    clock::Clock,
    forward::{self, Owners},
    worker::{Statistics, Worker},
};

#[cfg(test)]
mod tests;

/// The most commands that wait for a worker.
const COMMANDS_MAX: usize = 4096;

/// A running set of workers, one thread each.
pub struct WorkerPool<C> {
    remotes: Vec<Remote<C>>,
    threads: Vec<JoinHandle<io::Result<Statistics>>>,
}

/// Sends commands to a worker from another thread. Cheap to clone.
pub struct Remote<C> {
    commands: SyncSender<C>,
    waker: Waker,
}

/// The receiving end of a worker's commands.
pub(super) struct Commands<C> {
    commands: Receiver<C>,
}

/// A bounded command channel: the sending end for other threads, and the worker's receiving end.
pub(super) fn command_channel<C>(waiter: &Waiter) -> (Remote<C>, Commands<C>) {
    let (sender, receiver) = sync_channel(COMMANDS_MAX);
    let remote = Remote {
        commands: sender,
        waker: waiter.waker(),
    };
    (remote, Commands { commands: receiver })
}

impl<C> Commands<C> {
    pub(super) fn next(&self) -> Option<C> {
        self.commands.try_recv().ok()
    }
}

impl<C: Send + 'static> WorkerPool<C> {
    /// Starts one worker per socket. `make` is called in the worker's thread with its index, and creates its endpoint and its
    /// application.
    ///
    /// # Errors
    ///
    /// Returns the system's error if a thread or a file descriptor cannot be created. An error of `make` or of a running
    /// worker is returned by [`join`](Self::join).
    pub fn start<A, M>(
        sockets: Vec<Socket>,
        owners: Owners,
        clock: Clock,
        make: M,
    ) -> io::Result<Self>
    where
        A: Application<Command = C>,
        M: Fn(usize) -> io::Result<(Endpoint, A)> + Clone + Send + 'static,
    {
        let waiters: Vec<Waiter> = sockets
            .iter()
            .map(|_| Waiter::new())
            .collect::<io::Result<_>>()?;
        let wakers: Vec<Waker> = waiters.iter().map(Waiter::waker).collect();
        let links = forward::connect(owners, &wakers);
        let mut pool = Self {
            remotes: Vec::new(),
            threads: Vec::new(),
        };
        let all = sockets.into_iter().zip(waiters).zip(links).enumerate();
        for (number, ((socket, waiter), (forwarder, queue))) in all {
            let (remote, commands) = command_channel(&waiter);
            pool.remotes.push(remote);
            let make = make.clone();
            let work = move || {
                let (endpoint, application) = make(number)?;
                let mut worker = Worker::new(socket, endpoint, application, clock)?
                    .in_pool(waiter, forwarder, queue, commands);
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
    #[must_use]
    pub fn remotes(&self) -> &[Remote<C>] {
        &self.remotes
    }

    /// Waits until all workers have ended. Returns each worker's counters, or the error that ended it.
    #[must_use]
    pub fn join(self) -> Vec<io::Result<Statistics>> {
        let ends = self.threads.into_iter().map(JoinHandle::join);
        ends.map(|end| end.unwrap_or_else(|_| Err(io::Error::other("a worker panicked"))))
            .collect()
    }
}

impl<C> Remote<C> {
    /// Sends a command to the worker and wakes it.
    ///
    /// # Errors
    ///
    /// Returns the command if the worker has ended or 4096 commands are already waiting.
    pub fn send(&self, command: C) -> Result<(), C> {
        match self.commands.try_send(command) {
            Ok(()) => {
                self.waker.wake();
                Ok(())
            }
            Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) => Err(command),
        }
    }
}

impl<C> Clone for Remote<C> {
    fn clone(&self) -> Self {
        Self {
            commands: self.commands.clone(),
            waker: self.waker.clone(),
        }
    }
}

impl<C> fmt::Debug for Remote<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for WorkerPool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool")
            .field("workers", &self.threads.len())
            .finish_non_exhaustive()
    }
}
