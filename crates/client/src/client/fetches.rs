//! The life of a fetch: start, repetition on another connection, end.

use lastbyte_quic::Time;

use super::Client;
use crate::{
    failure::Failure,
    fetch_state::{NextStep, Stop},
};

impl Client<'_> {
    /// Starts fetches up to the limit.
    pub(super) fn start_fetches(&mut self, now: Time) {
        let parallel = self.settings.parallel.max(1);
        while self.active.len() < parallel && self.next < self.fetches.all.len() {
            let fetch = self.next;
            self.next += 1;
            self.active.insert(fetch);
            self.start(now, fetch);
        }
    }

    fn start(&mut self, now: Time, fetch: usize) {
        self.fetches.start(now, fetch);
        if let Some(limit) = self.settings.time_limit {
            self.next_limit.get_or_insert(now + limit);
        }
        self.enqueue(now, fetch);
    }

    /// Adds a fetch to the queue of its server.
    pub(super) fn enqueue(&mut self, now: Time, fetch: usize) {
        let origin = self.fetches.all[fetch].current.url.origin();
        let versions = self.settings.versions;
        if origin.scheme == crate::url::Scheme::Http && !versions.has_tcp() {
            let what =
                format!("HTTP/3 requires TLS: `{origin}` has the scheme `http` (expected `https`)");
            self.end(now, fetch, Some(Failure::Scheme(what)));
            return;
        }
        let server = self.servers.number(origin);
        self.fetches.all[fetch].server = Some(server);
        self.servers.all[server].waiting.push_back(fetch);
    }

    /// Ends a fetch.
    pub(super) fn end(&mut self, now: Time, fetch: usize, failure: Option<Failure>) {
        if self.active.remove(&fetch) {
            self.fetches.finish(now, fetch, failure);
        }
    }

    /// Handles a complete response: ends the fetch, or follows a redirect.
    pub(super) fn on_response_end(&mut self, now: Time, fetch: usize) {
        match self.fetches.on_end(now, fetch) {
            Ok(NextStep::Done) => self.end(now, fetch, None),
            Ok(NextStep::FollowRedirect) if self.active.contains(&fetch) => {
                self.enqueue(now, fetch);
            }
            Ok(NextStep::FollowRedirect) => {}
            Err(failure) => self.end(now, fetch, Some(failure)),
        }
    }

    /// Handles a response that was abandoned.
    pub(super) fn on_stopped(&mut self, now: Time, fetch: usize, stop: Stop) {
        match stop {
            Stop::Failed(failure) => self.end(now, fetch, Some(failure)),
            Stop::Complete => self.on_response_end(now, fetch),
        }
    }

    /// Handles a request that failed on its connection: sends it again on another connection if permitted, or ends the
    /// fetch.
    pub(super) fn retry_or_end(&mut self, now: Time, fetch: usize, may_retry: bool, why: Failure) {
        let it = &mut self.fetches.all[fetch];
        let has_response = it.outcome.status.is_some();
        let is_stream = matches!(it.current.upload, Some(crate::fetch::Upload::Stream(_)));
        let may_retry = may_retry && !has_response && self.active.contains(&fetch);
        if may_retry && it.outcome.retries < self.settings.retries && !is_stream {
            it.outcome.retries += 1;
            it.outcome.sent = 0;
            it.reset_attempt();
            self.enqueue(now, fetch);
            return;
        }
        let received = it.outcome.received;
        let failure = match why {
            Failure::Response(reason) if has_response => Failure::Partial { reason, received },
            Failure::Empty if has_response => Failure::Partial {
                reason: "the connection was closed".to_owned(),
                received,
            },
            why => why,
        };
        self.end(now, fetch, Some(failure));
    }

    /// Ends all fetches that have not started.
    pub(super) fn interrupt(&mut self, now: Time) {
        while self.next < self.fetches.all.len() {
            let fetch = self.next;
            self.next += 1;
            self.active.insert(fetch);
            self.end(now, fetch, Some(Failure::Interrupted));
        }
    }
}
