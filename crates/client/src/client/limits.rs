//! How long things may take.

use lastbyte_http3::Code;
use lastbyte_quic::{Time, endpoint::Endpoint};

use super::Client;
use crate::failure::Failure;

impl Client<'_> {
    /// Ends the fetches that took too long, or all.
    pub(super) fn end_overdue(&mut self, now: Time, endpoint: &mut Endpoint, is_interrupted: bool) {
        let limit = self.settings.time_limit;
        let begin = |client: &Self, fetch: usize| client.fetches.all[fetch].outcome.timing.start;
        let late: Vec<usize> = self
            .active
            .iter()
            .copied()
            .filter(|fetch| {
                let until = begin(self, *fetch)
                    .zip(limit)
                    .map(|(begin, limit)| begin + limit);
                is_interrupted || until.is_some_and(|until| until <= now)
            })
            .collect();
        for fetch in late {
            let failure = match limit {
                Some(limit) if !is_interrupted => Failure::TimeLimit(limit),
                _ => Failure::Interrupted,
            };
            self.cancel_fetch(now, fetch, endpoint);
            self.end(now, fetch, Some(failure));
        }
        let begins = self.active.iter().filter_map(|fetch| begin(self, *fetch));
        self.next_limit = begins.min().zip(limit).map(|(begin, limit)| begin + limit);
    }

    /// Ends the fetches of which too little moves.
    pub(super) fn end_slow(&mut self, now: Time, endpoint: &mut Endpoint) {
        let Some((least, span)) = self.settings.speed_limit else {
            return;
        };
        self.update_sent_counts();
        let mut slow = Vec::new();
        for fetch in &self.active {
            let it = &mut self.fetches.all[*fetch];
            let outcome = &it.outcome;
            // Of an upload over QUIC, how far it is, is not told before there is an answer.
            let is_over_tcp = outcome
                .connection
                .is_some_and(|it| self.streams.all.contains_key(&it));
            let is_counted = is_over_tcp || it.current.upload.is_none() || outcome.status.is_some();
            if outcome.timing.request.is_none() || !is_counted {
                it.pace = None;
                continue;
            }
            let moved = outcome.received + outcome.sent;
            let (since, before) = *it.pace.get_or_insert((now, moved));
            if now.since(since) < span {
                continue;
            }
            // What it takes in the time that it took.
            let wanted = least as f64 * now.since(since).as_secs_f64();
            if (moved.saturating_sub(before) as f64) < wanted {
                slow.push(*fetch);
            } else {
                it.pace = Some((now, moved));
            }
        }
        for fetch in slow {
            self.cancel_fetch(now, fetch, endpoint);
            self.end(now, fetch, Some(Failure::Slow(least, span)));
        }
    }

    /// Tells the server that a fetch is of no interest any more.
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

    /// Whether to wait a little for tickets, since all is done.
    pub(super) fn ticket_deadline(&mut self, now: Time, endpoint: &Endpoint) -> Option<Time> {
        let until = *self.ended.get_or_insert(now) + self.settings.ticket_wait;
        let lacks_ticket = self.links.iter().any(|(handle, link)| {
            let quic = endpoint.peek(*handle);
            link.is_open && quic.is_some_and(|quic| quic.session().tickets_received() == 0)
        });
        (lacks_ticket && now < until).then_some(until)
    }
}
