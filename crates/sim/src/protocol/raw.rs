//! Requests and responses directly on QUIC streams, without frames or fields.
//!
//! For comparisons with simulators without HTTP. A request has [`REQUEST_LEN`] bytes, of which the first eight are the size of
//! the response. An upload follows a request of size 0.

use std::collections::BTreeMap;

use lastbyte_congestion::Time;
use lastbyte_engine::{Application, Datagram, Next};
use lastbyte_quic::{
    connection::Connection,
    endpoint::{Closed, Endpoint, Handle},
    stream::{StreamEvent, StreamSink},
};
use lastbyte_units::Direction;
use lastbyte_wire::{self as wire, StreamId};

use super::{ClientProtocol, NoStreamCredit};
use crate::{
    measures::Measures,
    server::{AnyBytes, TraceSlot, take_trace},
};

pub(super) const ALPN: &[u8] = b"lastbyte-sim";
/// Length of a request, in bytes: similar to a browser's `HEADERS`.
const REQUEST_LEN: usize = 100;

/// The client's side.
pub(super) struct Client;

/// Measures received data.
struct Arrivals<'a> {
    now: Time,
    measures: &'a mut Measures,
}

impl StreamSink for Arrivals<'_> {
    fn data(&mut self, id: StreamId, _: u64, data: &[u8], fin: bool) -> usize {
        self.measures.on_body(self.now, id, data.len());
        if fin {
            self.measures.on_end(self.now, id);
        }
        data.len()
    }
}

impl ClientProtocol for Client {
    fn send_request(
        &mut self,
        connection: &mut Connection,
        size: u64,
        direction: Direction,
    ) -> Result<StreamId, NoStreamCredit> {
        let (wanted, uploaded) = match direction {
            Direction::Down => (size, None),
            Direction::Up => (0, Some(AnyBytes(size))),
        };
        let streams = connection.streams();
        let id = streams
            .open(wire::Direction::Bidirectional)
            .ok_or(NoStreamCredit)?;
        let mut bytes = [0; REQUEST_LEN];
        if let Some(head) = bytes.first_chunk_mut() {
            *head = wanted.to_le_bytes();
        }
        streams.write(id, &bytes).map_err(|_| NoStreamCredit)?;
        if let Some(body) = uploaded {
            let sent = streams.send_source(id, Box::new(body));
            sent.map_err(|_| NoStreamCredit)?;
        }
        streams.finish(id).map_err(|_| NoStreamCredit)?;
        Ok(id)
    }

    fn receive(
        &mut self,
        now: Time,
        connection: &mut Connection,
        datagram: Datagram<'_>,
        measures: &mut Measures,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        connection.handle_datagram(now, &path, ecn, bytes, &mut Arrivals { now, measures });
    }

    fn process_events(&mut self, connection: &mut Connection, now: Time, measures: &mut Measures) {
        while let Some(event) = connection.streams().poll_event() {
            if matches!(event, StreamEvent::Finished(_)) {
                measures.on_request_acked(now);
            }
        }
    }
}

/// The server's side: the application of an engine.
pub(crate) struct Server {
    /// Received bytes of incomplete requests.
    partial: BTreeMap<StreamId, Vec<u8>>,
    /// Requests without a response yet.
    requested: Vec<(StreamId, u64)>,
    /// Responses that were started.
    pub(crate) started: u64,
    /// Responses that were acknowledged.
    pub(crate) acked: u64,
    /// The trace of the next connection.
    trace: TraceSlot,
}

impl Server {
    /// A server that sets the trace of its connection.
    pub(crate) const fn new(trace: TraceSlot) -> Self {
        Self {
            partial: BTreeMap::new(),
            requested: Vec::new(),
            started: 0,
            acked: 0,
            trace,
        }
    }
}

impl StreamSink for Server {
    fn data(&mut self, id: StreamId, _: u64, data: &[u8], fin: bool) -> usize {
        let request = self.partial.entry(id).or_default();
        let missing = 8usize.saturating_sub(request.len());
        request.extend_from_slice(data.get(..missing.min(data.len())).unwrap_or_default());
        if fin && let Some(request) = self.partial.remove(&id) {
            let size = request.first_chunk().copied().map(u64::from_le_bytes);
            self.requested.push((id, size.unwrap_or(0)));
        }
        data.len()
    }
}

impl Application for Server {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, connection: &mut Connection) {
        if let Some(trace) = take_trace(&self.trace) {
            connection.set_trace(trace);
        }
    }

    fn on_datagram(
        &mut self,
        now: Time,
        _: Handle,
        connection: &mut Connection,
        (): &mut (),
        datagram: Datagram<'_>,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        connection.handle_datagram(now, &path, ecn, bytes, self);
    }

    fn on_ready(&mut self, _: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
        while connection.poll_event().is_some() {}
        let streams = connection.streams();
        while let Some(event) = streams.poll_event() {
            self.acked += u64::from(matches!(event, StreamEvent::Finished(_)));
        }
        for (id, size) in self.requested.drain(..) {
            let body = Box::new(AnyBytes(size));
            let is_sent = streams.send_source(id, body).is_ok() && streams.finish(id).is_ok();
            self.started += u64::from(is_sent);
        }
    }

    fn on_closed(&mut self, _: Time, _: Closed) {}

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, _: Time, _: &mut Endpoint) -> Next {
        Next::default()
    }
}
