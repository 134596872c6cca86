//! HTTP/1.1 and HTTP/2: connections of hyper and of the `h2` crate on a runtime of each thread.
//!
//! A connection has a task for each of its streams, which sends one request after the other; there is no task per request.
//!
//! | module | owns |
//! |---|---|
//! | `arrivals` | the streams of an open loop that wait for a request, and the timer |
//! | `connect` | TCP, TLS and the handshake of HTTP |
//! | `exchange` | a request, its response and its time limit |

mod arrivals;
mod connect;
mod exchange;
#[cfg(test)]
mod tests;

use core::{cell::RefCell, error::Error};
use std::{io, rc::Rc, sync::Arc};

use bytes::Bytes;
use hyper::Response;
use lastbyte_client::{Failure, Tls, Versions};
use lastbyte_driver::Clock;
use lastbyte_quic::Time;
use rustls::client::Resumption;
use tokio::{
    runtime,
    task::{JoinSet, LocalSet, spawn_local},
    time::{interval, sleep, timeout},
};

use self::{
    arrivals::Arrivals,
    connect::{Server, TlsConfigs},
    exchange::{Body, ExchangeError, Message, Progress, Sender, TimeLimit},
};
use crate::{
    dispatcher::Due,
    mix::{Handshake, Mix},
    recorder::{Cause, InFlight},
    sessions::Sessions,
    settings::{Settings, Version},
    target::Target,
    thread_state::{TICK, ThreadResult, ThreadState},
};

/// Why a connection ended, if the server gave no reason.
const CLOSED: &str = "the server closed the connection";
/// Why a connection is given up after a refusal.
const REFUSING: &str = "the server refuses requests";

/// State shared by the tasks of a thread.
struct Shared {
    state: RefCell<ThreadState>,
    settings: Arc<Settings>,
    clients: RefCell<Vec<Client>>,
    arrivals: Arrivals,
    messages: Vec<Message>,
    server: Server,
    clock: Clock,
}

/// The counters of a connection.
#[derive(Clone, Debug, Default)]
struct Client {
    /// When the first attempt to establish it started.
    first_started: Option<Time>,
    /// When the last one did.
    started: Option<Time>,
    was_open: bool,
    failures: u32,
    has_first_byte: bool,
    /// Measured responses.
    done: u64,
    /// When the last response ended.
    last: Option<Time>,
    /// Measured requests in progress.
    in_flight: u64,
    /// Whether it was established, or has failed, at least once.
    is_settled: bool,
    /// Whether there was a response since it was established last.
    has_answered: bool,
    /// Requests that are due and could not be sent yet, or were refused, at most one per stream.
    pending: Vec<Due>,
    /// Whether the server has refused a request since the connection was established: no other is sent on it.
    is_refusing: bool,
}

/// Runs the connections of a thread until the end of the run.
pub(crate) fn run(
    state: ThreadState,
    target: &Target,
    tls: &Tls,
    clock: Clock,
) -> io::Result<ThreadResult> {
    let settings = Arc::clone(&state.settings);
    let versions = match settings.version {
        Version::Http1 => Versions::Http11,
        Version::Http2 | Version::Http3 => Versions::Http2Only,
    };
    let count = state.share.own_connections();
    let sessions = Sessions::new(count);
    let resumption = |handshake| {
        if settings.is_resuming() {
            sessions.resumption(handshake)
        } else {
            Resumption::disabled()
        }
    };
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let shared = Rc::new(Shared {
            messages: messages(&settings)?,
            state: RefCell::new(state),
            settings: Arc::clone(&settings),
            clients: RefCell::new(vec![Client::default(); count]),
            arrivals: Arrivals::new()?,
            server: Server {
                address: target.address,
                name: target.server_name.clone(),
                tls: target.is_tls.then(|| TlsConfigs {
                    full: tls.tcp(versions, resumption(Handshake::Full)),
                    resumed: tls.tcp(versions, resumption(Handshake::Resumed)),
                }),
                is_http2: versions == Versions::Http2Only,
                header_table_size: settings.client.http3.qpack_table_capacity,
            },
            clock,
        });
        shared.run().await;
        let now = clock.now();
        shared.end(now);
        let result = shared.state.borrow_mut().finish(now);
        Ok(result)
    })
}

