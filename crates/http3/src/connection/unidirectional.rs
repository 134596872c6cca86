//! The peer's unidirectional streams (RFC 9114 §6.2, RFC 9204 §4.2).
//!
//! Owns the type of each, and checks that there is exactly one of each required type, which stays open.

use lastbyte_wire::{Direction, Reader, Side, StreamId};

use super::{
    Connection,
    control::ControlStream,
    critical::{CONTROL, DECODER, ENCODER, PUSH},
};
use crate::{Code, ConnectionError, Transport};

/// The type of a stream.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// The type has not arrived, or only in part.
    Unknown {
        bytes: [u8; 8],
        len: u8,
    },
    Control,
    Encoder,
    Decoder,
    /// Unknown: the stream is not read.
    None,
}

/// The types by stream, ascending: usually those of the three critical streams.
#[derive(Debug, Default)]
struct Uses(Vec<(StreamId, Use)>);

impl Uses {
    fn find(&self, id: StreamId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&id, |(known, _)| *known)
    }

    fn get(&self, id: StreamId) -> Option<Use> {
        let (_, which) = self.0.get(self.find(id).ok()?)?;
        Some(*which)
    }

    fn insert(&mut self, id: StreamId, which: Use) {
        match self.find(id) {
            Ok(at) => self.0[at].1 = which,
            Err(at) => self.0.insert(at, (id, which)),
        }
    }

    fn remove(&mut self, id: StreamId) -> Option<Use> {
        let at = self.find(id).ok()?;
        Some(self.0.remove(at).1)
    }
}

#[derive(Debug, Default)]
pub(super) struct PeerStreams {
    uses: Uses,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
    pub(super) control: ControlStream,
}

impl PeerStreams {
    pub(super) fn release_memory(&mut self) {
        self.uses.0.shrink_to_fit();
        self.control.release_memory();
    }
}

const fn error(code: Code, reason: &'static str) -> ConnectionError {
    ConnectionError::new(code, reason)
}

impl Connection {
    /// The peer opened streams.
    pub(super) fn accept_unidirectional(&mut self, transport: &mut dyn Transport) {
        while let Some(id) = transport.accept(Direction::Unidirectional) {
            let unknown = Use::Unknown {
                bytes: [0; 8],
                len: 0,
            };
            self.peer.uses.insert(id, unknown);
        }
    }

    /// Reads what has arrived on a stream.
    pub(super) fn read_unidirectional(&mut self, transport: &mut dyn Transport, id: StreamId) {
        if let Some(Use::Unknown { bytes, len }) = self.peer.uses.get(id) {
            match self.read_type(transport, id, bytes, len) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail(error),
            }
        }
        let Some(which) = self.peer.uses.get(id) else {
            return;
        };
        let (peer, shared, encoder) = (&mut self.peer, &mut self.shared, &mut self.encoder);
        let now = shared.now;
        let mut result = Ok(());
        let read = transport.read(id, now, &mut |bytes| {
            if result.is_err() {
                return 0;
            }
            result = match which {
                Use::Control => peer.control.take(id, bytes, shared),
                Use::Encoder => shared.on_encoder_stream(bytes),
                Use::Decoder => encoder
                    .on_decoder_stream(bytes)
                    .map_err(ConnectionError::from),
                Use::Unknown { .. } | Use::None => Ok(()),
            };
            bytes.len()
        });
        if let Err(error) = result {
            return self.fail(error);
        }
        match which {
            Use::Control => self.apply_control(transport),
            Use::Encoder => self.resume_unblocked(transport),
            _ => {}
        }
        if read.is_ok_and(|read| read.end) {
            self.on_unidirectional_end(id);
        }
    }

    /// Reads a stream's type. Returns whether more is to be read.
    fn read_type(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        mut bytes: [u8; 8],
        mut len: u8,
    ) -> Result<bool, ConnectionError> {
        let mut stream_type = None;
        let now = self.shared.now;
        let read = transport.read(id, now, &mut |piece| {
            let mut taken = 0;
            while stream_type.is_none()
                && let Some(byte) = piece.get(taken)
                && let Some(slot) = bytes.get_mut(usize::from(len))
            {
                *slot = *byte;
                len += 1;
                taken += 1;
                let so_far = bytes.get(..usize::from(len)).unwrap_or_default();
                stream_type = Reader::new(so_far).varint().ok();
            }
            taken
        });
        let is_at_end = read.is_ok_and(|read| read.end);
        let Some(stream_type) = stream_type else {
            // It may end before its type is complete (RFC 9114 §6.2).
            if is_at_end {
                self.peer.uses.remove(id);
            } else {
                self.peer.uses.insert(id, Use::Unknown { bytes, len });
            }
            return Ok(false);
        };
        let which = self.identify(u8::try_from(stream_type.get()).unwrap_or(u8::MAX))?;
        self.peer.uses.insert(id, which);
        if matches!(which, Use::None) {
            self.shared.on_unknown(0)?;
            let code = Code::STREAM_CREATION_ERROR.into();
            // It has just been read from.
            let _ = transport.stop_sending(id, code, now);
            self.peer.uses.remove(id);
            return Ok(false);
        }
        if is_at_end {
            self.on_unidirectional_end(id);
            return Ok(false);
        }
        Ok(true)
    }

    fn identify(&mut self, stream_type: u8) -> Result<Use, ConnectionError> {
        const TWICE: ConnectionError =
            error(Code::STREAM_CREATION_ERROR, "a second stream of its kind");
        let peer = &mut self.peer;
        let (seen, which) = match stream_type {
            CONTROL => (&mut peer.has_control, Use::Control),
            ENCODER => (&mut peer.has_encoder, Use::Encoder),
            DECODER => (&mut peer.has_decoder, Use::Decoder),
            PUSH if self.shared.side == Side::Client => {
                // RFC 9114 §4.6, §7.2.7: no push ID was permitted.
                return Err(error(Code::ID_ERROR, "a push that was not permitted"));
            }
            PUSH => {
                return Err(error(
                    Code::STREAM_CREATION_ERROR,
                    "a push stream of the client's",
                ));
            }
            _ => return Ok(Use::None),
        };
        if std::mem::replace(seen, true) {
            return Err(TWICE);
        }
        Ok(which)
    }

    /// A stream ended or was reset, which is not permitted for critical streams.
    pub(super) fn on_unidirectional_end(&mut self, id: StreamId) {
        if let Some(Use::Control | Use::Encoder | Use::Decoder) = self.peer.uses.remove(id) {
            self.fail(error(
                Code::CLOSED_CRITICAL_STREAM,
                "a control or QPACK stream was closed",
            ));
        }
    }
}
