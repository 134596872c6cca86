//! How long things may take.

use lastbyte_http3::Code;
use lastbyte_quic::{Time, endpoint::Endpoint};

use super::Client;
use crate::Failure;

impl Client<'_> {
    /// Ends the fetches that took too long, or all.
    pub(super) fn end_late(&mut self, now: Time, endpoint: &mut Endpoint, is_interrupted: bool) {
        let limit = self.settings.time_limit;
        let begin = |client: &Self, job: usize| client.jobs.all[job].outcome.timing.begin;
        let late: Vec<usize> = self
            .active
            .iter()
            .copied()
            .filter(|job| {
                let until = begin(self, *job)
                    .zip(limit)
                    .map(|(begin, limit)| begin + limit);
                is_interrupted || until.is_some_and(|until| until <= now)
            })
            .collect();
        for job in late {
            let failure = match limit {
                Some(limit) if !is_interrupted => Failure::TimeLimit(limit),
                _ => Failure::Interrupted,
            };
            self.end(now, job, Some(failure));
            self.give_up(now, job, endpoint);
        }
        let begins = self.active.iter().filter_map(|job| begin(self, *job));
        self.next_limit = begins.min().zip(limit).map(|(begin, limit)| begin + limit);
    }

    /// Tells the server that a fetch is of no interest any more.
    fn give_up(&mut self, now: Time, job: usize, endpoint: &mut Endpoint) {
        for (handle, link) in &mut self.links {
            link.queue.retain(|other| *other != job);
            let found = link.streams.iter().find(|(_, other)| **other == job);
            let Some(stream) = found.map(|(stream, _)| *stream) else {
                continue;
            };
            link.streams.remove(&stream);
            link.pumps.remove(&stream);
            if let Some(quic) = endpoint.connection(*handle) {
                link.http3
                    .cancel(quic, now, stream, Code::REQUEST_CANCELLED);
            }
        }
        for server in &mut self.servers.all {
            server.waiting.retain(|other| *other != job);
        }
        self.give_up_over_tcp(now, job);
    }

    /// Whether to wait a little for tickets, since all is done.
    pub(super) fn lingers(&mut self, now: Time, endpoint: &Endpoint) -> Option<Time> {
        let until = *self.ended.get_or_insert(now) + self.settings.ticket_wait;
        let lacks_ticket = self.links.iter().any(|(handle, link)| {
            let quic = endpoint.peek(*handle);
            link.is_open && quic.is_some_and(|quic| quic.session().tickets_received() == 0)
        });
        (lacks_ticket && now < until).then_some(until)
    }
}
