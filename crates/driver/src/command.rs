//! Commands from other threads to a worker: a bounded channel that wakes it.

use std::{
    fmt,
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
};

use lastbyte_udp::{Waiter, Waker};

/// The most commands that wait for a worker.
const COMMANDS_MAX: usize = 4096;

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
