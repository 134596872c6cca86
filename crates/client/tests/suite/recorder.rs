//! A listener that records all events.

use std::{io, net::SocketAddr};

use lastbyte_client::{
    Fetch, Handshake, Head, Listener, Memory, Origin, Outcome, Report, Settings, run,
};
use lastbyte_driver::Clock;
use lastbyte_http3::Fields;

/// Records all events.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) bodies: Vec<Vec<u8>>,
    pub(crate) heads: Vec<String>,
    pub(crate) handshakes: Vec<Handshake>,
    /// The ports of QUIC connection attempts.
    pub(crate) connecting: Vec<u16>,
    /// The number of bytes of a body after which the listener fails.
    pub(crate) size_max: Option<usize>,
    pub(crate) is_interrupted: bool,
}

impl Listener for Recorder {
    fn on_body(&mut self, fetch: usize, bytes: &[u8]) -> io::Result<()> {
        if self.bodies.len() <= fetch {
            self.bodies.resize(fetch + 1, Vec::new());
        }
        self.bodies[fetch].extend_from_slice(bytes);
        match self.size_max {
            Some(max) if self.bodies[fetch].len() > max => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn on_interim(&mut self, _: usize, head: &Head<'_>) -> io::Result<()> {
        self.heads.push(format!("{}", head.response.status()));
        Ok(())
    }

    fn on_head(&mut self, _: usize, head: &Head<'_>) -> io::Result<()> {
        self.heads.push(format!("{}", head.response.status()));
        Ok(())
    }

    fn on_trailers(&mut self, _: usize, fields: &Fields) -> io::Result<()> {
        self.heads.push(format!("{fields:?}"));
        Ok(())
    }

    fn on_quic_connecting(&mut self, _: usize, _: &Origin, remote: SocketAddr) {
        self.connecting.push(remote.port());
    }

    fn on_connected(&mut self, _: usize, handshake: &Handshake) {
        self.handshakes.push(handshake.clone());
    }

    fn on_tick(&mut self) -> bool {
        !self.is_interrupted
    }
}

pub(crate) fn fetch_with(
    settings: &Settings,
    memory: &Memory,
    recorder: &mut Recorder,
    fetches: Vec<Fetch>,
) -> Vec<Outcome> {
    let report: Report = run(settings, memory, Clock::new(), fetches, recorder).expect("a socket");
    report.outcomes
}
