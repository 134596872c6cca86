//! Events for the application.

use lastbyte_wire::StreamId;

use crate::{Code, ConnectionError, Fields, Priority, Request, Response, StreamError};

/// An event of an HTTP/3 connection. A request and its response are identified by their stream.
///
/// The events of a message arrive in this order: any number of `Informational`, one `Request` or `Response`, any number of
/// `Data`, at most one `Trailers`, and then `Finished`. `Reset` may come at any time, and ends them.
///
/// Our message ends once: with `Sent`, `Stopped`, `SourceFailed`, a `Reset` with `cancels_ours`, a
/// [`reset`](crate::Connection::reset) that returns true, or with the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Server: the header of a request.
    Request {
        /// Its stream.
        stream: StreamId,
        /// The header. It is well-formed (RFC 9114 §4.3.1).
        request: Request,
    },
    /// Client: an interim response, such as 103 Early Hints.
    Informational {
        /// The request's stream.
        stream: StreamId,
        /// The header. Its status is 1xx.
        response: Response,
    },
    /// Client: the header of the final response.
    Response {
        /// The request's stream.
        stream: StreamId,
        /// The header.
        response: Response,
    },
    /// Body data can be read. Not repeated until [`Connection::read`] is called. If that leaves data unread, no further event
    /// reports it.
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
    /// The message is complete, and its body has the length of its `content-length`.
    Finished {
        /// Its stream.
        stream: StreamId,
    },
    /// The message will not be completed. Client: nor will the request. Server: the response may still be sent if the client
    /// has reset the request.
    Reset {
        /// Its stream.
        stream: StreamId,
        /// Which end reset it, and why.
        error: StreamError,
        /// Whether our message, which had not ended, was cancelled with it.
        cancels_ours: bool,
    },
    /// The peer requested that we stop sending on this stream, and it was reset (RFC 9000 §3.5).
    Stopped {
        /// The stream.
        stream: StreamId,
        /// The peer's reason; `NO_ERROR` if the server has answered without needing the rest of the request.
        code: Code,
    },
    /// The source of a body could not be read; our message was reset.
    SourceFailed {
        /// The stream.
        stream: StreamId,
        /// The error code of the reset.
        code: Code,
    },
    /// A stream on which sending was blocked accepts data again.
    Writable {
        /// The stream.
        stream: StreamId,
    },
    /// All of our message has been acknowledged.
    Sent {
        /// The stream.
        stream: StreamId,
    },
    /// The server permits more requests, after sending one was blocked by its limit.
    RequestsAvailable,
    /// The peer's settings have arrived; see `Connection::peer_settings`.
    Settings,
    /// Server: the client set or changed the priority of a response. The transport already schedules it accordingly.
    Priority {
        /// The request's stream.
        stream: StreamId,
        /// The priority.
        priority: Priority,
    },
    /// The peer is shutting down (RFC 9114 §5.2). Client: requests on streams from `id` on are reset with
    /// `REQUEST_REJECTED`, and no more can be sent. Server: `id` is a push ID and has no effect.
    GoAway {
        /// The first ID that is not processed.
        id: u64,
    },
    /// A shutdown, ours or the peer's, is complete: no request is in progress. Close the connection with
    /// [`Connection::close`](crate::Connection::close) and `Code::NO_ERROR`.
    Drained,
    /// The peer violated the protocol, and the connection is being closed. No event follows.
    Failed(ConnectionError),
}
