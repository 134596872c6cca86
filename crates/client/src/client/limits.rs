//! Time limits.

use lastbyte_http3::Code;
use lastbyte_quic::{Time, endpoint::Endpoint};

use super::Client;
use crate::failure::Failure;

impl Client<'_> {
    /// Ends the fetches that exceed the time limit; all fetches if interrupted.
    pub(super) fn end_overdue(&mut self, now: Time, endpoint: &mut Endpoint, is_interrupted: bool) {
        let limit = self.settings.time_limit;
        let start = |client: &Self, fetch: usize| client.fetches.all[fetch].outcome.timing.start;
        let overdue: Vec<usize> = self
            .active
            .iter()
            .copied()
            .filter(|fetch| {
                let until = start(self, *fetch)
                    .zip(limit)
                    .map(|(start, limit)| start + limit);
                is_interrupted || until.is_some_and(|until| until <= now)
            })
            .collect();
        for fetch in overdue {
            let failure = match limit {
                Some(limit) if !is_interrupted => Failure::TimeLimit(limit),
                _ => Failure::Interrupted,
            };
            self.cancel_fetch(now, fetch, endpoint);
            self.end(now, fetch, Some(failure));
        }
        let starts = self.active.iter().filter_map(|fetch| start(self, *fetch));
        self.next_limit = starts.min().zip(limit).map(|(start, limit)| start + limit);
    }

    /// Cancels the request of a fetch.
    fn cancel_fetch(&mut self, now: Time, fetch: usize, endpoint: &mut Endpoint) {
        for (handle, link) in &mut self.links {
            link.queue.retain(|other| *other != fetch);
            let found = link.streams.iter().find(|(_, other)| **other == fetch);
            let Some(stream) = found.map(|(stream, _)| *stream) else {
                continue;
            };
            link.streams.remove(&stream);
            link.uploads.remove(&stream);
            if let Some(quic) = endpoint.connection(*handle) {
                link.http3
                    .cancel(quic, now, stream, Code::REQUEST_CANCELLED);
            }
        }
        for server in &mut self.servers.all {
            server.waiting.retain(|other| *other != fetch);
        }
        self.cancel_over_tcp(now, fetch);
    }

    /// Until when to wait for session tickets after all fetches are complete; `None` if there is nothing to wait for.
    pub(super) fn ticket_deadline(&mut self, now: Time, endpoint: &Endpoint) -> Option<Time> {
        let until = *self.ended.get_or_insert(now) + self.settings.ticket_wait;
        let lacks_ticket = self.links.iter().any(|(handle, link)| {
            let quic = endpoint.peek(*handle);
            link.is_open && quic.is_some_and(|quic| quic.session().tickets_received() == 0)
        });
        (lacks_ticket && now < until).then_some(until)
    }
}
