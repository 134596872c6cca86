//! What a server keeps for the requests of its connections.

use lastbyte_engine::Engine;

use super::{Http3Server, Served};

/// Counts of what a server keeps for the requests of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Open connections.
    pub connections: usize,
    /// Streams of these connections that have not ended, of the control and QPACK streams too.
    pub streams: usize,
    /// Requests whose response is not over.
    pub records: usize,
    /// Responses that arrive piece by piece.
    pub running: usize,
    /// Responses that are delayed.
    pub delayed: usize,
    /// Requests that wait to be passed to a handler's task.
    pub held: usize,
}

/// Counts what a server keeps for requests.
pub fn kept(server: &mut Engine<Http3Server>) -> Kept {
    let mut kept = Kept::default();
    let (endpoint, application) = server.parts();
    for handle in endpoint.handles().collect::<Vec<_>>() {
        let Some((connection, requests)) = endpoint.entry(handle) else {
            continue;
        };
        let Served {
            records,
            running,
            delayed,
            held,
            ..
        } = &**requests;
        kept.connections += 1;
        kept.streams += connection.streams().live();
        kept.records += records.len();
        kept.running += running.len();
        kept.delayed += delayed.len();
        kept.held += held.len();
    }
    kept.held += application.starting.len();
    kept
}
