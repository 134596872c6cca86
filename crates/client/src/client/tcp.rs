//! Connections over TCP, and the requests on them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use lastbyte_quic::Time;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::AbortHandle,
};

use super::Client;
use crate::{
    base64::basic,
    connection_reuse::{IdleConnection, best_idle},
    failure::Failure,
    fetch::Upload,
    head::{Head, Version},
    job::Stop,
    settings::Versions,
    tcp::{Ask, Broken, Content, Event, Plan, Tcp, Via, WINDOW_LEN},
    upload,
    url::Scheme,
};

/// All connections over TCP, and the thread that they live in, once there is one.
#[derive(Default)]
pub(super) struct Streams {
    thread: Option<Tcp>,
    pub(super) all: BTreeMap<usize, Stream>,
    exchanges: u64,
}

/// One connection.
pub(super) struct Stream {
    server: usize,
    /// Known when it is open.
    version: Option<Version>,
    asks: mpsc::UnboundedSender<Ask>,
    task: AbortHandle,
    exchanges: BTreeMap<u64, Exchange>,
    /// Whether it has carried a response, so that the server may have closed it since.
    has_served: bool,
    begin: Option<Time>,
    connected: Option<Time>,
    opened: Option<Time>,
    /// When it last carried a request or the end of a response.
    last_used: Time,
}

/// A request under way.
struct Exchange {
    job: usize,
    window: Arc<Semaphore>,
    sent: Arc<AtomicU64>,
    /// Dropped when nobody wants the response any more.
    _cancel: oneshot::Sender<()>,
}

impl Streams {
    /// Gives a connection up.
    pub(super) fn drop(&mut self, connection: usize) {
        if let Some(stream) = self.all.remove(&connection)
            && stream.version.is_none()
        {
            // Open ones see that nobody asks them for anything any more, and say farewell.
            stream.task.abort();
        }
    }

    /// All are over.
    pub(super) fn close(&mut self) {
        for connection in self.all.keys().copied().collect::<Vec<_>>() {
            self.drop(connection);
        }
        self.thread = None;
    }
}

