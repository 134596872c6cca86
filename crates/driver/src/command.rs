//! Commands from other threads to a worker, and to the application that runs on it: a bounded channel that wakes it.

use std::{
    fmt,
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
};

use lastbyte_udp::{Waiter, Waker};

use super::statistics::Statistics;

/// The most commands that wait for a worker.
const COMMANDS_MAX: usize = 4096;

/// Sends commands to a worker from another thread. Cheap to clone.
pub struct Remote<C> {
    commands: SyncSender<Command<C>>,
    waker: Waker,
}

/// A command.
pub(super) enum Command<C> {
    /// To the application.
    Application(C),
    /// Do not read the socket from now on; call this function then.
    Pause(Answer<()>),
    /// Read the socket again.
    Resume,
    /// Call this function with the counters.
    Measure(Answer<Statistics>),
}

/// What a worker calls with its answer.
type Answer<T> = Box<dyn FnOnce(T) + Send>;

/// The receiving end of a worker's commands.
pub(super) struct Commands<C> {
    commands: Receiver<Command<C>>,
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
    pub(super) fn next(&self) -> Option<Command<C>> {
        self.commands.try_recv().ok()
    }
}

impl<C> Remote<C> {
    /// Sends a command to the worker's application, and wakes the worker.
    ///
    /// # Errors
    ///
    /// Returns the command if the worker has ended or 4096 commands are already waiting.
    pub fn send(&self, command: C) -> Result<(), C> {
        match self.pass(Command::Application(command)) {
            Err(Command::Application(command)) => Err(command),
            _ => Ok(()),
        }
    }

    /// Wakes the worker, so that its application has a turn.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Lets the worker leave its socket to another process that reads it, and calls a function in its thread once it does. It
    /// still sends over the socket, and receives the datagrams that this process forwards
    /// ([`WorkerPool::inlet`](crate::WorkerPool::inlet)). Returns whether the command was sent, as [`Remote::send`] does.
    pub fn pause(&self, paused: impl FnOnce(()) + Send + 'static) -> bool {
        self.pass(Command::Pause(Box::new(paused))).is_ok()
    }

    /// Lets the worker read its socket again. Returns whether the command was sent.
    pub fn resume(&self) -> bool {
        self.pass(Command::Resume).is_ok()
    }

    /// Calls a function with the worker's counters, in its thread. Returns whether the command was sent.
    pub fn measure(&self, measured: impl FnOnce(Statistics) + Send + 'static) -> bool {
        self.pass(Command::Measure(Box::new(measured))).is_ok()
    }

    fn pass(&self, command: Command<C>) -> Result<(), Command<C>> {
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
