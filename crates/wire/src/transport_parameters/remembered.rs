//! The transport parameters remembered for 0-RTT (RFC 9000 §7.4.1).

use super::{
    ParameterId, TransportParameterError, TransportParameterErrorKind, TransportParameters,
};
use crate::VarInt;

impl TransportParameters {
    /// The subset of a server's parameters that a client stores with its session ticket and applies to 0-RTT (RFC 9000
    /// §7.4.1, RFC 9287 §3). All other parameters have their default values. A server can store the same
    /// subset in the ticket.
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
            grease_quic_bit: self.grease_quic_bit,
            ..Self::default()
        }
    }

    /// Checks that `new` reduces none of the remembered limits. A server may accept 0-RTT only if this succeeds. A
    /// client checks the server's parameters after 0-RTT was accepted.
    ///
    /// # Errors
    ///
    /// Returns [`TransportParameterErrorKind::Reduced`] if a limit is lower than the remembered one, because 0-RTT data may
    /// already exceed it. The code is `PROTOCOL_VIOLATION` (RFC 9000 §7.4.1).
    pub fn check_not_reduced(&self, new: &Self) -> Result<(), TransportParameterError> {
        let reduced = self
            .limits()
            .zip(new.limits())
            .find(|((_, remembered), (_, new))| new < remembered);
        match reduced {
            Some(((id, _), _)) => Err(TransportParameterError::new(
                TransportParameterErrorKind::Reduced,
                id,
            )),
            None => Ok(()),
        }
    }

    /// The integers that are remembered limits.
    fn limits(&self) -> impl Iterator<Item = (ParameterId, VarInt)> {
        let integers = self.integers().into_iter();
        integers.filter(|(id, _)| !NO_LIMITS.contains(id))
    }
}

/// Integers that 0-RTT data cannot exceed.
const NO_LIMITS: [ParameterId; 4] = [
    ParameterId::MAX_IDLE_TIMEOUT,
    ParameterId::MAX_UDP_PAYLOAD_SIZE,
    ParameterId::ACK_DELAY_EXPONENT,
    ParameterId::MAX_ACK_DELAY,
];
