//! HTTP datagrams (RFC 9297 §2).

use lastbyte_quic::{connection as transport, datagram::DatagramError};
use lastbyte_wire::{Direction, Reader, Side, StreamId, VarInt};

use super::{Connection, request_stream::Expects};
use crate::{Code, ConnectionError, Event, settings::put_varint};

impl Connection {
    /// Takes a datagram, if there is one.
    pub(super) fn take_datagram(&mut self, quic: &mut transport::Connection) -> bool {
        if !self.shared.config.datagrams {
            return false;
        }
        let Some(mut datagram) = quic.receive_datagram() else {
            return false;
        };
        let mut reader = Reader::new(&datagram);
        let stream = reader.varint().ok().and_then(|quarter| {
            StreamId::new(Side::Client, Direction::Bidirectional, quarter.get())
        });
        let Some(stream) = stream else {
            self.fail(ConnectionError::new(
                Code::DATAGRAM_ERROR,
                "a datagram without the number of a request",
            ));
            return true;
        };
        // §2.1: one for a request that is over, or has not come, is dropped.
        let is_live = self
            .streams
            .get(&stream)
            .is_some_and(|state| !matches!(state.expects, Expects::Nothing));
        if is_live {
            let prefix = reader.position();
            datagram.drain(..prefix);
            self.shared.events.push_back(Event::Datagram {
                stream,
                payload: datagram,
            });
        }
        true
    }

    pub(super) fn put_datagram(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        payload: &[u8],
    ) -> Result<(), DatagramError> {
        let settings = self.settings.as_ref().or(self.remembered.as_ref());
        let takes = settings.is_some_and(|settings| settings.h3_datagram);
        if !takes || !self.shared.config.datagrams {
            return Err(DatagramError::NotSupported);
        }
        let mut datagram = Vec::with_capacity(payload.len() + 8);
        put_varint(&mut datagram, VarInt::saturating(stream.index()));
        datagram.extend_from_slice(payload);
        quic.send_datagram(datagram)
    }
}
