//! The life of a fetch: its turn, its retries, its end.

use core::time::Duration;

use lastbyte_quic::Time;

use super::Client;
use crate::{
    failure::Failure,
    job::{Ending, Stop},
    settings::Versions,
};

impl Client<'_> {
    /// Begins as many as may be under way.
    pub(super) fn begin_fetches(&mut self, now: Time) {
        let parallel = self.settings.parallel.max(1);
        while self.active.len() < parallel && self.next < self.jobs.all.len() {
            let job = self.next;
            self.next += 1;
            self.active.insert(job);
            self.begin(now, job);
        }
        while let Some((at, job)) = self.delayed.first().copied()
            && at <= now
        {
            self.delayed.pop_first();
            if self.active.contains(&job) {
                self.begin(now, job);
            }
        }
    }

    fn begin(&mut self, now: Time, job: usize) {
        self.jobs.begin(now, job);
        if let Some(limit) = self.settings.time_limit {
            self.next_limit.get_or_insert(now + limit);
        }
        self.enqueue(now, job);
    }

    /// A fetch is begun again after a pause.
    fn delay(&mut self, now: Time, job: usize, pause: Duration, failure: Option<&Failure>) {
        if let Some(server) = self.jobs.all[job].server {
            // A name that was not found is looked up again.
            self.servers.all[server].forget_failure();
        }
        match self.jobs.again(job, pause, failure) {
            Ok(()) => {
                self.delayed.insert((now + pause, job));
            }
            Err(failure) => self.finish(now, job, Some(failure)),
        }
    }

    /// A fetch waits for a connection to its server.
    pub(super) fn enqueue(&mut self, now: Time, job: usize) {
        let origin = self.jobs.all[job].fetch.url.origin();
        let versions = self.settings.versions;
        if origin.scheme == crate::url::Scheme::Http && !versions.has_tcp() {
            let what = format!("HTTP/3 is not spoken without TLS: `{origin}` is asked for as http");
            self.end(now, job, Some(Failure::Scheme(what)));
            return;
        }
        if versions == Versions::Http3
            && let Some(proxy) = self.settings.proxies.of(origin)
        {
            let what = format!(
                "HTTP/3 does not go through the proxy {proxy:?}; leave out one of them, or name `{}` as an exception",
                origin.host
            );
            self.end(now, job, Some(Failure::Scheme(what)));
            return;
        }
        let server = self.servers.number(origin);
        self.jobs.all[job].server = Some(server);
        self.servers.all[server].waiting.push_back(job);
    }

    /// A fetch is over, or begun again if that may help.
    pub(super) fn end(&mut self, now: Time, job: usize, failure: Option<Failure>) {
        let pause = failure
            .as_ref()
            .and_then(|failure| self.jobs.all[job].pause_after(now, failure));
        match pause {
            Some(pause) if self.active.contains(&job) => {
                self.delay(now, job, pause, failure.as_ref());
            }
            _ => self.finish(now, job, failure),
        }
    }

    fn finish(&mut self, now: Time, job: usize, failure: Option<Failure>) {
        if self.active.remove(&job) {
            self.jobs.close(now, job, failure);
        }
    }

    /// A response is there as a whole: the fetch is over, or goes on where the response leads.
    pub(super) fn on_response_end(&mut self, now: Time, job: usize) {
        match self.jobs.end(now, job) {
            Ok(Ending::Done) => self.end(now, job, None),
            Ok(Ending::Again) if self.active.contains(&job) => self.enqueue(now, job),
            Ok(Ending::Later(pause)) if self.active.contains(&job) => {
                self.delay(now, job, pause, None);
            }
            Ok(Ending::Again | Ending::Later(_)) => {}
            Err(failure) => self.end(now, job, Some(failure)),
        }
    }

    /// No more of a response is wanted, and none will come.
    pub(super) fn on_stopped(&mut self, now: Time, job: usize, stop: Stop) {
        match stop {
            Stop::Failed(failure) => self.end(now, job, Some(failure)),
            Stop::Enough => self.on_response_end(now, job),
        }
    }

    /// A fetch came to nothing on its connection. If it may, it goes to another.
    pub(super) fn retry_or_end(&mut self, now: Time, job: usize, may_retry: bool, why: Failure) {
        let it = &mut self.jobs.all[job];
        let has_begun = it.outcome.status.is_some();
        let is_stream = matches!(it.fetch.upload, Some(crate::fetch::Upload::Stream(_)));
        let may_retry = may_retry && !has_begun && self.active.contains(&job);
        if may_retry && it.outcome.retries < self.settings.retries && !is_stream {
            it.outcome.retries += 1;
            it.outcome.sent = 0;
            it.restart();
            self.enqueue(now, job);
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
        self.end(now, job, Some(failure));
    }

    /// Nothing more is begun.
    pub(super) fn interrupt(&mut self, now: Time) {
        while self.next < self.jobs.all.len() {
            let job = self.next;
            self.next += 1;
            self.active.insert(job);
            self.end(now, job, Some(Failure::Interrupted));
        }
    }
}
