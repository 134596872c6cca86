//! Accepting connections, and which thread serves each.
//!
//! Where the system permits it, each thread has a listener of its own (`SO_REUSEPORT`), and keeps what it accepts. A single
//! listener, such as one from a service manager, is read by one thread, which gives the connections to all threads in turn.
//!
//! # Decisions
//!
//! - *Connections that wait when a shutdown begins are accepted*: their clients have begun a handshake, and closing
//!   the listener resets them. One that arrives after the last was accepted is reset nevertheless: a filter that drops SYNs
//!   would prevent it, but also apply to a later process that shares the socket.

use std::{io, net, net::SocketAddr, sync::Arc, time::Duration};

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

/// Maximum connections that a listener accepts after the beginning of a shutdown, so that it ends even if clients connect as fast
/// as it accepts. The largest queue that Linux permits by default (`net.core.somaxconn`).
const WAITING_MAX: usize = 4096;

/// Accepts connections up to the limit until shutdown, and then those that wait, and spawns `serve` for each on one of
/// `threads`, in turn. Runs on the first of them.
pub(super) async fn accept<F, S>(
    listener: net::TcpListener,
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
    let mut turns = threads.iter().enumerate().cycle();
    for (index, thread) in turns.by_ref() {
        let (stream, remote, admitted) = tokio::select! {
            next = next(&listener, &admission, counts) => next,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        if index == 0 {
            let (serve, shared) = (serve.clone(), Arc::clone(&thread.shared));
            thread.handle.spawn(async move {
                serve(shared, stream, remote).await;
                drop(admitted);
            });
            continue;
        }
        match stream.into_std() {
            Ok(stream) => spawn(thread, &serve, stream, remote, admitted),
            Err(_) => count(&counts.accepts_failed),
        }
    }
    let Ok(listener) = listener.into_std() else {
        return;
    };
    for (_, thread) in turns.take(WAITING_MAX) {
        // None waits, or none can be accepted.
        let Ok((stream, remote)) = listener.accept() else {
            return;
        };
        match admission.admit(remote.ip()).await {
            Some(admitted) => spawn(thread, &serve, stream, remote, admitted),
            None => count(&counts.refused),
        }
    }
}

/// Serves a connection on a thread, with whose runtime its socket is registered.
fn spawn<F, S>(
    thread: &Thread,
    serve: &F,
    stream: net::TcpStream,
    remote: SocketAddr,
    admitted: Admitted,
) where
    F: Fn(Arc<Shared>, TcpStream, SocketAddr) -> S + Clone + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let (serve, shared) = (serve.clone(), Arc::clone(&thread.shared));
    thread.handle.spawn(async move {
        let stream = stream
            .set_nonblocking(true)
            .and_then(|()| TcpStream::from_std(stream));
        match stream {
            Ok(stream) => serve(shared, stream, remote).await,
            Err(_) => count(&shared.counts.accepts_failed),
        }
        drop(admitted);
    });
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
