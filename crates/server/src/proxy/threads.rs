//! The threads on which requests are forwarded.
//!
//! Owns the connections and the tasks of each. A request over HTTP/1.1 or 2 is forwarded on the thread that serves its
//! client. Workers of HTTP/3 have no runtime: each passes its requests to one of the proxy's own threads.
//!
//! | entry | is removed when |
//! |---|---|
//! | state of a thread of the server | the proxy is dropped, or another thread takes its place after its end |
//! | request that waits for one of the proxy's own threads | the thread's task takes it; the thread takes all at once |
//!
//! # Decisions
//!
//! - *A connection to the upstream stays on one thread*, with all tasks that use it: they wake each other without a system
//!   call. The price is that threads do not share idle connections.
//! - *A worker of HTTP/3 wakes its thread once for all requests of a turn*, since each wake-up of another thread is a write
//!   to its eventfd.

use std::{
    io, mem,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{runtime::Handle, sync::Notify};

use super::pool::Pool;
use crate::tcp::threads::{self, ThreadId};

/// Forwards a request.
type Job = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Makes the connections of a thread: for each server.
type NewPools = Box<dyn Fn() -> Box<[Arc<Pool>]> + Send + Sync>;

/// What a thread has for itself.
pub(super) struct Local {
    /// For each server.
    pub(super) pools: Box<[Arc<Pool>]>,
    runtime: Handle,
    /// For a thread of the proxy.
    queue: Option<Arc<Queue>>,
}

/// Requests that other threads pass to a thread.
#[derive(Default)]
struct Queue {
    jobs: Mutex<Vec<Job>>,
    is_filled: Notify,
}

impl Queue {
    fn push(&self, job: Job) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.push(job);
        let is_first = jobs.len() == 1;
        drop(jobs);
        if is_first {
            self.is_filled.notify_one();
        }
    }

    async fn run(self: Arc<Self>) {
        loop {
            self.is_filled.notified().await;
            let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = mem::take(&mut *jobs);
            drop(jobs);
            for job in taken {
                tokio::spawn(job);
            }
        }
    }
}

impl Local {
    /// Whether a server may support HTTP/2.
    pub(super) fn may_be_http2(&self) -> bool {
        self.pools.iter().any(|pool| pool.may_be_http2())
    }

    /// Runs a task on this thread.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.queue {
            Some(queue) => queue.push(Box::pin(task)),
            None => drop(self.runtime.spawn(task)),
        }
    }
}

/// All threads.
pub(super) struct Threads {
    own: Box<[Arc<Local>]>,
    /// The threads of the server that have forwarded requests.
    others: Mutex<Vec<(ThreadId, Arc<Local>)>>,
    /// `None`: all requests are forwarded on the runtime that was given.
    new_pools: Option<NewPools>,
    /// Its own threads end when this is dropped.
    _running: Option<threads::Threads>,
}

thread_local! {
    /// Distributes the workers over the proxy's own threads.
    static NUMBER: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

impl Threads {
    /// Starts this number of threads, at least one.
    pub(super) fn start(count: usize, new_pools: NewPools) -> io::Result<Self> {
        let threads = threads::Threads::start("proxy", count)?;
        let own = threads.handles().iter().map(|runtime| {
            let queue = Arc::<Queue>::default();
            drop(runtime.spawn(Arc::clone(&queue).run()));
            Arc::new(Local {
                pools: new_pools(),
                runtime: runtime.clone(),
                queue: Some(queue),
            })
        });
        Ok(Self {
            own: own.collect(),
            others: Mutex::default(),
            new_pools: Some(new_pools),
            _running: Some(threads),
        })
    }

    /// All requests are forwarded on this runtime.
    pub(super) fn on(runtime: Handle, pools: Box<[Arc<Pool>]>) -> Self {
        let local = Local {
            pools,
            runtime,
            queue: None,
        };
        Self {
            own: Box::new([Arc::new(local)]),
            others: Mutex::default(),
            new_pools: None,
            _running: None,
        }
    }

    /// The first of the proxy's own threads.
    pub(super) fn own(&self) -> &Arc<Local> {
        &self.own[0]
    }

    /// The thread for a request that the present one has received.
    pub(super) fn local(&self) -> Arc<Local> {
        if let Some(new_pools) = &self.new_pools
            && let Some(id) = threads::current()
            && let Ok(runtime) = Handle::try_current()
        {
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, local)) = others.iter().find(|(other, _)| *other == id) {
                return Arc::clone(local);
            }
            others.retain(|(other, _)| other.is_running());
            let local = Arc::new(Local {
                pools: new_pools(),
                runtime,
                queue: None,
            });
            others.push((id, Arc::clone(&local)));
            return local;
        }
        let number = NUMBER.with(|number| *number) % self.own.len().max(1);
        Arc::clone(&self.own[number])
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn no_pools() -> NewPools {
        Box::new(|| Box::new([]))
    }

    /// What a thread of a server forwards on, asked twice.
    fn ask(server: &threads::Threads, proxy: &Arc<Threads>) -> (Arc<Local>, Arc<Local>) {
        let (send, receive) = oneshot::channel();
        let proxy = Arc::clone(proxy);
        server.handles()[0].spawn(async move {
            let _ = send.send((proxy.local(), proxy.local()));
        });
        receive.blocking_recv().expect("it runs")
    }

    #[test]
    fn a_thread_of_the_server_forwards_itself_and_leaves_nothing_behind() {
        let proxy = Arc::new(Threads::start(1, no_pools()).expect("threads"));
        assert!(proxy.local().queue.is_some(), "a thread without a runtime");
        for _ in 0..3 {
            let server = threads::Threads::start("tcp", 1).expect("threads");
            let (first, second) = ask(&server, &proxy);
            assert!(Arc::ptr_eq(&first, &second) && first.queue.is_none());
            let others = proxy.others.lock().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(others.len(), 1);
            drop(others);
            server.end_after(async {});
        }
    }

    #[test]
    fn tasks_of_other_threads_run_on_the_proxys_own() {
        let proxy = Threads::start(1, no_pools()).expect("threads");
        let local = proxy.local();
        let ran: Vec<_> = (0..100)
            .map(|number| {
                let (send, receive) = oneshot::channel();
                local.spawn(async move {
                    let name = std::thread::current().name().map(str::to_owned);
                    let _ = send.send((number, name));
                });
                receive
            })
            .collect();
        for (number, receive) in ran.into_iter().enumerate() {
            let expected = (number, Some("proxy-0".to_owned()));
            assert_eq!(receive.blocking_recv(), Ok(expected));
        }
    }
}
