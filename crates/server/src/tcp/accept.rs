//! Accepting connections, and which thread serves each.
//!
//! Where the system permits it, each thread has a listener of its own (`SO_REUSEPORT`), and keeps what it accepts. A single
//! listener, such as one from a service manager, is read by one thread, which gives the connections to all threads in turn.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time,
};

use super::{
    Counts, Shared, Thread,
    admission::{Admission, Admitted},
    count,
};

/// Pause after an error that passes, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections up to the limit until shutdown, and spawns `serve` for each on one of `threads`, in turn. Runs on the
/// first of them.
pub(super) async fn accept<F, S>(
    listener: std::net::TcpListener,
    threads: Vec<Thread>,
    admission: Admission,
    serve: F,
) where
    F: Fn(Arc<Shared>, TcpStream, SocketAddr) -> S + Clone + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let Some(Thread { shared, .. }) = threads.first() else {
        return;
    };
    let (counts, mut stopped) = (&*shared.counts, shared.stopped.clone());
    let Ok(listener) = TcpListener::from_std(listener) else {
        count(&counts.accepts_failed);
        return;
    };
    for (turn, thread) in threads.iter().cycle().enumerate() {
        let (stream, remote, admitted) = tokio::select! {
            next = next(&listener, &admission, counts) => next,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let (serve, shared) = (serve.clone(), Arc::clone(&thread.shared));
        if turn % threads.len() == 0 {
            thread.handle.spawn(async move {
                serve(shared, stream, remote).await;
                drop(admitted);
            });
            continue;
        }
        let Ok(stream) = stream.into_std() else {
            count(&counts.accepts_failed);
            continue;
        };
        thread.handle.spawn(async move {
            // The socket is registered with the runtime of its thread.
            match TcpStream::from_std(stream) {
                Ok(stream) => serve(shared, stream, remote).await,
                Err(_) => count(&shared.counts.accepts_failed),
            }
            drop(admitted);
        });
    }
}

/// The next connection that is admitted.
///
/// It is accepted before there is a permit for it: a listener that waits for a connection keeps no permit from those of the
/// other threads. So each listener may hold one connection beyond the limit, which is not served yet.
async fn next(
    listener: &TcpListener,
    admission: &Admission,
    counts: &Counts,
) -> (TcpStream, SocketAddr, Admitted) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                if let Some(admitted) = admission.admit(remote.ip()).await {
                    return (stream, remote, admitted);
                }
                count(&counts.refused);
            }
            // The client closed the connection before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => {
                count(&counts.accepts_failed);
                time::sleep(PAUSE).await;
            }
        }
    }
}
