//! What the application is told.

use lastbyte_wire::StreamId;

use crate::{Code, ConnectionError, Fields, Priority, Request, Response, StreamError};

/// Something happened to an HTTP/3 connection. A request and its response are named by their stream.
///
/// Of one message come, in this order: any number of `Informational`, one `Request` or `Response`, any number of `Data`,
/// at most one `Trailers`, and then `Finished`; or `Reset` at any time, and nothing after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The head of a request: to a server.
    Request {
        /// Its stream.
        stream: StreamId,
        /// Its head, which was checked (RFC 9114 §4.3.1).
        request: Request,
    },
    /// An interim response, such as 103 Early Hints: to a client.
    Informational {
        /// The request's stream.
        stream: StreamId,
        /// Its head; the status is 1xx.
        response: Response,
    },
    /// The head of the final response: to a client.
    Response {
        /// The request's stream.
        stream: StreamId,
        /// Its head.
        response: Response,
    },
    /// Body waits to be read. Not said again before [`Connection::read`] was called: whoever reads less than there is has to
    /// come back by itself.
    ///
    /// [`Connection::read`]: crate::Connection::read
    Data {
        /// Its stream.
        stream: StreamId,
    },
    /// The trailers of a message.
    Trailers {
        /// Its stream.
        stream: StreamId,
        /// The fields.
        fields: Fields,
    },
    /// The message was received to its end, and is as long as it said.
    Finished {
        /// Its stream.
        stream: StreamId,
    },
    /// The message will not come to its end. Of a client: nor will the request. Of a server: if the client gave up, the
    /// response may still be sent.
    Reset {
        /// Its stream.
        stream: StreamId,
        /// Who gave up, and why.
        error: StreamError,
    },
    /// The peer wants no more of what we send on this stream: it is reset.
    Stopped {
        /// The stream.
        stream: StreamId,
        /// The peer's reason; `NO_ERROR` if the server has answered without needing the rest of the request.
        code: Code,
    },
    /// A source could not be read: our message was reset.
    SourceFailed {
        /// The stream.
        stream: StreamId,
        /// What it was reset with.
        code: Code,
    },
    /// There is room again on a stream where something was blocked.
    Writable {
        /// The stream.
        stream: StreamId,
    },
    /// All of our message was acknowledged.
    Sent {
        /// The stream.
        stream: StreamId,
    },
    /// The server permits more requests, after one was refused.
    RequestsAvailable,
    /// The peer's settings have arrived: `Connection::peer_settings`.
    Settings,
    /// The client says how important a response is, in the request or anew. It is already scheduled so: to a server.
    Priority {
        /// The request's stream.
        stream: StreamId,
        /// What it said.
        priority: Priority,
    },
    /// An HTTP datagram (RFC 9297 §2).
    Datagram {
        /// The request that it belongs to.
        stream: StreamId,
        /// What it says.
        payload: Vec<u8>,
    },
    /// The peer shuts down (RFC 9114 §5.2). To a client: requests on streams from `id` on are and will be reset as
    /// `REQUEST_REJECTED`, and no more can be sent. To a server: `id` is a push ID, and of no consequence.
    GoAway {
        /// The first that is not processed.
        id: u64,
    },
    /// After a shutdown, ours or the peer's: nothing is left to be done. Close the connection with
    /// [`Connection::close`](crate::Connection::close) and `Code::NO_ERROR`.
    Drained,
    /// The peer broke a rule, and the connection is being closed. Nothing follows.
    Failed(ConnectionError),
}
