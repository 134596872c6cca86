//! Times and counts of the requests and responses of a flow.

use lastbyte_congestion::Time;
use lastbyte_wire::StreamId;

use crate::outcome::{Progress, ResponseOutcome};

/// Counts of the messages of one end, a server's responses or a client's requests: started and acknowledged, with the times of
/// the first start and the last acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Messages {
    pub(crate) started: u64,
    pub(crate) acked: u64,
    pub(crate) started_at: Option<Time>,
    pub(crate) acked_at: Option<Time>,
}

impl Messages {
    /// Records that a message was started.
    pub(crate) fn on_started(&mut self, now: Time) {
        self.started += 1;
        self.started_at.get_or_insert(now);
    }

    /// Records that a whole message was acknowledged.
    pub(crate) fn on_acked(&mut self, now: Time) {
        self.acked += 1;
        self.acked_at = Some(now);
    }
}

/// Progress of the responses.
pub(crate) struct Measures {
    pub(crate) started_at: Time,
    pub(crate) responses: Vec<ResponseOutcome>,
    /// The stream of each response.
    pub(crate) streams: Vec<StreamId>,
    /// Requests without a complete response.
    pub(crate) open: usize,
    /// Bytes of the first response received.
    arrived: u64,
    pub(crate) progress: Vec<Progress>,
    next_progress: usize,
    /// Whether the last open response has just completed.
    pub(crate) is_done: bool,
    /// The requests, which are the data of uploads.
    pub(crate) requests: Messages,
}

impl Measures {
    /// Measures of requests from `started_at`, with the times at which the first response reaches these bytes.
    pub(crate) fn new(started_at: Time, progress: &[u64]) -> Self {
        let progress = progress.iter().map(|bytes| Progress {
            bytes: *bytes,
            after: None,
        });
        Self {
            started_at,
            responses: Vec::new(),
            streams: Vec::new(),
            open: 0,
            arrived: 0,
            progress: progress.collect(),
            next_progress: 0,
            is_done: false,
            requests: Messages::default(),
        }
    }

    /// Returns the response on a stream, and its index.
    fn response(&mut self, stream: StreamId) -> Option<(usize, &mut ResponseOutcome)> {
        let index = self.streams.iter().rposition(|one| *one == stream)?;
        Some((index, self.responses.get_mut(index)?))
    }

    /// Records body bytes received in order.
    pub(crate) fn on_body(&mut self, now: Time, stream: StreamId, len: usize) {
        let Some((index, response)) = self.response(stream) else {
            return;
        };
        if len > 0 {
            let after = now.since(response.requested_at);
            response.first_byte.get_or_insert(after);
        }
        if index > 0 {
            return;
        }
        self.arrived += len as u64;
        while let Some(mark) = self.progress.get_mut(self.next_progress)
            && self.arrived >= mark.bytes
        {
            mark.after = Some(now.since(self.started_at));
            self.next_progress += 1;
        }
    }

    /// Records the end of a response.
    pub(crate) fn on_end(&mut self, now: Time, stream: StreamId) {
        if let Some((_, response)) = self.response(stream)
            && response.last_byte.is_none()
        {
            response.last_byte = Some(now.since(response.requested_at));
            self.open -= 1;
            self.is_done = self.open == 0;
        }
    }

    /// Records that a whole request was acknowledged.
    pub(crate) fn on_request_acked(&mut self, now: Time) {
        self.requests.on_acked(now);
    }
}
