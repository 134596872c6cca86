//! Measurements of a TCP connection, for its line in the connection log.
//!
//! Owns which request is the first, when its response was acknowledged, and the line, which is written when the
//! connection closes. It does not change the data.
//!
//! # Decisions
//!
//! - *The acknowledgment of the last byte is polled*: Linux does not report it. Once a response was passed to the
//!   system, the stream checks whether anything is unacknowledged: when something arrives, and by a timer after a
//!   sixteenth of the time since then, at least 1 ms and at most 1 s. So the measured time is late by at most 6 % of
//!   the time since the response was passed on, plus 1 ms.
//! - *Over HTTP/2 the bytes of several responses cannot be distinguished*: if another request arrives before the first
//!   response was acknowledged, the time is unknown.

use std::{
    fmt, io,
    os::fd::{AsFd, BorrowedFd},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use lastbyte_congestion::Time;
use lastbyte_driver::Clock;
use lastbyte_http3::Request;
use lastbyte_record::connection_log::{
    Header,
    tcp::{KernelStatistics, Line},
};
use lastbyte_udp::{TcpInfo, tcp_congestion};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use crate::{
    log::{self, LogWriter},
    sites::Sites,
};

#[cfg(test)]
mod tests;

/// The shortest and the longest interval between checks.
const ASK_MIN: Duration = Duration::from_millis(1);
const ASK_MAX: Duration = Duration::from_secs(1);
/// The fraction of the elapsed time until the next check.
const ASK_SHARE: u32 = 16;

/// One connection, as seen by its stream and its requests.
pub(super) struct Observation {
    log: LogWriter,
    number: u64,
    sites: Sites,
    thread: usize,
    clock: Clock,
    began: Time,
    /// Bytes passed to the system.
    written: AtomicU64,
    /// Whether to check for unacknowledged bytes.
    is_asking: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    handshake: Duration,
    requests: u64,
    body_bytes: u64,
    first: Option<First>,
}

/// The result of the handshake.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) proto: &'static str,
    pub(super) tls: &'static str,
    pub(super) is_resumed: bool,
    /// Whether several requests at a time are possible.
    pub(super) is_multiplexed: bool,
    /// The hash of the server's configuration.
    pub(super) config_hash: Option<Arc<str>>,
}

/// The first request, and its response.
struct First {
    began: Time,
    method: String,
    site: Option<Arc<str>>,
    /// Bytes passed to the system before.
    written_before: u64,
    /// The announced length of the response.
    content_length: Option<u64>,
    body_len: u64,
    /// When all of it was passed to the system.
    handed: Option<Time>,
    acknowledged: Option<Time>,
    was_cut_off: bool,
    /// Whether there was another request before it was acknowledged.
    is_shared: bool,
}

/// One request of an observed connection.
pub(super) struct Observed {
    connection: Arc<Observation>,
    is_first: bool,
}

