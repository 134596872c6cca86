//! Both ends of an HTTP/3 connection (RFC 9114) of a page load: `http3::Connection`s over endpoints of `quic`.
//!
//! The path of a request is the index of its resource. Header sections have the sizes of the page: fields of a browser, and one
//! that fills the rest. It is the same for all requests to a host with the same size, as cookies are, so QPACK may reduce it to
//! an index. Priorities are in the `priority` field (RFC 9218 §5), and the server's transport sends accordingly.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use lastbyte_congestion::Time;
use lastbyte_engine::Datagram;
use lastbyte_http3::{
    self as http3, Body, BodySink, Code, Event, Fields, Priority, Request, RequestError, Response,
};
use lastbyte_origin::{FullResponse, Handler, HandlerResponse, Peer};
use lastbyte_page::{Page, Resource};
use lastbyte_quic::connection::{self, Connection};
use lastbyte_scenario::Handshake;
use lastbyte_wire::StreamId;

use super::Arrival;
use crate::{
    application::ClientApplication,
    http3::{REQUEST_FIELDS, client},
    server::{AnyBytes, http3_config},
};

/// The browser's end.
pub(super) struct PageClient {
    http3: http3::Connection,
    page: Arc<Page>,
    /// Requests not sent yet.
    queue: VecDeque<u16>,
    /// Whether requests may be sent: after the handshake, or in 0-RTT.
    is_ready: bool,
    /// Whether to connect, or to send requests.
    has_work: bool,
    /// The resource and the received bytes of the body, for each request in progress.
    open: BTreeMap<StreamId, (u16, u64)>,
    arrivals: Vec<Arrival>,
    is_closed: bool,
}

impl PageClient {
    pub(super) fn new(page: Arc<Page>, handshake: Handshake) -> Self {
        Self {
            http3: client(handshake, &http3_config()),
            page,
            queue: VecDeque::new(),
            is_ready: false,
            has_work: false,
            open: BTreeMap::new(),
            arrivals: Vec::new(),
            is_closed: false,
        }
    }

    /// Queues a request, sent when the node next runs.
    pub(super) fn request(&mut self, resource: u16) {
        if self.is_closed {
            self.arrivals.push(Arrival::Failed(resource));
            return;
        }
        self.queue.push_back(resource);
        self.has_work = true;
    }

    /// Appends what has arrived since the last call.
    pub(super) fn take_arrivals(&mut self, into: &mut Vec<Arrival>) {
        into.append(&mut self.arrivals);
    }

    fn send(&mut self, connection: &mut Connection, index: u16) -> Result<(), RequestError> {
        let resource = &self.page.resources[usize::from(index)];
        let host = &self.page.hosts[usize::from(resource.host)].name;
        let mut request = Request::new("GET", "https", host, &format!("/{index}"));
        push_fields(request.fields_mut(), resource, host);
        let stream = self.http3.request(connection, &request, Body::Empty);
        self.http3.recycle(request.into_fields());
        self.open.insert(stream?, (index, 0));
        Ok(())
    }
}

/// Records received body data.
struct Arrivals<'a> {
    open: &'a mut BTreeMap<StreamId, (u16, u64)>,
    arrivals: &'a mut Vec<Arrival>,
}

impl BodySink for Arrivals<'_> {
    fn body(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        if let Some((resource, received)) = self.open.get_mut(&stream) {
            *received += bytes.len() as u64;
            self.arrivals.push(Arrival::Body(*resource, *received));
        }
        bytes.len()
    }
}

impl ClientApplication for PageClient {
    fn deadline(&self) -> Option<Time> {
        self.http3.deadline()
    }

    fn take_wakeup(&mut self, _: Time) -> bool {
        std::mem::take(&mut self.has_work)
    }

    fn on_connection_started(&mut self, now: Time, connection: &mut Connection) {
        if connection.is_zero_rtt() {
            self.is_ready = true;
            self.send_requests(now, connection);
        }
    }

    fn send_requests(&mut self, _: Time, connection: &mut Connection) {
        while self.is_ready
            && let Some(index) = self.queue.pop_front()
        {
            match self.send(connection, index) {
                Ok(()) => {}
                // The server permits more requests later (`Event::RequestsAvailable`).
                Err(RequestError::Blocked) => {
                    self.queue.push_front(index);
                    return;
                }
                Err(_) => self.arrivals.push(Arrival::Failed(index)),
            }
        }
    }

    fn receive(&mut self, now: Time, connection: &mut Connection, datagram: Datagram<'_>) {
        let Datagram { path, ecn, bytes } = datagram;
        let mut arrivals = Arrivals {
            open: &mut self.open,
            arrivals: &mut self.arrivals,
        };
        let mut sink = self.http3.sink(&mut arrivals);
        connection.handle_datagram(now, &path, ecn, bytes, &mut sink);
    }

    fn on_event(&mut self, now: Time, connection: &mut Connection, event: &connection::Event) {
        match event {
            connection::Event::HandshakeComplete => {
                self.is_ready = true;
                self.send_requests(now, connection);
            }
            connection::Event::ZeroRtt { is_accepted: false } => self.http3.on_zero_rtt_rejected(),
            connection::Event::Closed(_) => {
                self.is_closed = true;
                let sent = std::mem::take(&mut self.open).into_values();
                let open = sent
                    .map(|(resource, _)| resource)
                    .chain(self.queue.drain(..));
                self.arrivals.extend(open.map(Arrival::Failed));
            }
            _ => {}
        }
    }

