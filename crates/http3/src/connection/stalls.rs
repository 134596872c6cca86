//! Requests whose client neither reads the response nor sends the body (RFC 9114 §10.5).
//!
//! Owns the progress of each body at the last check, and which requests are cancelled. Only servers do this. Packets
//! without stream data, such as PINGs, are not progress. A body is too slow if fewer than [`StallLimit::bytes`] of it
//! were transferred within [`StallLimit::timeout`] although more were available:
//!
//! - A response counts while bytes of it are unacknowledged. A response that the client's *stream* limit does not block
//!   may be waiting for its turn; it is left alone as long as the connection as a whole is fast enough.
//! - A request counts while its next bytes must come from the client: not while the application does not read.

use core::time::Duration;

use lastbyte_quic::{Time, stream::Progress};
use lastbyte_wire::{Side, StreamId};

use super::{Connection, receiving::Expects, request_stream::RequestStream};
use crate::{Code, StreamError, Transport, config::StallLimit, message::check::RequestKind};

/// The number of checks of a body per timeout: a slow one is cancelled after 1 to 1.25 timeouts.
const CHECKS: u32 = 8;
/// The shortest time between two checks: a check that is due again at once would end no turn.
const PERIOD_MIN: Duration = Duration::from_millis(1);

/// The progress of one direction of a stream, and when it was recorded.
#[derive(Clone, Copy, Debug)]
struct Mark {
    since: Time,
    bytes: u64,
    /// Further bytes that count as progress.
    wanted: u64,
    /// Acknowledged bytes of all streams.
    connection: u64,
}

impl Mark {
    /// The progress of a body, of which this many bytes are known to be missing.
    fn new(now: Time, bytes: u64, missing: u64, connection: u64, limit: StallLimit) -> Self {
        Self {
            since: now,
            bytes,
            wanted: limit.bytes.min(missing).max(1),
            connection,
        }
    }
}

/// The two directions of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    response: Option<Mark>,
    request: Option<Mark>,
}

impl Marks {
    /// Checks a stream. Returns whether its client is too slow.
    fn check(
        &mut self,
        stream: &Progress,
        awaits_request: bool,
        connection: u64,
        now: Time,
        limit: StallLimit,
    ) -> bool {
        let missing = stream.end.saturating_sub(stream.acked);
        let fresh = Mark::new(now, stream.acked, missing, connection, limit);
        let waits_for_turn =
            |mark: &Mark| !stream.is_blocked && connection - mark.connection >= limit.bytes.max(1);
        let takes_too_little = advance(
            &mut self.response,
            stream.is_outstanding.then_some(fresh),
            waits_for_turn,
            limit.timeout,
        );
        let fresh = Mark::new(now, stream.received, u64::MAX, connection, limit);
        let sends_too_little = advance(
            &mut self.request,
            awaits_request.then_some(fresh),
            |_| false,
            limit.timeout,
        );
        takes_too_little || sends_too_little
    }
}

/// Updates a mark with the progress of a body; `None` if nothing is expected. Returns whether it was stalled for too
/// long.
fn advance(
    slot: &mut Option<Mark>,
    fresh: Option<Mark>,
    is_excused: impl FnOnce(&Mark) -> bool,
    timeout: Duration,
) -> bool {
    if let (Some(mark), Some(fresh)) = (&*slot, fresh)
        && fresh.bytes - mark.bytes < mark.wanted
    {
        if fresh.since.since(mark.since) < timeout {
            return false;
        }
        if !is_excused(mark) {
            return true;
        }
    }
    *slot = fresh;
    false
}

impl Connection {
    /// Cancels requests whose clients are too slow.
    pub(super) fn check_stalls(&mut self, transport: &mut dyn Transport) {
        let Some(limit) = self.shared.config.limits.stall else {
            return;
        };
        let now = self.shared.now;
        if self.shared.side == Side::Client || self.stalls_at.is_some_and(|at| at > now) {
            return;
        }
        let period = (limit.timeout / CHECKS).max(PERIOD_MIN);
        self.stalls_at = (!self.streams.is_empty()).then(|| now + period);
        // The handshake has a limit of its own, and nothing can be acknowledged yet.
        if transport.is_handshaking() {
            return;
        }
        let connection = transport.data_acked();
        let mut slow = Vec::new();
        for (id, stream) in &mut self.streams {
            let Some(progress) = transport.progress(*id) else {
                continue;
            };
            let awaits_request = awaits_body(stream) && progress.awaits_peer;
            let marks = &mut stream.marks;
            if marks.check(&progress, awaits_request, connection, now, limit) {
                slow.push(*id);
            }
        }
        for id in slow {
            self.give_up_slow(transport, id);
        }
    }

    fn give_up_slow(&mut self, transport: &mut dyn Transport, id: StreamId) {
        let is_answered = self
            .streams
            .get(&id)
            .is_some_and(|stream| stream.sending.is_over());
        // A server that needs no more of a request stops it with NO_ERROR (RFC 9114 §4.1.1).
        let code = if is_answered {
            Code::NO_ERROR
        } else {
            Code::REQUEST_CANCELLED
        };
        self.shared.statistics.stalled += 1;
        self.give_up(
            transport,
            id,
            StreamError::local(code, "the client is too slow"),
        );
    }

    /// When bodies are checked next.
    pub(super) fn stalls_deadline(&self) -> Option<Time> {
        self.stalls_at
    }
}

/// Whether more of a request's body is expected. Headers have a limit of their own.
fn awaits_body(stream: &RequestStream) -> bool {
    let receiving = &stream.receiving;
    matches!(receiving.expects(), Expects::Body | Expects::End)
        && receiving.kind() != RequestKind::Connect
}
