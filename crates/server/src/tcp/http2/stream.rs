//! The response to one request over HTTP/2.
//!
//! Owns interim responses (RFC 9110 §15.2), the header, the pieces of a body that wait for room in the client's window, and the end
//! of the stream: on the header of a response without a body, and on the last data if the end is known with it.

use std::{
    future::poll_fn,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use http::header;
use hyper::body::Body;
use lastbyte_http3::Response;
use tokio::time;

use crate::{
    exchange::{Channels, Piece, ResponsePart, exchange},
    handler::{HandlerResponse, Task, Version},
    tcp::{
        body::{Report, ResponseBody},
        in_flight::{Connection, InFlight},
        interim::INTERIM_MAX,
        pace::{Pace, PacedExecutor},
        request::{self, Received, begin, finish, head, poll_final, whole},
        request_body::{RequestBody, discard, forward, forward_tunnel},
    },
};

/// A request, before the handler has seen it.
pub(super) struct Accepted {
    in_flight: InFlight,
    request: http::Request<RecvStream>,
    reply: Reply,
}

impl Accepted {
    pub(super) fn new(
        in_flight: InFlight,
        request: http::Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) -> Self {
        Self {
            in_flight,
            request,
            reply: Reply {
                respond,
                interim_count: 0,
            },
        }
    }

    /// Responds, by tasks of the executor unless all of it can be passed to h2 at once.
    pub(super) fn respond(self, context: &mut Context<'_>, executor: &PacedExecutor) {
        let Self {
            in_flight,
            request,
            reply,
        } = self;
        let connection = Arc::clone(&in_flight.connection);
        let (head, body) = request.into_parts();
        let Received {
            reply: response,
            report,
            is_head,
            is_tunnel,
            is_expecting,
        } = request::receive(in_flight, &head, Version::Http2);
        let body = RequestBody::Http2(body, connection.body_read.clone());
        let response = match response {
            HandlerResponse::Task(task) => {
                executor.execute(|pace| async move {
                    let expected = is_expecting && !body.is_end();
                    let body = (body, expected, is_tunnel);
                    if let Some(sending) =
                        run(&connection, task, body, reply, (report, is_head)).await
                    {
                        sending.paced(pace).await;
                    }
                });
                return;
            }
            response => response,
        };
        // One that waits for `100 Continue` is not sent. The stream of one that is not read is reset with `NO_ERROR` after the
        // response (RFC 9113 §8.1).
        if !is_expecting && !body.is_end() {
            let connection = Arc::clone(&connection);
            tokio::spawn(async move { discard(&connection.shared, Some(body)).await });
        }
        let (hint, delay, answer) = match response {
            HandlerResponse::Now(answer) => {
                let response = whole(answer, report);
                let Some(mut sending) = reply.send(&connection, response) else {
                    return;
                };
                if Pin::new(&mut sending).poll(context).is_pending() {
                    executor.execute(|pace| sending.paced(pace));
                }
                return;
            }
            HandlerResponse::After(delay, answer) => (None, delay, answer),
            HandlerResponse::Hinted(hint, delay, answer) => (Some(hint), delay, answer),
            // See above.
            HandlerResponse::Task(_) => return,
        };
        executor.execute(|pace| async move {
            let mut reply = reply;
            if let Some(hint) = hint {
                reply.inform(&hint);
            }
            if reply.is_reset_within(delay).await {
                return;
            }
            let response = whole(answer(), report);
            if let Some(sending) = reply.send(&connection, response) {
                sending.paced(pace).await;
            }
        });
    }
}

/// Responds piece by piece. Returns the response from its header on, unless the stream was reset.
async fn run(
    connection: &Arc<Connection>,
    task: Task,
    (body, is_expected, is_tunnel): (RequestBody, bool, bool),
    mut reply: Reply,
    (mut report, is_head): (Report, bool),
) -> Option<Sending<ResponseBody>> {
    let (exchange, channels) = exchange(&connection.budget);
    task(exchange);
    let Channels {
        incoming,
        outgoing,
        notes,
    } = channels;
    report.set_notes(notes);
    let mut unread = None;
    if body.is_end() {
        incoming.push(Piece::End);
    } else if is_tunnel {
        tokio::spawn(forward_tunnel(body, incoming));
    } else if is_expected {
        unread = Some((body, incoming));
    } else {
        tokio::spawn(forward(Arc::clone(connection), body, incoming));
    }
    let part = poll_fn(|context| {
        if reply.respond.poll_reset(context).is_ready() {
            return Poll::Ready(None);
        }
        let is_awaited = |(_, incoming): &mut (_, crate::exchange::channel::Sender<Piece>)| {
            incoming.poll_awaited(context) == Poll::Ready(Ok(()))
        };
        if let Some((body, incoming)) = unread.take_if(is_awaited) {
            reply.inform(&Response::new(100));
            tokio::spawn(forward(Arc::clone(connection), body, incoming));
        }
        poll_final(&outgoing, context, |response| reply.inform(response)).map(Some)
    })
    .await?;
    // The header is a final response, after which the client may send the body too.
    if let (Some((body, incoming)), Some(ResponsePart::Head(_))) = (unread, &part) {
        tokio::spawn(forward(Arc::clone(connection), body, incoming));
    }
    reply.send(connection, begin(part, outgoing, report, is_head))
}

/// A response before its header.
struct Reply {
    respond: SendResponse<Bytes>,
    interim_count: u32,
}

impl Reply {
    /// Sends an interim response.
    fn inform(&mut self, response: &Response) {
        // Those that a client does not read are in memory. 101 is not for HTTP/2 (RFC 9113 §8.6).
        if self.interim_count == INTERIM_MAX || response.status() == 101 {
            return;
        }
        self.interim_count += 1;
        // One that is invalid is omitted, as its fields would be.
        let _ = self.respond.send_informational(head(response, true));
    }

    /// Waits. Returns whether the client resets the stream before that.
    async fn is_reset_within(&mut self, delay: Duration) -> bool {
        let reset = poll_fn(|context| self.respond.poll_reset(context).map(drop));
        time::timeout(delay, reset).await.is_ok()
    }

    /// Sends the header. Returns the body, if it has one, and unless the stream was reset.
    fn send(
        mut self,
        connection: &Connection,
        response: http::Response<ResponseBody>,
    ) -> Option<Sending<ResponseBody>> {
        let mut response = finish(connection, response, false);
        let len = response.body().size_hint().exact();
        let is_end = response.body().is_end_stream();
        let fields = response.headers_mut();
        // RFC 9110 §6.6.1
        fields
            .entry(header::DATE)
            .or_insert_with(|| connection.shared.date.now());
        if let Some(len) = len.filter(|_| !is_end) {
            fields
                .entry(header::CONTENT_LENGTH)
                .or_insert_with(|| len.into());
        }
        Sending::start(&mut self.respond, response)
    }
}

/// Polls a body to its end, which was sent with its last data or with the header: the response is complete.
fn on_last_sent<B: Body + Unpin>(body: &mut B) {
    let _ = Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()));
}

