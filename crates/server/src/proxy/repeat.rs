//! Which failed requests are sent again, on another connection.
//!
//! | the attempt | repeated |
//! |---|---|
//! | was not sent, since a connection that was shared or kept had closed | any request |
//! | was not processed: a stream with `REFUSED_STREAM`, or above the last stream ID of a GOAWAY (RFC 9113 §6.8, §8.7) | any request |
//! | met the end of a kept connection: not one byte of a response arrived | one with an idempotent method, once, on a new connection (RFC 9110 §9.2.2) |
//! | met the end of a new connection, in the same way | one with an idempotent method, once, to another server |
//! | could not be sent, since connecting failed | any request, to another server |
//! | failed in another way | none |
//!
//! A request that this server did not process, whatever it tried, is sent to another one, if there is one that was not tried.
//!
//! All need the part of the body that was sent, which is [kept](super::body::Upload) up to 64 KiB. There are at most
//! [`ATTEMPTS_MAX`] attempts, the last ones on connections of their own, which no other request can have used up.

use std::{error::Error, io};

use http::Method;
use tokio::time::Instant;

/// The most attempts to send a request.
pub(super) const ATTEMPTS_MAX: u32 = 8;
/// After this many attempts, others use connections of their own.
const SHARED_MAX: u32 = 4;

/// What is known about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The request was not sent.
    Unsent,
    /// It was not sent, since a new connection ended: a failure of the server.
    UnsentNew,
    /// The server did not process the request.
    Unprocessed,
    /// A kept connection ended before the first byte of the response.
    Ended,
    /// A new connection did.
    EndedNew,
    /// The server may have processed the request, or it cannot be processed.
    Unknown,
}

impl Fate {
    /// The fate of a request that was sent over HTTP/2. `is_kept`: the connection was not opened for it.
    pub(super) fn over_http2(error: &hyper::Error, is_kept: bool) -> Self {
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(cause) = cause.downcast_ref::<h2::Error>() {
                let is_unprocessed = match cause.reason() {
                    Some(h2::Reason::REFUSED_STREAM) => cause.is_reset(),
                    // h2 has this error only for streams above the last stream ID.
                    Some(h2::Reason::NO_ERROR) => cause.is_go_away(),
                    _ => false,
                };
                return if is_unprocessed && cause.is_remote() {
                    Self::Unprocessed
                } else {
                    Self::Unknown
                };
            }
            if cause.is::<io::Error>() {
                break;
            }
            source = cause.source();
        }
        // An error of the socket, or hyper closed the connection while the stream waited to be opened: no response
        // had begun.
        let is_end = source.is_some() || error.is_user();
        Self::over_http1(is_kept, is_end)
    }

    /// The fate of a request that was sent over HTTP/1.1. `is_quiet`: nothing of a response arrived.
    pub(super) fn over_http1(is_kept: bool, is_quiet: bool) -> Self {
        match (is_quiet, is_kept) {
            (true, true) => Self::Ended,
            (true, false) => Self::EndedNew,
            (false, _) => Self::Unknown,
        }
    }
}

/// The attempts to send a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    is_idempotent: bool,
    count: u32,
    /// When the attempt was sent that met the end of its connection.
    ended: Option<Instant>,
}

impl Attempts {
    pub(super) fn new(method: &Method) -> Self {
        Self {
            is_idempotent: method.is_idempotent(),
            count: 1,
            ended: None,
        }
    }

    /// Whether there is another attempt after one with this fate, which was sent at `sent`.
    pub(super) fn repeats(&mut self, fate: Fate, sent: Instant) -> bool {
        let is_repeatable = match fate {
            Fate::Unsent | Fate::Unprocessed => true,
            Fate::Ended => self.is_idempotent && self.ended.replace(sent).is_none(),
            Fate::UnsentNew | Fate::EndedNew | Fate::Unknown => false,
        };
        self.count += u32::from(is_repeatable);
        is_repeatable && self.count <= ATTEMPTS_MAX
    }

    /// Whether the request may be sent to another server after the last attempt at one, with this fate.
    pub(super) fn moves(&mut self, fate: Fate, sent: Instant) -> bool {
        match fate {
            Fate::Unsent | Fate::UnsentNew | Fate::Unprocessed => true,
            Fate::EndedNew => self.is_idempotent && self.ended.replace(sent).is_none(),
            Fate::Ended | Fate::Unknown => false,
        }
    }

    /// The connection for the next attempt.
    pub(super) const fn wanted(self) -> Wanted {
        if self.count > SHARED_MAX {
            Wanted::Own
        } else if let Some(since) = self.ended {
            Wanted::Since(since)
        } else {
            Wanted::Any
        }
    }
}

/// A connection for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// An existing one, or else a new one.
    Any,
    /// One that was opened after this time, or else a new one, which others may share.
    Since(Instant),
    /// A new one, which others do not share.
    Own,
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{ATTEMPTS_MAX, Attempts, Fate, Instant, Wanted};

    #[test]
    fn attempts_are_bounded_and_the_last_ones_have_connections_of_their_own() {
        let now = Instant::now();
        let mut attempts = Attempts::new(&Method::POST);
        let mut wanted = vec![attempts.wanted()];
        while attempts.repeats(Fate::Unprocessed, now) {
            wanted.push(attempts.wanted());
        }
        assert_eq!(wanted.len(), ATTEMPTS_MAX as usize);
        assert_eq!(wanted[..4], [Wanted::Any; 4]);
        assert_eq!(wanted[4..], [Wanted::Own; 4]);
    }

    #[test]
    fn rfc9110_9_2_2_idempotent_requests_are_repeated_once_after_the_end_of_a_connection() {
        let now = Instant::now();
        for (method, is_repeated) in [(Method::PUT, true), (Method::POST, false)] {
            let mut attempts = Attempts::new(&method);
            assert!(!attempts.repeats(Fate::Unknown, now));
            assert!(attempts.repeats(Fate::Unsent, now));
            assert_eq!(attempts.repeats(Fate::Ended, now), is_repeated, "{method}");
            if is_repeated {
                assert_eq!(attempts.wanted(), Wanted::Since(now));
            }
            assert!(!attempts.repeats(Fate::Ended, now), "{method}");
        }
    }
}
