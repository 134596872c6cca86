//! TCP connections, for HTTP/1.1 and 2: passed through to the server that the consistent hash of the addresses selects.
//!
//! Owns the connections, a bounded number. TLS ends at the server. A server closes connections that are idle, which ends
//! them here as well, whether or not their clients close them.

use std::{
    cell::Cell,
    io,
    net::SocketAddr,
    pin::pin,
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use lastbyte_balancer::Table;
use lastbyte_server::tcp::{Admission, Stalled};
use tokio::{
    io::{AsyncWriteExt, copy, sink},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    time,
};

#[cfg(test)]
mod tests;

/// Time limit for connecting to a server.
const CONNECT: Duration = Duration::from_secs(5);
/// Time limit for a client that reads nothing, twice that of servers by default; and for one that does not close its side
/// after the server.
const STALL: Duration = Duration::from_secs(60);
/// Maximum connections that wait to be accepted. The system may permit fewer (`net.core.somaxconn`).
const BACKLOG: u32 = 1024;
/// The pause after a failure to accept, such as the limit of open files.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: Cell<u64>,
    /// Closed at once: the address has reached its limit.
    pub(super) refused: Cell<u64>,
    /// No server takes new connections, or the chosen one does not accept.
    pub(super) failed: Cell<u64>,
    pub(super) open: Cell<u64>,
}

fn increment(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// A listener. tokio's own has a backlog of 128: a client beyond that repeats its SYN after a second.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Passes connections through, at most `limit` at a time.
pub(super) async fn serve(
    listener: TcpListener,
    tables: watch::Receiver<Arc<Table>>,
    limit: usize,
    counts: Rc<Counts>,
) {
    let admission = Admission::new(limit, limit);
    loop {
        let Ok((client, remote)) = listener.accept().await else {
            time::sleep(PAUSE).await;
            continue;
        };
        increment(&counts.accepted);
        let Some(admitted) = admission.admit(remote.ip()).await else {
            increment(&counts.refused);
            continue;
        };
        let table = Arc::clone(&tables.borrow());
        let counts = Rc::clone(&counts);
        tokio::task::spawn_local(async move {
            increment(&counts.open);
            if pass(client, remote, &table).await.is_none() {
                increment(&counts.failed);
            }
            counts.open.set(counts.open.get() - 1);
            drop(admitted);
        });
    }
}

/// Passes a connection through. `None` if it did not reach a server.
async fn pass(client: TcpStream, remote: SocketAddr, table: &Table) -> Option<()> {
    let canonical =
        |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let local = canonical(client.local_addr().ok()?);
    let server = table.server(table.by_addresses(canonical(remote), local)?)?;
    let connected = time::timeout(CONNECT, TcpStream::connect(server.address)).await;
    relay(client, connected.ok()?.ok()?, STALL).await;
    Some(())
}

/// Copies in both directions, until both have ended or the client stalls. What a server does not take is discarded: it may have
/// responded before the end of an upload, and a connection that is closed while its client sends is reset, with the response.
async fn relay(mut client: TcpStream, mut server: TcpStream, stall: Duration) {
    // Without it, the last part of a response waits for an acknowledgement.
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    let (mut from_client, to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let mut to_client = Stalled::new(to_client, stall);
    let has_stalled = to_client.has_stalled();
    let mut sent = pin!(async {
        if copy(&mut from_client, &mut to_server).await.is_ok() {
            let _ = to_server.shutdown().await;
            return Ok(());
        }
        // Fails at once if it is the client that is gone.
        copy(&mut from_client, &mut sink()).await.map(drop)
    });
    let mut received = pin!(async {
        // With TLS, a client knows a response that a server broke off.
        let _ = copy(&mut from_server, &mut to_client).await;
        to_client.shutdown().await
    });
    // The ends of a connection report its errors.
    tokio::select! {
        ended = &mut sent => if ended.is_ok() {
            // The server closes its side when it has responded.
            let _ = received.await;
        },
        ended = &mut received => if ended.is_ok() && !has_stalled.load(Ordering::Relaxed) {
            let _ = time::timeout(stall, sent).await;
        },
    }
}