impl Client<'_> {
    /// Begins a connection.
    fn dial(&mut self, now: Time, number: usize) -> Result<usize, Failure> {
        let addresses = self.candidates(number).tcp;
        let server = &self.servers.all[number];
        let thread = match &mut self.streams.thread {
            Some(thread) => thread,
            empty => {
                let made = Tcp::start(self.clock);
                let made = made.map_err(|error| Failure::Connect(error.to_string()))?;
                empty.insert(made)
            }
        };
        let connection = self.connections;
        self.connections += 1;
        let versions = self.settings.versions;
        let proxies = &self.settings.proxies;
        let via = proxies.of(&server.origin).map(|proxy| Via {
            authorization: proxy.credentials.as_deref().map(basic),
            tunnel: proxies
                .tunnels(&server.origin)
                .then(|| server.origin.with_port()),
        });
        let listener = &mut *self.jobs.listener;
        listener.on_dialing(connection, &server.origin, &addresses);
        let events = self
            .mailbox
            .sender(move |event| super::Event::Tcp { connection, event });
        let plan = Plan {
            addresses,
            attempt_delay: self.settings.attempt_delay,
            timeout: self.settings.connect_timeout,
            host: server.origin.host.clone(),
            tls: (server.origin.scheme == Scheme::Https).then(|| self.crypto.tcp(versions)),
            is_http2: versions == Versions::Http2Only,
            via,
        };
        let (asks, task) = thread.connect(plan, events);
        let stream = Stream {
            server: number,
            version: None,
            asks,
            task,
            exchanges: BTreeMap::new(),
            has_served: false,
            begin: Some(now),
            connected: None,
            opened: None,
            last_used: now,
        };
        self.streams.all.insert(connection, stream);
        Ok(connection)
    }

    /// TCP joins the race.
    pub(super) fn connect_tcp(&mut self, now: Time, number: usize) {
        let dialed = self.dial(now, number);
        if let Some(attempts) = &mut self.servers.all[number].happy_eyeballs {
            match dialed {
                Ok(connection) => attempts.on_tcp_begun(connection),
                Err(failure) => attempts.on_tcp_failed(failure),
            }
        }
    }

    /// Sends the requests that wait for a server, where there is room, and makes room.
    pub(super) fn launch_over_tcp(&mut self, now: Time, number: usize) {
        let (servers, all) = (&mut self.servers.all, &self.streams.all);
        // What one that is over still has to say, responses that came to their end among it, is on its way.
        servers[number].streams.retain(|connection| {
            let stream = all.get(connection);
            stream.is_none_or(|stream| !stream.asks.is_closed())
        });
        while let Some(connection) = self.find_free(number) {
            let Some(job) = self.servers.all[number].waiting.pop_front() else {
                return;
            };
            if self.active.contains(&job) {
                self.ask(now, connection, job);
            }
        }
        // A connection for each that still waits, as far as that is permitted.
        loop {
            let server = &self.servers.all[number];
            let all = server.streams.len() + server.dialing.len();
            let wanted = server.waiting.len() > server.dialing.len();
            let max = self.settings.connections_per_host.max(1);
            if !wanted || all >= server.streams_max.unwrap_or(max).min(max) {
                return;
            }
            match self.dial(now, number) {
                Ok(connection) => {
                    self.servers.all[number].dialing.insert(connection);
                }
                Err(failure) => {
                    let waiting = core::mem::take(&mut self.servers.all[number].waiting);
                    for job in waiting {
                        self.end(now, job, Some(failure.again()));
                    }
                    return;
                }
            }
        }
    }

    /// A connection that takes a request at once; of several, the one that can carry it soonest.
    fn find_free(&self, number: usize) -> Option<usize> {
        let open = self.servers.all[number].streams.iter();
        let free = open.filter_map(|connection| {
            let stream = self.streams.all.get(connection)?;
            let is_free = stream.version == Some(Version::Http2) || stream.exchanges.is_empty();
            let idle = IdleConnection {
                window_left: 0,
                received: 0,
                rtt: None,
                last_used: stream.last_used,
            };
            is_free.then_some((*connection, idle))
        });
        best_idle(free, false)
    }

    /// Sends one request.
    fn ask(&mut self, now: Time, connection: usize, job: usize) {
        let Some(stream) = self.streams.all.get_mut(&connection) else {
            return;
        };
        stream.last_used = now;
        let it = &mut self.jobs.all[job];
        let content = match &it.fetch.upload {
            None => Content::Empty,
            Some(Upload::Source(source)) => Content::Source(Arc::clone(source)),
            Some(Upload::Stream(source)) => {
                let Some(reader) = source.take() else {
                    self.end(now, job, Some(Failure::Rewind));
                    return;
                };
                Content::Stream(upload::read(
                    reader,
                    self.mailbox.sender(|()| super::Event::UploadReadable),
                ))
            }
        };
        let request = it.request(self.memory);
        let (cancel, cancelled) = oneshot::channel();
        let window = Arc::new(Semaphore::new(WINDOW_LEN));
        let sent = Arc::new(AtomicU64::new(0));
        let exchange = self.streams.exchanges;
        self.streams.exchanges += 1;
        let outcome = &mut it.outcome;
        outcome.connection = Some(connection);
        outcome.is_early = false;
        outcome.timing.request = Some(now);
        outcome.timing.connect = stream.begin.take();
        if outcome.timing.connect.is_some() {
            outcome.timing.transport = stream.connected;
            outcome.timing.connected = stream.opened;
        }
        let version = stream.version.unwrap_or(Version::Http11);
        let server = stream.server;
        let ask = Ask {
            exchange,
            request: request.clone(),
            content,
            sent: Arc::clone(&sent),
            window: Arc::clone(&window),
            cancelled,
        };
        stream.exchanges.insert(
            exchange,
            Exchange {
                job,
                window,
                sent,
                _cancel: cancel,
            },
        );
        let is_over = stream.asks.send(ask).is_err();
        self.jobs.on_request(job, connection, version, &request);
        self.charge_lookup(job, server);
        if is_over {
            // It ended this moment. What it still has to say of its other requests is on its way.
            self.take_exchange(connection, exchange);
            self.servers.all[server].streams.remove(&connection);
            let why = "the server closed the connection".to_owned();
            self.retry_or_end(now, job, true, Failure::Response(why));
        }
    }

    /// Fetches know how much of them was sent by now.
    pub(super) fn note_sent(&mut self) {
        for exchange in self
            .streams
            .all
            .values()
            .flat_map(|stream| stream.exchanges.values())
        {
            let sent = exchange.sent.load(Ordering::Relaxed);
            self.jobs.all[exchange.job].outcome.sent = sent;
        }
    }

    /// A fetch is of no interest any more.
    pub(super) fn give_up_over_tcp(&mut self, now: Time, job: usize) {
        let mut over = Vec::new();
        for (connection, stream) in &mut self.streams.all {
            let before = stream.exchanges.len();
            stream.exchanges.retain(|_, exchange| exchange.job != job);
            if before > stream.exchanges.len() && stream.version != Some(Version::Http2) {
                // The rest of the response would have to come before the next one.
                over.push(*connection);
            }
        }
        for connection in over {
            self.on_stream_over(now, connection, "a response was given up");
        }
    }

    // ---- what connections tell ---------------------------------------------------------------------------------------

    pub(super) fn on_tcp_event(&mut self, now: Time, connection: usize, event: Event) {
        let Some(stream) = self.streams.all.get_mut(&connection) else {
            // It was given up.
            return;
        };
        let number = stream.server;
        match event {
            Event::Connected { at } => stream.connected = Some(at),
            Event::Open { at, handshake } => {
                stream.opened = Some(at);
                stream.version = Some(handshake.version);
                self.jobs.listener.on_connected(connection, &handshake);
                let server = &mut self.servers.all[number];
                server.dialing.remove(&connection);
                self.on_tcp_won(now, number, connection);
            }
            Event::Failed(failure) => {
                self.streams.drop(connection);
                let why = failure.to_string();
                self.jobs.listener.on_disconnected(connection, &why);
                let server = &mut self.servers.all[number];
                let was_beside = server.dialing.remove(&connection);
                if was_beside && !server.streams.is_empty() {
                    // What has no room beside the others waits for them.
                    server.streams_max = Some(server.streams.len());
                }
                if let Some(attempts) = &mut server.happy_eyeballs {
                    attempts.on_tcp_failed(failure);
                } else if was_beside && server.streams.is_empty() && server.dialing.is_empty() {
                    // Those beside which it was to be have ended since.
                    for job in core::mem::take(&mut server.waiting) {
                        self.end(now, job, Some(failure.again()));
                    }
                }
            }
            Event::Interim { exchange, head } => self.on_tcp_head(now, connection, exchange, &head),
            Event::Head { exchange, at, head } => self.on_tcp_head(at, connection, exchange, &head),
            Event::Body { exchange, bytes } => {
                let Some(it) = stream.exchanges.get(&exchange) else {
                    return;
                };
                it.window.add_permits(bytes.len().clamp(1, WINDOW_LEN));
                let handed = self.jobs.body(it.job, &bytes);
                self.stop_exchange(now, connection, exchange, handed);
            }
            Event::Trailers { exchange, fields } => {
                let Some(it) = stream.exchanges.get(&exchange) else {
                    return;
                };
                let handed = self.jobs.trailers(it.job, &fields);
                self.stop_exchange(now, connection, exchange, handed);
            }
            Event::End { exchange, at } => {
                stream.has_served = true;
                stream.last_used = at;
                if let Some(job) = self.take_exchange(connection, exchange) {
                    self.on_response_end(at, job);
                }
            }
            Event::Broken { exchange, why } => self.on_broken(now, connection, exchange, why),
            Event::Closed { why } => self.on_stream_over(now, connection, &why),
        }
    }

    fn on_tcp_head(
        &mut self,
        now: Time,
        connection: usize,
        exchange: u64,
        head: &crate::tcp::OwnedHead,
    ) {
        let stream = self.streams.all.get(&connection);
        let Some(job) = stream.and_then(|stream| Some(stream.exchanges.get(&exchange)?.job)) else {
            return;
        };
        let is_interim = head.response.is_informational();
        let head = Head {
            version: head.version,
            response: &head.response,
            reason: &head.reason,
        };
        let handed = if is_interim {
            self.jobs.interim(job, &head)
        } else {
            self.jobs.head(now, job, &head)
        };
        self.stop_exchange(now, connection, exchange, handed);
    }

    /// An exchange is over, as far as its connection is concerned.
    fn take_exchange(&mut self, connection: usize, exchange: u64) -> Option<usize> {
        let stream = self.streams.all.get_mut(&connection)?;
        let exchange = stream.exchanges.remove(&exchange)?;
        let sent = exchange.sent.load(Ordering::Relaxed);
        self.jobs.all[exchange.job].outcome.sent = sent;
        Some(exchange.job)
    }

    /// No more of a response is wanted, if that is so.
    fn stop_exchange(
        &mut self,
        now: Time,
        connection: usize,
        exchange: u64,
        handed: Result<(), Stop>,
    ) {
        let Err(stop) = handed else { return };
        let Some(job) = self.take_exchange(connection, exchange) else {
            return;
        };
        let stream = self.streams.all.get(&connection);
        if stream.is_some_and(|stream| stream.version != Some(Version::Http2)) {
            self.on_stream_over(now, connection, "a response was given up");
        }
        self.on_stopped(now, job, stop);
    }

    fn on_broken(&mut self, now: Time, connection: usize, exchange: u64, why: Broken) {
        let stream = self.streams.all.get(&connection);
        let may_be_stale = stream.is_some_and(|stream| stream.has_served);
        let is_http2 = stream.is_some_and(|stream| stream.version == Some(Version::Http2));
        let Some(job) = self.take_exchange(connection, exchange) else {
            return;
        };
        if !is_http2 {
            // Before another request goes there: it would not be heard.
            self.on_stream_over(now, connection, "the server closed the connection");
        }
        let is_safe = self.jobs.all[job].fetch.is_safe();
        let (may_retry, failure) = match why {
            Broken::NotProcessed(why) => (true, Failure::Response(why)),
            // Servers close what was idle for long, just when it is used again (RFC 9112 §9.3.1).
            Broken::Empty => (is_safe && may_be_stale, Failure::Empty),
            Broken::Protocol(why) => (false, Failure::Protocol(why)),
            Broken::Upload => (false, Failure::Read),
            Broken::Request(why) => (false, Failure::Request(why)),
            Broken::Other(why) => (is_safe && may_be_stale, Failure::Response(why)),
        };
        self.retry_or_end(now, job, may_retry, failure);
    }

    /// A connection is over, and all on it.
    fn on_stream_over(&mut self, now: Time, connection: usize, why: &str) {
        let Some(stream) = self.streams.all.remove(&connection) else {
            return;
        };
        let server = &mut self.servers.all[stream.server];
        server.streams.remove(&connection);
        server.dialing.remove(&connection);
        self.jobs.listener.on_disconnected(connection, why);
        for exchange in stream.exchanges.into_values() {
            let is_safe = self.jobs.all[exchange.job].fetch.is_safe();
            let failure = Failure::Response(why.to_owned());
            self.retry_or_end(now, exchange.job, is_safe, failure);
        }
    }
}
