//! Connection IDs that the handshake authenticates (RFC 9000 §7.3).

use super::{ParameterId, TransportParameterError, TransportParameterFault, TransportParameters};
use crate::ConnectionId;

/// The connection IDs an endpoint saw in the handshake, which its peer has to confirm (RFC 9000 §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeConnectionIds {
    /// The source connection ID of the peer's first Initial packet.
    pub initial_source: ConnectionId,
    /// For a client: the destination connection ID of its own first Initial packet.
    pub original_destination: Option<ConnectionId>,
    /// For a client: the source connection ID of the Retry packet, if it got one.
    pub retry_source: Option<ConnectionId>,
}

impl TransportParameters {
    /// Compares the peer's parameters with the connection IDs of the handshake.
    ///
    /// # Errors
    ///
    /// One is missing, or there and should not be, or another: somebody meddled with the handshake.
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
                let fault = match sent {
                    None => TransportParameterFault::Missing,
                    Some(_) => TransportParameterFault::ConnectionIdMismatch,
                };
                return Err(TransportParameterError::new(fault, id));
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
