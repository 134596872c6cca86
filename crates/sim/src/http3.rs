//! HTTP/3 (RFC 9114), with the [`Connection`](http3::Connection) of `lastbyte serve` and `lastbyte get`.
//!
//! A request has the path `/SIZE` and the fields of a browser. An upload is a `POST` with its length. Bodies are measured as slices of
//! the received packets. The server is that of [`lastbyte_origin`].

use lastbyte_congestion::Time;
use lastbyte_engine::Datagram;
use lastbyte_http3::{self as http3, Body, BodySink, Code, Event, Request, Settings};
use lastbyte_quic::connection::Connection;
use lastbyte_units::Direction;
use lastbyte_wire::StreamId;

use crate::{
    SERVER_NAME,
    measures::Measures,
    server::{AnyBytes, ServerSettings, http3_config},
};
use lastbyte_scenario::Handshake;

/// Header fields of Chromium when it requests an image.
pub(crate) const REQUEST_FIELDS: [(&str, &str); 7] = [
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    ),
    (
        "accept",
        "image/avif,image/webp,image/apng,image/*,*/*;q=0.8",
    ),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "no-cors"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9"),
    ("priority", "u=2, i"),
];
/// The client's side: encodes requests, and measures the data of responses.
pub(crate) struct Client {
    http3: http3::Connection,
}

impl Client {
    /// With resumption it remembers the server's settings of the earlier connection.
    pub(crate) fn new(handshake: Handshake, server: &ServerSettings) -> Self {
        Self {
            http3: client(handshake, &server.http3),
        }
    }
}

/// Creates the connection of a client. With 0-RTT it remembers the settings of the `server`.
pub(crate) fn client(handshake: Handshake, server: &http3::Config) -> http3::Connection {
    let http3 = http3::Connection::client(&http3_config());
    if handshake != Handshake::ZeroRtt {
        return http3;
    }
    // The server's settings when it issued the ticket (RFC 9114 §7.2.4.2).
    http3.with_remembered(Settings {
        max_field_section_size: server.field_section_size_max.into(),
        qpack_max_table_capacity: server.qpack_table_capacity.into(),
        qpack_blocked_streams: server.qpack_blocked_streams.into(),
        enable_connect_protocol: server.extended_connect,
    })
}

/// Measures received body data.
struct Arrivals<'a> {
    now: Time,
    measures: &'a mut Measures,
}

impl BodySink for Arrivals<'_> {
    fn body(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        self.measures.on_body(self.now, stream, bytes.len());
        bytes.len()
    }
}

impl Client {
    /// Sends a request: a download or an upload of `size` bytes. `None` if the server's stream limit permits no further request now.
    pub(crate) fn send_request(
        &mut self,
        connection: &mut Connection,
        size: u64,
        direction: Direction,
    ) -> Option<StreamId> {
        let (mut request, body) = match direction {
            Direction::Down => {
                let path = format!("/{size}");
                let request = Request::new("GET", "https", SERVER_NAME, &path);
                (request, Body::Empty)
            }
            Direction::Up => {
                let request = Request::new(UPLOAD, "https", SERVER_NAME, "/upload");
                let request = request.with("content-length", size.to_string());
                (request, Body::Source(Box::new(AnyBytes(size))))
            }
        };
        for (name, value) in REQUEST_FIELDS {
            request.fields_mut().push(name, value);
        }
        let stream = self.http3.request(connection, &request, body);
        self.http3.recycle(request.into_fields());
        stream.ok()
    }

    /// Passes a datagram to the connection, and measures the response data in it.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        connection: &mut Connection,
        datagram: Datagram<'_>,
        measures: &mut Measures,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        let mut arrivals = Arrivals { now, measures };
        let mut sink = self.http3.sink(&mut arrivals);
        connection.handle_datagram(now, &path, ecn, bytes, &mut sink);
    }

    /// Processes pending events.
    pub(crate) fn process_events(
        &mut self,
        connection: &mut Connection,
        now: Time,
        measures: &mut Measures,
    ) {
        while let Some(event) = self.http3.poll(connection, now) {
            match event {
                Event::Response { response, .. } if response.status() == 200 => {
                    self.http3.recycle(response.into_fields());
                }
                Event::Data { stream } => {
                    // Read what arrived with the header. If there is nothing to read, the next event reports data.
                    let _ = self.http3.read(connection, now, stream, &mut |bytes| {
                        measures.on_body(now, stream, bytes.len());
                        bytes.len()
                    });
                }
                Event::Finished { stream } => measures.on_end(now, stream),
                Event::Sent { .. } => measures.on_request_acked(now),
                // The simulated server responds to all requests, unless their bodies stall; a flow fails otherwise.
                Event::Reset { error, .. } => self.http3.close(connection, now, error.code),
                Event::Response { .. } | Event::Drained => {
                    self.http3
                        .close(connection, now, Code::GENERAL_PROTOCOL_ERROR);
                }
                _ => {}
            }
        }
    }

    /// The server rejected 0-RTT; the transport retransmits the data.
    pub(crate) fn on_zero_rtt_rejected(&mut self) {
        self.http3.on_zero_rtt_rejected();
    }

    /// When [`Self::process_events`] must be called next, if no event happens before.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.http3.deadline()
    }
}

/// The method of an upload.
const UPLOAD: &str = "POST";
