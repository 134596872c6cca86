//! One end of an HTTP/3 connection (RFC 9114 §3, §5, §6).

use lastbyte_quic::{
    Time, connection as transport,
    datagram::DatagramError,
    stream::{Source, StreamSink},
};
use lastbyte_wire::{Side, StreamId};

use crate::{
    Body, Code, Config, ConnectionError, Event, Fields, Priority, ReadError, Request, RequestError,
    Response, SendError, Settings,
};

/// One end of an HTTP/3 connection.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    config: Config,
}

/// Where bodies go while their packets are at hand.
pub trait BodySink {
    /// Takes the next bytes of a message's body, in order, each byte once. Returns how many were taken: the rest is kept,
    /// and [`Connection::read`] gets it.
    fn body(&mut self, stream: StreamId, bytes: &[u8]) -> usize;

    /// Whether the body of this message is to go here at all. If not, [`Event::Data`] tells of it.
    fn takes(&self, stream: StreamId) -> bool {
        let _ = stream;
        true
    }
}

/// Leads what the transport receives to a [`BodySink`], as far as it is body: what
/// [`handle_datagram`](transport::Connection::handle_datagram) is to be given.
pub struct Sink<'a> {
    http3: &'a mut Connection,
    body: &'a mut dyn BodySink,
}

impl core::fmt::Debug for Sink<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Sink").field(&self.http3).finish()
    }
}

impl StreamSink for Sink<'_> {
    fn data(&mut self, id: StreamId, _: u64, data: &[u8], _: bool) -> usize {
        self.body.body(id, data)
    }
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests received or sent.
    pub requests: u64,
    /// Final responses received or sent.
    pub responses: u64,
    /// Messages that came to no end.
    pub resets: u64,
    /// Bytes of field sections sent, as they were encoded.
    pub sections_sent: u64,
    /// The same as text, without the 32 bytes a field that limits count.
    pub text_sent: u64,
    /// Bytes of field sections received, as they were encoded.
    pub sections_received: u64,
    /// The same as text.
    pub text_received: u64,
    /// Messages that had to wait for the QPACK encoder stream.
    pub blocked: u64,
}

impl Connection {
    /// A client's end. It may be made before the handshake is done.
    #[must_use]
    pub fn client(config: &Config) -> Self {
        Self::new(Side::Client, config)
    }

    /// A server's end. It may be made before the handshake is done.
    #[must_use]
    pub fn server(config: &Config) -> Self {
        Self::new(Side::Server, config)
    }

    fn new(side: Side, config: &Config) -> Self {
        Self {
            side,
            config: config.clone(),
        }
    }

    /// What the server said about itself when the ticket was given that 0-RTT is sent with (RFC 9114 §7.2.4.2). It holds
    /// until the server speaks for itself, and is checked then.
    #[must_use]
    pub fn with_remembered(self, settings: Settings) -> Self {
        let _ = settings;
        self
    }

    // ---- events and time ---------------------------------------------------------------------------------------------

    /// The next thing that happened. To be called until there is nothing, after datagrams came in, after timeouts, and once
    /// at the start. It takes all events of the transport's streams; those of [`transport::Connection::poll_event`] are
    /// left to the caller.
    pub fn poll(&mut self, quic: &mut transport::Connection, now: Time) -> Option<Event> {
        let _ = (quic, now);
        None
    }

