//! Requests that the server refuses before it processes them, so that any request can be sent again (RFC 9114 §4.1.1 and §5.2).
//!
//! They are sent again once, on the client's next connection: the server does not want them on this one. No request is sent
//! more than twice, and a connection on which requests are refused counts as a failure unless it has carried a response, so
//! that a server that refuses everything receives connections ever less often.

use lastbyte_http3::{Code, Origin, StreamError};
use lastbyte_wire::StreamId;

use super::{Client, Http3Load, Phase};
use crate::{dispatcher::Due, recorder::Cause};

/// Why a connection is given up after a refusal.
const REFUSING: &str = "the server refuses requests";

impl Client {
    /// Whether requests wait for the connection.
    pub(super) fn is_waited_for(&self) -> bool {
        self.pending.is_some() || !self.refused.is_empty()
    }

    /// Keeps a request that could not be sent.
    pub(super) fn put_back(&mut self, due: Due) {
        if due.first_sent.is_some() {
            self.refused.push_front(due);
        } else {
            self.pending = Some(due);
        }
    }
}

impl Http3Load<'_> {
    /// A request will have no complete response.
    pub(super) fn on_reset(&mut self, index: usize, stream: StreamId, error: StreamError) {
        let Some(request) = self.take(index, stream) else {
            return;
        };
        let client = &mut self.clients[index];
        let is_refused = error.origin == Origin::Peer && error.code == Code::REQUEST_REJECTED;
        if is_refused && client.phase == Phase::Open {
            client.phase = Phase::Draining(REFUSING);
        }
        if let Some(due) = request.retry().filter(|_| is_refused) {
            client.refused.push_back(due);
            return;
        }
        let why = if is_refused && request.is_retry {
            format!("the server refused the request twice: {error}")
        } else {
            format!("the response was reset: {error}")
        };
        self.state.recorder.on_failed(&request, Cause::Error, &why);
    }
}
