//! The peer's control stream (RFC 9114 §6.2.1, §7.2; RFC 9218 §7).
//!
//! Owns its frames: which are permitted when and from which peer, and their content. Their effect is applied once the
//! transport is accessible.

use lastbyte_quic::stream;
use lastbyte_wire::{Direction, Reader, Side, StreamId};

use super::{
    Connection,
    shared::{Shared, enough},
    traced::TracedFrame,
};
use crate::{
    Code, ConnectionError, Event, Priority, Settings, Transport,
    frame::{FrameHeader, FrameType, PartialHeader},
};

/// A parsed frame of the control stream.
#[derive(Clone, Copy, Debug)]
enum ControlFrame {
    Settings(Settings),
    GoAway(u64),
    Priority(StreamId, Priority),
    MaxPushId(u64),
    CancelPush(u64),
}

#[derive(Debug, Default)]
pub(super) struct ControlStream {
    header: PartialHeader,
    /// The frame being read, and its remaining length.
    frame: Option<(FrameType, u64)>,
    payload: Vec<u8>,
    has_settings: bool,
    /// Parsed frames whose effect is pending; bounded by the frames that are permitted.
    frames: Vec<ControlFrame>,
    max_push_id: Option<u64>,
}

/// Frames with a single integer.
const INTEGER_MAX: u64 = 8;
/// `PRIORITY_UPDATE`: an integer and a short text.
const PRIORITY_MAX: u64 = 256;

const fn error(code: Code, reason: &'static str) -> ConnectionError {
    ConnectionError::new(code, reason)
}

impl ControlStream {
    pub(super) fn release_memory(&mut self) {
        self.payload.shrink_to_fit();
        self.frames.shrink_to_fit();
    }

    /// Reads received bytes.
    pub(super) fn take(
        &mut self,
        id: StreamId,
        bytes: &[u8],
        shared: &mut Shared,
    ) -> Result<(), ConnectionError> {
        let mut rest = bytes;
        loop {
            let Some((frame_type, left)) = self.frame else {
                let Some(header) = self.header.take(&mut rest) else {
                    return Ok(());
                };
                self.begin(id, header, shared)?;
                continue;
            };
            let len = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
            let (piece, behind) = rest.split_at(len);
            rest = behind;
            if frame_type.is_known() {
                self.payload.extend_from_slice(piece);
            }
            let left = left - piece.len() as u64;
            if left > 0 {
                self.frame = Some((frame_type, left));
                return Ok(());
            }
            self.frame = None;
            if frame_type.is_known() {
                let payload = std::mem::take(&mut self.payload);
                self.on_frame(id, frame_type, &payload, shared)?;
            }
        }
    }

    /// Whether a frame of this type and length is permitted now from this peer.
    fn begin(
        &mut self,
        id: StreamId,
        header: FrameHeader,
        shared: &mut Shared,
    ) -> Result<(), ConnectionError> {
        let FrameHeader { frame_type, len } = header;
        let is_settings = frame_type == FrameType::SETTINGS;
        if !self.has_settings && !is_settings {
            return Err(error(
                Code::MISSING_SETTINGS,
                "a control stream that does not start with SETTINGS",
            ));
        }
        let is_server = shared.side == Side::Server;
        let len_max = match frame_type {
            FrameType::SETTINGS if self.has_settings => {
                return Err(error(Code::FRAME_UNEXPECTED, "a second SETTINGS"));
            }
            FrameType::SETTINGS => {
                self.has_settings = true;
                u64::from(shared.config.limits.settings_size)
            }
            FrameType::PRIORITY_UPDATE_REQUEST | FrameType::PRIORITY_UPDATE_PUSH if is_server => {
                enough(
                    shared.guard.priority_updates.take(1, shared.now),
                    "too many PRIORITY_UPDATE",
                )?;
                PRIORITY_MAX
            }
            FrameType::MAX_PUSH_ID if !is_server => {
                return Err(error(Code::FRAME_UNEXPECTED, "MAX_PUSH_ID from a server"));
            }
            FrameType::GOAWAY | FrameType::CANCEL_PUSH | FrameType::MAX_PUSH_ID => {
                shared.on_unknown(len)?;
                if len > INTEGER_MAX {
                    return Err(error(Code::FRAME_ERROR, "a frame of one integer is longer"));
                }
                INTEGER_MAX
            }
            frame_type if frame_type.is_known() => {
                return Err(error(
                    Code::FRAME_UNEXPECTED,
                    "a frame that may not be on a control stream",
                ));
            }
            _ => {
                shared.on_unknown(len)?;
                shared.trace(|| TracedFrame::parsed(id, frame_type, len));
                u64::MAX
            }
        };
        enough(len <= len_max, "a frame on the control stream is too long")?;
        self.frame = Some((frame_type, len));
        Ok(())
    }

