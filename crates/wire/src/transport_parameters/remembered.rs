//! What is remembered for 0-RTT (RFC 9000 §7.4.1).

use super::{ParameterId, TransportParameterError, TransportParameterFault, TransportParameters};
use crate::VarInt;

impl TransportParameters {
    /// What of a server's parameters a client keeps with its session ticket, to send 0-RTT by (RFC 9000 §7.4.1, RFC 9221
    /// §3, RFC 9287 §3). The others are as if they had not been sent. A server can keep the same in the ticket.
    #[must_use]
    pub fn remembered(&self) -> Self {
        Self {
            max_idle_timeout_ms: self.max_idle_timeout_ms,
            max_udp_payload_size: self.max_udp_payload_size,
            initial_max_data: self.initial_max_data,
            initial_max_stream_data_bidi_local: self.initial_max_stream_data_bidi_local,
            initial_max_stream_data_bidi_remote: self.initial_max_stream_data_bidi_remote,
            initial_max_stream_data_uni: self.initial_max_stream_data_uni,
            initial_max_streams_bidi: self.initial_max_streams_bidi,
            initial_max_streams_uni: self.initial_max_streams_uni,
            disable_active_migration: self.disable_active_migration,
            active_connection_id_limit: self.active_connection_id_limit,
            max_datagram_frame_size: self.max_datagram_frame_size,
            grease_quic_bit: self.grease_quic_bit,
            ..Self::default()
        }
    }

    /// Whether a server may accept 0-RTT that was sent by the remembered parameters, and then send `new` ones; a client
    /// asks it of the server's once 0-RTT was accepted.
    ///
    /// # Errors
    ///
    /// A limit is lower than it was, which the data sent by it may violate: a `PROTOCOL_VIOLATION` (RFC 9000 §7.4.1,
    /// RFC 9221 §3).
    pub fn check_not_reduced(&self, new: &Self) -> Result<(), TransportParameterError> {
        let reduced = self
            .limits()
            .into_iter()
            .zip(new.limits())
            .find(|((_, remembered), (_, new))| new < remembered);
        match reduced {
            Some(((id, _), _)) => Err(TransportParameterError::new(
                TransportParameterFault::Reduced,
                id,
            )),
            None => Ok(()),
        }
    }

    fn limits(&self) -> [(ParameterId, VarInt); 8] {
        [
            (
                ParameterId::ACTIVE_CONNECTION_ID_LIMIT,
                self.active_connection_id_limit,
            ),
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
                ParameterId::MAX_DATAGRAM_FRAME_SIZE,
                self.max_datagram_frame_size,
            ),
        ]
    }
}
