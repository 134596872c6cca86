//! Response bodies over HTTP/1.1 and 2.
//!
//! A source is read piece by piece, when there is room to send, or lent if it is in memory; the parts of an exchange are passed
//! on as they arrive. The line of the access log is written when the last piece was taken, or when the body is dropped. At most
//! one piece of a source that is read is in memory.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::body::{Body, Frame, SizeHint};
use lastbyte_congestion::Time;
use lastbyte_http3::{Fields, Response};
use lastbyte_origin::times::RequestTimes;
use lastbyte_quic::stream::Source;

use super::{
    count,
    in_flight::{Connection, InFlight},
    observed::Observed,
    pace::Pace,
};
use crate::{
    access::{Ending, Record},
    exchange::{Notes, ResponsePart, channel::Receiver},
    tls::RECORD_CONTENT,
};

/// Bytes read from a source at a time. With the header of a DATA frame (9 bytes), they fill two TLS records; a frame of 16 KiB
/// would take a third, of 19 bytes.
const PIECE_LEN: u64 = 2 * RECORD_CONTENT as u64 - 9;

/// Fields that are added to a response: `alt-svc`, `connection` or `date`, `content-length`.
const OWN_FIELDS: usize = 3;

/// The body of a response.
pub(super) struct ResponseBody {
    kind: Kind,
    is_over: bool,
    /// Whether it fails with the next call: by then the earlier data has been sent.
    is_failing: bool,
    report: Report,
}

enum Kind {
    Empty,
    Source {
        source: Box<dyn Source>,
        at: u64,
    },
    /// The rest of a body that is in memory: pieces of it are lent.
    Shared(Bytes),
    /// The exchange, and the remaining length of the body, if the header announces it.
    Pieces {
        pieces: Receiver<ResponsePart>,
        left: Option<u64>,
    },
}

impl Kind {
    fn of(source: Box<dyn Source>) -> Self {
        match source.share() {
            Some(bytes) => Self::Shared(Bytes::from_owner(bytes)),
            None => Self::Source { source, at: 0 },
        }
    }
}

/// Receives the outcome of the response. Its request is in flight until then.
pub(super) struct Report {
    connection: Arc<Connection>,
    in_flight: Option<InFlight>,
    /// For the access log.
    record: Option<Box<Record>>,
    /// When the request arrived.
    began: Time,
    /// The index of its route.
    route: usize,
    /// The status of the response; 0 until it is known.
    status: u16,
    is_tunnel: bool,
    /// If a task responds.
    notes: Option<Arc<Notes>>,
    /// If a task of HTTP/2 sends it.
    pace: Option<Arc<Pace>>,
    observed: Option<Observed>,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All of it was passed on.
    Complete,
    /// The server, the upstream or a limit ended it.
    CutOff,
    /// Its client cancelled it, or closed the connection.
    Cancelled,
}

impl Report {
    pub(super) fn new(
        in_flight: InFlight,
        record: Option<Record>,
        observed: Option<Observed>,
    ) -> Self {
        let connection = Arc::clone(&in_flight.connection);
        Self {
            began: connection.clock.now(),
            connection,
            in_flight: Some(in_flight),
            record: record.map(Box::new),
            route: 0,
            status: 0,
            is_tunnel: false,
            notes: None,
            pace: None,
            observed,
        }
    }

    /// The index of the request's route.
    pub(super) const fn set_route(&mut self, route: usize) {
        self.route = route;
    }

    /// Of the task that responds.
    pub(super) fn set_notes(&mut self, notes: Arc<Notes>) {
        self.notes = Some(notes);
    }

    fn took(&self) -> Duration {
        self.connection.clock.now().since(self.began)
    }

    fn times(&self) -> &RequestTimes {
        let [http1, http2] = &self.connection.shared.counts.times;
        if self.is_http2() { http2 } else { http1 }
    }

    /// For the response that switches protocols: its outcome is that of the tunnel, which has the report.
    pub(super) fn of_switch(&self) -> Self {
        Self {
            connection: Arc::clone(&self.connection),
            in_flight: None,
            record: None,
            began: self.began,
            route: self.route,
            status: self.status,
            is_tunnel: false,
            notes: None,
            pace: None,
            observed: None,
        }
    }

    /// Of a tunnel: its status is 101 in all versions, in metrics and the access log.
    pub(super) const fn set_tunnel(&mut self) {
        self.is_tunnel = true;
    }

