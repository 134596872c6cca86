//! Events that other threads report to the client.

use crate::{dns, tcp};

/// An event from another thread.
pub(crate) enum Event {
    /// A resolver has answered.
    Resolve {
        /// The index of the server whose name is resolved.
        server: usize,
        /// The answer.
        event: dns::Event,
    },
    /// Something happened on a TCP connection.
    Tcp {
        /// The number of the connection.
        connection: usize,
        /// The event.
        event: tcp::Event,
    },
    /// Addresses or routes of this host have changed.
    NetworkChanged,
    /// An upload has more data to send, or has ended.
    UploadReadable,
}
