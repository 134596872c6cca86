//! A request and a response as they are on a QUIC stream, without frames or fields.
//!
//! For comparisons with simulators that speak no HTTP. A request is [`REQUEST_LEN`] bytes, of which the first eight say how
//! many are wanted; a response is as many zeros. An upload follows a request for none.

use std::collections::BTreeMap;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    connection::Connection,
    stream::{StreamEvent, StreamSink},
};
use lastbyte_wire::{Direction, StreamId};

use super::{Asks, CannotAsk, Incoming, Responds};
use crate::{
    client::Measures,
    listener::Way,
    server::{AnyBytes, Messages},
};

pub(super) const ALPN: &[u8] = b"lastbyte-sim";
/// As long as a browser's `HEADERS` may be.
const REQUEST_LEN: usize = 100;

/// A client's end.
pub(super) struct Client;

/// Measures what arrives.
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

impl Asks for Client {
    fn ask(
        &mut self,
        connection: &mut Connection,
        size: u64,
        way: Way,
    ) -> Result<StreamId, CannotAsk> {
        let (wanted, uploaded) = match way {
            Way::Down => (size, None),
            Way::Up => (0, Some(AnyBytes(size))),
        };
        let streams = connection.streams();
        let id = streams.open(Direction::Bidirectional).ok_or(CannotAsk)?;
        let mut bytes = [0; REQUEST_LEN];
        if let Some(head) = bytes.first_chunk_mut() {
            *head = wanted.to_le_bytes();
        }
        streams.write(id, &bytes).map_err(|_| CannotAsk)?;
        if let Some(body) = uploaded {
            let sent = streams.send_source(id, Box::new(body));
            sent.map_err(|_| CannotAsk)?;
        }
        streams.finish(id).map_err(|_| CannotAsk)?;
        Ok(id)
    }

    fn receive(
        &mut self,
        connection: &mut Connection,
        incoming: Incoming<'_>,
        measures: &mut Measures,
    ) {
        let Incoming {
            now,
            path,
            ecn,
            bytes,
        } = incoming;
        connection.handle_datagram(now, path, ecn, bytes, &mut Arrivals { now, measures });
    }

    fn attend(&mut self, connection: &mut Connection, now: Time, measures: &mut Measures) {
        while let Some(event) = connection.streams().poll_event() {
            if matches!(event, StreamEvent::Finished(_)) {
                measures.on_request_acked(now);
            }
        }
    }
}

/// A server's end.
#[derive(Default)]
pub(super) struct Server {
    /// What of requests has come that are not whole yet.
    partial: BTreeMap<StreamId, Vec<u8>>,
    /// What was asked for and is not answered yet.
    asked: Vec<(StreamId, u64)>,
}

impl StreamSink for Server {
    fn data(&mut self, id: StreamId, _: u64, data: &[u8], fin: bool) -> usize {
        let request = self.partial.entry(id).or_default();
        let missing = 8usize.saturating_sub(request.len());
        request.extend_from_slice(data.get(..missing.min(data.len())).unwrap_or_default());
        if fin && let Some(request) = self.partial.remove(&id) {
            let size = request.first_chunk().copied().map(u64::from_le_bytes);
            self.asked.push((id, size.unwrap_or(0)));
        }
        data.len()
    }
}

impl Responds for Server {
    fn receive(&mut self, connection: &mut Connection, incoming: Incoming<'_>) {
        let Incoming {
            now,
            path,
            ecn,
            bytes,
        } = incoming;
        connection.handle_datagram(now, path, ecn, bytes, self);
    }

    fn attend(&mut self, connection: &mut Connection, now: Time, answers: &mut Messages) {
        let streams = connection.streams();
        while let Some(event) = streams.poll_event() {
            if matches!(event, StreamEvent::Finished(_)) {
                answers.on_acked(now);
            }
        }
        for (id, size) in self.asked.drain(..) {
            if streams.send_source(id, Box::new(AnyBytes(size))).is_ok()
                && streams.finish(id).is_ok()
            {
                answers.on_begun(now);
            }
        }
    }
}