    /// Whether the response is sent over HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        self.connection.turns.is_some()
    }

    /// The header of the response.
    pub(super) fn on_response(&mut self, response: &Response) {
        self.status = match response.status() {
            200 if self.is_tunnel && self.is_http2() => 101,
            status => status,
        };
        self.times()
            .on_first_byte(self.route, self.status, self.took());
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.on_head(response);
        }
    }

    /// The announced length of the body.
    pub(super) fn on_content_length(&self, content_length: Option<u64>) {
        if let Some(observed) = &self.observed {
            observed.on_head(content_length);
        }
    }

    /// A piece of the body is passed on.
    pub(super) fn on_body(&mut self, len: usize) {
        if let Some(record) = self.record.as_deref_mut() {
            record.body_len += len as u64;
        }
        if let Some(observed) = &self.observed {
            observed.on_body(len);
        }
    }

    fn poll_turn(&self, context: &mut Context<'_>, lens: (usize, u64)) -> Poll<()> {
        self.in_flight
            .as_ref()
            .map_or(Poll::Ready(()), |it| it.poll_turn(context, lens))
    }

    /// The response was dropped before all of it was taken: the client does not want it, or does not take it in time.
    pub(super) fn drop_rest(&mut self) {
        let is_too_slow = self.pace.as_ref().is_some_and(|pace| pace.is_too_slow());
        let is_ours = is_too_slow || self.connection.is_ended_by_server();
        if self.in_flight.is_some() {
            self.connection.on_end(true);
        }
        self.finish(if is_ours { End::CutOff } else { End::Cancelled });
    }

    pub(super) fn finish(&mut self, end: End) {
        // At most once.
        if self.in_flight.take().is_none() {
            return;
        }
        let is_complete = end == End::Complete;
        let took = self.took();
        if is_complete {
            self.times().on_whole(self.route, self.status, took);
        }
        let shared = &self.connection.shared;
        if is_complete {
            self.connection.on_end(false);
        } else if end == End::CutOff && !self.connection.has_left() {
            count(&shared.counts.cut_off);
        }
        if let Some(observed) = &self.observed {
            observed.on_end(is_complete);
        }
        if let (Some(record), Some(access)) = (self.record.take(), &shared.access) {
            let mut record = *record;
            record.status = self.status;
            let routes = shared.handler.routes();
            let ending = Ending {
                took,
                is_complete,
                route: routes.get(self.route).map(String::as_str),
                notes: self.notes.as_deref(),
            };
            access.end(&record, ending);
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.drop_rest();
    }
}

impl ResponseBody {
    /// The progress of the task that sends it.
    pub(super) fn set_pace(&mut self, pace: Arc<Pace>) {
        self.report.pace = Some(pace);
    }

    pub(super) fn whole(source: Option<Box<dyn Source>>, report: Report) -> Self {
        report.on_content_length(Some(source.as_ref().map_or(0, |source| source.len())));
        Self::new(source.map_or(Kind::Empty, Kind::of), report)
    }

    /// A body of this length, if it is known.
    pub(super) fn pieces(pieces: Receiver<ResponsePart>, len: Option<u64>, report: Report) -> Self {
        Self::new(Kind::Pieces { pieces, left: len }, report)
    }

    const fn new(kind: Kind, report: Report) -> Self {
        Self {
            kind,
            is_over: false,
            is_failing: false,
            report,
        }
    }

