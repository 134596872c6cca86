//! PING (RFC 9113 §6.7): whether a client is still there, and when a round trip has passed.
//!
//! A client that sends nothing for an interval is asked, and is gone if it sends nothing for the time limit after that either.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep};

/// Intervals in the idle timeout.
const INTERVALS: u32 = 4;

/// Asks a silent client.
pub(super) struct Liveness {
    pings: Option<PingPong>,
    interval: Duration,
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
    /// Bytes received when the timer was set.
    received: u64,
    is_asking: bool,
    /// Whether an answer was received that [`Liveness::is_answered`] has not returned.
    is_answered: bool,
    is_gone: bool,
}

impl Liveness {
    pub(super) fn new(idle: Duration, timeout: Duration) -> Self {
        let interval = idle / INTERVALS;
        Self {
            pings: None,
            interval,
            timeout,
            timer: Box::pin(sleep(interval)),
            received: 0,
            is_asking: false,
            is_answered: false,
            is_gone: false,
        }
    }

    /// The connection is open.
    pub(super) fn start(&mut self, pings: Option<PingPong>) {
        self.pings = pings;
    }

    /// Sends a PING. Returns whether it did: there is one at a time.
    pub(super) fn ask(&mut self, context: &mut Context<'_>) -> bool {
        self.is_answered = false;
        let Some(pings) = self.pings.as_mut() else {
            return false;
        };
        // The answer to a PING of `is_gone`, which may not look at it for long.
        while let Poll::Ready(Ok(_)) = pings.poll_pong(context) {}
        pings.send_ping(Ping::opaque()).is_ok()
    }

    /// Whether the client has answered the PING of [`Liveness::ask`].
    pub(super) fn is_answered(&mut self, context: &mut Context<'_>) -> bool {
        let pings = self.pings.as_mut();
        let answered =
            pings.is_some_and(|pings| matches!(pings.poll_pong(context), Poll::Ready(Ok(_))));
        answered || self.is_answered
    }

    /// Ready once, when the client is gone. `received` is the number of bytes from the client.
    pub(super) fn is_gone(
        &mut self,
        context: &mut Context<'_>,
        received: impl Fn() -> u64,
    ) -> bool {
        let Some(pings) = &mut self.pings else {
            return false;
        };
        while !self.is_gone && self.timer.as_mut().poll(context).is_ready() {
            let received = received();
            let is_silent = mem::replace(&mut self.received, received) == received;
            // Of an earlier PING: there is one at a time.
            while let Poll::Ready(Ok(_)) = pings.poll_pong(context) {
                self.is_answered = true;
            }
            if is_silent && self.is_asking {
                self.is_gone = true;
                return true;
            }
            self.is_asking = is_silent;
            let wait = if is_silent {
                // An error: one is unanswered, although the client has sent something else since.
                let _ = pings.send_ping(Ping::opaque());
                self.timeout
            } else {
                self.interval
            };
            self.timer.as_mut().reset(Instant::now() + wait);
        }
        false
    }
}
