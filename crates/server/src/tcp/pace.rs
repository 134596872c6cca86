//! Responses over HTTP/2 that their client does not take, while it takes others or sends PINGs.
//!
//! Owns: how long what a body has given waits for room in the client's window for its stream. Never: counts the time that
//! a body takes to give more. hyper works on each response in a task of its own, which it starts by the executor here, and
//! asks its body for more once there is room: a task whose body is not asked for too long is dropped, and its stream reset.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};

tokio::task_local! {
    static PACE: Arc<Pace>;
}

/// How slowly a body may move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slowest {
    /// Over how long it is measured.
    pub(super) timeout: Duration,
    /// Bytes in that time.
    pub(super) bytes: u64,
}

/// How often a response is looked at in each timeout.
const CHECKS: u32 = 8;

/// Starts tasks, and ends those that are too slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacedExecutor(pub(super) Slowest);

impl<F> hyper::rt::Executor<F> for PacedExecutor
where
    F: Future + Send + 'static,
{
    fn execute(&self, task: F) {
        let pace = Arc::new(Pace::default());
        let slowest = self.0;
        tokio::spawn(PACE.scope(Arc::clone(&pace), async move {
            tokio::select! {
                _ = task => {}
                () = too_slow(&pace, slowest) => {}
            }
        }));
    }
}

/// How far one response is.
#[derive(Debug, Default)]
struct Pace {
    /// Bytes for which there was room.
    taken: AtomicU64,
    /// Bytes that wait for room.
    waiting: Mutex<Option<u64>>,
}

impl Pace {
    fn waiting(&self) -> MutexGuard<'_, Option<u64>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body is asked for more: what it gave before has found room.
pub(super) fn on_asked() {
    let _ = PACE.try_with(|pace| {
        let waited = pace.waiting().take().unwrap_or(0);
        pace.taken.fetch_add(waited, Ordering::Relaxed);
    });
}

/// A body gives bytes, which may have to wait.
pub(super) fn on_given(bytes: u64) {
    let _ = PACE.try_with(|pace| *pace.waiting() = Some(bytes));
}

/// Ends when a response is too slow.
async fn too_slow(pace: &Pace, slowest: Slowest) {
    let mut mark: Option<(Instant, u64)> = None;
    loop {
        sleep(slowest.timeout / CHECKS).await;
        let taken = pace.taken.load(Ordering::Relaxed);
        let is_waiting = pace.waiting().is_some();
        mark = match mark {
            Some((since, before)) if is_waiting && taken - before < slowest.bytes.max(1) => {
                if since.elapsed() >= slowest.timeout {
                    return;
                }
                Some((since, before))
            }
            _ => is_waiting.then(|| (Instant::now(), taken)),
        };
    }
}
