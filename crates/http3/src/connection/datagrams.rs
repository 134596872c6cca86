//! HTTP datagrams (RFC 9297 §2).

use lastbyte_quic::datagram::DatagramError;
use lastbyte_wire::{Direction, Reader, Side, StreamId, VarInt};

use super::Connection;
use crate::{Code, ConnectionError, Event, Transport, settings::put_varint};

impl Connection {
    /// Receives a datagram, if there is one.
    pub(super) fn take_datagram(&mut self, transport: &mut dyn Transport) -> bool {
        if !self.shared.config.datagrams {
            return false;
        }
        let Some(mut datagram) = transport.receive_datagram() else {
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
        // §2.1: a datagram of a finished or unknown request is dropped.
        let is_live = self
            .streams
            .get(&stream)
            .is_some_and(|state| !state.receiving.is_over());
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

    /// Sends an HTTP datagram (RFC 9297), which is never retransmitted.
    ///
    /// # Errors
    ///
    /// Returns [`DatagramError::NotSupported`] if the peer does not accept any, and otherwise why the transport cannot
    /// send it. It is dropped.
    pub fn send_datagram(
        &mut self,
        transport: &mut dyn Transport,
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
        transport.send_datagram(datagram)
    }
}
