//! Settings (RFC 9114 §7.2.4, RFC 9204 §5, RFC 9220 §3).
//!
//! Owns the settings of one end, their frame payload, and the checks after 0-RTT was sent with remembered settings.

use lastbyte_wire::{Reader, VarInt};

use crate::{Code, ConnectionError};

#[cfg(test)]
mod tests;

/// The settings of one end; the defaults before they are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The largest field section that it accepts (RFC 9114 §7.2.4.1).
    pub max_field_section_size: u64,
    /// The table capacity of its QPACK decoder (RFC 9204 §5).
    pub qpack_max_table_capacity: u64,
    /// Blocked streams that its QPACK decoder permits (RFC 9204 §5).
    pub qpack_blocked_streams: u64,
    /// Whether it supports extended CONNECT (RFC 9220 §3).
    pub enable_connect_protocol: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_field_section_size: VarInt::MAX.get(),
            qpack_max_table_capacity: 0,
            qpack_blocked_streams: 0,
            enable_connect_protocol: false,
        }
    }
}

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;

/// Why a SETTINGS frame is invalid.
const fn wrong(reason: &'static str) -> ConnectionError {
    ConnectionError::new(Code::SETTINGS_ERROR, reason)
}

impl Settings {
    /// Encodes the payload of a SETTINGS frame; `grease` is a reserved identifier and its value.
    pub(crate) fn encode(&self, grease: Option<(VarInt, VarInt)>, into: &mut Vec<u8>) {
        let changed = self.changed();
        let changed =
            changed.map(|(id, _, value)| (VarInt::saturating(id), VarInt::saturating(value)));
        for (id, value) in changed.chain(grease) {
            put_varint(into, id);
            put_varint(into, value);
        }
    }

    /// All settings: identifier, name in qlog, and value.
    fn all(&self) -> [(u64, &'static str, u64); 4] {
        [
            (
                QPACK_MAX_TABLE_CAPACITY,
                "settings_qpack_max_table_capacity",
                self.qpack_max_table_capacity,
            ),
            (
                MAX_FIELD_SECTION_SIZE,
                "settings_max_field_section_size",
                self.max_field_section_size,
            ),
            (
                QPACK_BLOCKED_STREAMS,
                "settings_qpack_blocked_streams",
                self.qpack_blocked_streams,
            ),
            (
                ENABLE_CONNECT_PROTOCOL,
                "settings_enable_connect_protocol",
                u64::from(self.enable_connect_protocol),
            ),
        ]
    }

    /// The settings that differ from the defaults: identifier, name in qlog, and value.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (u64, &'static str, u64)> {
        let defaults = Self::default().all();
        let pairs = self.all().into_iter().zip(defaults);
        pairs
            .filter(|(own, default)| own != default)
            .map(|(own, _)| own)
    }

    /// The encoding to be stored with a ticket, for [`Settings::from_bytes`] (RFC 9114 §7.2.4.2).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(None, &mut bytes);
        bytes
    }

    /// Decodes stored settings; `None` if they are invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::decode(bytes).ok().map(|(settings, _)| settings)
    }

    /// Decodes the payload of a SETTINGS frame. Returns also how many settings are unknown.
    pub(crate) fn decode(payload: &[u8]) -> Result<(Self, u64), ConnectionError> {
        let mut settings = Self::default();
        let mut unknown = 0;
        // Settings with small identifiers must not repeat; unknown ones may.
        let mut seen = 0u64;
        let mut reader = Reader::new(payload);
        let truncated =
            |_| ConnectionError::new(Code::FRAME_ERROR, "SETTINGS ends inside of a setting");
        while !reader.is_empty() {
            let id = reader.varint().map_err(truncated)?.get();
            let value = reader.varint().map_err(truncated)?.get();
            if id < 64 {
                if seen & 1 << id != 0 {
                    return Err(wrong("a setting comes twice"));
                }
                seen |= 1 << id;
            }
            match id {
                QPACK_MAX_TABLE_CAPACITY => settings.qpack_max_table_capacity = value,
                MAX_FIELD_SECTION_SIZE => settings.max_field_section_size = value,
                QPACK_BLOCKED_STREAMS => settings.qpack_blocked_streams = value,
                ENABLE_CONNECT_PROTOCOL => {
                    settings.enable_connect_protocol = flag_of(value)?;
                }
                0x0 | 0x2..=0x5 => return Err(wrong("a setting of HTTP/2")),
                _ => unknown += 1,
            }
        }
        Ok((settings, unknown))
    }

    /// Checks a server's settings against those that a client remembered and used for 0-RTT (RFC 9114 §7.2.4.2, RFC
    /// 9204 §3.2.3).
    pub(crate) fn check_remembered(&self, remembered: &Self) -> Result<(), ConnectionError> {
        if self.max_field_section_size < remembered.max_field_section_size
            || self.qpack_blocked_streams < remembered.qpack_blocked_streams
            || (remembered.enable_connect_protocol && !self.enable_connect_protocol)
        {
            return Err(wrong("a setting is lower than when 0-RTT was agreed on"));
        }
        if remembered.qpack_max_table_capacity != 0
            && remembered.qpack_max_table_capacity != self.qpack_max_table_capacity
        {
            return Err(wrong(
                "the table's capacity is not that of when 0-RTT was agreed on",
            ));
        }
        Ok(())
    }
}

fn flag_of(value: u64) -> Result<bool, ConnectionError> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(wrong("a setting that is 0 or 1 is neither")),
    }
}

/// Appends a variable-length integer (RFC 9000 §16).
pub(crate) fn put_varint(into: &mut Vec<u8>, value: VarInt) {
    let mut bytes = [0; 8];
    let mut writer = lastbyte_wire::Writer::new(&mut bytes);
    // Eight bytes hold any value.
    let _ = writer.varint(value);
    into.extend_from_slice(writer.written());
}
