//! Authentication of the connection IDs used in the handshake (RFC 9000 §7.3).

use super::{
    ParameterId, TransportParameterError, TransportParameterErrorKind, TransportParameters,
};
use crate::ConnectionId;

/// The connection IDs that an endpoint observed during the handshake, and that its peer must confirm (RFC 9000 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeConnectionIds {
    /// The source connection ID of the peer's first Initial packet.
    pub initial_source: ConnectionId,
    /// On a client: the destination connection ID of its own first Initial packet.
    pub original_destination: Option<ConnectionId>,
    /// On a client: the source connection ID of the Retry packet, if it received one.
    pub retry_source: Option<ConnectionId>,
}

impl TransportParameters {
    /// Checks the peer's parameters against the connection IDs of the handshake.
    ///
    /// # Errors
    ///
    /// Returns [`TransportParameterErrorKind::Missing`] if a parameter is absent, and
    /// [`TransportParameterErrorKind::ConnectionIdMismatch`] if it is different or unexpected. An attacker has then
    /// modified the handshake.
    pub fn authenticate(
        &self,
        expected: &HandshakeConnectionIds,
    ) -> Result<(), TransportParameterError> {
        let expected = [
            expected.original_destination,
            Some(expected.initial_source),
            expected.retry_source,
        ];
        for ((id, sent), expected) in self.connection_ids().into_iter().zip(expected) {
            if sent != expected {
                let kind = match sent {
                    None => TransportParameterErrorKind::Missing,
                    Some(_) => TransportParameterErrorKind::ConnectionIdMismatch,
                };
                return Err(TransportParameterError::new(kind, id));
            }
        }
        Ok(())
    }

    pub(super) const fn connection_ids(&self) -> [(ParameterId, Option<ConnectionId>); 3] {
        [
            (
                ParameterId::ORIGINAL_DESTINATION_CONNECTION_ID,
                self.original_destination_connection_id,
            ),
            (
                ParameterId::INITIAL_SOURCE_CONNECTION_ID,
                self.initial_source_connection_id,
            ),
            (
                ParameterId::RETRY_SOURCE_CONNECTION_ID,
                self.retry_source_connection_id,
            ),
        ]
    }
}
