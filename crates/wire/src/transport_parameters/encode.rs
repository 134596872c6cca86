//! Encoding of transport parameters (RFC 9000 §18).

use alloc::{vec, vec::Vec};
use core::convert::Infallible;

use super::{ParameterId, PreferredAddress, TransportParameters, VersionInformation};
use crate::{BufferFull, Encode, VarInt, Writer, varint::encoded_len_usize};

/// A parameter's value.
#[derive(Clone, Copy)]
enum Value<'a> {
    /// Zero-length: the presence of the parameter is the value.
    Flag,
    Integer(VarInt),
    Bytes(&'a [u8]),
    PreferredAddress(&'a PreferredAddress),
    VersionInformation(&'a VersionInformation),
}

impl Encode for Value<'_> {
    fn encoded_len(&self) -> usize {
        match self {
            Self::Flag => 0,
            Self::Integer(integer) => integer.encoded_len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::PreferredAddress(address) => address.encoded_len(),
            Self::VersionInformation(information) => information.encoded_len(),
        }
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        match self {
            Self::Flag => Ok(()),
            Self::Integer(integer) => writer.varint(*integer),
            Self::Bytes(bytes) => writer.bytes(bytes),
            Self::PreferredAddress(address) => address.encode(writer),
            Self::VersionInformation(information) => information.encode(writer),
        }
    }
}

impl TransportParameters {
    /// The encoded parameters, for the TLS extension.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.encoded_len()];
        let result = self.encode(&mut Writer::new(&mut bytes));
        debug_assert_eq!(result, Ok(()), "`encoded_len` is exact");
        bytes
    }

    /// Calls `put` with each parameter that differs from its default.
    fn try_for_each<E>(
        &self,
        mut put: impl FnMut(ParameterId, Value<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let default = Self::default();
        for ((id, value), (_, default)) in self.integers().into_iter().zip(default.integers()) {
            if value != default {
                put(id, Value::Integer(value))?;
            }
        }
        let flags = [
            (
                ParameterId::DISABLE_ACTIVE_MIGRATION,
                self.disable_active_migration,
            ),
            (ParameterId::GREASE_QUIC_BIT, self.grease_quic_bit),
        ];
        for (id, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            put(id, Value::Flag)?;
        }
        for (id, value) in self.connection_ids() {
            if let Some(value) = value {
                put(id, Value::Bytes(value.as_slice()))?;
            }
        }
        if let Some(token) = &self.stateless_reset_token {
            put(
                ParameterId::STATELESS_RESET_TOKEN,
                Value::Bytes(token.as_bytes()),
            )?;
        }
        if let Some(address) = &self.preferred_address {
            put(
                ParameterId::PREFERRED_ADDRESS,
                Value::PreferredAddress(address),
            )?;
        }
        if let Some(information) = &self.version_information {
            put(
                ParameterId::VERSION_INFORMATION,
                Value::VersionInformation(information),
            )?;
        }
        if let Some(delay) = self.min_ack_delay_us {
            put(ParameterId::MIN_ACK_DELAY, Value::Integer(delay))?;
        }
        Ok(())
    }

    pub(super) fn integers(&self) -> [(ParameterId, VarInt); 11] {
        [
            (ParameterId::MAX_IDLE_TIMEOUT, self.max_idle_timeout_ms),
            (ParameterId::MAX_UDP_PAYLOAD_SIZE, self.max_udp_payload_size),
            (ParameterId::INITIAL_MAX_DATA, self.initial_max_data),
            (
                ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL,
                self.initial_max_stream_data_bidi_local,
            ),
            (
                ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE,
                self.initial_max_stream_data_bidi_remote,
            ),
            (
                ParameterId::INITIAL_MAX_STREAM_DATA_UNI,
                self.initial_max_stream_data_uni,
            ),
            (
                ParameterId::INITIAL_MAX_STREAMS_BIDI,
                self.initial_max_streams_bidi.into(),
            ),
            (
                ParameterId::INITIAL_MAX_STREAMS_UNI,
                self.initial_max_streams_uni.into(),
            ),
            (
                ParameterId::ACK_DELAY_EXPONENT,
                self.ack_delay_exponent.into(),
            ),
            (ParameterId::MAX_ACK_DELAY, self.max_ack_delay_ms),
            (
                ParameterId::ACTIVE_CONNECTION_ID_LIMIT,
                self.active_connection_id_limit,
            ),
        ]
    }
}

impl Encode for TransportParameters {
    fn encoded_len(&self) -> usize {
        let mut len = 0;
        let counted = self.try_for_each(|id, value| {
            let value_len = value.encoded_len();
            len += VarInt::from(id).encoded_len() + encoded_len_usize(value_len) + value_len;
            Ok::<(), Infallible>(())
        });
        match counted {
            Ok(()) => len,
        }
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        debug_assert_eq!(
            self.check_ranges(),
            Ok(()),
            "local parameters must be in range"
        );
        writer.atomically(|writer| {
            self.try_for_each(|id, value| {
                writer.varint(id.into())?;
                let value_len = VarInt::try_from(value.encoded_len()).map_err(|_| BufferFull)?;
                writer.varint(value_len)?;
                value.encode(writer)
            })
        })
    }
}