/// The requests in the form of hyper.
fn messages(settings: &Settings) -> io::Result<Vec<Message>> {
    let invalid =
        |error: &dyn Error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
    let messages = settings.requests.iter().map(|request| {
        let origin = request.url.origin();
        let authority = origin.authority();
        let is_http1 = settings.version == Version::Http1;
        let is_last = settings.mix.is_some_and(|mix| !mix.is_reusing());
        let uri = if is_http1 {
            request.url.path().to_owned()
        } else {
            format!(
                "{}://{authority}{}",
                origin.scheme.name(),
                request.url.path()
            )
        };
        let mut builder = hyper::Request::builder().method(settings.method()).uri(uri);
        let has_host = settings.fields.get("host").is_some();
        if is_http1 && !has_host {
            builder = builder.header("host", &authority);
        }
        if is_http1 && is_last && settings.fields.get("connection").is_none() {
            builder = builder.header("connection", "close");
        }
        for line in &settings.fields {
            if is_http1 || line.name != "host" {
                builder = builder.header(line.name, line.value);
            }
        }
        let body = settings.body.as_ref();
        let body = body.map_or_else(Bytes::new, |body| Bytes::copy_from_slice(body));
        // hyper adds it over HTTP/1.1.
        let has_length = settings.fields.get("content-length").is_some();
        if !is_http1 && !has_length && settings.body.is_some() {
            builder = builder.header("content-length", body.len());
        }
        let head = builder.body(()).map_err(|error| invalid(&error))?;
        Ok(Message { head, body })
    });
    messages.collect()
}

impl Shared {
    /// Runs until the end of the run.
    async fn run(self: &Rc<Self>) {
        let mut connections = JoinSet::new();
        let count = self.clients.borrow().len();
        for index in 0..count {
            connections.spawn_local(Rc::clone(self).keep_connected(index));
        }
        let pacer = spawn_local(Rc::clone(self).dispatch_arrivals());
        let mut ticks = interval(TICK);
        loop {
            tokio::select! {
                biased;
                ended = connections.join_next() => if ended.is_none() { break },
                _ = ticks.tick() => {
                    let now = self.clock.now();
                    let mut state = self.state.borrow_mut();
                    state.on_tick(now);
                    if !state.is_started && self.clients.borrow().iter().all(|it| it.is_settled) {
                        state.on_settled(now);
                        self.arrivals.notify();
                    }
                    if state.is_cut_off(now) {
                        break;
                    }
                    if state.is_over(now) {
                        // Streams without a request end.
                        self.arrivals.close();
                    }
                }
            }
        }
        pacer.abort();
        connections.shutdown().await;
    }

