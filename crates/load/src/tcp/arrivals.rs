//! The streams of an open loop that wait for a request, and the timer of the next arrival.
//!
//! The timers of tokio count milliseconds, which would appear in the latencies. On Linux, the timer is the kernel's.

use core::{cell::RefCell, time::Duration};
use std::{collections::VecDeque, io};

use tokio::sync::{Notify, oneshot};

use crate::dispatcher::Due;

/// A stream that waits: the index of its connection, and where its request goes.
type Waiting = (usize, oneshot::Sender<Due>);

/// The streams that wait for a request, the one that waits longest first.
pub(super) struct Arrivals {
    waiting: RefCell<Option<VecDeque<Waiting>>>,
    changed: Notify,
    timer: timer::Timer,
}

impl Arrivals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            waiting: RefCell::new(Some(VecDeque::new())),
            changed: Notify::new(),
            timer: timer::Timer::new()?,
        })
    }

    /// Waits for a request; `None` if there is none left.
    pub(super) async fn wait(&self, index: usize) -> Option<Due> {
        let (sender, receiver) = oneshot::channel();
        self.waiting
            .borrow_mut()
            .as_mut()?
            .push_back((index, sender));
        self.changed.notify_one();
        receiver.await.ok()
    }

    /// Passes a request to the stream that has waited longest.
    pub(super) fn give(&self, take: impl FnOnce(usize) -> Option<Due>) {
        let mut waiting = self.waiting.borrow_mut();
        let Some(waiting) = waiting.as_mut() else {
            return;
        };
        // Streams of a connection that has ended are gone.
        while let Some((index, sender)) = waiting.pop_front() {
            if !sender.is_closed() {
                if let Some(due) = take(index) {
                    let _ = sender.send(due);
                }
                return;
            }
        }
    }

    /// Waits until a stream is free.
    pub(super) async fn some_free(&self) {
        loop {
            let is_any = self
                .waiting
                .borrow()
                .as_ref()
                .is_some_and(|it| !it.is_empty());
            if is_any {
                return;
            }
            self.changed.notified().await;
        }
    }

    /// Waits until something has changed.
    pub(super) async fn notified(&self) {
        self.changed.notified().await;
    }

    /// The schedule has changed.
    pub(super) fn notify(&self) {
        self.changed.notify_one();
    }

    /// The connection has ended: its streams that wait end.
    pub(super) fn forget(&self, index: usize) {
        if let Some(waiting) = self.waiting.borrow_mut().as_mut() {
            waiting.retain(|(of, _)| *of != index);
        }
    }

    /// There are no more requests: the streams that wait end.
    pub(super) fn close(&self) {
        self.waiting.borrow_mut().take();
    }

    /// Waits this long.
    pub(super) async fn sleep(&self, time: Duration) {
        self.timer.sleep(time).await;
    }
}

#[cfg(target_os = "linux")]
mod timer {
    //! The kernel's timer as a file descriptor.

    use core::time::Duration;
    use std::{io, os::fd::OwnedFd};

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            #[expect(
                deprecated,
                reason = "the replacement is unsafe, and asks for a descriptor that stays open: this one is owned"
            )]
            let timer = AsyncFd::new(timer)?;
            Ok(Self(timer))
        }

        pub(super) async fn sleep(&self, time: Duration) {
            let none = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let value = Timespec {
                tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
                // Zero would disarm the timer.
                tv_nsec: i64::from(time.subsec_nanos().max(1)),
            };
            let spec = Itimerspec {
                it_interval: none,
                it_value: value,
            };
            let armed = timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &spec);
            if armed.is_err() {
                return tokio::time::sleep(time).await;
            }
            if let Ok(mut ready) = self.0.readable().await {
                let _ = rustix::io::read(self.0.get_ref(), &mut [0; 8]);
                ready.clear_ready();
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod timer {
    //! The timer of tokio.

    use core::time::Duration;
    use std::io;

    pub(super) struct Timer;

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn sleep(&self, time: Duration) {
            tokio::time::sleep(time).await;
        }
    }
}
