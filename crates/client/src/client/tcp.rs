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
    fetch_state::Stop,
    head::{Head, Version},
    settings::Versions,
    tcp::{Command, ConnectPlan, Content, Event, ExchangeError, ProxyRoute, TcpThread, WINDOW_LEN},
    upload,
    url::Scheme,
};

/// All connections over TCP, and the thread that they live in, once there is one.
#[derive(Default)]
pub(super) struct Streams {
    thread: Option<TcpThread>,
    pub(super) all: BTreeMap<usize, Stream>,
    exchanges: u64,
}

/// One connection.
pub(super) struct Stream {
    server: usize,
    /// Known when it is open.
    version: Option<Version>,
    commands: mpsc::UnboundedSender<Command>,
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
    fetch: usize,
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
            // Open ones see that nobody commands them for anything any more, and say farewell.
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
    fn open_tcp(&mut self, now: Time, number: usize) -> Result<usize, Failure> {
        let addresses = self.candidates(number).tcp;
        let server = &self.servers.all[number];
        let thread = match &mut self.streams.thread {
            Some(thread) => thread,
            empty => {
                let made = TcpThread::start(self.clock);
                let made = made.map_err(|error| Failure::Connect(error.to_string()))?;
                empty.insert(made)
            }
        };
        let connection = self.connections;
        self.connections += 1;
        let versions = self.settings.versions;
        let proxies = &self.settings.proxies;
        let proxy_route = proxies.of(&server.origin).map(|proxy| ProxyRoute {
            authorization: proxy.credentials.as_deref().map(basic),
            tunnel: proxies
                .tunnels(&server.origin)
                .then(|| server.origin.with_port()),
        });
        let listener = &mut *self.fetches.listener;
        listener.on_tcp_connecting(connection, &server.origin, &addresses);
        let events = self
            .mailbox
            .sender(move |event| super::Event::Tcp { connection, event });
        let plan = ConnectPlan {
            addresses,
            attempt_delay: self.settings.attempt_delay,
            timeout: self.settings.connect_timeout,
            host: server.origin.host.clone(),
            tls: (server.origin.scheme == Scheme::Https).then(|| self.crypto.tcp(versions)),
            is_http2: versions == Versions::Http2Only,
            proxy: proxy_route,
        };
        let (commands, task) = thread.connect(plan, events);
        let stream = Stream {
            server: number,
            version: None,
            commands,
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
    pub(super) fn start_tcp_attempt(&mut self, now: Time, number: usize) {
        let opened = self.open_tcp(now, number);
        if let Some(attempts) = &mut self.servers.all[number].happy_eyeballs {
            match opened {
                Ok(connection) => attempts.on_tcp_started(connection),
                Err(failure) => attempts.on_tcp_failed(failure),
            }
        }
    }

    /// Sends the requests that wait for a server, where there is room, and makes room.
    pub(super) fn send_waiting_over_tcp(&mut self, now: Time, number: usize) {
        let (servers, all) = (&mut self.servers.all, &self.streams.all);
        // What one that is over still has to say, responses that came to their end among it, is on its way.
        servers[number].streams.retain(|connection| {
            let stream = all.get(connection);
            stream.is_none_or(|stream| !stream.commands.is_closed())
        });
        while let Some(connection) = self.find_free(number) {
            let Some(fetch) = self.servers.all[number].waiting.pop_front() else {
                return;
            };
            if self.active.contains(&fetch) {
                self.send_request(now, connection, fetch);
            }
        }
        // A connection for each that still waits, as far as that is permitted.
        loop {
            let server = &self.servers.all[number];
            let all = server.streams.len() + server.connecting.len();
            let wanted = server.waiting.len() > server.connecting.len();
            let max = self.settings.connections_per_host.max(1);
            if !wanted || all >= server.tcp_max.unwrap_or(max).min(max) {
                return;
            }
            match self.open_tcp(now, number) {
                Ok(connection) => {
                    self.servers.all[number].connecting.insert(connection);
                }
                Err(failure) => {
                    let waiting = core::mem::take(&mut self.servers.all[number].waiting);
                    for fetch in waiting {
                        self.end(now, fetch, Some(failure.duplicate()));
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
    fn send_request(&mut self, now: Time, connection: usize, fetch: usize) {
        let Some(stream) = self.streams.all.get_mut(&connection) else {
            return;
        };
        stream.last_used = now;
        let it = &mut self.fetches.all[fetch];
        let content = match &it.current.upload {
            None => Content::Empty,
            Some(Upload::Source(source)) => Content::Source(Arc::clone(source)),
            Some(Upload::Stream(source)) => {
                let Some(reader) = source.take() else {
                    self.end(now, fetch, Some(Failure::Rewind));
                    return;
                };
                Content::Stream(upload::read(
                    reader,
                    self.mailbox.sender(|()| super::Event::UploadReadable),
                ))
            }
        };
        let request = it.http_request(self.memory);
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
        let command = Command {
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
                fetch,
                window,
                sent,
                _cancel: cancel,
            },
        );
        let is_over = stream.commands.send(command).is_err();
        self.fetches
            .on_request(fetch, connection, version, &request);
        self.charge_lookup(fetch, server);
        if is_over {
            // It ended this moment. What it still has to say of its other requests is on its way.
            self.take_exchange(connection, exchange);
            self.servers.all[server].streams.remove(&connection);
            let why = "the server closed the connection".to_owned();
            self.retry_or_end(now, fetch, true, Failure::Response(why));
        }
    }

    /// Fetches know how much of them was sent by now.
    pub(super) fn update_sent_counts(&mut self) {
        for exchange in self
            .streams
            .all
            .values()
            .flat_map(|stream| stream.exchanges.values())
        {
            let sent = exchange.sent.load(Ordering::Relaxed);
            self.fetches.all[exchange.fetch].outcome.sent = sent;
        }
    }

    /// A fetch is of no interest any more.
    pub(super) fn cancel_over_tcp(&mut self, now: Time, fetch: usize) {
        let mut over = Vec::new();
        for (connection, stream) in &mut self.streams.all {
            let before = stream.exchanges.len();
            stream
                .exchanges
                .retain(|_, exchange| exchange.fetch != fetch);
            if before > stream.exchanges.len() && stream.version != Some(Version::Http2) {
                // The rest of the response would have to come before the next one.
                over.push(*connection);
            }
        }
        for connection in over {
            self.on_tcp_closed(now, connection, "a response was given up");
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
                self.fetches.listener.on_connected(connection, &handshake);
                let server = &mut self.servers.all[number];
                server.connecting.remove(&connection);
                self.on_tcp_won(now, number, connection);
            }
            Event::Failed(failure) => {
                self.streams.drop(connection);
                let why = failure.to_string();
                self.fetches.listener.on_disconnected(connection, &why);
                let server = &mut self.servers.all[number];
                let was_beside = server.connecting.remove(&connection);
                if was_beside && !server.streams.is_empty() {
                    // What has no room beside the others waits for them.
                    server.tcp_max = Some(server.streams.len());
                }
                if let Some(attempts) = &mut server.happy_eyeballs {
                    attempts.on_tcp_failed(failure);
                } else if was_beside && server.streams.is_empty() && server.connecting.is_empty() {
                    // Those beside which it was to be have ended since.
                    for fetch in core::mem::take(&mut server.waiting) {
                        self.end(now, fetch, Some(failure.duplicate()));
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
                let handed = self.fetches.body(it.fetch, &bytes);
                self.stop_exchange(now, connection, exchange, handed);
            }
            Event::Trailers { exchange, fields } => {
                let Some(it) = stream.exchanges.get(&exchange) else {
                    return;
                };
                let handed = self.fetches.trailers(it.fetch, &fields);
                self.stop_exchange(now, connection, exchange, handed);
            }
            Event::End { exchange, at } => {
                stream.has_served = true;
                stream.last_used = at;
                if let Some(fetch) = self.take_exchange(connection, exchange) {
                    self.on_response_end(at, fetch);
                }
            }
            Event::ExchangeFailed { exchange, why } => {
                self.on_exchange_failed(now, connection, exchange, why)
            }
            Event::Closed { why } => self.on_tcp_closed(now, connection, &why),
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
        let Some(fetch) = stream.and_then(|stream| Some(stream.exchanges.get(&exchange)?.fetch))
        else {
            return;
        };
        let is_interim = head.response.is_informational();
        let head = Head {
            version: head.version,
            response: &head.response,
            reason: &head.reason,
        };
        let handed = if is_interim {
            self.fetches.interim(fetch, &head)
        } else {
            self.fetches.head(now, fetch, &head)
        };
        self.stop_exchange(now, connection, exchange, handed);
    }

    /// An exchange is over, as far as its connection is concerned.
    fn take_exchange(&mut self, connection: usize, exchange: u64) -> Option<usize> {
        let stream = self.streams.all.get_mut(&connection)?;
        let exchange = stream.exchanges.remove(&exchange)?;
        let sent = exchange.sent.load(Ordering::Relaxed);
        self.fetches.all[exchange.fetch].outcome.sent = sent;
        Some(exchange.fetch)
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
        let Some(fetch) = self.take_exchange(connection, exchange) else {
            return;
        };
        let stream = self.streams.all.get(&connection);
        if stream.is_some_and(|stream| stream.version != Some(Version::Http2)) {
            self.on_tcp_closed(now, connection, "a response was given up");
        }
        self.on_stopped(now, fetch, stop);
    }

    fn on_exchange_failed(
        &mut self,
        now: Time,
        connection: usize,
        exchange: u64,
        why: ExchangeError,
    ) {
        let stream = self.streams.all.get(&connection);
        let may_be_stale = stream.is_some_and(|stream| stream.has_served);
        let is_http2 = stream.is_some_and(|stream| stream.version == Some(Version::Http2));
        let Some(fetch) = self.take_exchange(connection, exchange) else {
            return;
        };
        if !is_http2 {
            // Before another request goes there: it would not be heard.
            self.on_tcp_closed(now, connection, "the server closed the connection");
        }
        let is_safe = self.fetches.all[fetch].current.is_safe();
        let (may_retry, failure) = match why {
            ExchangeError::NotProcessed(why) => (true, Failure::Response(why)),
            // Servers close what was idle for long, just when it is used again (RFC 9112 §9.3.1).
            ExchangeError::Empty => (is_safe && may_be_stale, Failure::Empty),
            ExchangeError::Protocol(why) => (false, Failure::Protocol(why)),
            ExchangeError::Upload => (false, Failure::Read),
            ExchangeError::Request(why) => (false, Failure::Request(why)),
            ExchangeError::Other(why) => (is_safe && may_be_stale, Failure::Response(why)),
        };
        self.retry_or_end(now, fetch, may_retry, failure);
    }

    /// A connection is over, and all on it.
    fn on_tcp_closed(&mut self, now: Time, connection: usize, why: &str) {
        let Some(stream) = self.streams.all.remove(&connection) else {
            return;
        };
        let server = &mut self.servers.all[stream.server];
        server.streams.remove(&connection);
        server.connecting.remove(&connection);
        self.fetches.listener.on_disconnected(connection, why);
        for exchange in stream.exchanges.into_values() {
            let is_safe = self.fetches.all[exchange.fetch].current.is_safe();
            let failure = Failure::Response(why.to_owned());
            self.retry_or_end(now, exchange.fetch, is_safe, failure);
        }
    }
}