impl Observation {
    pub(super) fn new(log: LogWriter, sites: Sites, number: u64, thread: usize) -> Self {
        let clock = Clock::new();
        Self {
            log,
            number,
            sites,
            thread,
            clock,
            began: clock.now(),
            written: AtomicU64::new(0),
            is_asking: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handshake is complete.
    pub(super) fn on_handshake(&self, session: Session) {
        let mut state = self.state();
        state.session = Some(session);
        state.handshake = self.clock.now().since(self.began);
    }

    /// A request arrived.
    pub(super) fn on_request(self: &Arc<Self>, method: &str) -> Observed {
        let now = self.clock.now();
        let mut state = self.state();
        state.requests += 1;
        let session = state.session.as_ref();
        let is_multiplexed = session.is_some_and(|session| session.is_multiplexed);
        let is_first = state.first.is_none();
        let first = state.first.get_or_insert_with(|| First {
            began: now,
            method: log::field(method),
            site: self.sites.fallback().cloned(),
            written_before: self.written.load(Ordering::Relaxed),
            content_length: None,
            body_len: 0,
            handed: None,
            acknowledged: None,
            was_cut_off: false,
            is_shared: false,
        });
        first.is_shared |= !is_first && is_multiplexed && first.acknowledged.is_none();
        Observed {
            connection: Arc::clone(self),
            is_first,
        }
    }

    /// Whether the first response is acknowledged, if nothing is unacknowledged.
    fn on_all_acknowledged(&self) {
        let now = self.clock.now();
        let written = self.written.load(Ordering::Relaxed);
        let mut state = self.state();
        if let Some(first) = &mut state.first
            && first.handed.is_some()
            // Data waiting above the socket was not written yet: for room in an HTTP/2 stream, or in a buffer.
            && written.saturating_sub(first.written_before) >= first.body_len
        {
            first.acknowledged = Some(now);
            self.is_asking.store(false, Ordering::Relaxed);
        }
    }

    /// The time until the next check.
    fn pause(&self) -> Duration {
        let now = self.clock.now();
        let handed = self.state().first.as_ref().and_then(|first| first.handed);
        let since = handed.map_or(Duration::ZERO, |handed| now.since(handed));
        (since / ASK_SHARE).clamp(ASK_MIN, ASK_MAX)
    }

    /// The connection is closed.
    fn finish(&self, info: Option<&TcpInfo>, congestion: Option<String>) {
        if info.is_some_and(|info| info.unacked == 0 && info.not_sent == 0)
            && self.is_asking.load(Ordering::Relaxed)
        {
            self.on_all_acknowledged();
        }
        let state = self.state();
        // Without a handshake it was not an HTTP connection.
        let Some(session) = &state.session else {
            return;
        };
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        let first = state.first.as_ref();
        let ttlb = first
            .filter(|first| !first.is_shared)
            .and_then(|first| Some(first.acknowledged?.since(first.began)));
        let site = match first {
            Some(first) => first.site.as_ref(),
            None => self.sites.fallback(),
        };
        let line = Line {
            header: Header {
                time_ms: u64::try_from(Clock::since_epoch().as_millis()).unwrap_or(u64::MAX),
                conn_id: self.number,
                method: first.map_or(String::new(), |first| first.method.clone()),
                content_length: first
                    .map_or(0, |first| first.content_length.unwrap_or(first.body_len)),
                ttlb_ms: ttlb.map(|ttlb| millis(ttlb).round() as u64),
            },
            is_complete: match first {
                None => Some(false),
                Some(first) if first.acknowledged.is_some() => Some(true),
                Some(first) if first.was_cut_off || first.handed.is_none() => Some(false),
                Some(_) => None,
            },
            proto: session.proto,
            tls: session.tls,
            is_resumed: session.is_resumed,
            requests: state.requests,
            body_bytes: state.body_bytes,
            handshake_ms: millis(state.handshake),
            duration_ms: millis(self.clock.now().since(self.began)),
            site: site.map(ToString::to_string),
            worker: self.thread as u64,
            config: session.config_hash.as_deref().map(str::to_owned),
            kernel: kernel_statistics(info, congestion),
        };
        drop(state);
        self.log.write(line.write());
    }
}

fn kernel_statistics(info: Option<&TcpInfo>, congestion: Option<String>) -> KernelStatistics {
    let info = info.copied().unwrap_or_default();
    KernelStatistics {
        congestion,
        rtt_min: info.rtt_min,
        rtt: info.rtt,
        rtt_variance: info.rtt_variance,
        window: info.window,
        slow_start_threshold: info.slow_start_threshold,
        segment_len: info.segment_len,
        segments_sent: info.segments_sent,
        segments_received: info.segments_received,
        segments_retransmitted: info.segments_retransmitted,
        delivered_ce: info.delivered_ce,
        bytes_sent: info.bytes_sent,
        bytes_retransmitted: info.bytes_retransmitted,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        delivery_rate: info.delivery_rate,
        reorderings: info.reorderings,
        busy: info.busy,
        limited_by_receiver: info.limited_by_receiver,
        limited_by_send_buffer: info.limited_by_send_buffer,
    }
}

impl Observed {
    /// The host and path of the request.
    pub(super) fn on_target(&self, request: &Request) {
        if !self.is_first {
            return;
        }
        let authority = request.authority().unwrap_or_default();
        let target = request.path().unwrap_or_default();
        let site = self.connection.sites.of(authority, target).cloned();
        if let Some(first) = &mut self.connection.state().first {
            first.site = site;
        }
    }

    /// The length of the response's body, if it is known.
    pub(super) fn on_head(&self, content_length: Option<u64>) {
        let mut state = self.connection.state();
        if let Some(first) = state.first.as_mut().filter(|_| self.is_first) {
            first.content_length = content_length;
        }
    }

    /// A piece of the response's body is passed on.
    pub(super) fn on_body(&self, len: usize) {
        let mut state = self.connection.state();
        state.body_bytes += len as u64;
        if let Some(first) = state.first.as_mut().filter(|_| self.is_first) {
            first.body_len += len as u64;
        }
    }

    /// The response was passed on completely, or will not be completed.
    pub(super) fn on_end(&self, is_complete: bool) {
        let now = self.connection.clock.now();
        if let Some(first) = self
            .connection
            .state()
            .first
            .as_mut()
            .filter(|_| self.is_first)
        {
            if is_complete {
                first.handed = Some(now);
                self.connection.is_asking.store(true, Ordering::Relaxed);
            } else {
                first.was_cut_off = true;
            }
        }
    }
}

/// A stream that is observed, if there is a log.
#[derive(Debug)]
pub(super) struct Stream<S: AsFd> {
    inner: S,
    observation: Option<Arc<Observation>>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the system's send buffer is full.
    is_full: bool,
}

impl<S: AsFd> Stream<S> {
    pub(super) const fn new(inner: S, observation: Option<Arc<Observation>>) -> Self {
        Self {
            inner,
            observation,
            timer: None,
            is_full: false,
        }
    }

    /// Checks if it is time to, and schedules the next check.
    fn look(&mut self, context: &mut Context<'_>, has_arrived: bool) {
        let Some(observation) = &self.observation else {
            return;
        };
        if !observation.is_asking.load(Ordering::Relaxed) {
            return;
        }
        loop {
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(sleep(observation.pause())));
            let is_time = timer.as_mut().poll(context).is_ready();
            if !is_time && !has_arrived {
                return;
            }
            if !self.is_full
                && TcpInfo::of(&self.inner)
                    .is_ok_and(|info| info.unacked == 0 && info.not_sent == 0)
            {
                observation.on_all_acknowledged();
                if !observation.is_asking.load(Ordering::Relaxed) {
                    self.timer = None;
                    return;
                }
            }
            if !is_time {
                return;
            }
            self.timer = None;
        }
    }

    fn on_written(&mut self, written: &Poll<io::Result<usize>>) {
        self.is_full = written.is_pending();
        if let (Poll::Ready(Ok(len)), Some(observation)) = (written, &self.observation) {
            observation
                .written
                .fetch_add(*len as u64, Ordering::Relaxed);
        }
    }
}

impl<S: AsFd> AsFd for Stream<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl<S: AsFd> Drop for Stream<S> {
    /// While the kernel still has its state.
    fn drop(&mut self) {
        if let Some(observation) = &self.observation {
            let info = TcpInfo::of(&self.inner).ok();
            observation.finish(info.as_ref(), tcp_congestion(&self.inner));
        }
    }
}

impl<S: AsyncRead + AsFd + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.look(context, read.is_ready());
        read
    }
}

impl<S: AsyncWrite + AsFd + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, buffer);
        self.on_written(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.on_written(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.look(context, false);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl fmt::Debug for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observation")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
