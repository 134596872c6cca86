//! The application on a worker: who is fetched when, over which connection.
//!
//! Owns: the order of fetches, the pool of connections by origin, what is done again, and how long things may take. Never:
//! opens a socket, or reads a clock.

mod events;

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use lastbyte_driver::{Application, Datagram, Turn};
use lastbyte_http3::{self as http3, Body, Code, Request, RequestError};
use lastbyte_quic::{
    Time,
    connection::{self, Connection, Event, NetworkPath},
    endpoint::{Closed, Endpoint, Handle},
};

use crate::{
    Failure, Fetch, Listener, Memory, Origin, Outcome, Settings, Timing,
    fetch::SharedSource,
    link::{Bodies, Link, handshake_failure, reason},
    race::Race,
    settings::Crypto,
};

/// How often the listener is asked whether to go on.
const TICK: Duration = Duration::from_millis(100);

/// Where we are, and where the origins are.
pub(crate) struct Places {
    pub(crate) local: SocketAddr,
    pub(crate) addresses: BTreeMap<Origin, Result<Vec<SocketAddr>, Failure>>,
}

/// Fetches, as an application of a worker.
pub struct Client<'a> {
    settings: &'a Settings,
    memory: &'a Memory,
    crypto: Crypto,
    transport: Arc<connection::Config>,
    local: SocketAddr,
    listener: &'a mut dyn Listener,
    fetches: Vec<Fetch>,
    /// What came of each so far.
    outcomes: Vec<Outcome>,
    /// The origin of each.
    origin_of: Vec<usize>,
    /// The first whose turn has not come.
    next: usize,
    /// Those under way.
    active: BTreeSet<usize>,
    origins: Vec<Server>,
    links: BTreeMap<Handle, Link>,
    connections: usize,
    /// Connections that are not needed any more.
    to_close: Vec<Handle>,
    next_limit: Option<Time>,
    next_tick: Time,
    ended: Option<Time>,
}

/// What is known of an origin.
struct Server {
    origin: Origin,
    addresses: Vec<SocketAddr>,
    /// Why it has no addresses.
    unresolved: Option<Failure>,
    /// The connection that new requests go to.
    link: Option<Handle>,
    race: Option<Race>,
    /// Fetches that have no connection yet.
    waiting: VecDeque<usize>,
}

