//! The workers of a server: threads, their sockets, who hears from whom.
//!
//! Owns: starting them and waiting for their end. Never: is on the way of a datagram.

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
    handover::{self, Owners},
    worker::{Statistics, Worker},
};

#[cfg(test)]
mod tests;

/// How many commands wait for a worker at most.
const COMMANDS_MAX: usize = 4096;

/// Threads that work.
pub struct Crew<C> {
    remotes: Vec<Remote<C>>,
    threads: Vec<JoinHandle<io::Result<Statistics>>>,
}

/// Speaks to a worker from another thread. Cheap to clone.
pub struct Remote<C> {
    commands: SyncSender<C>,
    waker: Waker,
}

/// What other threads said to a worker.
pub(super) struct Commands<C> {
    commands: Receiver<C>,
}

/// What is said to a worker by itself: one end for the others, one for it.
pub(super) fn hotline<C>(waiter: &Waiter) -> (Remote<C>, Commands<C>) {
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

impl<C: Send + 'static> Crew<C> {
    /// Starts a worker for each socket. `make` gives its endpoint and its application, in its own thread, by its number.
    ///
    /// # Errors
    ///
    /// There are no threads or file descriptors left.
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
        let links = handover::connect(owners, &wakers);
        let mut crew = Self {
            remotes: Vec::new(),
            threads: Vec::new(),
        };
        let all = sockets.into_iter().zip(waiters).zip(links).enumerate();
        for (number, ((socket, waiter), (outlets, inlet))) in all {
            let (remote, commands) = hotline(&waiter);
            crew.remotes.push(remote);
            let make = make.clone();
            let work = move || {
                let (endpoint, application) = make(number)?;
                let mut worker = Worker::new(socket, endpoint, application, clock)?
                    .of_crew(waiter, outlets, inlet, commands);
                worker.run()?;
                Ok(*worker.statistics())
            };
            let thread = thread::Builder::new()
                .name(format!("quic-{number}"))
                .spawn(work)?;
            crew.threads.push(thread);
        }
        Ok(crew)
    }

    /// The workers, by their numbers.
    #[must_use]
    pub fn remotes(&self) -> &[Remote<C>] {
        &self.remotes
    }

    /// Waits until all workers are done. Says what each counted, or why it ended.
    #[must_use]
    pub fn join(self) -> Vec<io::Result<Statistics>> {
        let ends = self.threads.into_iter().map(JoinHandle::join);
        ends.map(|end| end.unwrap_or_else(|_| Err(io::Error::other("a worker panicked"))))
            .collect()
    }
}

impl<C> Remote<C> {
    /// Says something to the worker. Gives it back if the worker is gone, or has more to listen to than it may.
    ///
    /// # Errors
    ///
    /// The command, which was not heard.
    pub fn say(&self, command: C) -> Result<(), C> {
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

impl<C> fmt::Debug for Crew<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew")
            .field("workers", &self.threads.len())
            .finish_non_exhaustive()
    }
}
