//! Metrics in the text format of Prometheus, and the health check, on a separate listener.
//!
//! Workers compute the counters for a response between their turns, some connections at a time
//! (`application::measure`), which costs about 1 µs of CPU time a connection. One response is computed at a time,
//! followed by a pause, so that at most a tenth of the time is spent on them, however often clients ask. Clients that wait at
//! the same time receive the same response: each waits for at most one pause and two computations. `/healthz` costs a command
//! to each worker, and does not wait for metrics. Files of `/proc` are read, and the text is written, on a thread that serves
//! no connections.

#![expect(
    clippy::disallowed_types,
    reason = "the listener is opened on one thread and used on another"
)]

mod process;
mod text;

use std::{
    convert::Infallible,
    fmt,
    sync::{
        Arc, Mutex as StdMutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use lastbyte_congestion::Time;
use lastbyte_driver::{Clock, Remote, Statistics as LoopStatistics};
use lastbyte_origin::{
    application::{Command, Measured},
    times::ClassTimes,
};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime,
    sync::{Mutex, oneshot},
    task::{self, AbortHandle},
    time,
};

use self::process::Process;
use super::{
    budget::Budget,
    log::LogCounts,
    proxy::{UpstreamCounts, UpstreamStatistics},
    tcp::{self, Admission, Stalled, Text},
    tls::CurrentCertificates,
};

/// Time limit for a worker's answer. Beyond it, the worker is unhealthy.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum connections to this listener.
const CONNECTIONS: usize = 64;
/// The pause after a computation of the metrics, as a multiple of the time that it took.
const REST: u32 = 9;
/// Time limit for a connection without a request, or whose client does not read.
const IDLE: Duration = Duration::from_secs(60);

/// The sources of the numbers.
pub(crate) struct Sources {
    pub(crate) workers: Vec<Remote<Command>>,
    pub(crate) tcp: Box<dyn Fn() -> tcp::Statistics + Send + Sync>,
    /// By thread, with the version of HTTP.
    pub(crate) tcp_times: Box<dyn Fn() -> Vec<(&'static str, ClassTimes)> + Send + Sync>,
    /// The names of routes.
    pub(crate) routes: Vec<String>,
    pub(crate) upstreams: Vec<UpstreamCounts>,
    pub(crate) budget: Budget,
    /// Logs, by what their lines describe.
    pub(crate) logs: Vec<(&'static str, LogCounts)>,
    pub(crate) certificates: Arc<CurrentCertificates>,
    pub(crate) reloads: Arc<Reloads>,
    pub(crate) is_draining: Arc<AtomicBool>,
    pub(crate) clock: Clock,
    /// When the server started.
    pub(crate) began: Time,
}

/// The results of reloads of the configuration.
#[derive(Debug)]
pub(crate) struct Reloads {
    is_successful: AtomicBool,
    /// In seconds since 1970.
    succeeded_at: AtomicU64,
    ramp: StdMutex<Option<RampStatus>>,
}

/// The state of an experiment whose shares change by decisions, for metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct RampStatus {
    /// The name of the experiment.
    pub experiment: String,
    /// The names of the arms, and their shares of new connections.
    pub shares: Vec<(String, f64)>,
    /// The stage, from 1.
    pub stage: usize,
    /// The number of looks at the logs.
    pub looks: u64,
    /// The last decision.
    pub action: String,
    /// Whether no other decision follows.
    pub is_over: bool,
    /// The time of the last look, in seconds since 1970.
    pub looked_at: u64,
}

impl Reloads {
    /// At the start, which counts as a successful one.
    pub(crate) fn new() -> Self {
        Self {
            is_successful: AtomicBool::new(true),
            succeeded_at: AtomicU64::new(Clock::since_epoch().as_secs()),
            ramp: StdMutex::default(),
        }
    }

    pub(crate) fn set_ramp(&self, ramp: Option<RampStatus>) {
        *self.ramp.lock().unwrap_or_else(PoisonError::into_inner) = ramp;
    }

    fn ramp(&self) -> Option<RampStatus> {
        self.ramp
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn record(&self, is_successful: bool) {
        if is_successful {
            let now = Clock::since_epoch().as_secs();
            self.succeeded_at.store(now, Ordering::Release);
        }
        self.is_successful.store(is_successful, Ordering::Release);
    }
}

/// All numbers at one time.
pub(crate) struct Numbers {
    /// By worker; `None` for one that did not respond in time.
    pub(crate) workers: Vec<Option<Measured>>,
    /// The counters of their loops.
    pub(crate) loops: Vec<Option<LoopStatistics>>,
    pub(crate) tcp: tcp::Statistics,
    /// By thread, with the version of HTTP.
    pub(crate) tcp_times: Vec<(&'static str, ClassTimes)>,
    pub(crate) routes: Vec<String>,
    pub(crate) upstreams: Vec<UpstreamStatistics>,
    /// Buffered bytes of bodies.
    pub(crate) buffered: usize,
    pub(crate) logs: Vec<(&'static str, super::log::LogStatistics)>,
    /// The first name of each certificate, and the end of its validity in seconds since 1970.
    pub(crate) certificates: Vec<(String, u64)>,
    /// Whether the last reload of the configuration succeeded.
    pub(crate) is_reloaded: bool,
    /// The time of the last reload that succeeded, in seconds since 1970.
    pub(crate) reloaded_at: u64,
    pub(crate) ramp: Option<RampStatus>,
    pub(crate) is_draining: bool,
    pub(crate) uptime: Duration,
}

impl Sources {
    /// Sends each worker a command, and waits for the responses.
    async fn query_workers<T>(
        &self,
        command: fn(&Remote<Command>, oneshot::Sender<T>) -> bool,
    ) -> Vec<Option<T>> {
        let asked: Vec<_> = self
            .workers
            .iter()
            .map(|worker| {
                let (answer, answered) = oneshot::channel();
                command(worker, answer).then_some(answered)
            })
            .collect();
        let mut answers = Vec::new();
        for answered in asked {
            answers.push(match answered {
                Some(answered) => time::timeout(PATIENCE, answered)
                    .await
                    .ok()
                    .and_then(Result::ok),
                None => None,
            });
        }
        answers
    }

    /// The counters of the workers' loops.
    async fn query_loops(&self) -> Vec<Option<LoopStatistics>> {
        self.query_workers(|worker, answer| {
            // The receiver may have timed out.
            worker.measure(|counters| _ = answer.send(counters))
        })
        .await
    }

    async fn measure(&self) -> Numbers {
        let measured = self.query_workers(|worker, answer| {
            // The receiver may have timed out.
            let answer = Box::new(|measured| _ = answer.send(measured));
            worker.send(Command::Measure(answer)).is_ok()
        });
        let (workers, loops) = tokio::join!(measured, self.query_loops());
        let logs = self.logs.iter();
        Numbers {
            workers,
            loops,
            tcp: (self.tcp)(),
            tcp_times: (self.tcp_times)(),
            routes: self.routes.clone(),
            upstreams: self.upstreams.iter().map(UpstreamCounts::read).collect(),
            buffered: self.budget.used(),
            logs: logs.map(|(name, counts)| (*name, counts.read())).collect(),
            certificates: self.certificates.ends(),
            is_reloaded: self.reloads.is_successful.load(Ordering::Acquire),
            reloaded_at: self.reloads.succeeded_at.load(Ordering::Acquire),
            ramp: self.reloads.ramp(),
            is_draining: self.is_draining.load(Ordering::Acquire),
            uptime: self.clock.now().since(self.began),
        }
    }
}

/// The responses of this listener.
struct Responses {
    sources: Sources,
    last: Mutex<Option<Computed>>,
}

/// A response to `/metrics`.
struct Computed {
    /// When its computation began.
    began: time::Instant,
    /// The earliest start of the next one.
    rested: time::Instant,
    text: Bytes,
}

impl Responses {
    /// The metrics, computed after this call.
    async fn metrics(self: Arc<Self>) -> Bytes {
        let asked = time::Instant::now();
        let mut last = self.last.lock().await;
        if let Some(last) = &*last {
            if last.began >= asked {
                return last.text.clone();
            }
            time::sleep_until(last.rested).await;
        }
        let began = time::Instant::now();
        let numbers = self.sources.measure().await;
        let text = task::spawn_blocking(move || text::prometheus(&numbers, &Process::read()));
        // Without a thread or memory for it.
        let text = Bytes::from(text.await.unwrap_or_default());
        *last = Some(Computed {
            began,
            rested: time::Instant::now() + began.elapsed() * REST,
            text: text.clone(),
        });
        text
    }

    async fn answer<B>(self: &Arc<Self>, request: &http::Request<B>) -> http::Response<Text> {
        let is_known = matches!(*request.method(), http::Method::GET | http::Method::HEAD);
        let sources = &self.sources;
        let (status, content_type, text) = match request.uri().path() {
            _ if !is_known => (405, "text/plain", "only GET and HEAD\n".into()),
            // In a task, so that the pause follows also if the client is gone.
            "/metrics" => match tokio::spawn(Arc::clone(self).metrics()).await {
                Ok(text) => (200, "text/plain; version=0.0.4; charset=utf-8", text),
                Err(_) => (500, "text/plain", "cannot compute the metrics\n".into()),
            },
            "/healthz" => {
                let silent = sources.query_loops().await;
                let silent = silent.iter().position(Option::is_none);
                let (status, text) = health(silent, sources.is_draining.load(Ordering::Relaxed));
                (status, "text/plain", text.into())
            }
            _ => (
                404,
                "text/plain",
                "Not found (expected /metrics or /healthz)\n".into(),
            ),
        };
        let is_head = request.method() == http::Method::HEAD;
        let len = text.len();
        let mut response =
            http::Response::new(Text::new(if is_head { Bytes::new() } else { text }));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        fields.insert(header::CONTENT_LENGTH, len.into());
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if sources.is_draining.load(Ordering::Relaxed) {
            // The client's next connection may reach the process that replaces this one.
            fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if status == 405 {
            fields.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

/// 200 if all workers respond and requests are accepted, otherwise 503 with the reason. `silent`: a worker that does
/// not respond.
fn health(silent: Option<usize>, is_draining: bool) -> (u16, String) {
    match silent {
        _ if is_draining => (503, "draining: no more requests are accepted\n".into()),
        Some(worker) => (503, format!("worker {worker} does not respond\n")),
        None => (200, "ok\n".into()),
    }
}

/// Listens over plain HTTP: for this machine, or a trusted network. Returns how the listener is closed.
pub(crate) fn listen(
    runtime: &runtime::Handle,
    listener: std::net::TcpListener,
    sources: Sources,
) -> std::io::Result<AbortHandle> {
    let _inside = runtime.enter();
    let listener = TcpListener::from_std(listener)?;
    let responses = Arc::new(Responses {
        sources,
        last: Mutex::new(None),
    });
    let task = runtime.spawn(async move {
        let admission = Admission::new(CONNECTIONS, CONNECTIONS);
        loop {
            let Ok((stream, remote)) = listener.accept().await else {
                time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Some(admitted) = admission.admit(remote.ip()).await else {
                continue;
            };
            let responses = Arc::clone(&responses);
            tokio::spawn(async move {
                serve(stream, responses).await;
                drop(admitted);
            });
        }
    });
    Ok(task.abort_handle())
}

async fn serve(stream: TcpStream, responses: Arc<Responses>) {
    let service = service_fn(|request| {
        let responses = Arc::clone(&responses);
        async move { Ok::<_, Infallible>(responses.answer(&request).await) }
    });
    // An error concerns only the client.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(Stalled::new(stream, IDLE)), service)
        .await;
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("workers", &self.workers.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
