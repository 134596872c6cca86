//! Responses over HTTP/2 that their client does not read, while it reads others or sends PINGs.
//!
//! A response that is not sent at once has a task of its own, which is spawned here. A task whose bytes have no room in the
//! client's window for the stream for too long is aborted, and its stream reset. The time in which a body has no data does
//! not count.
//!
//! One task of the connection checks all its responses, while there are any. A timer for each response would wake the
//! thread itself, by a system call: one for two small responses, as measured.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::AbortHandle,
    time::{Instant, sleep},
};

/// Minimum rate of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slowest {
    /// The period of measurement.
    pub(super) timeout: Duration,
    /// Bytes in that period.
    pub(super) bytes: u64,
}

/// Number of checks of the responses in each timeout.
const CHECKS: u32 = 8;

/// Spawns the responses of a connection, and aborts those that are too slow.
#[derive(Clone, Debug)]
pub(super) struct PacedExecutor {
    slowest: Slowest,
    responses: Arc<Mutex<Responses>>,
}

/// The responses of a connection that are being sent: no more than it has streams.
#[derive(Debug, Default)]
struct Responses {
    next: u64,
    running: BTreeMap<u64, Running>,
    /// Whether a task checks them.
    is_watched: bool,
}

/// A response that is being sent.
#[derive(Debug)]
struct Running {
    pace: Arc<Pace>,
    task: AbortHandle,
    /// When it started to wait for room, and the bytes taken until then.
    mark: Option<(Instant, u64)>,
}

/// The progress of one response, in bytes.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Bytes for which there was room.
    taken: AtomicU64,
    /// Bytes that wait for room. 0: none.
    waiting: AtomicU64,
    is_too_slow: AtomicBool,
}

/// The entry of a task, until it is complete or aborted.
struct Entry {
    number: u64,
    responses: Arc<Mutex<Responses>>,
}

fn lock(responses: &Mutex<Responses>) -> MutexGuard<'_, Responses> {
    responses.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.responses).running.remove(&self.number);
    }
}

impl PacedExecutor {
    pub(super) fn new(slowest: Slowest) -> Self {
        Self {
            slowest,
            responses: Arc::default(),
        }
    }

    /// Spawns a response, whose progress is that of the given [`Pace`].
    pub(super) fn execute<F>(&self, response: impl FnOnce(Arc<Pace>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let pace = Arc::<Pace>::default();
        let response = response(Arc::clone(&pace));
        let mut responses = lock(&self.responses);
        let entry = Entry {
            number: responses.next,
            responses: Arc::clone(&self.responses),
        };
        responses.next += 1;
        drop(responses);
        let number = entry.number;
        // Not while locked: when the runtime ends, the task is dropped here.
        let task = tokio::spawn(async move {
            let _entry = entry;
            response.await;
        });
        let running = Running {
            pace,
            task: task.abort_handle(),
            mark: None,
        };
        let mut responses = lock(&self.responses);
        responses.running.insert(number, running);
        if !std::mem::replace(&mut responses.is_watched, true) {
            drop(responses);
            tokio::spawn(self.clone().watch());
        }
    }

    /// Aborts slow responses until there are none left.
    async fn watch(self) {
        loop {
            sleep(self.slowest.timeout / CHECKS).await;
            let mut responses = lock(&self.responses);
            let now = Instant::now();
            let slow: Vec<AbortHandle> = responses
                .running
                .values_mut()
                .filter_map(|running| {
                    let is_slow = running.is_too_slow(now, self.slowest);
                    running.pace.is_too_slow.store(is_slow, Ordering::Relaxed);
                    is_slow.then(|| running.task.clone())
                })
                .collect();
            responses.is_watched = !responses.running.is_empty();
            let is_over = !responses.is_watched;
            drop(responses);
            for task in slow {
                task.abort();
            }
            if is_over {
                return;
            }
        }
    }
}

impl Running {
    fn is_too_slow(&mut self, now: Instant, slowest: Slowest) -> bool {
        let taken = self.pace.taken.load(Ordering::Relaxed);
        let is_waiting = self.pace.waiting.load(Ordering::Relaxed) > 0;
        match self.mark {
            Some((since, before)) if is_waiting && taken - before < slowest.bytes.max(1) => {
                now - since >= slowest.timeout
            }
            _ => {
                self.mark = is_waiting.then_some((now, taken));
                false
            }
        }
    }
}

impl Pace {
    /// Whether the response is aborted because its client does not read it.
    pub(super) fn is_too_slow(&self) -> bool {
        self.is_too_slow.load(Ordering::Relaxed)
    }

    /// These bytes wait for room.
    pub(super) fn on_wait(&self, bytes: usize) {
        self.waiting.store(bytes as u64, Ordering::Relaxed);
    }

    /// There was room for the bytes that waited.
    pub(super) fn on_room(&self) {
        let waited = self.waiting.swap(0, Ordering::Relaxed);
        self.taken.fetch_add(waited, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::{runtime, sync::oneshot};

    use super::*;

    const SLOWEST: Slowest = Slowest {
        timeout: Duration::from_millis(80),
        bytes: 100,
    };

    fn run(test: impl Future<Output = ()>) {
        let runtime = runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(test);
    }

    /// A body that returns `bytes` every 10 ms, and never ends.
    async fn body(pace: Arc<Pace>, bytes: usize) {
        loop {
            pace.on_room();
            pace.on_wait(bytes);
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Executes a task, and returns a receiver that fails when the task is dropped.
    fn execute<F: Future<Output = ()> + Send + 'static>(
        executor: &PacedExecutor,
        task: impl FnOnce(Arc<Pace>) -> F + Send + 'static,
    ) -> oneshot::Receiver<()> {
        let (held, dropped) = oneshot::channel();
        executor.execute(|pace| {
            let task = task(pace);
            async move {
                task.await;
                let _ = held.send(());
            }
        });
        dropped
    }

    #[test]
    fn only_bodies_whose_bytes_are_not_written_are_aborted() {
        run(async {
            let executor = PacedExecutor::new(SLOWEST);
            let mut moving = execute(&executor, |pace| body(pace, 1000));
            // It has returned everything it has, and waits for more from elsewhere.
            let mut waiting = execute(&executor, |pace| async move {
                pace.on_wait(1000);
                pace.on_room();
                std::future::pending::<()>().await;
            });
            let began = Instant::now();
            let stalled = execute(&executor, |pace| async move {
                pace.on_wait(1000);
                std::future::pending::<()>().await;
            });
            let slow = execute(&executor, |pace| body(pace, 1));
            assert!(stalled.await.is_err(), "aborted");
            assert!(slow.await.is_err(), "aborted");
            assert!(began.elapsed() >= SLOWEST.timeout);
            assert!(moving.try_recv() == Err(oneshot::error::TryRecvError::Empty));
            assert!(waiting.try_recv() == Err(oneshot::error::TryRecvError::Empty));
            assert_eq!(lock(&executor.responses).running.len(), 2);
        });
    }

    #[test]
    fn complete_responses_leave_no_state() {
        run(async {
            let executor = PacedExecutor::new(SLOWEST);
            for _ in 0..100 {
                execute(&executor, |_| async {})
                    .await
                    .expect("it completes");
            }
            while lock(&executor.responses).is_watched {
                sleep(SLOWEST.timeout / CHECKS).await;
            }
            assert!(lock(&executor.responses).running.is_empty());
            execute(&executor, |_| async {})
                .await
                .expect("it completes");
            assert!(lock(&executor.responses).is_watched, "again");
        });
    }
}
