//! Decoding of transport parameters (RFC 9000 §18).

use alloc::boxed::Box;

use super::{
    ParameterId, PreferredAddress, TransportParameterError, TransportParameterErrorKind,
    TransportParameters, VersionInformation,
};
use crate::{ConnectionId, Reader, Side, StatelessResetToken, StreamCount, UnexpectedEnd};

impl TransportParameters {
    /// Decodes the parameters sent by `sender`. Unknown parameters are ignored (RFC 9000 §7.4.2).
    ///
    /// # Errors
    ///
    /// Returns a [`TransportParameterError`] if a parameter is malformed, out of range, duplicated, or not permitted
    /// from `sender`. The code is always `TRANSPORT_PARAMETER_ERROR`.
    pub fn decode(bytes: &[u8], sender: Side) -> Result<Self, TransportParameterError> {
        let mut reader = Reader::new(bytes);
        let mut parameters = Self::default();
        let mut seen = Seen::default();
        while !reader.is_empty() {
            let truncated = |id| TransportParameterError {
                kind: TransportParameterErrorKind::Truncated,
                id,
            };
            let id = match reader.varint() {
                Ok(id) => ParameterId::from(id),
                Err(UnexpectedEnd) => return Err(truncated(None)),
            };
            let value = reader
                .varint_prefixed()
                .map_err(|UnexpectedEnd| truncated(Some(id)))?;
            let result = if !seen.insert(id) {
                Err(TransportParameterErrorKind::Duplicate)
            } else if sender == Side::Client && id.is_server_only() {
                Err(TransportParameterErrorKind::NotPermittedFromClient)
            } else {
                parameters.set(id, &mut Reader::new(value), sender)
            };
            result.map_err(|kind| TransportParameterError::new(kind, id))?;
        }
        parameters.check_ranges()?;
        Ok(parameters)
    }

    fn set(
        &mut self,
        id: ParameterId,
        value: &mut Reader<'_>,
        sender: Side,
    ) -> Result<(), TransportParameterErrorKind> {
        match id {
            ParameterId::ORIGINAL_DESTINATION_CONNECTION_ID => {
                self.original_destination_connection_id = Some(connection_id(value)?);
            }
            ParameterId::MAX_IDLE_TIMEOUT => self.max_idle_timeout_ms = value.varint()?,
            ParameterId::STATELESS_RESET_TOKEN => {
                self.stateless_reset_token = Some(StatelessResetToken::new(value.array()?));
            }
            ParameterId::MAX_UDP_PAYLOAD_SIZE => self.max_udp_payload_size = value.varint()?,
            ParameterId::INITIAL_MAX_DATA => self.initial_max_data = value.varint()?,
            ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => {
                self.initial_max_stream_data_bidi_local = value.varint()?;
            }
            ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                self.initial_max_stream_data_bidi_remote = value.varint()?;
            }
            ParameterId::INITIAL_MAX_STREAM_DATA_UNI => {
                self.initial_max_stream_data_uni = value.varint()?;
            }
            ParameterId::INITIAL_MAX_STREAMS_BIDI => {
                self.initial_max_streams_bidi = stream_count(value)?;
            }
            ParameterId::INITIAL_MAX_STREAMS_UNI => {
                self.initial_max_streams_uni = stream_count(value)?;
            }
            ParameterId::ACK_DELAY_EXPONENT => self.ack_delay_exponent = small_integer(value)?,
            ParameterId::MAX_ACK_DELAY => self.max_ack_delay_ms = value.varint()?,
            ParameterId::DISABLE_ACTIVE_MIGRATION => self.disable_active_migration = true,
            ParameterId::PREFERRED_ADDRESS => {
                self.preferred_address = Some(Box::new(PreferredAddress::decode(value)?));
            }
            ParameterId::ACTIVE_CONNECTION_ID_LIMIT => {
                self.active_connection_id_limit = value.varint()?;
            }
            _ => return self.set_remaining(id, value, sender),
        }
        all_read(value)
    }

    fn set_remaining(
        &mut self,
        id: ParameterId,
        value: &mut Reader<'_>,
        sender: Side,
    ) -> Result<(), TransportParameterErrorKind> {
        match id {
            ParameterId::INITIAL_SOURCE_CONNECTION_ID => {
                self.initial_source_connection_id = Some(connection_id(value)?);
            }
            ParameterId::RETRY_SOURCE_CONNECTION_ID => {
                self.retry_source_connection_id = Some(connection_id(value)?);
            }
            ParameterId::VERSION_INFORMATION => {
                self.version_information = Some(VersionInformation::decode(value, sender)?);
            }
            ParameterId::GREASE_QUIC_BIT => self.grease_quic_bit = true,
            ParameterId::MIN_ACK_DELAY => self.min_ack_delay_us = Some(value.varint()?),
            _ => return Ok(()),
        }
        all_read(value)
    }
}

fn all_read(value: &Reader<'_>) -> Result<(), TransportParameterErrorKind> {
    if value.is_empty() {
        Ok(())
    } else {
        Err(TransportParameterErrorKind::Length)
    }
}

fn connection_id(value: &mut Reader<'_>) -> Result<ConnectionId, TransportParameterErrorKind> {
    ConnectionId::new(value.take_rest()).ok_or(TransportParameterErrorKind::Length)
}

fn stream_count(value: &mut Reader<'_>) -> Result<StreamCount, TransportParameterErrorKind> {
    StreamCount::new(value.varint()?.get()).ok_or(TransportParameterErrorKind::OutOfRange)
}

fn small_integer(value: &mut Reader<'_>) -> Result<u8, TransportParameterErrorKind> {
    u8::try_from(value.varint()?.get()).map_err(|_| TransportParameterErrorKind::OutOfRange)
}

/// The parameters decoded so far. RFC 9000 §7.4 only recommends the check for duplicates, so at most 32 unknown
/// parameters are tracked to bound the cost of a peer that sends many.
#[derive(Default)]
struct Seen {
    /// One bit per row of the table of known parameters.
    known: u32,
    unknown: [Option<ParameterId>; 32],
}

impl Seen {
    /// Returns `false` if the parameter is a duplicate.
    fn insert(&mut self, id: ParameterId) -> bool {
        if let Some(index) = id.index() {
            let bit = 1 << index;
            let is_new = self.known & bit == 0;
            self.known |= bit;
            return is_new;
        }
        let place = self
            .unknown
            .iter_mut()
            .find(|place| place.is_none_or(|other| other == id));
        match place {
            Some(place) => place.replace(id).is_none(),
            None => true,
        }
    }
}
