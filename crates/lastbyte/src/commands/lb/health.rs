//! Health checks: `GET /healthz` over HTTP/1.1, as `lastbyte serve --metrics` answers it.
//!
//! Owns the state of each server, by its ID, and the requests in flight. A server without an address for checks counts as
//! healthy. A state ends when a reload removes its server or changes its address.

use std::{collections::BTreeMap, io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
    time,
};

use crate::commands::fleet_file::FleetFile;

/// Consecutive failures after which a server is down.
const FAILURES: u32 = 3;
/// Consecutive successes after which a server is up again.
const SUCCESSES: u32 = 2;
/// Time limit for a check.
const PATIENCE: Duration = Duration::from_secs(2);

/// The result of a check.
pub(super) struct Checked {
    server: u64,
    address: SocketAddr,
    result: io::Result<()>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    address: SocketAddr,
    is_up: bool,
    /// Consecutive results that contradict `is_up`.
    contradictions: u32,
    is_in_flight: bool,
}

/// The health of all servers.
pub(super) struct Health {
    states: BTreeMap<u64, State>,
    results: mpsc::UnboundedReceiver<Checked>,
    /// Unbounded, but each server has at most one check in flight, and one more for each reload that changed its address
    /// in the last 2 s ([`PATIENCE`]).
    sender: mpsc::UnboundedSender<Checked>,
}

impl Health {
    /// All servers are healthy at first.
    pub(super) fn new(file: &FleetFile) -> Self {
        let (sender, results) = mpsc::unbounded_channel();
        let mut health = Self {
            states: BTreeMap::new(),
            results,
            sender,
        };
        health.set_servers(file);
        health
    }

    /// Replaces the servers. Those with the same ID and address keep their state.
    pub(super) fn set_servers(&mut self, file: &FleetFile) {
        let before = std::mem::take(&mut self.states);
        for (server, address) in file.fleet.servers.iter().zip(&file.health) {
            let Some(address) = *address else {
                continue;
            };
            let kept = before.get(&server.id).copied();
            let state = kept.filter(|state| state.address == address);
            let state = state.unwrap_or(State {
                address,
                is_up: true,
                contradictions: 0,
                is_in_flight: false,
            });
            self.states.insert(server.id, state);
        }
    }

    pub(super) fn is_up(&self, server: u64) -> bool {
        self.states.get(&server).is_none_or(|state| state.is_up)
    }

    /// Whether each checked server is up.
    pub(super) fn states(&self) -> BTreeMap<u64, bool> {
        let states = self.states.iter();
        states.map(|(id, state)| (*id, state.is_up)).collect()
    }

    /// Starts a check of each server that has none in flight.
    pub(super) fn probe(&mut self) {
        for (id, state) in &mut self.states {
            if state.is_in_flight {
                continue;
            }
            state.is_in_flight = true;
            let (server, address, sender) = (*id, state.address, self.sender.clone());
            tokio::task::spawn_local(async move {
                let checked = time::timeout(PATIENCE, check(address)).await;
                let result = checked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                // The command ends: the result is of no interest.
                let _ = sender.send(Checked {
                    server,
                    address,
                    result,
                });
            });
        }
    }

    /// The next result.
    pub(super) async fn result(&mut self) -> Checked {
        match self.results.recv().await {
            Some(checked) => checked,
            // Not reached: there is always a sender.
            None => std::future::pending().await,
        }
    }

    /// Applies a result. Returns a message if the server's health changed.
    pub(super) fn apply(&mut self, checked: &Checked) -> Option<String> {
        let state = self.states.get_mut(&checked.server)?;
        if state.address != checked.address {
            return None;
        }
        state.is_in_flight = false;
        let is_ok = checked.result.is_ok();
        if is_ok == state.is_up {
            state.contradictions = 0;
            return None;
        }
        state.contradictions += 1;
        let needed = if is_ok { SUCCESSES } else { FAILURES };
        if state.contradictions < needed {
            return None;
        }
        state.is_up = is_ok;
        state.contradictions = 0;
        Some(match &checked.result {
            Ok(()) => format!("server {} is up\n", checked.server),
            Err(error) => format!("server {} is down: {error}\n", checked.server),
        })
    }
}

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: health\r\nconnection: close\r\n\r\n";
/// The start of a status line, followed by the status and a space.
const STATUS_OK: &[u8] = b"HTTP/1.1 200 ";

async fn check(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(REQUEST).await?;
    let mut line = [0; STATUS_OK.len()];
    stream.read_exact(&mut line).await?;
    if line == STATUS_OK {
        return Ok(());
    }
    let line = String::from_utf8_lossy(&line).into_owned();
    Err(io::Error::other(format!(
        "unexpected response `{}` (expected status 200)",
        line.trim_end().escape_debug()
    )))
}
