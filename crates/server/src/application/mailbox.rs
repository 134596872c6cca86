//! How other threads notify a worker of its streams.
//!
//! Owns the list of such streams; data is in the channels of the [`exchange`](crate::exchange). A stream is in the list
//! at most as often as it has registered, which is once for each of its two channels.

use std::{
    mem,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Wake, Waker},
};

use lastbyte_driver::Remote;
use lastbyte_quic::endpoint::Handle;
use lastbyte_wire::StreamId;

use super::Command;

/// The mailbox of a worker.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Vec<(Handle, StreamId)>>,
    /// Whether it may have entries: checked each turn.
    is_full: AtomicBool,
    /// Wakes the worker; set once all workers are running.
    remote: OnceLock<Remote<Command>>,
}

impl Mailbox {
    /// Wakes the worker for entries from now on, and for earlier ones.
    pub(crate) fn connect(&self, remote: Remote<Command>) {
        remote.wake();
        let _ = self.remote.set(remote);
        if self.is_full.load(Ordering::Acquire) {
            self.ring();
        }
    }

    fn post(&self, handle: Handle, stream: StreamId) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push((handle, stream));
        drop(letters);
        if !self.is_full.swap(true, Ordering::AcqRel) {
            self.ring();
        }
    }

    fn ring(&self) {
        if let Some(remote) = self.remote.get() {
            remote.wake();
        }
    }

    /// Takes all entries.
    pub(super) fn take(&self) -> Vec<(Handle, StreamId)> {
        if !self.is_full.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut *letters)
    }
}

/// Wakes the worker for one of its streams.
struct StreamWaker {
    mailbox: Arc<Mailbox>,
    handle: Handle,
    stream: StreamId,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.mailbox.post(self.handle, self.stream);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.mailbox.post(self.handle, self.stream);
    }
}

/// The waker of this stream.
pub(super) fn waker(mailbox: &Arc<Mailbox>, handle: Handle, stream: StreamId) -> Waker {
    Waker::from(Arc::new(StreamWaker {
        mailbox: Arc::clone(mailbox),
        handle,
        stream,
    }))
}

#[cfg(test)]
mod tests {
    use lastbyte_driver::{Application, Clock, Turn, Worker};
    use lastbyte_quic::{
        Time,
        connection::{Config, Connection, NetworkPath},
        crypto::plain::PlainClient,
        endpoint::{Closed, Endpoint, EndpointConfig},
    };
    use lastbyte_udp::{Options, Socket};
    use lastbyte_wire::{Direction, Side};

    use super::*;

    /// Counts notifications, and ends after the first turn.
    #[derive(Default)]
    struct Notified(usize);

    impl Application for Notified {
        type Command = Command;
        type Data = ();

        fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

        fn on_ready(&mut self, _: Time, _: Handle, _: &mut Connection, (): &mut ()) {}

        fn on_closed(&mut self, _: Time, _: Closed) {}

        fn on_command(&mut self, _: Time, _: &mut Endpoint, command: Command) {
            self.0 += usize::from(matches!(command, Command::Mail));
        }

        fn on_turn(&mut self, _: Time, _: &mut Endpoint) -> Turn {
            Turn {
                deadline: None,
                is_done: true,
            }
        }
    }

    #[test]
    fn a_worker_is_woken_once_for_all_streams_until_it_takes_them() {
        let address = "127.0.0.1:0".parse().expect("an address");
        let socket = Socket::bind(address, &Options::default()).expect("a socket");
        let path = NetworkPath {
            local: socket.local_address(),
            remote: socket.local_address(),
        };
        let mut endpoint = Endpoint::new(EndpointConfig::client(), [1; 32]).expect("an endpoint");
        let (clock, config) = (Clock::new(), Config::new("cubic".parse().expect("a spec")));
        let crypto = Arc::new(PlainClient::new(1, vec![b"x".to_vec()]));
        let handle = endpoint
            .connect(
                clock.now(),
                path,
                "x",
                &Arc::new(config),
                crypto,
                Vec::new(),
            )
            .expect("a connection");
        let worker = Worker::new(socket, endpoint, Notified::default(), clock);
        let mut worker = worker.expect("a worker");
        let mailbox = Arc::<Mailbox>::default();
        let streams = [0, 1].map(|number| {
            StreamId::new(Side::Client, Direction::Bidirectional, number).expect("in range")
        });
        // Before and after the worker is known.
        waker(&mailbox, handle, streams[0]).wake();
        mailbox.connect(worker.remote());
        waker(&mailbox, handle, streams[1]).wake_by_ref();
        worker.run().expect("no error");
        assert_eq!(
            worker.application().0,
            2,
            "one for `connect`, one for the first stream"
        );
        assert_eq!(mailbox.take(), streams.map(|stream| (handle, stream)));
        assert_eq!(mailbox.take(), []);
        waker(&mailbox, handle, streams[0]).wake();
        worker.run().expect("no error");
        assert_eq!(worker.application().0, 3);
        assert_eq!(mailbox.take(), [(handle, streams[0])]);
    }
}
