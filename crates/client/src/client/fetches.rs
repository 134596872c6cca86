//! The life of a fetch: start, retries, end.

use core::time::Duration;

use lastbyte_quic::Time;

use super::Client;
use crate::{
    failure::Failure,
    fetch_state::{NextStep, Stop},
    settings::Versions,
};

impl Client<'_> {
    /// Starts fetches up to the limit, and the retries that are due.
    pub(super) fn start_fetches(&mut self, now: Time) {
        let parallel = self.settings.parallel.max(1);
        while self.active.len() < parallel && self.next < self.fetches.all.len() {
            let fetch = self.next;
            self.next += 1;
            self.active.insert(fetch);
            self.start(now, fetch);
        }
        while let Some((at, fetch)) = self.delayed.first().copied()
            && at <= now
        {
            self.delayed.pop_first();
            if self.active.contains(&fetch) {
                self.start(now, fetch);
            }
        }
    }

    fn start(&mut self, now: Time, fetch: usize) {
        self.fetches.start(now, fetch);
        if let Some(limit) = self.settings.time_limit {
            self.next_limit.get_or_insert(now + limit);
        }
        self.enqueue(now, fetch);
    }

    /// Schedules a retry after a pause.
    fn delay(&mut self, now: Time, fetch: usize, pause: Duration, failure: Option<&Failure>) {
        if let Some(server) = self.fetches.all[fetch].server {
            // A name that could not be resolved is resolved again.
            self.servers.all[server].forget_failure();
        }
        match self.fetches.schedule_retry(fetch, pause, failure) {
            Ok(()) => {
                self.delayed.insert((now + pause, fetch));
            }
            Err(failure) => self.finish(now, fetch, Some(failure)),
        }
    }

    /// Adds a fetch to the queue of its server.
    pub(super) fn enqueue(&mut self, now: Time, fetch: usize) {
        let origin = self.fetches.all[fetch].current.url.origin();
        let versions = self.settings.versions_of(&origin.host);
        if origin.scheme == crate::url::Scheme::Http && !versions.has_tcp() {
            let what =
                format!("HTTP/3 requires TLS: `{origin}` has the scheme `http` (expected `https`)");
            self.end(now, fetch, Some(Failure::Scheme(what)));
            return;
        }
        if versions == Versions::Http3
            && let Some(proxy) = self.settings.proxies.of(origin)
        {
            let what = format!(
                "HTTP/3 cannot be used through the proxy {proxy:?} (remove one of them, or exclude `{}` from the proxy)",
                origin.host
            );
            self.end(now, fetch, Some(Failure::Scheme(what)));
            return;
        }
        let server = self.servers.number(origin);
        self.fetches.all[fetch].server = Some(server);
        self.servers.all[server].waiting.push_back(fetch);
    }

    /// Ends a fetch, or schedules a retry if its failure permits one.
    pub(super) fn end(&mut self, now: Time, fetch: usize, failure: Option<Failure>) {
        let pause = failure
            .as_ref()
            .and_then(|failure| self.fetches.all[fetch].pause_after(now, failure));
        match pause {
            Some(pause) if self.active.contains(&fetch) => {
                self.delay(now, fetch, pause, failure.as_ref());
            }
            _ => self.finish(now, fetch, failure),
        }
    }

    fn finish(&mut self, now: Time, fetch: usize, failure: Option<Failure>) {
        if self.active.remove(&fetch) {
            self.fetches.finish(now, fetch, failure);
        }
    }

    /// Handles a complete response: ends the fetch, follows a redirect, or schedules a retry.
    pub(super) fn on_response_end(&mut self, now: Time, fetch: usize) {
        match self.fetches.on_end(now, fetch) {
            Ok(NextStep::Done) => self.end(now, fetch, None),
            Ok(NextStep::FollowRedirect) if self.active.contains(&fetch) => {
                self.enqueue(now, fetch);
            }
            Ok(NextStep::RetryAfter(pause)) if self.active.contains(&fetch) => {
                self.delay(now, fetch, pause, None);
            }
            Ok(NextStep::FollowRedirect | NextStep::RetryAfter(_)) => {}
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