    fn process_events(&mut self, now: Time, connection: &mut Connection) {
        while let Some(event) = self.http3.poll(connection, now) {
            match event {
                Event::Informational { response, .. } => {
                    self.arrivals.push(Arrival::Hints);
                    self.http3.recycle(response.into_fields());
                }
                Event::Response { stream, response } => {
                    if let Some((resource, _)) = self.open.get(&stream) {
                        self.arrivals.push(Arrival::Head(*resource));
                    }
                    self.http3.recycle(response.into_fields());
                }
                Event::Data { stream } => {
                    let mut arrivals = Arrivals {
                        open: &mut self.open,
                        arrivals: &mut self.arrivals,
                    };
                    // Read what arrived with the header. If there is nothing to read, the next event reports data.
                    let _ = self.http3.read(connection, now, stream, &mut |bytes| {
                        arrivals.body(stream, bytes)
                    });
                }
                Event::Finished { stream } => {
                    if let Some((resource, _)) = self.open.remove(&stream) {
                        self.arrivals.push(Arrival::End(resource));
                    }
                }
                Event::Reset { stream, .. } => {
                    if let Some((resource, _)) = self.open.remove(&stream) {
                        self.arrivals.push(Arrival::Failed(resource));
                    }
                }
                Event::RequestsAvailable => self.send_requests(now, connection),
                Event::Drained => self.http3.close(connection, now, Code::NO_ERROR),
                _ => {}
            }
        }
    }
}

/// The handler of a group of hosts.
pub(super) struct PageHandler {
    page: Arc<Page>,
    /// Whether the document is preceded by a 103 response.
    has_hints: bool,
}

impl PageHandler {
    pub(super) const fn new(page: Arc<Page>, has_hints: bool) -> Self {
        Self { page, has_hints }
    }
}

impl Handler for PageHandler {
    fn handle(&self, request: &Request, _: &Peer) -> HandlerResponse {
        let Some(index) = index_of(request.path(), &self.page) else {
            return FullResponse::text(404, "Not found\n").into();
        };
        let page = Arc::clone(&self.page);
        let wait = page.resources[usize::from(index)].wait;
        let hints = (index == 0 && self.has_hints).then(|| hints(&page));
        let later = Box::new(move || {
            let resource = &page.resources[usize::from(index)];
            FullResponse {
                response: response(resource),
                body: match resource.body {
                    0 => None,
                    bytes => Some(Box::new(AnyBytes(bytes))),
                },
            }
        });
        match hints {
            Some(hints) => HandlerResponse::Hinted(hints, wait, later),
            None => HandlerResponse::After(wait, later),
        }
    }
}

/// The fields of a request with the size of its resource: what HTTP/1.1 would write is a line, a `host` field and these.
fn push_fields(fields: &mut Fields, resource: &Resource, host: &str) {
    let mut size = "GET / HTTP/1.1\r\nhost: \r\n\r\n".len() + host.len();
    for (name, value) in REQUEST_FIELDS {
        if name != "priority" {
            size += name.len() + value.len() + 4;
            fields.push(name, value);
        }
    }
    let priority = Priority {
        urgency: resource.priority.urgency,
        is_incremental: resource.priority.is_incremental,
    };
    fields.push("priority", priority.to_string());
    let rest = resource.request_header as usize;
    if let Some(filler) = rest.checked_sub(size + "cookie: \r\n".len()) {
        fields.push("cookie", fill(filler));
    }
}

/// The date of all responses.
const DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";

/// A response with the size of its resource.
fn response(resource: &Resource) -> Response {
    let mut response = Response::new(200).with("content-length", resource.body.to_string());
    let kind = match resource.kind.name() {
        "document" => "text/html; charset=utf-8",
        "stylesheet" => "text/css",
        "script" => "text/javascript",
        "image" => "image/webp",
        _ => "application/octet-stream",
    };
    response.fields_mut().push("content-type", kind);
    response.fields_mut().push("date", DATE);
    // `HTTP/1.1 200 OK`, the three fields and the end.
    let size = 60 + kind.len() + "date: \r\n".len() + DATE.len();
    if let Some(filler) = (resource.response_header as usize).checked_sub(size + 14) {
        response.fields_mut().push("set-cookie", fill(filler));
    }
    response
}

/// The 103 response of the document, with a `link` field for each hint.
fn hints(page: &Page) -> Response {
    let hinted = (0_u16..)
        .zip(&page.resources)
        .filter(|(_, resource)| resource.is_hinted);
    let mut response = Response::new(103);
    for (index, resource) in hinted {
        let host = &page.hosts[usize::from(resource.host)].name;
        let link = format!("<https://{host}/{index}>; rel=preload");
        response.fields_mut().push("link", link);
    }
    response
}

/// Text of this length that Huffman coding neither shortens nor lengthens much.
fn fill(len: usize) -> String {
    const TEXT: &str = "k=Zx81wQv0Lr7Ub2Yd5Kf9Ne3Tj6Hp4Mg; ";
    TEXT.chars()
        .cycle()
        .take(len)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// The resource of a path: `/INDEX`.
fn index_of(path: Option<&str>, page: &Page) -> Option<u16> {
    let index: u16 = path?.strip_prefix('/')?.parse().ok()?;
    (usize::from(index) < page.resources.len()).then_some(index)
}