impl Sending<ResponseBody> {
    /// As a task whose progress is observed.
    fn paced(mut self, pace: Arc<Pace>) -> Self {
        if let Some((bytes, _)) = &self.piece {
            pace.on_wait(bytes.len());
        }
        self.body.set_pace(Arc::clone(&pace));
        self.pace = Some(pace);
        self
    }
}

/// A response from its header on.
pub(in crate::tcp) struct Sending<B> {
    stream: SendStream<Bytes>,
    body: B,
    /// The piece that waits for room in the client's window, and whether it is the last.
    piece: Option<(Bytes, bool)>,
    pace: Option<Arc<Pace>>,
}

impl<B: Body<Data = Bytes> + Unpin> Sending<B> {
    /// Sends the header, and the end if there is no body.
    pub(in crate::tcp) fn start(
        respond: &mut SendResponse<Bytes>,
        response: http::Response<B>,
    ) -> Option<Self> {
        let (head, mut body) = response.into_parts();
        let is_end = body.is_end_stream();
        let head = http::Response::from_parts(head, ());
        let Ok(stream) = respond.send_response(head, is_end) else {
            // The client has reset the stream, or the handler's header is invalid.
            respond.send_reset(Reason::INTERNAL_ERROR);
            return None;
        };
        if is_end {
            on_last_sent(&mut body);
            return None;
        }
        Some(Self {
            stream,
            body,
            piece: None,
            pace: None,
        })
    }

    /// Whether there is room in the client's window, or an error.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Option<()>> {
        while self.stream.capacity() == 0 {
            match ready!(self.stream.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(()))
    }

    fn wait_for_room(&mut self, (bytes, is_last): (Bytes, bool)) {
        if let Some(pace) = &self.pace {
            pace.on_wait(bytes.len());
        }
        self.stream.reserve_capacity(bytes.len());
        self.piece = Some((bytes, is_last));
    }

    /// Ready with `None` when the response is over.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<()>> {
        if let Some((mut bytes, is_last)) = mem::take(&mut self.piece) {
            match self.poll_room(context) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    self.piece = Some((bytes, is_last));
                    return Poll::Pending;
                }
            }
            // The rest waits here, where the time that it takes is observed.
            let part = bytes.split_to(bytes.len().min(self.stream.capacity()));
            if let Some(pace) = &self.pace {
                pace.on_wait(part.len());
                pace.on_room();
            }
            let is_last_part = is_last && bytes.is_empty();
            if self.stream.send_data(part, is_last_part).is_err() {
                return Poll::Ready(None);
            }
            if is_last_part {
                on_last_sent(&mut self.body);
                return Poll::Ready(None);
            }
            if !bytes.is_empty() {
                self.wait_for_room((bytes, is_last));
            }
            return Poll::Ready(Some(()));
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            let _ = self.stream.send_data(Bytes::new(), true);
            return Poll::Ready(None);
        };
        let Ok(frame) = frame else {
            self.stream.send_reset(Reason::INTERNAL_ERROR);
            return Poll::Ready(None);
        };
        match frame.into_data() {
            Ok(bytes) => {
                let is_last = self.body.is_end_stream();
                self.wait_for_room((bytes, is_last));
            }
            Err(frame) => {
                // The part of the window that no data needs.
                self.stream.reserve_capacity(0);
                let trailers = frame.into_trailers().unwrap_or_default();
                if self.stream.send_trailers(trailers).is_ok() {
                    on_last_sent(&mut self.body);
                }
                return Poll::Ready(None);
            }
        }
        Poll::Ready(Some(()))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Future for Sending<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        // It also wakes the task when the client resets the stream.
        if this.stream.poll_reset(context).is_ready() {
            return Poll::Ready(());
        }
        while ready!(this.poll_next(context)).is_some() {}
        Poll::Ready(())
    }
}
