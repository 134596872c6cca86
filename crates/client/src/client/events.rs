//! What connections tell, and what follows from it.

use lastbyte_http3::{self as http3, ReadError};
use lastbyte_quic::{close::CloseReason, crypto::EarlyData};
use lastbyte_wire::StreamId;

use super::{Client, Code, Connection, Event, Handle, Time, handshake_failure, reason};
use crate::{Failure, Handshake, link::Bodies};

/// What a handshake came to.
pub(super) fn handshake(quic: &Connection) -> Handshake {
    let session = quic.session();
    Handshake {
        remote: quic.network().remote,
        version: quic.version(),
        cipher_suite: session.cipher_suite(),
        is_resumed: session.is_resumed() == Some(true),
        early_data: match session.early_data() {
            EarlyData::Unavailable => None,
            EarlyData::Accepted => Some(true),
            EarlyData::Offered | EarlyData::Rejected => Some(false),
        },
        certificate: session.peer_certificate().map(<[u8]>::to_vec),
    }
}

impl Client<'_> {
    pub(super) fn on_transport_event(
        &mut self,
        now: Time,
        handle: Handle,
        quic: &mut Connection,
        event: Event,
    ) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        match event {
            Event::HandshakeComplete => self.on_link_open(now, handle, quic),
            Event::ZeroRtt { is_accepted: false } => {
                link.http3.on_zero_rtt_rejected();
                for fetch in link.streams.values() {
                    self.outcomes[*fetch].is_early = false;
                }
            }
            Event::NewToken(token) => {
                let origin = &self.origins[link.origin].origin;
                self.memory.put_token(origin, token);
            }
            Event::Closed(close) => {
                let phrase = quic.close_phrase().to_owned();
                self.on_over(now, handle, Some(close), &phrase);
            }
            _ => {}
        }
    }

    /// A connection is over.
    pub(super) fn on_over(
        &mut self,
        now: Time,
        handle: Handle,
        close: Option<CloseReason>,
        phrase: &str,
    ) {
        let Some(link) = self.links.get(&handle) else {
            return;
        };
        let failure = if link.is_open {
            Failure::Response(reason(close, phrase))
        } else {
            let after = self.settings.connect_timeout;
            handshake_failure(close, phrase, &self.crypto.verifier, after)
        };
        self.on_link_over(now, handle, failure);
    }

    pub(super) fn on_event(
        &mut self,
        now: Time,
        handle: Handle,
        quic: &mut Connection,
        event: http3::Event,
    ) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let fetch_of = |stream: StreamId| link.streams.get(&stream).copied();
        let mut kept = Ok(());
        match event {
            http3::Event::Informational { stream, response } => {
                if let Some(fetch) = fetch_of(stream) {
                    kept = self.listener.on_interim(fetch, &response);
                }
                link.http3.recycle(response.into_fields());
                self.refuse_unkept(handle, stream, kept);
            }
            http3::Event::Response { stream, response } => {
                if let Some(fetch) = fetch_of(stream) {
                    let outcome = &mut self.outcomes[fetch];
                    outcome.status = Some(response.status());
                    outcome.timing.head = Some(now);
                    kept = self.listener.on_head(fetch, &response);
                }
                link.http3.recycle(response.into_fields());
                self.refuse_unkept(handle, stream, kept);
            }
            http3::Event::Data { stream } => self.read(now, handle, quic, stream),
            http3::Event::Trailers { stream, fields } => {
                if let Some(fetch) = fetch_of(stream) {
                    kept = self.listener.on_trailers(fetch, &fields);
                }
                link.http3.recycle(fields);
                self.refuse_unkept(handle, stream, kept);
            }
            http3::Event::Finished { stream } => self.on_finished(now, handle, stream),
            http3::Event::Reset { stream, error } => {
                if let Some(fetch) = link.streams.remove(&stream) {
                    let is_refused = error.is_safe_to_retry();
                    if is_refused {
                        self.retire(handle);
                    }
                    let why = format!("the transfer failed: {error}");
                    self.retry_or_end(now, fetch, is_refused, why);
                    self.close_if_unused(handle);
                }
            }
            http3::Event::SourceFailed { stream, .. } => {
                if let Some(fetch) = link.streams.remove(&stream) {
                    let code = Code::REQUEST_CANCELLED;
                    link.http3.cancel(quic, now, stream, code);
                    self.end(now, fetch, Some(Failure::Read));
                }
            }
            http3::Event::RequestsAvailable => self.launch(now, handle, quic),
            http3::Event::Settings => {
                if let Some(settings) = link.http3.peer_settings() {
                    let origin = &self.origins[link.origin].origin;
                    self.memory.put_settings(origin, settings);
                }
            }
            http3::Event::GoAway { .. } => {
                self.listener
                    .on_disconnected(link.number, "the server takes no more requests (GOAWAY)");
                self.retire(handle);
            }
            http3::Event::Failed(error) => {
                let why = format!("the server broke a rule of HTTP/3: {error}");
                self.on_link_over(now, handle, Failure::Response(why));
            }
            // Stopped: the response says the rest. Others are of no consequence to a client that fetches.
            _ => {}
        }
    }

    /// Body that was not at hand when its packet was.
    fn read(&mut self, now: Time, handle: Handle, quic: &mut Connection, stream: StreamId) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let mut bodies = Bodies {
            streams: &link.streams,
            refused: &mut link.refused,
            progress: &mut self.outcomes,
            listener: self.listener,
        };
        let mut take = |bytes: &[u8]| http3::BodySink::body(&mut bodies, stream, bytes);
        // What is wrong is told as an event of its own.
        let _: Result<usize, ReadError> = link.http3.read(quic, now, stream, &mut take);
    }

    fn on_finished(&mut self, now: Time, handle: Handle, stream: StreamId) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        if link.refused.iter().any(|(refused, _)| *refused == stream) {
            return;
        }
        if let Some(fetch) = link.streams.remove(&stream) {
            let kept = self.listener.on_end(fetch);
            self.end(now, fetch, kept.err().map(Failure::Write));
        }
        self.close_if_unused(handle);
    }

    /// A connection that takes no more requests, and has none, is closed.
    fn close_if_unused(&mut self, handle: Handle) {
        if let Some(link) = self.links.get(&handle)
            && link.is_retired
            && link.streams.is_empty()
        {
            self.to_close.push(handle);
        }
    }

    fn refuse_unkept(&mut self, handle: Handle, stream: StreamId, kept: std::io::Result<()>) {
        if let Err(error) = kept
            && let Some(link) = self.links.get_mut(&handle)
        {
            link.refused.push((stream, error));
        }
    }

    /// Gives up the fetches whose content could not be kept.
    pub(super) fn cancel_refused(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let refused = core::mem::take(&mut link.refused);
        for (stream, error) in refused {
            let Some(link) = self.links.get_mut(&handle) else {
                return;
            };
            let code = Code::REQUEST_CANCELLED;
            link.http3.cancel(quic, now, stream, code);
            if let Some(fetch) = link.streams.remove(&stream) {
                self.end(now, fetch, Some(Failure::Write(error)));
            }
        }
        self.close_if_unused(handle);
    }

    /// Nothing more is begun.
    pub(super) fn interrupt(&mut self, now: Time) {
        while self.next < self.fetches.len() {
            let fetch = self.next;
            self.next += 1;
            self.active.insert(fetch);
            self.end(now, fetch, Some(Failure::Interrupted));
        }
    }
}
