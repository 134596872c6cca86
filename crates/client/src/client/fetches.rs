//! The life of a fetch: its turn, its retries, its end.

use core::time::Duration;

use lastbyte_quic::Time;

use super::Client;
use crate::{
    failure::Failure,
    fetch_state::{NextStep, Stop},
    settings::Versions,
};

impl Client<'_> {
    /// Begins as many as may be under way.
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

    /// A fetch is begun again after a pause.
    fn delay(&mut self, now: Time, fetch: usize, pause: Duration, failure: Option<&Failure>) {
        if let Some(server) = self.fetches.all[fetch].server {
            // A name that was not found is looked up again.
            self.servers.all[server].forget_failure();
        }
        match self.fetches.schedule_retry(fetch, pause, failure) {
            Ok(()) => {
                self.delayed.insert((now + pause, fetch));
            }
            Err(failure) => self.finish(now, fetch, Some(failure)),
        }
    }

    /// A fetch waits for a connection to its server.
    pub(super) fn enqueue(&mut self, now: Time, fetch: usize) {
        let origin = self.fetches.all[fetch].current.url.origin();
        let versions = self.settings.versions;
        if origin.scheme == crate::url::Scheme::Http && !versions.has_tcp() {
            let what = format!("HTTP/3 is not spoken without TLS: `{origin}` is asked for as http");
            self.end(now, fetch, Some(Failure::Scheme(what)));
            return;
        }
        if versions == Versions::Http3
            && let Some(proxy) = self.settings.proxies.of(origin)
        {
            let what = format!(
                "HTTP/3 does not go through the proxy {proxy:?}; leave out one of them, or name `{}` as an exception",
                origin.host
            );
            self.end(now, fetch, Some(Failure::Scheme(what)));
            return;
        }
        let server = self.servers.number(origin);
        self.fetches.all[fetch].server = Some(server);
        self.servers.all[server].waiting.push_back(fetch);
    }

    /// A fetch is over, or begun again if that may help.
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
            self.fetches.close(now, fetch, failure);
        }
    }

    /// A response is there as a whole: the fetch is over, or goes on where the response leads.
    pub(super) fn on_response_end(&mut self, now: Time, fetch: usize) {
        match self.fetches.end(now, fetch) {
            Ok(NextStep::Done) => self.end(now, fetch, None),
            Ok(NextStep::FollowRedirect) if self.active.contains(&fetch) => {
                self.enqueue(now, fetch)
            }
            Ok(NextStep::RetryAfter(pause)) if self.active.contains(&fetch) => {
                self.delay(now, fetch, pause, None);
            }
            Ok(NextStep::FollowRedirect | NextStep::RetryAfter(_)) => {}
            Err(failure) => self.end(now, fetch, Some(failure)),
        }
    }

    /// No more of a response is wanted, and none will come.
    pub(super) fn on_stopped(&mut self, now: Time, fetch: usize, stop: Stop) {
        match stop {
            Stop::Failed(failure) => self.end(now, fetch, Some(failure)),
            Stop::Complete => self.on_response_end(now, fetch),
        }
    }

    /// A fetch came to nothing on its connection. If it may, it goes to another.
    pub(super) fn retry_or_end(&mut self, now: Time, fetch: usize, may_retry: bool, why: Failure) {
        let it = &mut self.fetches.all[fetch];
        let has_begun = it.outcome.status.is_some();
        let is_stream = matches!(it.current.upload, Some(crate::fetch::Upload::Stream(_)));
        let may_retry = may_retry && !has_begun && self.active.contains(&fetch);
        if may_retry && it.outcome.retries < self.settings.retries && !is_stream {
            it.outcome.retries += 1;
            it.outcome.sent = 0;
            it.reset_attempt();
            self.enqueue(now, fetch);
            return;
        }
        let received = it.outcome.received;
        let failure = match why {
            Failure::Response(reason) if has_begun => Failure::Partial { reason, received },
            Failure::Empty if has_begun => Failure::Partial {
                reason: "the connection ended".to_owned(),
                received,
            },
            why => why,
        };
        self.end(now, fetch, Some(failure));
    }

    /// Nothing more is begun.
    pub(super) fn interrupt(&mut self, now: Time) {
        while self.next < self.fetches.all.len() {
            let fetch = self.next;
            self.next += 1;
            self.active.insert(fetch);
            self.end(now, fetch, Some(Failure::Interrupted));
        }
    }
}
