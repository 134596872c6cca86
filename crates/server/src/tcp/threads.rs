//! Threads with a current-thread runtime each: those that serve HTTP/1.1 and 2, and those of a proxy for HTTP/3.
//!
//! # Decisions
//!
//! - *A connection stays on its thread*, with the tasks of its requests. They wake each other without a lock and without a
//!   system call. The multi-thread scheduler of tokio moves tasks between threads instead: with ten connections of ten requests
//!   each, it wrote to its eventfd once for two requests.
//! - *Files are read on the thread*, at most 64 KiB at a time, as nginx and H2O do. From the page cache, that takes less time
//!   than handing the read to another thread. A read from a slow disk delays the other connections of the thread, and
//!   tokio's budget of each task returns to them after a bounded number of socket operations.

use std::{
    cell::OnceCell,
    io,
    sync::{Arc, Weak},
    thread,
};

use tokio::{
    runtime::{self, Handle},
    sync::watch,
    time::Duration,
};

/// Time limit for blocking tasks of handlers when a thread ends.
const BLOCKING_TIMEOUT: Duration = Duration::from_millis(100);

/// Identifies one of these threads.
#[derive(Clone, Debug)]
pub(crate) struct ThreadId(Weak<()>);

impl ThreadId {
    /// Whether the thread still runs.
    pub(crate) fn is_running(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl PartialEq for ThreadId {
    fn eq(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.0, &other.0)
    }
}

thread_local! {
    static CURRENT: OnceCell<Arc<()>> = const { OnceCell::new() };
}

/// The present thread, if it is one of these.
pub(crate) fn current() -> Option<ThreadId> {
    CURRENT.with(|current| current.get().map(|thread| ThreadId(Arc::downgrade(thread))))
}

/// All threads. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Threads {
    handles: Vec<Handle>,
    joins: Vec<thread::JoinHandle<()>>,
    end: watch::Sender<()>,
}

impl Threads {
    /// Starts at least one, with this name and a number.
    pub(crate) fn start(name: &str, count: usize) -> io::Result<Self> {
        let (end, ended) = watch::channel(());
        let mut threads = Self {
            handles: Vec::new(),
            joins: Vec::new(),
            end,
        };
        for number in 0..count.max(1) {
            let runtime = runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            threads.handles.push(runtime.handle().clone());
            let mut ended = ended.clone();
            let run = move || {
                CURRENT.with(|current| _ = current.set(Arc::default()));
                // An error: the sender was dropped, which is the end.
                while runtime.block_on(ended.changed()).is_ok() {}
                runtime.shutdown_timeout(BLOCKING_TIMEOUT);
            };
            let thread = thread::Builder::new().name(format!("{name}-{number}"));
            threads.joins.push(thread.spawn(run)?);
        }
        Ok(threads)
    }

    /// Where tasks are spawned, for each thread.
    pub(crate) fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// Runs until `last` is complete, then drops all tasks, and waits for the threads.
    pub(crate) fn end_after(self, last: impl Future<Output = ()> + Send + 'static) {
        let Self {
            handles,
            joins,
            end,
        } = self;
        let until = async move {
            last.await;
            drop(end);
        };
        // If the thread is gone, the task is dropped at once, and `end` with it.
        if let Some(handle) = handles.first() {
            handle.spawn(until);
        }
        for join in joins {
            // A panic outside of all tasks: the other threads end as usual.
            drop(join.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::sync::oneshot;

    use super::*;

    /// Counts when it is dropped.
    struct Dropped(Arc<AtomicUsize>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Spawns a task on each thread that never completes.
    fn pending_tasks(threads: &Threads) -> Arc<AtomicUsize> {
        let dropped = Arc::default();
        for handle in threads.handles() {
            let task = Dropped(Arc::clone(&dropped));
            handle.spawn(async move {
                std::future::pending::<()>().await;
                drop(task);
            });
        }
        dropped
    }

    #[test]
    fn each_handle_runs_its_tasks_on_its_own_thread() {
        let threads = Threads::start("tcp", 3).expect("threads");
        let mut ids = Vec::new();
        for handle in threads.handles() {
            let (send, receive) = oneshot::channel();
            handle.spawn(async move {
                let outer = thread::current().id();
                let inner = tokio::spawn(async { thread::current().id() }).await;
                let _ = send.send((outer, inner.expect("it runs")));
            });
            let (outer, inner) = receive.blocking_recv().expect("it runs");
            assert_eq!(outer, inner);
            ids.push(outer);
        }
        ids.dedup();
        assert_eq!(ids.len(), 3);
        threads.end_after(async {});
    }

    #[test]
    fn threads_end_after_the_given_task_and_drop_pending_ones() {
        let threads = Threads::start("tcp", 2).expect("threads");
        let dropped = pending_tasks(&threads);
        let dropped_before = Arc::clone(&dropped);
        let (send, receive) = oneshot::channel();
        threads.end_after(async move {
            let _ = send.send(dropped_before.load(Ordering::Relaxed));
        });
        assert_eq!(receive.blocking_recv(), Ok(0));
        assert_eq!(dropped.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn threads_end_when_they_are_dropped() {
        let mut threads = Threads::start("tcp", 2).expect("threads");
        let dropped = pending_tasks(&threads);
        let joins = std::mem::take(&mut threads.joins);
        drop(threads);
        for join in joins {
            join.join().expect("no panic");
        }
        assert_eq!(dropped.load(Ordering::Relaxed), 2);
    }
}
