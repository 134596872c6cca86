//! Metrics in the text format of Prometheus, and the health check, on a separate listener.
//!
//! Workers compute the counters for a response between their turns, some connections at a time
//! (`application::measure`). This costs about 3 µs a connection, so one response is computed at a time, and at most a
//! tenth of the time is spent on them, however often a client asks. `/healthz` costs a command to each worker, and does
//! not wait for metrics.

#![expect(
    clippy::disallowed_types,
    reason = "the listener is opened on one thread and used on another"
)]

pub(crate) mod histogram;
mod text;

use std::{
    convert::Infallible,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, StatusCode, header};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use lastbyte_congestion::Time;
use lastbyte_driver::{Clock, Remote};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime,
    sync::{Semaphore, oneshot},
    task::AbortHandle,
    time,
};

use super::{
    application::{Command, Measured},
    budget::Budget,
    log::LogCounts,
    tcp::{self, Admission, Stalled, Text},
};

/// Time limit for a worker's answer. Beyond it, the worker is unhealthy.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum connections to this listener.
const CONNECTIONS: usize = 64;
/// The pause after the metrics of a response, as a multiple of the time that they took.
const REST: u32 = 9;
/// Time limit for a connection without a request, or whose client does not read.
const IDLE: Duration = Duration::from_secs(60);

/// The sources of the numbers.
pub(crate) struct Sources {
    pub(crate) workers: Vec<Remote<Command>>,
    pub(crate) tcp: Box<dyn Fn() -> tcp::Statistics + Send + Sync>,
    pub(crate) budget: Budget,
    /// Logs, by what their lines describe.
    pub(crate) logs: Vec<(&'static str, LogCounts)>,
    pub(crate) is_draining: Arc<AtomicBool>,
    pub(crate) clock: Clock,
    /// When the server started.
    pub(crate) began: Time,
}

/// All numbers at one time.
pub(crate) struct Numbers {
    /// By worker; `None` for one that did not respond in time.
    pub(crate) workers: Vec<Option<Measured>>,
    pub(crate) tcp: tcp::Statistics,
    /// Buffered bytes of bodies.
    pub(crate) buffered: usize,
    pub(crate) logs: Vec<(&'static str, super::log::LogStatistics)>,
    pub(crate) is_draining: bool,
    pub(crate) uptime: Duration,
}

impl Sources {
    /// All numbers, for one response at a time.
    async fn numbers(&self, turn: &Arc<Semaphore>) -> Numbers {
        let turn = Arc::clone(turn).acquire_owned().await;
        let began = time::Instant::now();
        let numbers = self.measure().await;
        let rest = began.elapsed() * REST;
        tokio::spawn(async move {
            time::sleep(rest).await;
            drop(turn);
        });
        numbers
    }

    /// Sends each worker a command, and waits for the responses.
    async fn query_workers<T>(&self, command: fn(oneshot::Sender<T>) -> Command) -> Vec<Option<T>> {
        let asked: Vec<_> = self
            .workers
            .iter()
            .map(|worker| {
                let (answer, answered) = oneshot::channel();
                worker.send(command(answer)).ok().map(|()| answered)
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

    async fn measure(&self) -> Numbers {
        let workers = self.query_workers(Command::Measure).await;
        let logs = self.logs.iter();
        Numbers {
            workers,
            tcp: (self.tcp)(),
            buffered: self.budget.used(),
            logs: logs.map(|(name, counts)| (*name, counts.read())).collect(),
            is_draining: self.is_draining.load(Ordering::Relaxed),
            uptime: self.clock.now().since(self.began),
        }
    }

    async fn answer<B>(
        &self,
        request: &http::Request<B>,
        turn: &Arc<Semaphore>,
    ) -> http::Response<Text> {
        let is_known = matches!(*request.method(), http::Method::GET | http::Method::HEAD);
        let (status, content_type, text) = match request.uri().path() {
            _ if !is_known => (405, "text/plain", "only GET and HEAD\n".to_owned()),
            "/metrics" => {
                let numbers = self.numbers(turn).await;
                let content_type = "text/plain; version=0.0.4; charset=utf-8";
                (200, content_type, text::prometheus(&numbers))
            }
            "/healthz" => {
                let silent = self.query_workers(Command::Ping).await;
                let silent = silent.iter().position(Option::is_none);
                let (status, text) = health(silent, self.is_draining.load(Ordering::Relaxed));
                (status, "text/plain", text)
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
            http::Response::new(Text::new(if is_head { String::new() } else { text }));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        let fields = response.headers_mut();
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        fields.insert(header::CONTENT_LENGTH, len.into());
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.is_draining.load(Ordering::Relaxed) {
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
    let sources = Arc::new(sources);
    let task = runtime.spawn(async move {
        let admission = Admission::new(CONNECTIONS, CONNECTIONS);
        let turn = Arc::new(Semaphore::new(1));
        loop {
            let Ok((stream, remote)) = listener.accept().await else {
                time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Some(admitted) = admission.admit(remote.ip()).await else {
                continue;
            };
            let (sources, turn) = (Arc::clone(&sources), Arc::clone(&turn));
            tokio::spawn(async move {
                serve(stream, sources, turn).await;
                drop(admitted);
            });
        }
    });
    Ok(task.abort_handle())
}

async fn serve(stream: TcpStream, sources: Arc<Sources>, turn: Arc<Semaphore>) {
    let service = service_fn(|request| {
        let (sources, turn) = (Arc::clone(&sources), Arc::clone(&turn));
        async move { Ok::<_, Infallible>(sources.answer(&request, &turn).await) }
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
