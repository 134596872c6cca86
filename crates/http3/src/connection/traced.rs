//! Frames for the trace listener of the transport.
//!
//! Owns what is reported of a frame: its type and length, the values of control frames, and of a field section the method or
//! the status alone, since all other names and values may be private. Without a listener nothing is kept.

use lastbyte_quic::{Time, trace::ApplicationFrame};
use lastbyte_wire::StreamId;

use crate::{Fields, Settings, Transport, frame::FrameType};

/// A frame that was created or parsed since the last report.
#[derive(Debug)]
pub(super) struct TracedFrame {
    stream: StreamId,
    is_local: bool,
    frame_type: FrameType,
    len: u64,
    values: Vec<(&'static str, u64)>,
    text: Option<(&'static str, String)>,
}

impl TracedFrame {
    fn new(stream: StreamId, is_local: bool, frame_type: FrameType, len: u64) -> Self {
        let is_unnamed = !frame_type.is_known() || frame_type.is_of_http2();
        let unnamed = ("frame_type_value", frame_type.0);
        Self {
            stream,
            is_local,
            frame_type,
            len,
            values: is_unnamed.then_some(unnamed).into_iter().collect(),
            text: None,
        }
    }

    /// A frame that this endpoint created.
    pub(super) fn created(stream: StreamId, frame_type: FrameType, len: u64) -> Self {
        Self::new(stream, true, frame_type, len)
    }

    /// A frame that this endpoint parsed.
    pub(super) fn parsed(stream: StreamId, frame_type: FrameType, len: u64) -> Self {
        Self::new(stream, false, frame_type, len)
    }

    /// Adds a value.
    pub(super) fn value(mut self, name: &'static str, value: u64) -> Self {
        self.values.push((name, value));
        self
    }

    /// Adds the priority of a request.
    pub(super) fn priority(mut self, id: StreamId, priority: String) -> Self {
        self.text = Some(("priority_field_value", priority));
        self.value("stream_id", id.get())
    }

    /// Adds the method of a request, or the status of a response; trailers have neither.
    pub(super) fn head(mut self, fields: &Fields) -> Self {
        self.text = fields.all_raw().find_map(|line| {
            let name = [":method", ":status"]
                .into_iter()
                .find(|name| line.name == name.as_bytes())?;
            Some((name, String::from_utf8_lossy(line.value).into_owned()))
        });
        self
    }

    /// Adds the settings that differ from the defaults.
    pub(super) fn settings(mut self, settings: &Settings) -> Self {
        let changed = settings.changed();
        self.values
            .extend(changed.map(|(_, name, value)| (name, value)));
        self
    }

    /// Reports it.
    pub(super) fn report(&self, transport: &mut dyn Transport, now: Time) {
        let text = self.text.as_ref();
        let frame = ApplicationFrame {
            stream: self.stream,
            is_local: self.is_local,
            name: self.name(),
            len: self.len,
            values: &self.values,
            text: text.map(|(name, text)| (*name, text.as_str())),
        };
        transport.trace_frame(now, frame);
    }

    fn name(&self) -> &'static str {
        match self.frame_type {
            FrameType::DATA => "data",
            FrameType::HEADERS => "headers",
            FrameType::CANCEL_PUSH => "cancel_push",
            FrameType::SETTINGS => "settings",
            FrameType::PUSH_PROMISE => "push_promise",
            FrameType::GOAWAY => "goaway",
            FrameType::MAX_PUSH_ID => "max_push_id",
            FrameType::PRIORITY_UPDATE_REQUEST | FrameType::PRIORITY_UPDATE_PUSH => {
                "priority_update"
            }
            frame_type if frame_type.is_reserved() => "reserved",
            _ => "unknown",
        }
    }
}