    /// When [`Connection::poll`] wants to be called, if nothing happens before.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        None
    }

    /// Leads bodies from packets right to `body`, without a copy. What is not body, or not taken, is kept for
    /// [`Connection::poll`] and [`Connection::read`].
    pub fn sink<'a>(&'a mut self, body: &'a mut dyn BodySink) -> Sink<'a> {
        Sink { http3: self, body }
    }

    // ---- messages ----------------------------------------------------------------------------------------------------

    /// A client asks.
    ///
    /// # Errors
    ///
    /// The request cannot be sent, or not now. Nothing was.
    pub fn request(
        &mut self,
        quic: &mut transport::Connection,
        request: &Request,
        body: Body,
    ) -> Result<StreamId, RequestError> {
        let _ = (quic, request, body);
        Err(RequestError::Blocked)
    }

    /// A server says something before it answers, such as 103 Early Hints (RFC 9110 §15.2, RFC 8297).
    ///
    /// # Errors
    ///
    /// The response cannot be sent. Nothing was. A status that is not 1xx, or is 101, is out of order.
    pub fn inform(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        response: &Response,
    ) -> Result<(), SendError> {
        let _ = (quic, stream, response);
        Err(SendError::UnknownStream)
    }

    /// A server answers. A `priority` field in the response changes how it is scheduled (RFC 9218 §8).
    ///
    /// # Errors
    ///
    /// The response cannot be sent. Nothing was.
    pub fn respond(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        response: &Response,
        body: Body,
    ) -> Result<(), SendError> {
        let _ = (quic, stream, response, body);
        Err(SendError::UnknownStream)
    }

    /// Sends all of a source as body, in one DATA frame.
    ///
    /// # Errors
    ///
    /// It cannot be sent. Nothing was.
    pub fn send(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        source: Box<dyn Source>,
    ) -> Result<(), SendError> {
        let _ = (quic, stream, source);
        Err(SendError::UnknownStream)
    }

    /// Sends bytes of a body, as many as there is room for; if not all, [`Event::Writable`] follows when there is room.
    /// Returns how many were taken.
    ///
    /// # Errors
    ///
    /// They cannot be sent.
    pub fn write(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        bytes: &[u8],
    ) -> Result<usize, SendError> {
        let _ = (quic, stream, bytes);
        Err(SendError::UnknownStream)
    }

    /// Ends a message whose body followed.
    ///
    /// # Errors
    ///
    /// It cannot end here: its head was not sent, or its body is not as long as it says.
    pub fn finish(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
    ) -> Result<(), SendError> {
        let _ = (quic, stream);
        Err(SendError::UnknownStream)
    }

    /// Ends a message with trailers.
    ///
    /// # Errors
    ///
    /// It cannot end here, or not with these fields.
    pub fn trailers(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        fields: &Fields,
    ) -> Result<(), SendError> {
        let _ = (quic, stream, fields);
        Err(SendError::UnknownStream)
    }

    /// Hands out body that was received, slice by slice, until `read` takes less than it is given or there is no more.
    /// Returns how many bytes it took. That the message ends is told by [`Connection::poll`].
    ///
    /// # Errors
    ///
    /// There is nothing to be read, and will not be.
    pub fn read(
        &mut self,
        quic: &mut transport::Connection,
        now: Time,
        stream: StreamId,
        read: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<usize, ReadError> {
        let _ = (quic, now, stream, read);
        Err(ReadError::UnknownStream)
    }

    /// Gives our message up. Does nothing if it was sent.
    pub fn reset(&mut self, quic: &mut transport::Connection, stream: StreamId, code: Code) {
        let _ = (quic, stream, code);
    }

    /// Asks the peer to send no more of its message, which is not told of any more. A server that needs no more of a request
    /// answers first, and then stops with `NO_ERROR` (RFC 9114 §4.1).
    pub fn stop(
        &mut self,
        quic: &mut transport::Connection,
        now: Time,
        stream: StreamId,
        code: Code,
    ) {
        let _ = (quic, now, stream, code);
    }

    /// Gives up both messages of a stream: a client its request, with `REQUEST_CANCELLED`, or a server one that it did not
    /// process, with `REQUEST_REJECTED` (RFC 9114 §4.1.1).
    pub fn cancel(
        &mut self,
        quic: &mut transport::Connection,
        now: Time,
        stream: StreamId,
        code: Code,
    ) {
        self.reset(quic, stream, code);
        self.stop(quic, now, stream, code);
    }

    /// Says how important a response is from now on (RFC 9218 §7): a client tells the server, a server its scheduler.
    pub fn prioritise(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        priority: Priority,
    ) {
        let _ = (quic, stream, priority);
    }

    /// Sends an HTTP datagram (RFC 9297): once, or not at all.
    ///
    /// # Errors
    ///
    /// It cannot be sent, and is dropped.
    pub fn send_datagram(
        &mut self,
        quic: &mut transport::Connection,
        stream: StreamId,
        payload: &[u8],
    ) -> Result<(), DatagramError> {
        let _ = (quic, stream, payload);
        Err(DatagramError::NotSupported)
    }

    // ---- the connection ----------------------------------------------------------------------------------------------

    /// Shuts down in peace (RFC 9114 §5.2): the peer is told to begin nothing new; a round trip later, what it began
    /// nevertheless is refused; [`Event::Drained`] tells when nothing is left.
    pub fn shut_down(&mut self, quic: &mut transport::Connection, now: Time) {
        let _ = (quic, now);
    }

    /// Closes the connection at once.
    pub fn close(&mut self, quic: &mut transport::Connection, now: Time, code: Code) {
        quic.close(now, code.get());
    }

    /// What the peer has told about itself, or what was remembered of it; `None` before.
    #[must_use]
    pub const fn peer_settings(&self) -> Option<&Settings> {
        None
    }

    /// Takes fields that are not needed any more, so that their memory serves the next message.
    pub fn recycle(&mut self, fields: Fields) {
        let _ = fields;
    }

    /// Why the connection failed, if it did.
    #[must_use]
    pub const fn error(&self) -> Option<ConnectionError> {
        None
    }

    /// What has been counted.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let _ = (&self.config, self.side);
        Statistics::default()
    }
}
