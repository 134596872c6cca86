//! State shared by all streams of a connection while bytes are read.

use std::collections::VecDeque;

use lastbyte_quic::Time;
use lastbyte_wire::Side;

use super::{Statistics, traced::TracedFrame};
use crate::{
    Code, Config, ConnectionError, Event, Fields, StreamError,
    allowance::Allowance,
    qpack::{Decoder, QpackError, SectionLimits},
};

/// Receives bytes of a body. Returns how many it accepted.
pub(super) type TakeBody<'a> = dyn FnMut(&[u8]) -> usize + 'a;

/// An error that ends the reading of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveError {
    /// It concerns the connection.
    Connection(ConnectionError),
    /// It concerns this stream only.
    Stream(StreamError),
    /// The header of a request exceeds the limit (RFC 9114 §4.2.2).
    HeadTooLarge,
}

impl From<ConnectionError> for ReceiveError {
    fn from(error: ConnectionError) -> Self {
        Self::Connection(error)
    }
}

impl From<StreamError> for ReceiveError {
    fn from(error: StreamError) -> Self {
        Self::Stream(error)
    }
}

impl From<QpackError> for ReceiveError {
    fn from(error: QpackError) -> Self {
        Self::Connection(error.into())
    }
}

impl From<QpackError> for ConnectionError {
    fn from(error: QpackError) -> Self {
        Self::new(error.code, error.reason)
    }
}

/// Limits on the work that a peer can cause (RFC 9114 §10.5).
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) resets: Allowance,
    pub(super) priority_updates: Allowance,
    unknown: Allowance,
    unknown_bytes: Allowance,
    tiny_data: Allowance,
    encoder_bytes: Allowance,
}

/// `H3_EXCESSIVE_LOAD`, unless enough was left.
pub(super) fn enough(is_enough: bool, of: &'static str) -> Result<(), ConnectionError> {
    if is_enough {
        Ok(())
    } else {
        Err(ConnectionError::new(Code::EXCESSIVE_LOAD, of))
    }
}

/// DATA frames with fewer bytes count as tiny.
const TINY: u64 = 64;
/// Frames without effect, and tiny frames, that a completed exchange adds to the allowance, and bytes of the former.
const FRAMES_EACH: u64 = 2;
const UNKNOWN_BYTES_EACH: u64 = 1024;
/// The most recycled field sections that are kept.
const SPARE_MAX: usize = 64;
/// The memory of a larger section is freed.
const SPARE_SIZE_MAX: u64 = 16 << 10;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) side: Side,
    pub(super) config: Config,
    /// The time of the last call.
    pub(super) now: Time,
    pub(super) decoder: Decoder,
    pub(super) events: VecDeque<Event>,
    pub(super) guard: Guard,
    pub(super) statistics: Statistics,
    /// Frames to be reported, if the transport has a listener for them.
    pub(super) traced: Option<Vec<TracedFrame>>,
    spare: Vec<Fields>,
}

impl Shared {
    pub(super) fn new(side: Side, config: &Config) -> Self {
        let limits = &config.limits;
        Self {
            side,
            now: Time::from_nanos(0),
            decoder: Decoder::new(config.qpack_table_capacity, config.qpack_blocked_streams),
            // Usually one is pending at a time: the settings, then a request.
            events: VecDeque::with_capacity(1),
            guard: Guard {
                resets: Allowance::new(limits.resets),
                priority_updates: Allowance::new(limits.priority_updates),
                unknown: Allowance::new(limits.unknown),
                unknown_bytes: Allowance::new(limits.unknown_bytes),
                tiny_data: Allowance::new(limits.tiny_data),
                encoder_bytes: Allowance::new(limits.encoder_bytes),
            },
            statistics: Statistics::default(),
            traced: None,
            spare: Vec::new(),
            config: config.clone(),
        }
    }

    pub(super) fn section_limits(&self) -> SectionLimits {
        SectionLimits {
            size: u64::from(self.config.field_section_size_max),
            fields: usize::from(self.config.fields_max),
        }
    }

    /// Keeps a frame for the next report, if there is a listener.
    #[inline]
    pub(super) fn trace(&mut self, frame: impl FnOnce() -> TracedFrame) {
        if self.traced.is_some() {
            self.keep(frame);
        }
    }

    #[cold]
    fn keep(&mut self, frame: impl FnOnce() -> TracedFrame) {
        self.traced.get_or_insert_default().push(frame());
    }

    pub(super) fn release_memory(&mut self) {
        self.decoder.release_memory();
        self.events.shrink_to_fit();
        self.spare = Vec::new();
    }

    pub(super) fn fields(&mut self) -> Fields {
        self.spare.pop().unwrap_or_default()
    }

    pub(super) fn recycle(&mut self, mut fields: Fields) {
        if self.spare.len() < SPARE_MAX && fields.section_size() <= SPARE_SIZE_MAX {
            fields.clear_all();
            self.spare.push(fields);
        }
    }

    /// A frame without effect was received, with this many bytes of payload.
    pub(super) fn on_unknown(&mut self, bytes: u64) -> Result<(), ConnectionError> {
        enough(
            self.guard.unknown.take(1, self.now),
            "too many frames, streams or settings of no effect",
        )?;
        enough(
            self.guard.unknown_bytes.take(bytes, self.now),
            "too many bytes of frames of no effect",
        )
    }

    /// A request was answered completely, so it was legitimate. Its overhead is returned, so that a peer that sends a
    /// reserved frame (RFC 9114 §7.2.8), a short body or an insertion with each request is limited only by its
    /// requests.
    pub(super) fn on_completed(&mut self) {
        let guard = &mut self.guard;
        guard.unknown.give(FRAMES_EACH);
        guard.unknown_bytes.give(UNKNOWN_BYTES_EACH);
        guard.tiny_data.give(FRAMES_EACH);
        guard
            .encoder_bytes
            .give(u64::from(self.config.qpack_table_capacity));
    }

    /// A DATA frame was received.
    #[inline]
    pub(super) fn on_data_frame(&mut self, len: u64) -> Result<(), ConnectionError> {
        if len >= TINY {
            return Ok(());
        }
        enough(
            self.guard.tiny_data.take(1, self.now),
            "too many tiny DATA frames",
        )
    }

    pub(super) fn on_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        enough(
            self.guard.encoder_bytes.take(bytes.len() as u64, self.now),
            "too many insertions into the dynamic table",
        )?;
        Ok(self.decoder.on_encoder_stream(bytes)?)
    }
}