    /// hyper and h2 drop unsent data when a body fails: they are given time to send it.
    fn fail(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !std::mem::replace(&mut self.is_failing, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let error = io::Error::other("the body ended early");
        Poll::Ready(Some(Err(error)))
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Source { source, at } => {
                let left = source.len() - *at;
                if left == 0 {
                    return Poll::Ready(None);
                }
                let len = left.min(PIECE_LEN) as usize;
                ready!(self.report.poll_turn(context, (len, left)));
                let mut piece = vec![0; len];
                if source.read_at(*at, &mut piece).is_err() {
                    return self.fail(context);
                }
                *at += piece.len() as u64;
                Poll::Ready(Some(Ok(Frame::data(piece.into()))))
            }
            Kind::Shared(rest) => {
                if rest.is_empty() {
                    return Poll::Ready(None);
                }
                let len = rest.len().min(PIECE_LEN as usize);
                ready!(self.report.poll_turn(context, (len, rest.len() as u64)));
                Poll::Ready(Some(Ok(Frame::data(rest.split_to(len)))))
            }
            Kind::Pieces { pieces, left } => loop {
                let (len, all) = ready!(pieces.poll_size(context));
                ready!(self.report.poll_turn(context, (len, all as u64)));
                return match pieces.poll_next(context) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Some(ResponsePart::Data(bytes))) => {
                        if let Some(left) = left {
                            *left = left.saturating_sub(bytes.len() as u64);
                        }
                        // Sent with the data.
                        if ends_now(pieces) {
                            self.kind = Kind::Empty;
                        }
                        Poll::Ready(Some(Ok(Frame::data(bytes))))
                    }
                    Poll::Ready(Some(ResponsePart::End(trailers))) => {
                        self.kind = Kind::Empty;
                        let is_http2 = self.report.is_http2();
                        let trailers = trailers.map(|fields| header_map(&fields, is_http2));
                        let frame = trailers.map(Frame::trailers);
                        Poll::Ready(frame.map(Ok))
                    }
                    // A header must not follow a header.
                    Poll::Ready(Some(_)) => continue,
                    Poll::Ready(None) => self.fail(context),
                };
            },
        }
    }
}

/// Takes the end of a response without trailers, if it is there.
pub(super) fn ends_now(pieces: &Receiver<ResponsePart>) -> bool {
    let is_end = |part: &ResponsePart| matches!(part, ResponsePart::End(None));
    pieces.next_if(is_end).is_some()
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let next = self.next(context);
        match &next {
            Poll::Ready(Some(Ok(frame))) => {
                let len = frame.data_ref().map_or(0, Bytes::len);
                self.report.on_body(len);
            }
            Poll::Ready(None) => {
                self.is_over = true;
                self.report.finish(End::Complete);
            }
            Poll::Ready(Some(Err(_))) => {
                self.is_over = true;
                self.report.finish(End::CutOff);
            }
            Poll::Pending => {}
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Source { source, at } => *at == source.len(),
            Kind::Shared(rest) => rest.is_empty(),
            // Trailers may follow.
            Kind::Pieces { .. } => self.is_over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Source { source, at } => SizeHint::with_exact(source.len() - at),
            Kind::Shared(rest) => SizeHint::with_exact(rest.len() as u64),
            Kind::Pieces { left, .. } => left.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if !self.is_over {
            // hyper stops polling once it has as many bytes as announced, or the end. Over HTTP/2, what was taken may not have
            // been sent: the body is polled to its end when it was.
            let has_all = matches!(self.kind, Kind::Pieces { left: Some(0), .. });
            if !self.report.is_http2() && (has_all || self.is_end_stream()) {
                self.report.finish(End::Complete);
            } else if self.is_failing {
                self.report.finish(End::CutOff);
            }
        }
    }
}

/// The fields in the type of `http`. Invalid ones are omitted, and so are those of a connection over HTTP/2 (RFC 9113 §8.2.2).
pub(super) fn header_map(fields: &Fields, is_http2: bool) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(fields.len() + OWN_FIELDS);
    for line in fields {
        if is_http2 && is_connection_specific(line.name) {
            continue;
        }
        let name = HeaderName::from_bytes(line.name.as_bytes());
        let value = HeaderValue::from_bytes(line.value);
        if let (Ok(name), Ok(mut value)) = (name, value) {
            value.set_sensitive(line.is_sensitive);
            map.append(name, value);
        }
    }
    map
}

fn is_connection_specific(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "te" | "transfer-encoding" | "upgrade"
    )
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_memory_is_lent_and_given_back() {
        let all: Arc<[u8]> = vec![7; 100_000].into();
        let Kind::Shared(mut rest) = Kind::of(Box::new(Arc::clone(&all))) else {
            panic!("a body in memory is not read");
        };
        let piece = rest.split_to(PIECE_LEN as usize);
        assert_eq!(piece.as_ptr(), all.as_ptr());
        assert_eq!(rest.as_ptr(), all[PIECE_LEN as usize..].as_ptr());
        drop((piece, rest));
        assert_eq!(Arc::strong_count(&all), 1);
    }

    #[test]
    fn a_body_that_is_not_in_memory_is_read() {
        let source: Box<dyn Source> = Box::new(vec![7; 10]);
        assert!(matches!(Kind::of(source), Kind::Source { at: 0, .. }));
    }
}