    fn on_frame(
        &mut self,
        id: StreamId,
        frame_type: FrameType,
        payload: &[u8],
        shared: &mut Shared,
    ) -> Result<(), ConnectionError> {
        let frame = match frame_type {
            FrameType::SETTINGS => {
                let (settings, unknown) = Settings::decode(payload)?;
                for _ in 0..unknown {
                    shared.on_unknown(0)?;
                }
                ControlFrame::Settings(settings)
            }
            FrameType::GOAWAY => ControlFrame::GoAway(integer(payload)?),
            FrameType::MAX_PUSH_ID => ControlFrame::MaxPushId(integer(payload)?),
            FrameType::CANCEL_PUSH => ControlFrame::CancelPush(integer(payload)?),
            FrameType::PRIORITY_UPDATE_REQUEST => priority_update(payload)?,
            _ => {
                // RFC 9218 §7.2: no push stream exists.
                return Err(error(Code::ID_ERROR, "the priority of a push that is not"));
            }
        };
        shared.trace(|| {
            let traced = TracedFrame::parsed(id, frame_type, payload.len() as u64);
            match frame {
                ControlFrame::Settings(settings) => traced.settings(&settings),
                ControlFrame::GoAway(id) => traced.value("id", id),
                ControlFrame::Priority(id, priority) => traced.priority(id, priority.to_string()),
                ControlFrame::MaxPushId(id) | ControlFrame::CancelPush(id) => {
                    traced.value("push_id", id)
                }
            }
        });
        self.frames.push(frame);
        Ok(())
    }
}

/// The payload of a frame that consists of one integer (§7.1).
fn integer(payload: &[u8]) -> Result<u64, ConnectionError> {
    let mut reader = Reader::new(payload);
    match reader.varint() {
        Ok(value) if reader.is_empty() => Ok(value.get()),
        _ => Err(error(
            Code::FRAME_ERROR,
            "a frame of one integer is longer or shorter",
        )),
    }
}

fn priority_update(payload: &[u8]) -> Result<ControlFrame, ConnectionError> {
    let mut reader = Reader::new(payload);
    let id = reader
        .varint()
        .map(StreamId::from)
        .map_err(|_| error(Code::FRAME_ERROR, "PRIORITY_UPDATE without an identifier"))?;
    let is_request = id.initiator() == Side::Client && id.direction() == Direction::Bidirectional;
    if !is_request {
        return Err(error(
            Code::ID_ERROR,
            "PRIORITY_UPDATE for an invalid stream",
        ));
    }
    // Omitted parameters take their default values, not their previous ones (RFC 9218 §7).
    let priority = Priority::default().updated(reader.rest());
    Ok(ControlFrame::Priority(id, priority))
}

impl Connection {
    /// Applies the frames of the control stream.
    pub(super) fn apply_control(&mut self, transport: &mut dyn Transport) {
        for one in std::mem::take(&mut self.peer.control.frames) {
            let result = match one {
                ControlFrame::Settings(settings) => self.on_settings(settings),
                ControlFrame::GoAway(id) => self.on_goaway(transport, id),
                ControlFrame::Priority(id, priority) => {
                    self.on_priority_update(transport, id, priority)
                }
                ControlFrame::MaxPushId(id) => self.on_max_push_id(id),
                // §7.2.3: no push ID was promised by a server, or permitted by a client.
                ControlFrame::CancelPush(_) => Err(error(Code::ID_ERROR, "a push that is not")),
            };
            if let Err(error) = result {
                self.fail(error);
                return;
            }
        }
    }

    fn on_settings(&mut self, settings: Settings) -> Result<(), ConnectionError> {
        if let Some(remembered) = &self.remembered {
            settings.check_remembered(remembered)?;
        }
        self.encoder.on_peer_settings(
            settings.qpack_max_table_capacity,
            settings.qpack_blocked_streams,
        );
        self.settings = Some(settings);
        self.shared.events.push_back(Event::Settings);
        Ok(())
    }

    fn on_max_push_id(&mut self, id: u64) -> Result<(), ConnectionError> {
        let max = &mut self.peer.control.max_push_id;
        if max.is_some_and(|max| id < max) {
            return Err(error(Code::ID_ERROR, "MAX_PUSH_ID that falls"));
        }
        *max = Some(id);
        Ok(())
    }

    fn on_priority_update(
        &mut self,
        transport: &mut dyn Transport,
        id: StreamId,
        priority: Priority,
    ) -> Result<(), ConnectionError> {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.priority = priority;
            let is_known = stream.receiving.expects() != super::receiving::Expects::Head;
            if is_known {
                // A finished stream needs no priority.
                let _ = transport.set_priority(id, priority.for_transport());
                self.shared.events.push_back(Event::Priority {
                    stream: id,
                    priority,
                });
            } else {
                self.keep_early_priority(id, priority);
            }
            return Ok(());
        }
        if self.shutdown.has_accepted(id) {
            return Ok(());
        }
        // RFC 9218 §7.1: a stream that the peer may not open yet; applies whatever the limit is.
        if id.index() >= self.shutdown.accepted() + stream::Config::STREAMS_MAX {
            return Err(error(
                Code::ID_ERROR,
                "the priority of a stream beyond the limit",
            ));
        }
        self.keep_early_priority(id, priority);
        Ok(())
    }
}
