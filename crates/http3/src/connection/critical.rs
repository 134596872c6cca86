//! Our control and QPACK streams (RFC 9114 §6.2.1, RFC 9204 §4.2).
//!
//! Owns their pending data, which has priority over all other streams. They are opened as soon as the peer permits,
//! before any request.

use lastbyte_quic::stream;
use lastbyte_wire::{Direction, Side, StreamId, VarInt};

use super::{Connection, shared::enough, traced::TracedFrame};
use crate::{
    Code, Config, ConnectionError, Settings, Transport,
    frame::{FrameHeader, FrameType, reserved},
};

// Stream types; one byte each as variable-length integers (RFC 9000 §16).
pub(super) const CONTROL: u8 = 0x0;
pub(super) const PUSH: u8 = 0x1;
pub(super) const ENCODER: u8 = 0x2;
pub(super) const DECODER: u8 = 0x3;

/// Room for our settings and a reserved frame.
const SETTINGS_LEN: usize = 64;
/// Maximum pending data of one of the streams. Exceeding it means that the peer gives no flow-control credit for what
/// it requires.
const WAITING_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct OwnStreams {
    control: Option<StreamId>,
    encoder: Option<StreamId>,
    decoder: Option<StreamId>,
    /// Pending data of the control stream.
    outbox: Vec<u8>,
    /// Bytes written to the encoder stream.
    encoder_sent: u64,
}

impl OwnStreams {
    pub(super) fn new(side: Side, config: &Config) -> Self {
        let mut outbox = Vec::with_capacity(SETTINGS_LEN);
        let (_, payload) = own_settings(side, config);
        FrameHeader::put(FrameType::SETTINGS, payload.len() as u64, &mut outbox);
        outbox.extend_from_slice(&payload);
        if let Some(seed) = config.grease {
            let frame_type = FrameType(reserved(seed).get());
            FrameHeader::put(frame_type, 1, &mut outbox);
            outbox.push(seed as u8);
        }
        Self {
            control: None,
            encoder: None,
            decoder: None,
            outbox,
            encoder_sent: 0,
        }
    }

    pub(super) fn release_memory(&mut self) {
        self.outbox.shrink_to_fit();
    }

    fn has(&self, id: StreamId) -> bool {
        [self.control, self.encoder, self.decoder].contains(&Some(id))
    }

    /// Bytes written to the encoder stream.
    pub(super) const fn encoder_sent(&self) -> u64 {
        self.encoder_sent
    }

    /// Free space on the encoder stream, in bytes.
    pub(super) fn encoder_room(&self, transport: &mut dyn Transport, wanted: usize) -> usize {
        self.encoder
            .and_then(|id| transport.room(id, wanted).ok())
            .unwrap_or(0)
    }

    /// Appends a frame to the control stream.
    fn put_control(&mut self, frame_type: FrameType, payload: &[u8]) {
        FrameHeader::put(frame_type, payload.len() as u64, &mut self.outbox);
        self.outbox.extend_from_slice(payload);
    }
}

/// The settings that an end announces, and the payload of their frame.
fn own_settings(side: Side, config: &Config) -> (Settings, Vec<u8>) {
    let settings = Settings {
        max_field_section_size: u64::from(config.field_section_size_max),
        qpack_max_table_capacity: u64::from(config.qpack_table_capacity),
        qpack_blocked_streams: u64::from(config.qpack_blocked_streams),
        // Only a server announces it (RFC 9220 §3).
        enable_connect_protocol: config.extended_connect && side == Side::Server,
    };
    let mut payload = Vec::with_capacity(SETTINGS_LEN);
    let grease = config
        .grease
        .map(|seed| (reserved(seed >> 1), VarInt::saturating(seed & 0xff)));
    settings.encode(grease, &mut payload);
    (settings, payload)
}

/// Opens a stream and writes its type.
fn open(transport: &mut dyn Transport, stream_type: u8) -> Option<StreamId> {
    let id = transport.open(Direction::Unidirectional)?;
    // A new stream has an empty buffer.
    let _ = transport.set_priority(id, stream::Priority::CRITICAL);
    let _ = transport.write(id, &[stream_type]);
    Some(id)
}

/// Writes as much as possible, and removes that from the front.
fn pour(transport: &mut dyn Transport, into: Option<StreamId>, from: &mut Vec<u8>) -> usize {
    let Some(id) = into.filter(|_| !from.is_empty()) else {
        return 0;
    };
    let written = transport.write(id, from).unwrap_or(0);
    from.drain(..written);
    written
}

impl Connection {
    /// Opens the streams as far as the peer permits.
    pub(super) fn open_own_streams(&mut self, transport: &mut dyn Transport) {
        if self.own.decoder.is_some() {
            return;
        }
        if self.own.control.is_none() {
            if transport.is_traced() {
                self.shared.traced.get_or_insert_default();
            }
            self.own.control = open(transport, CONTROL);
            self.trace_settings();
            pour(transport, self.own.control, &mut self.own.outbox);
        }
        if self.own.control.is_some() && self.own.encoder.is_none() {
            self.own.encoder = open(transport, ENCODER);
        }
        if self.own.encoder.is_some() {
            self.own.decoder = open(transport, DECODER);
        }
    }

    /// Reports the frames with which our control stream starts.
    fn trace_settings(&mut self) {
        let (Some(id), Some(traced)) = (self.own.control, &mut self.shared.traced) else {
            return;
        };
        let config = &self.shared.config;
        let (settings, payload) = own_settings(self.shared.side, config);
        let frame = TracedFrame::created(id, FrameType::SETTINGS, payload.len() as u64);
        traced.push(frame.settings(&settings));
        if let Some(seed) = config.grease {
            let frame_type = FrameType(reserved(seed).get());
            traced.push(TracedFrame::created(id, frame_type, 1));
        }
    }

    /// Passes a frame to our control stream.
    pub(super) fn send_control(
        &mut self,
        transport: &mut dyn Transport,
        frame_type: FrameType,
        payload: &[u8],
        traced: impl FnOnce(TracedFrame) -> TracedFrame,
    ) {
        self.own.put_control(frame_type, payload);
        if let Some(id) = self.own.control {
            let len = payload.len() as u64;
            self.shared
                .trace(|| traced(TracedFrame::created(id, frame_type, len)));
        }
        self.flush(transport);
    }

    /// Passes pending data to the transport.
    pub(super) fn flush(&mut self, transport: &mut dyn Transport) {
        pour(transport, self.own.control, &mut self.own.outbox);
        self.flush_encoder(transport);
        let instructions = self.shared.decoder.instructions();
        pour(transport, self.own.decoder, instructions);
        let waiting = instructions.len().max(self.own.outbox.len());
        if let Err(error) = enough(
            waiting <= WAITING_MAX,
            "no credit for control and QPACK streams",
        ) {
            self.fail(error);
        }
    }

    pub(super) fn flush_encoder(&mut self, transport: &mut dyn Transport) {
        let sent = pour(transport, self.own.encoder, self.encoder.instructions());
        self.own.encoder_sent += sent as u64;
    }

    /// The peer requested that we stop sending on one of our critical streams (RFC 9114 §6.2.1).
    pub(super) fn on_own_stream_stopped(&mut self, id: StreamId) {
        if self.own.has(id) {
            self.fail(ConnectionError::new(
                Code::CLOSED_CRITICAL_STREAM,
                "a control or QPACK stream of ours is not wanted",
            ));
        }
    }
}
