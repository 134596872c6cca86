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

    /// Whether there may be entries.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
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
    use std::time::Duration;

    use lastbyte_driver::{Application, Clock, Next, Status, Worker};
    use lastbyte_quic::{
        Time,
        connection::{Config, Connection, NetworkPath},
        crypto::plain::PlainClient,
        endpoint::{Closed, Endpoint, EndpointConfig},
    };
    use lastbyte_udp::{Options, Socket};
    use lastbyte_wire::{Direction, Side};

    use super::*;

    /// Wakes its own worker in each turn, and expects the entry in the next one.
    struct Waking {
        mailbox: Arc<Mailbox>,
        remote: Option<Remote<Command>>,
        handle: Handle,
        streams: [StreamId; 3],
        turn: usize,
    }

    impl Application for Waking {
        type Command = Command;
        type Data = ();

        fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

        fn on_ready(&mut self, _: Time, _: Handle, _: &mut Connection, (): &mut ()) {}

        fn on_closed(&mut self, _: Time, _: Closed) {}

        fn on_command(&mut self, _: Time, _: &mut Endpoint, _: Command) {}

        fn on_turn(&mut self, now: Time, _: &mut Endpoint) -> Next {
            let entry = |stream| (self.handle, stream);
            let taken = self.mailbox.take();
            let of_one = |stream| waker(&self.mailbox, self.handle, stream);
            let [first, second, third] = self.streams;
            match self.turn {
                0 => {
                    assert_eq!(taken, []);
                    // Before the worker is known.
                    of_one(first).wake();
                    if let Some(remote) = self.remote.take() {
                        self.mailbox.connect(remote);
                    }
                }
                1 => {
                    assert_eq!(taken, [entry(first)]);
                    of_one(second).wake_by_ref();
                    of_one(third).wake();
                }
                _ => assert_eq!(taken, [entry(second), entry(third)]),
            }
            self.turn += 1;
            Next {
                // A worker that is not woken has a turn too early for its entry to be there.
                deadline: Some(now + Duration::from_secs(1)),
                status: Status::stopped_if(self.turn == 3),
            }
        }
    }

    #[test]
    fn a_worker_that_waits_is_woken_for_entries_before_and_after_it_is_known() {
        let address = "127.0.0.1:0".parse().expect("an address");
        let socket = Socket::bind(address, &Options::default()).expect("a socket");
        let path = NetworkPath {
            local: socket.local_address(),
            remote: socket.local_address(),
        };
        let mut endpoint = Endpoint::new(EndpointConfig::client(), [1; 32]).expect("an endpoint");
        let (clock, config) = (Clock::new(), Config::new("cubic".parse().expect("a spec")));
        let crypto = Arc::new(PlainClient::new(1, vec![b"x".to_vec()]));
        let config = Arc::new(config);
        let handle = endpoint
            .connect(clock.now(), path, "x", &config, crypto, Vec::new())
            .expect("a connection");
        let streams = [0, 1, 2].map(|number| {
            StreamId::new(Side::Client, Direction::Bidirectional, number).expect("in range")
        });
        let waking = Waking {
            mailbox: Arc::default(),
            remote: None,
            handle,
            streams,
            turn: 0,
        };
        let mut worker = Worker::new(socket, endpoint, waking, clock).expect("a worker");
        worker.application().remote = Some(worker.remote());
        worker.run().expect("no error");
        assert_eq!(worker.application().turn, 3);
    }
}
