//! The queue through which other threads report to the client: resolvers, TCP connections, readers of uploads.
//!
//! A [`Mailbox`] wakes its worker when an event is added to an empty queue. A [`Sender`] is what such a thread holds:
//! it accepts the thread's own kind of event, so that no thread needs to know the others. Its writers bound what is in
//! the queue: one answer per lookup, and per exchange the bytes that its window permits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use lastbyte_driver::Remote;

/// A queue of events that wakes its reader.
pub(crate) struct Mailbox<E> {
    events: Mutex<VecDeque<E>>,
    remote: OnceLock<Remote<()>>,
}

impl<E> Default for Mailbox<E> {
    fn default() -> Self {
        Self {
            events: Mutex::default(),
            remote: OnceLock::new(),
        }
    }
}

impl<E> Mailbox<E> {
    /// Sets the worker to wake. Only the first call has an effect.
    pub(crate) fn connect(&self, remote: Remote<()>) {
        let _ = self.remote.set(remote);
    }

    fn post(&self, event: E) {
        let was_empty = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            let was_empty = events.is_empty();
            events.push_back(event);
            was_empty
        };
        if was_empty && let Some(remote) = self.remote.get() {
            // A worker whose command queue is full is awake.
            let _ = remote.send(());
        }
    }

    /// Removes all events.
    pub(crate) fn take(&self) -> VecDeque<E> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        core::mem::take(&mut *events)
    }
}

impl<E: Send + 'static> Mailbox<E> {
    /// A handle that adds events of type `T`, each converted by `convert`.
    pub(crate) fn sender<T>(
        self: &Arc<Self>,
        convert: impl Fn(T) -> E + Send + Sync + 'static,
    ) -> Sender<T> {
        let mailbox = Arc::clone(self);
        Sender(Arc::new(move |event| mailbox.post(convert(event))))
    }
}

/// Adds events of one type to a [`Mailbox`]. Cheap to clone.
pub(crate) struct Sender<T>(Arc<dyn Fn(T) + Send + Sync>);

impl<T> Sender<T> {
    pub(crate) fn post(&self, event: T) {
        (self.0)(event);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_all_senders_arrive_in_order() {
        let mailbox = Arc::new(Mailbox::<String>::default());
        let numbers = mailbox.sender(|number: u32| number.to_string());
        let words = mailbox.sender(str::to_owned);
        numbers.post(1);
        words.post("two");
        numbers.clone().post(3);
        assert_eq!(mailbox.take(), ["1", "two", "3"]);
        assert!(mailbox.take().is_empty());
    }
}