impl core::fmt::Debug for Client<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client")
            .field("fetches", &self.fetches.len())
            .field("next", &self.next)
            .field("active", &self.active)
            .field("links", &self.links.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Client<'a> {
    pub(crate) fn new(
        settings: &'a Settings,
        memory: &'a Memory,
        crypto: Crypto,
        places: Places,
        fetches: Vec<Fetch>,
        listener: &'a mut dyn Listener,
    ) -> Self {
        let mut numbers = BTreeMap::new();
        let mut origins = Vec::new();
        for (origin, found) in places.addresses {
            numbers.insert(origin.clone(), origins.len());
            let (addresses, unresolved) = match found {
                Ok(addresses) => (addresses, None),
                Err(failure) => (Vec::new(), Some(failure)),
            };
            origins.push(Server {
                origin,
                addresses,
                unresolved,
                link: None,
                race: None,
                waiting: VecDeque::new(),
            });
        }
        let origin_of = fetches
            .iter()
            .map(|fetch| numbers.get(fetch.url.origin()).copied().unwrap_or(0))
            .collect();
        let outcomes = fetches.iter().map(|_| Outcome::default()).collect();
        Self {
            settings,
            memory,
            crypto,
            transport: Arc::new(settings.transport.clone()),
            local: places.local,
            listener,
            fetches,
            outcomes,
            origin_of,
            next: 0,
            active: BTreeSet::new(),
            origins,
            links: BTreeMap::new(),
            connections: 0,
            to_close: Vec::new(),
            next_limit: None,
            next_tick: Time::ZERO,
            ended: None,
        }
    }

    /// What came of each fetch.
    pub(crate) fn take_outcomes(&mut self) -> Vec<Outcome> {
        core::mem::take(&mut self.outcomes)
    }

    // ---- the life of a fetch -----------------------------------------------------------------------------------------

    /// Begins as many as may be under way.
    fn begin_fetches(&mut self, now: Time) {
        while self.active.len() < self.settings.parallel.max(1) && self.next < self.fetches.len() {
            let fetch = self.next;
            self.next += 1;
            self.active.insert(fetch);
            self.outcomes[fetch].timing.begin = Some(now);
            if let Some(limit) = self.settings.time_limit {
                self.next_limit.get_or_insert(now + limit);
            }
            let server = &mut self.origins[self.origin_of[fetch]];
            match &server.unresolved {
                Some(failure) => {
                    let failure = failure.again();
                    self.end(now, fetch, Some(failure));
                }
                None => server.waiting.push_back(fetch),
            }
        }
    }

    /// A fetch is over.
    fn end(&mut self, now: Time, fetch: usize, failure: Option<Failure>) {
        if !self.active.remove(&fetch) {
            return;
        }
        let outcome = &mut self.outcomes[fetch];
        outcome.timing.end = Some(now);
        outcome.failure = failure;
        self.listener.on_done(fetch, outcome);
    }

    /// A fetch came to nothing on its connection. If it may, it goes to another.
    fn retry_or_end(&mut self, now: Time, fetch: usize, may_retry: bool, why: String) {
        let outcome = &mut self.outcomes[fetch];
        let may_retry = may_retry && outcome.status.is_none() && self.active.contains(&fetch);
        if may_retry && outcome.retries < self.settings.retries {
            outcome.retries += 1;
            outcome.timing = Timing {
                begin: outcome.timing.begin,
                ..Timing::default()
            };
            self.origins[self.origin_of[fetch]].waiting.push_back(fetch);
            return;
        }
        let received = outcome.received;
        let failure = if outcome.status.is_some() {
            Failure::Partial {
                reason: why,
                received,
            }
        } else {
            Failure::Response(why)
        };
        self.end(now, fetch, Some(failure));
    }

    /// Sends the requests that wait for this connection, as many as the server permits.
    fn launch(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        loop {
            let Some(link) = self.links.get_mut(&handle) else {
                return;
            };
            let Some(&fetch) = link.queue.front() else {
                return;
            };
            if !self.active.contains(&fetch) {
                link.queue.pop_front();
                continue;
            }
            let what = &self.fetches[fetch];
            let is_early = !link.is_open;
            if is_early && !(quic.is_zero_rtt() && what.is_safe()) {
                return;
            }
            let (request, body) = request_of(what);
            match link.http3.request(quic, &request, body) {
                Ok(stream) => {
                    link.queue.pop_front();
                    link.streams.insert(stream, fetch);
                    let outcome = &mut self.outcomes[fetch];
                    outcome.connection = Some(link.number);
                    outcome.is_early = is_early;
                    outcome.timing.request = Some(now);
                    outcome.timing.connect = link.begin.take();
                    if outcome.timing.connect.is_some() {
                        outcome.timing.connected = link.opened;
                    }
                    self.listener.on_request(fetch, link.number, &request);
                }
                Err(RequestError::Blocked) => return,
                Err(RequestError::GoingAway) => {
                    self.retire(handle);
                    return;
                }
                Err(error) => {
                    link.queue.pop_front();
                    let what = format!("the request cannot be sent: {error}");
                    self.end(now, fetch, Some(Failure::Request(what)));
                }
            }
        }
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    /// A connection takes no more requests; those that wait for it go to another.
    fn retire(&mut self, handle: Handle) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        link.is_retired = true;
        let server = &mut self.origins[link.origin];
        server.waiting.extend(link.queue.drain(..));
        if server.link == Some(handle) {
            server.link = None;
        }
        if link.streams.is_empty() {
            self.to_close.push(handle);
        }
    }

    /// A connection is over, and all on it.
    fn on_link_over(&mut self, now: Time, handle: Handle, failure: Failure) {
        let Some(mut link) = self.links.remove(&handle) else {
            return;
        };
        let server = &mut self.origins[link.origin];
        if server.link == Some(handle) {
            server.link = None;
        }
        server.waiting.extend(link.queue.drain(..));
        let why = failure.to_string();
        self.listener.on_disconnected(link.number, &why);
        if link.is_open {
            for (_, fetch) in link.streams {
                let is_safe = self.fetches[fetch].is_safe();
                self.retry_or_end(now, fetch, is_safe, why.clone());
            }
            return;
        }
        // What was sent in 0-RTT is for whoever answers.
        server.waiting.extend(link.streams.into_values());
        if let Some(race) = &mut server.race {
            race.on_failed(Some(handle), failure);
        }
    }

    /// A handshake is complete: other attempts are not needed.
    fn on_link_open(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        link.is_open = true;
        link.opened = Some(now);
        let server = &mut self.origins[link.origin];
        link.queue.extend(server.waiting.drain(..));
        server.link = Some(handle);
        if let Some(race) = server.race.take() {
            self.to_close
                .extend(race.attempts().filter(|other| *other != handle));
        }
        self.memory
            .put_remote(&server.origin, quic.network().remote);
        for fetch in link.streams.values() {
            self.outcomes[*fetch].timing.connected = Some(now);
        }
        let handshake = events::handshake(quic);
        self.listener.on_connected(link.number, &handshake);
        self.launch(now, handle, quic);
    }

    /// Leads what waits for an origin to its connection, or makes one.
    fn serve_origin(&mut self, now: Time, number: usize, endpoint: &mut Endpoint) {
        let server = &mut self.origins[number];
        if server.waiting.is_empty() && server.race.is_none() {
            return;
        }
        if let Some(handle) = server.link
            && let Some(link) = self.links.get_mut(&handle)
        {
            link.queue.extend(server.waiting.drain(..));
            if let Some(quic) = endpoint.connection(handle) {
                self.launch(now, handle, quic);
            }
            return;
        }
        if server.race.is_none() {
            let best = self.memory.remote(&server.origin);
            let best = best.filter(|best| server.addresses.contains(best));
            let others = server
                .addresses
                .iter()
                .filter(|other| Some(**other) != best);
            let addresses = best.into_iter().chain(others.copied());
            server.race = Some(Race::new(now, addresses));
        }
        self.run_race(now, number, endpoint);
    }

    fn run_race(&mut self, now: Time, number: usize, endpoint: &mut Endpoint) {
        let timeout = self.settings.connect_timeout;
        loop {
            let Some(race) = &mut self.origins[number].race else {
                return;
            };
            if race.begin + timeout <= now {
                let attempts: Vec<Handle> = race.attempts().collect();
                for handle in attempts {
                    self.drop_link(now, handle, endpoint);
                }
                self.lose_race(now, number, &Failure::ConnectTimeout(timeout));
                return;
            }
            if let Some((handle, failure)) = race.find_refused(now) {
                race.on_failed(Some(handle), failure);
                self.drop_link(now, handle, endpoint);
                continue;
            }
            if let Some(failure) = race.take_defeat() {
                self.lose_race(now, number, &failure);
                return;
            }
            let Some(remote) = race.next(now) else {
                return;
            };
            self.attempt(now, number, remote, endpoint);
        }
    }

    fn lose_race(&mut self, now: Time, number: usize, failure: &Failure) {
        let server = &mut self.origins[number];
        server.race = None;
        for fetch in core::mem::take(&mut server.waiting) {
            self.end(now, fetch, Some(failure.again()));
        }
    }

    /// Tries one address.
    fn attempt(&mut self, now: Time, number: usize, remote: SocketAddr, endpoint: &mut Endpoint) {
        let server = &mut self.origins[number];
        let path = NetworkPath {
            local: self.local,
            remote,
        };
        let connected = endpoint.connect(
            now,
            path,
            &server.origin.host,
            &self.transport,
            Arc::clone(&self.crypto.client),
            self.memory.take_token(&server.origin),
        );
        let Some(race) = &mut server.race else {
            return;
        };
        let handle = match connected {
            Ok(handle) => handle,
            Err(error) => {
                let what = format!("cannot connect to {remote}: {error}");
                race.on_failed(None, Failure::Connect(what));
                return;
            }
        };
        let Some(quic) = endpoint.connection(handle) else {
            return;
        };
        let connection = self.connections;
        self.connections += 1;
        self.listener
            .on_connecting(connection, &server.origin, remote);
        if let Some(trace) = self.listener.trace(now, connection) {
            quic.set_trace(trace);
        }
        let mut http3 = http3::Connection::client(&self.settings.http3);
        let remembered = self.memory.settings(&server.origin);
        let is_early = quic.is_zero_rtt() && remembered.is_some();
        if is_early && let Some(remembered) = remembered {
            http3 = http3.with_remembered(remembered);
        }
        race.on_begun(now, handle, remote, is_early);
        race.wait_until(now + self.settings.attempt_delay);
        let mut link = Link::new(connection, number, now, http3);
        if is_early {
            link.queue.extend(server.waiting.drain(..));
        }
        self.links.insert(handle, link);
        if is_early {
            self.launch(now, handle, quic);
        }
    }

    /// Gives a connection up. What was on it is lost.
    fn drop_link(&mut self, now: Time, handle: Handle, endpoint: &mut Endpoint) {
        let Some(mut link) = self.links.remove(&handle) else {
            return;
        };
        if let Some(quic) = endpoint.connection(handle) {
            link.http3.close(quic, now, Code::NO_ERROR);
        }
        let server = &mut self.origins[link.origin];
        server.waiting.extend(link.queue.drain(..));
        server.waiting.extend(link.streams.into_values());
    }

    // ---- time --------------------------------------------------------------------------------------------------------

    /// Ends the fetches that took too long, or all.
    fn end_late(&mut self, now: Time, endpoint: &mut Endpoint, is_interrupted: bool) {
        let limit = self.settings.time_limit;
        let begin = |client: &Self, fetch: usize| client.outcomes[fetch].timing.begin;
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
            self.give_up(now, fetch, endpoint);
            self.end(now, fetch, Some(failure));
        }
        let begins = self.active.iter().filter_map(|fetch| begin(self, *fetch));
        self.next_limit = begins.min().zip(limit).map(|(begin, limit)| begin + limit);
    }

    /// Tells the server that a fetch is of no interest any more.
    fn give_up(&mut self, now: Time, fetch: usize, endpoint: &mut Endpoint) {
        for (handle, link) in &mut self.links {
            let found = link.streams.iter().find(|(_, other)| **other == fetch);
            let Some(stream) = found.map(|(stream, _)| *stream) else {
                continue;
            };
            link.streams.remove(&stream);
            if let Some(quic) = endpoint.connection(*handle) {
                link.http3
                    .cancel(quic, now, stream, Code::REQUEST_CANCELLED);
            }
        }
        for server in &mut self.origins {
            server.waiting.retain(|other| *other != fetch);
        }
    }

    /// Whether to wait a little for tickets, since all is done.
    fn lingers(&mut self, now: Time, endpoint: &Endpoint) -> Option<Time> {
        let until = *self.ended.get_or_insert(now) + self.settings.ticket_wait;
        let lacks_ticket = self.links.iter().any(|(handle, link)| {
            let quic = endpoint.peek(*handle);
            link.is_open && quic.is_some_and(|quic| quic.session().tickets_received() == 0)
        });
        (lacks_ticket && now < until).then_some(until)
    }
}

