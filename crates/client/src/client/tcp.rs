//! TCP connections and their requests.

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
    connection_reuse::{IdleConnection, best_idle},
    failure::Failure,
    fetch::Upload,
    fetch_state::Stop,
    head::{Head, Version},
    settings::Versions,
    tcp::{Command, ConnectPlan, Content, Event, ExchangeError, TcpThread, WINDOW_LEN},
    upload,
    url::Scheme,
};

/// All TCP connections, and their thread, which is started with the first connection.
#[derive(Default)]
pub(super) struct TcpConnections {
    thread: Option<TcpThread>,
    pub(super) all: BTreeMap<usize, TcpConnection>,
    exchanges: u64,
}

/// A TCP connection.
pub(super) struct TcpConnection {
    server: usize,
    /// The HTTP version, once the connection is open.
    version: Option<Version>,
    commands: mpsc::UnboundedSender<Command>,
    task: AbortHandle,
    exchanges: BTreeMap<u64, Exchange>,
    /// Whether it has carried a response, so that the server may have closed it while it was idle.
    has_responded: bool,
    started: Option<Time>,
    connected: Option<Time>,
    opened: Option<Time>,
    /// When it last carried a request or the end of a response.
    last_used: Time,
}

/// A request in progress.
struct Exchange {
    fetch: usize,
    window: Arc<Semaphore>,
    sent: Arc<AtomicU64>,
    /// Dropping it cancels the request.
    _cancel: oneshot::Sender<()>,
}

impl TcpConnections {
    /// Closes a connection.
    pub(super) fn drop(&mut self, connection: usize) {
        if let Some(stream) = self.all.remove(&connection)
            && stream.version.is_none()
        {
            // An open connection closes itself when its command channel is closed.
            stream.task.abort();
        }
    }

    /// Closes all connections and stops the thread.
    pub(super) fn close(&mut self) {
        for connection in self.all.keys().copied().collect::<Vec<_>>() {
            self.drop(connection);
        }
        self.thread = None;
    }
}

