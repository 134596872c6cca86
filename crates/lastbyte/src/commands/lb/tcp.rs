//! TCP connections, for HTTP/1.1 and 2: passed through to the server that the consistent hash of the addresses selects.
//!
//! Owns: the connections, a bounded number. TLS ends at the server. A server closes connections that are idle, which ends
//! them here as well.

use std::{cell::Cell, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use lastbyte_balancer::Table;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time,
};

/// Time limit for connecting to a server.
const CONNECT: Duration = Duration::from_secs(5);
/// The pause after a failure to accept, such as the limit of open files.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: Cell<u64>,
    /// No server takes new connections, or the chosen one does not accept.
    pub(super) failed: Cell<u64>,
    pub(super) open: Cell<u64>,
}

fn increment(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// Passes connections through, at most `limit` at a time.
pub(super) async fn serve(
    listener: TcpListener,
    tables: watch::Receiver<Arc<Table>>,
    limit: usize,
    counts: Rc<Counts>,
) {
    let permits = Arc::new(Semaphore::new(limit));
    // The semaphore is never closed.
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        let Ok((client, remote)) = listener.accept().await else {
            time::sleep(PAUSE).await;
            continue;
        };
        increment(&counts.accepted);
        let table = Arc::clone(&tables.borrow());
        let counts = Rc::clone(&counts);
        tokio::task::spawn_local(async move {
            increment(&counts.open);
            if pass(client, remote, &table).await.is_none() {
                increment(&counts.failed);
            }
            counts.open.set(counts.open.get() - 1);
            drop(permit);
        });
    }
}

/// Passes a connection through. `None` if it did not reach a server.
async fn pass(mut client: TcpStream, remote: SocketAddr, table: &Table) -> Option<()> {
    let canonical =
        |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let local = canonical(client.local_addr().ok()?);
    let server = table.server(table.by_addresses(canonical(remote), local)?)?;
    let connected = time::timeout(CONNECT, TcpStream::connect(server.address)).await;
    let mut upstream = connected.ok()?.ok()?;
    // Without it, the last part of a response waits for an acknowledgement.
    let _ = client.set_nodelay(true);
    let _ = upstream.set_nodelay(true);
    // How a connection ended is known to its ends.
    let _ = copy_bidirectional(&mut client, &mut upstream).await;
    Some(())
}