impl Application for Client<'_> {
    type Command = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_datagram(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        datagram: Datagram<'_>,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        let Some(link) = self.links.get_mut(&handle) else {
            let sink = &mut lastbyte_quic::stream::KeepAll;
            connection.handle_datagram(now, &path, ecn, bytes, sink);
            return;
        };
        let mut bodies = Bodies {
            streams: &link.streams,
            refused: &mut link.refused,
            progress: &mut self.outcomes,
            listener: self.listener,
        };
        let mut sink = link.http3.sink(&mut bodies);
        connection.handle_datagram(now, &path, ecn, bytes, &mut sink);
    }

    fn on_ready(&mut self, now: Time, handle: Handle, connection: &mut Connection) {
        while let Some(event) = connection.poll_event() {
            self.on_transport_event(now, handle, connection, event);
        }
        loop {
            let Some(link) = self.links.get_mut(&handle) else {
                return;
            };
            let Some(event) = link.http3.poll(connection, now) else {
                break;
            };
            self.on_event(now, handle, connection, event);
        }
        self.cancel_refused(now, handle, connection);
    }

    fn on_closed(&mut self, now: Time, closed: Closed) {
        let mut quic = closed.connection;
        let close = quic.close_reason();
        let phrase = quic.close_phrase().to_owned();
        while quic.poll_event().is_some() {}
        self.on_over(now, closed.handle, close, &phrase);
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Turn {
        if self.next_tick <= now {
            self.next_tick = now + TICK;
            if !self.listener.on_tick() {
                self.interrupt(now);
                self.end_late(now, endpoint, true);
            }
        }
        if self.next_limit.is_some_and(|limit| limit <= now) {
            self.end_late(now, endpoint, false);
        }
        // What ends at once makes room for the next.
        loop {
            let before = self.next;
            self.begin_fetches(now);
            for number in 0..self.origins.len() {
                self.serve_origin(now, number, endpoint);
            }
            if self.next == before {
                break;
            }
        }
        for handle in core::mem::take(&mut self.to_close) {
            self.drop_link(now, handle, endpoint);
        }
        let races = self
            .origins
            .iter()
            .filter_map(|server| server.race.as_ref());
        let race = races
            .flat_map(|race| {
                let timeout = race.begin + self.settings.connect_timeout;
                race.deadline().into_iter().chain([timeout])
            })
            .min();
        let mut deadline = [race, self.next_limit, Some(self.next_tick)]
            .into_iter()
            .flatten()
            .min();
        let is_over = self.active.is_empty() && self.next >= self.fetches.len();
        let mut is_done = false;
        if is_over {
            let until = self.lingers(now, endpoint);
            is_done = until.is_none();
            deadline = deadline.into_iter().chain(until).min();
        }
        if is_done {
            for handle in self.links.keys().copied().collect::<Vec<_>>() {
                self.drop_link(now, handle, endpoint);
            }
        }
        Turn { deadline, is_done }
    }
}

/// A fetch as a request, and what is sent with it.
fn request_of(fetch: &Fetch) -> (Request, Body) {
    let authority = fetch.url.origin().authority();
    let host = fetch.fields.get("host");
    let authority = host
        .and_then(|host| core::str::from_utf8(host).ok())
        .unwrap_or(&authority);
    let mut request = Request::new(&fetch.method, "https", authority, fetch.url.path());
    let fields = request.fields_mut();
    for line in &fetch.fields {
        if line.name != "host" {
            fields.push(line.name, line.value);
        }
    }
    let Some(upload) = &fetch.upload else {
        return (request, Body::Empty);
    };
    if fields.get("content-length").is_none() {
        fields.push("content-length", upload.len().to_string());
    }
    let source = SharedSource(Arc::clone(upload));
    (request, Body::Source(Box::new(source)))
}