impl Client<'_> {
    /// Opens a connection.
    fn open_tcp(&mut self, now: Time, number: usize) -> Result<usize, Failure> {
        let addresses = self.candidates(number).tcp;
        let server = &self.servers.all[number];
        let thread = match &mut self.tcp.thread {
            Some(thread) => thread,
            empty => {
                let thread = TcpThread::start(self.clock);
                let thread = thread.map_err(|error| Failure::Connect(error.to_string()))?;
                empty.insert(thread)
            }
        };
        let connection = self.connections;
        self.connections += 1;
        let versions = self.settings.versions;
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
        };
        let (commands, task) = thread.connect(plan, events);
        let stream = TcpConnection {
            server: number,
            version: None,
            commands,
            task,
            exchanges: BTreeMap::new(),
            has_responded: false,
            started: Some(now),
            connected: None,
            opened: None,
            last_used: now,
        };
        self.tcp.all.insert(connection, stream);
        Ok(connection)
    }

    /// Starts the TCP attempt beside those over QUIC.
    pub(super) fn start_tcp_attempt(&mut self, now: Time, number: usize) {
        let opened = self.open_tcp(now, number);
        if let Some(attempts) = &mut self.servers.all[number].happy_eyeballs {
            match opened {
                Ok(connection) => attempts.on_tcp_started(connection),
                Err(failure) => attempts.on_tcp_failed(failure),
            }
        }
    }

    /// Sends the waiting requests of a server on free connections, and opens further ones if there are too few.
    pub(super) fn send_waiting_over_tcp(&mut self, now: Time, number: usize) {
        let (servers, all) = (&mut self.servers.all, &self.tcp.all);
        // Events of a closed connection, such as the ends of responses, may still be in the mailbox.
        servers[number].tcp_open.retain(|connection| {
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
        // Open one connection for each waiting request, up to the limit.
        loop {
            let server = &self.servers.all[number];
            let all = server.tcp_open.len() + server.tcp_connecting.len();
            let is_needed = server.waiting.len() > server.tcp_connecting.len();
            let max = self.settings.connections_per_host.max(1);
            if !is_needed || all >= server.tcp_max.unwrap_or(max).min(max) {
                return;
            }
            match self.open_tcp(now, number) {
                Ok(connection) => {
                    self.servers.all[number].tcp_connecting.insert(connection);
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

    /// The best connection that can take a request now.
    fn find_free(&self, number: usize) -> Option<usize> {
        let open = self.servers.all[number].tcp_open.iter();
        let free = open.filter_map(|connection| {
            let stream = self.tcp.all.get(connection)?;
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
        let Some(stream) = self.tcp.all.get_mut(&connection) else {
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
        let version = stream.version.unwrap_or(Version::Http11);
        let request = it.http_request(version);
        let (cancel, cancelled) = oneshot::channel();
        let window = Arc::new(Semaphore::new(WINDOW_LEN));
        let sent = Arc::new(AtomicU64::new(0));
        let exchange = self.tcp.exchanges;
        self.tcp.exchanges += 1;
        let outcome = &mut it.outcome;
        outcome.connection = Some(connection);
        outcome.is_early = false;
        outcome.timing.request = Some(now);
        outcome.timing.connect = stream.started.take();
        if outcome.timing.connect.is_some() {
            outcome.timing.transport = stream.connected;
            outcome.timing.connected = stream.opened;
        }
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
            // The connection has just ended. Events of its other requests may still be in the mailbox.
            self.take_exchange(connection, exchange);
            self.servers.all[server].tcp_open.remove(&connection);
            let why = "the server closed the connection".to_owned();
            self.retry_or_end(now, fetch, true, Failure::Response(why));
        }
    }

    /// Cancels the request of a fetch.
    pub(super) fn cancel_over_tcp(&mut self, now: Time, fetch: usize) {
        let mut over = Vec::new();
        for (connection, stream) in &mut self.tcp.all {
            let before = stream.exchanges.len();
            stream
                .exchanges
                .retain(|_, exchange| exchange.fetch != fetch);
            if before > stream.exchanges.len() && stream.version != Some(Version::Http2) {
                // Over HTTP/1.1 the next response could only follow the rest of this one.
                over.push(*connection);
            }
        }
        for connection in over {
            self.on_tcp_closed(now, connection, "a response was cancelled");
        }
    }

    // ---- events of connections ---------------------------------------------------------------------------------------

    pub(super) fn on_tcp_event(&mut self, now: Time, connection: usize, event: Event) {
        let Some(stream) = self.tcp.all.get_mut(&connection) else {
            // The connection has been closed.
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
                server.tcp_connecting.remove(&connection);
                self.on_tcp_won(now, number, connection);
            }
            Event::Failed(failure) => {
                self.tcp.drop(connection);
                let why = failure.to_string();
                self.fetches.listener.on_disconnected(connection, &why);
                let server = &mut self.servers.all[number];
                let was_beside = server.tcp_connecting.remove(&connection);
                if was_beside {
                    // The server accepts no further connection; the requests wait for the others.
                    let others = [server.tcp_open.len(), server.tcp_connecting.len()];
                    server.tcp_max = others.into_iter().find(|count| *count > 0);
                }
                if let Some(attempts) = &mut server.happy_eyeballs {
                    attempts.on_tcp_failed(failure);
                } else if was_beside
                    && server.tcp_open.is_empty()
                    && server.tcp_connecting.is_empty()
                {
                    // The other connections have ended in the meantime.
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
                let processed = self.fetches.on_body(it.fetch, &bytes);
                self.stop_exchange(now, connection, exchange, processed);
            }
            Event::Trailers { exchange, fields } => {
                let Some(it) = stream.exchanges.get(&exchange) else {
                    return;
                };
                let processed = self.fetches.on_trailers(it.fetch, &fields);
                self.stop_exchange(now, connection, exchange, processed);
            }
            Event::End { exchange, at } => {
                stream.has_responded = true;
                stream.last_used = at;
                if let Some(fetch) = self.take_exchange(connection, exchange) {
                    self.on_response_end(at, fetch);
                }
            }
            Event::ExchangeFailed { exchange, why } => {
                self.on_exchange_failed(now, connection, exchange, why);
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
        let stream = self.tcp.all.get(&connection);
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
        let processed = if is_interim {
            self.fetches.on_interim(fetch, &head)
        } else {
            self.fetches.on_head(now, fetch, &head)
        };
        self.stop_exchange(now, connection, exchange, processed);
    }

    /// Removes an exchange from its connection.
    fn take_exchange(&mut self, connection: usize, exchange: u64) -> Option<usize> {
        let stream = self.tcp.all.get_mut(&connection)?;
        let exchange = stream.exchanges.remove(&exchange)?;
        let sent = exchange.sent.load(Ordering::Relaxed);
        self.fetches.all[exchange.fetch].outcome.sent = sent;
        Some(exchange.fetch)
    }

    /// Cancels an exchange if the response is no longer needed.
    fn stop_exchange(
        &mut self,
        now: Time,
        connection: usize,
        exchange: u64,
        processed: Result<(), Stop>,
    ) {
        let Err(stop) = processed else { return };
        let Some(fetch) = self.take_exchange(connection, exchange) else {
            return;
        };
        let stream = self.tcp.all.get(&connection);
        if stream.is_some_and(|stream| stream.version != Some(Version::Http2)) {
            self.on_tcp_closed(now, connection, "a response was cancelled");
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
        let stream = self.tcp.all.get(&connection);
        let may_be_stale = stream.is_some_and(|stream| stream.has_responded);
        let is_http2 = stream.is_some_and(|stream| stream.version == Some(Version::Http2));
        let Some(fetch) = self.take_exchange(connection, exchange) else {
            return;
        };
        if !is_http2 {
            // Before another request is sent on it.
            self.on_tcp_closed(now, connection, "the server closed the connection");
        }
        let is_safe = self.fetches.all[fetch].current.is_safe();
        let (may_retry, failure) = match why {
            ExchangeError::NotProcessed(why) => (true, Failure::Response(why)),
            // A server may close an idle connection just when it is used again (RFC 9112 §9.3.1).
            ExchangeError::Empty => (is_safe && may_be_stale, Failure::Empty),
            ExchangeError::Protocol(why) => (false, Failure::Protocol(why)),
            ExchangeError::Upload => (false, Failure::Read),
            ExchangeError::Request(why) => (false, Failure::Request(why)),
            ExchangeError::Other(why) => (is_safe && may_be_stale, Failure::Response(why)),
        };
        self.retry_or_end(now, fetch, may_retry, failure);
    }

    /// Handles the end of a connection and of all requests on it.
    fn on_tcp_closed(&mut self, now: Time, connection: usize, why: &str) {
        let Some(stream) = self.tcp.all.remove(&connection) else {
            return;
        };
        let server = &mut self.servers.all[stream.server];
        server.tcp_open.remove(&connection);
        server.tcp_connecting.remove(&connection);
        self.fetches.listener.on_disconnected(connection, why);
        for exchange in stream.exchanges.into_values() {
            let is_safe = self.fetches.all[exchange.fetch].current.is_safe();
            let failure = Failure::Response(why.to_owned());
            self.retry_or_end(now, exchange.fetch, is_safe, failure);
        }
    }
}