    fn end(&self, now: Time) {
        let mut state = self.state.borrow_mut();
        let measured_from = state.dispatcher.measured_from();
        for client in self.clients.borrow().iter() {
            for due in &client.pending {
                state.recorder.on_not_sent(due);
            }
            state.recorder.counts.unfinished += client.in_flight;
            if let Some(started) = client.first_started.filter(|_| client.was_open) {
                let from = started.max(measured_from);
                let until = client.last.unwrap_or(now).max(from);
                state
                    .recorder
                    .on_connection_end(client.done, until.since(from));
            }
        }
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    /// Establishes a connection, uses it, and repeats that while there are requests to send.
    async fn keep_connected(self: Rc<Self>, index: usize) {
        // An open loop without a mix starts when all connections are established.
        let mut is_wanted = self.settings.mix.is_none();
        let at = self.state.borrow().connects_at(index);
        let wait = at.since(self.clock.now());
        if is_wanted && !wait.is_zero() {
            sleep(wait).await;
        }
        loop {
            if !is_wanted {
                self.set_settled(index);
                let Some(due) = self.next_due(index).await else {
                    return;
                };
                self.set_pending(index, due);
            }
            is_wanted = false;
            let result = self.use_connection(index).await;
            let now = self.clock.now();
            let Err((cause, why)) = result else {
                if self.settings.mix.is_none() {
                    return;
                }
                continue;
            };
            let Some(pause) = self.on_connection_failed(now, index, cause, &why) else {
                return;
            };
            sleep(pause).await;
            is_wanted = self.settings.mix.is_none();
        }
    }

    fn set_settled(&self, index: usize) {
        if let Some(client) = self.clients.borrow_mut().get_mut(index) {
            client.is_settled = true;
        }
    }

    fn is_refusing(&self, index: usize) -> bool {
        let clients = self.clients.borrow();
        clients.get(index).is_some_and(|client| client.is_refusing)
    }

    fn set_refusing(&self, index: usize) {
        if let Some(client) = self.clients.borrow_mut().get_mut(index) {
            client.is_refusing = true;
        }
    }

    fn set_pending(&self, index: usize, due: Due) {
        if let Some(client) = self.clients.borrow_mut().get_mut(index) {
            client.pending.push(due);
        }
    }

    /// The handshake of the connection that a client needs next.
    fn handshake(&self, index: usize) -> Handshake {
        let clients = self.clients.borrow();
        let client = clients.get(index).filter(|client| client.was_open);
        let due = client.and_then(|client| client.pending.first());
        due.and_then(|due| due.handshake).unwrap_or_default()
    }

    /// Establishes a connection and sends requests on it, until there is none left or the connection fails.
    async fn use_connection(self: &Rc<Self>, index: usize) -> Result<(), (Cause, String)> {
        let started = self.clock.now();
        if let Some(client) = self.clients.borrow_mut().get_mut(index) {
            client.first_started.get_or_insert(started);
            client.started = Some(started);
            client.has_first_byte = false;
        }
        let limit = self.settings.client.connect_timeout;
        let received = Rc::clone(self);
        let established = timeout(
            limit,
            connect::establish(
                &self.server,
                self.handshake(index),
                move |bytes, header_bytes| received.on_received(bytes, header_bytes),
            ),
        )
        .await;
        let failure = |failure: Failure| (Cause::Error, failure.to_string());
        let too_late = |_| {
            let failure = Failure::ConnectTimeout(limit);
            (Cause::Timeout, failure.to_string())
        };
        let established = established
            .map_err(too_late)
            .and_then(|it| it.map_err(failure));
        let mut connection = established.inspect_err(|_| {
            self.state.borrow_mut().recorder.counts.connect_failed += 1;
        })?;
        let now = self.clock.now();
        if let Some(client) = self.clients.borrow_mut().get_mut(index) {
            client.was_open = true;
            client.is_settled = true;
            client.has_answered = false;
            client.is_refusing = false;
        }
        {
            let state = &mut *self.state.borrow_mut();
            let is_resumed = connection.is_resumed;
            state.recorder.on_connected(started, now, is_resumed);
        }
        let mut streams = JoinSet::new();
        let count = match connection.sender {
            Sender::Http1(_) => 1,
            Sender::Http2(_) => self.settings.streams,
        };
        match connection.sender {
            Sender::Http1(sender) => {
                streams.spawn_local(Rc::clone(self).send_requests(index, Sender::Http1(sender)));
            }
            Sender::Http2(sender) => {
                for _ in 0..count {
                    let sender = Sender::Http2(sender.clone());
                    streams.spawn_local(Rc::clone(self).send_requests(index, sender));
                }
            }
        }
        let mut failed = None;
        let mut has_failed_stream = false;
        loop {
            tokio::select! {
                biased;
                ended = connection.driver.join_next(), if !connection.driver.is_empty() => {
                    // The reason, which the requests do not know.
                    let why = match ended {
                        Some(Ok(Err(why))) => why,
                        _ => CLOSED.to_owned(),
                    };
                    failed = Some(why);
                    // Requests in progress fail by themselves; streams without one end here.
                    self.arrivals.forget(index);
                }
                ended = streams.join_next() => match ended {
                    Some(Ok(Err(why))) => {
                        has_failed_stream = true;
                        failed.get_or_insert(why);
                        self.arrivals.forget(index);
                    }
                    Some(_) => {}
                    None => break,
                },
            }
        }
        // With a mix, a connection also ends because its stream has done its part.
        let is_lost = has_failed_stream || self.settings.mix.is_none();
        match failed {
            Some(why) if is_lost && self.has_more(index) => {
                self.state.borrow_mut().recorder.counts.disconnected += 1;
                Err((Cause::Error, why))
            }
            _ => Ok(()),
        }
    }

    /// Whether a connection carries more than one request.
    fn keeps_connections(&self) -> bool {
        self.settings.mix.is_none_or(Mix::is_reusing)
    }

    /// Whether there are requests to send on a connection.
    fn has_more(&self, index: usize) -> bool {
        let state = self.state.borrow();
        let clients = self.clients.borrow();
        let is_pending = clients.get(index).is_some_and(|it| !it.pending.is_empty());
        is_pending || !(state.dispatcher.is_idle(index) || state.is_over(self.clock.now()))
    }

    /// Counts a failure. Returns the pause before the next attempt, if there is to be one.
    fn on_connection_failed(
        &self,
        now: Time,
        index: usize,
        cause: Cause,
        why: &str,
    ) -> Option<core::time::Duration> {
        let mut clients = self.clients.borrow_mut();
        let client = clients.get_mut(index)?;
        let state = &mut *self.state.borrow_mut();
        client.is_settled = true;
        let lost = core::mem::take(&mut client.in_flight);
        state.recorder.on_abandoned(lost, cause, why);
        client.failures = if client.has_answered {
            0
        } else {
            client.failures + 1
        };
        client.has_answered = false;
        let pause = state.pause(client.failures, client.was_open);
        let failures = client.failures;
        if let Some(pause) = pause.filter(|_| !state.is_cut_off(now)) {
            if failures > 0 && lost == 0 {
                state.recorder.on_error(1, why);
            }
            return Some(pause);
        }
        let unsent = client.pending.drain(..);
        let unsent = unsent.filter(|due| due.is_measured).count() as u64;
        let abandoned = unsent + state.dispatcher.abandon(index);
        state.recorder.on_abandoned(abandoned, cause, why);
        if lost + abandoned == 0 {
            state.recorder.on_error(1, why);
        }
        None
    }

    // ---- requests ----------------------------------------------------------------------------------------------------

    /// Sends requests on a stream, one after the other. Returns the reason if the connection cannot be used any more.
    async fn send_requests(self: Rc<Self>, index: usize, mut sender: Sender) -> Result<(), String> {
        let mut has_carried = false;
        let mut time_limit = TimeLimit::new(self.settings.timeout);
        loop {
            sender.ready().await?;
            if self.is_refusing(index) {
                return Err(REFUSING.to_owned());
            }
            let Some(due) = self.next_due(index).await else {
                return if sender.is_closed() {
                    Err(CLOSED.to_owned())
                } else {
                    Ok(())
                };
            };
            if self.is_refusing(index) {
                self.set_pending(index, due);
                return Err(REFUSING.to_owned());
            }
            if has_carried && due.handshake.is_some() {
                // It gets its own connection.
                self.set_pending(index, due);
                return Ok(());
            }
            has_carried = true;
            let now = self.clock.now();
            let mut request = InFlight::new(&due, now);
            let Some(message) = self.messages.get(due.request) else {
                return Ok(());
            };
            self.state.borrow_mut().recorder.on_started(&request);
            self.count_in_flight(index, &request, true);
            let limit = self
                .settings
                .timeout
                .saturating_sub(now.since(request.sent));
            let exchanged = self.exchange(index, &mut sender, message, &mut request);
            let exchanged = time_limit.run(limit, exchanged).await;
            let now = self.clock.now();
            self.count_in_flight(index, &request, false);
            let mut state = self.state.borrow_mut();
            match exchanged {
                Some(Ok(())) => {
                    state.recorder.on_done(&request, now);
                    if let Some(client) = self.clients.borrow_mut().get_mut(index) {
                        client.done += u64::from(request.is_measured);
                        client.has_answered = true;
                        client.last = Some(now);
                    }
                    if !self.keeps_connections() {
                        return Ok(());
                    }
                }
                Some(Err(error)) => {
                    match (error.progress, request.retry()) {
                        (Progress::Unsent, _) => {
                            state.recorder.on_unsent(&request);
                            self.set_pending(index, due);
                        }
                        (Progress::Refused, Some(retry)) => self.set_pending(index, retry),
                        (Progress::Refused, None) if request.is_retry => {
                            let why =
                                format!("the server refused the request twice: {}", error.why);
                            state.recorder.on_failed(&request, Cause::Error, &why);
                        }
                        _ => state.recorder.on_failed(&request, Cause::Error, &error.why),
                    }
                    if error.progress == Progress::Refused {
                        self.set_refusing(index);
                    }
                    if error.progress != Progress::Sent || sender.is_closed() {
                        return Err(error.why);
                    }
                }
                None => {
                    let limit = self.settings.timeout.as_millis();
                    let why = format!("no complete response within {limit} ms");
                    state.recorder.on_failed(&request, Cause::Timeout, &why);
                    if matches!(sender, Sender::Http1(_)) {
                        // The rest of the response would have to be read first.
                        return Err(why);
                    }
                }
            }
        }
    }

    fn count_in_flight(&self, index: usize, request: &InFlight, is_start: bool) {
        if let Some(client) = self.clients.borrow_mut().get_mut(index)
            && request.is_measured
        {
            client.in_flight = if is_start {
                client.in_flight + 1
            } else {
                client.in_flight.saturating_sub(1)
            };
        }
    }

    /// Sends a request and receives its response.
    async fn exchange(
        &self,
        index: usize,
        sender: &mut Sender,
        message: &Message,
        request: &mut InFlight,
    ) -> Result<(), ExchangeError> {
        let response = sender.send(message).await?;
        self.on_head(index, &response, request);
        let mut body = response.into_body();
        while let Some(len) = body.next().await? {
            if request.is_measured {
                self.state.borrow_mut().recorder.counts.data_bytes += len as u64;
            }
        }
        Ok(())
    }

    fn on_head(&self, index: usize, response: &Response<Body>, request: &mut InFlight) {
        request.status = response.status().as_u16();
        let now = self.clock.now();
        let recorder = &mut self.state.borrow_mut().recorder;
        if let Some(client) = self.clients.borrow_mut().get_mut(index)
            && !client.has_first_byte
        {
            client.has_first_byte = true;
            if let Some(started) = client.started {
                recorder.first_byte.record(now.nanos_since(started));
            }
        }
        if !request.is_measured {
            return;
        }
        let fields = response.headers().iter();
        if self.settings.version == Version::Http1 {
            // `HTTP/1.1 200 OK` and four line ends; a line has `: ` and its end.
            let reason = response.extensions().get::<hyper::ext::ReasonPhrase>();
            let reason = match reason {
                Some(reason) => reason.as_bytes().len(),
                None => response.status().canonical_reason().map_or(0, str::len),
            };
            let lines: usize = fields
                .map(|(name, value)| name.as_str().len() + value.len() + 4)
                .sum();
            let bytes = (13 + reason + 4 + lines) as u64;
            recorder.counts.header_bytes += bytes;
            recorder.counts.header_text_bytes += bytes;
        } else {
            // `:status` and three digits. What was received is counted from the frames.
            let text: usize = fields
                .map(|(name, value)| name.as_str().len() + value.len())
                .sum();
            recorder.counts.header_text_bytes += 10 + text as u64;
        }
    }

    /// Waits for the next request of a stream; `None` if there is none left.
    async fn next_due(&self, index: usize) -> Option<Due> {
        let unsent = {
            let mut clients = self.clients.borrow_mut();
            clients.get_mut(index).and_then(|it| it.pending.pop())
        };
        if unsent.is_some() {
            return unsent;
        }
        let is_open_loop = self.state.borrow().dispatcher.is_open_loop();
        if is_open_loop {
            return self.arrivals.wait(index).await;
        }
        let now = self.clock.now();
        self.state.borrow_mut().dispatcher.take(now, index)
    }

    /// Passes the requests of an open loop to waiting streams.
    async fn dispatch_arrivals(self: Rc<Self>) {
        loop {
            self.arrivals.some_free().await;
            let now = self.clock.now();
            let next = {
                let state = self.state.borrow();
                let next = state.dispatcher.next_arrival();
                next.filter(|_| state.is_started)
            };
            match next {
                None => self.arrivals.notified().await,
                Some(at) if at > now => self.arrivals.sleep(at.since(now)).await,
                Some(_) => self
                    .arrivals
                    .give(|index| self.state.borrow_mut().dispatcher.take(now, index)),
            }
        }
    }
}

impl Shared {
    /// Counts what was received in the measured time.
    fn on_received(&self, bytes: u64, header_bytes: u64) {
        let now = self.clock.now();
        let state = &mut *self.state.borrow_mut();
        if state.is_measuring(now) {
            state.recorder.counts.total_bytes += bytes;
            state.recorder.counts.header_bytes += header_bytes;
        }
    }
}
