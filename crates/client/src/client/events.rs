//! Handlers for events of QUIC and HTTP/3 connections.

use lastbyte_http3::Code;
use lastbyte_http3::{self as http3, ReadError};
use lastbyte_quic::{
    Time,
    close::CloseReason,
    connection::{Connection, Event},
    crypto::EarlyData,
    endpoint::Handle,
};
use lastbyte_wire::StreamId;

use super::Client;
use crate::{
    failure::Failure,
    fetch_state::Stop,
    head::{Head, Version},
    link::{Bodies, handshake_failure, reason},
    listener::{Handshake, Transport},
};

/// The result of a handshake.
pub(super) fn handshake(quic: &Connection) -> Handshake {
    let session = quic.session();
    Handshake {
        remote: quic.network().remote,
        version: Version::Http3,
        transport: Transport::Quic(quic.version()),
        tls: Some("TLS 1.3"),
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
                    self.fetches.all[*fetch].outcome.is_early = false;
                }
            }
            Event::NewToken(token) => {
                let origin = &self.servers.all[link.server].origin;
                self.memory.put_token(origin, token);
            }
            Event::Idle => link.http3.release_memory(),
            Event::Moved(path) => self.on_moved(handle, path),
            Event::PathFailed(path) => self.on_move_failed(handle, path),
            Event::Closed(close) => {
                let phrase = quic.close_phrase().to_owned();
                self.on_quic_closed(now, handle, Some(close), &phrase);
            }
            _ => {}
        }
    }

    /// Handles the end of a QUIC connection.
    pub(super) fn on_quic_closed(
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
            let attempts = self.servers.all[link.server].happy_eyeballs.as_ref();
            let after = attempts.map_or(self.settings.connect_timeout, |attempts| {
                now.since(attempts.start)
            });
            handshake_failure(close, phrase, &self.crypto.verifier, after)
        };
        let is_violation = matches!(close, Some(CloseReason::Local { .. }));
        self.on_link_closed(now, handle, failure, is_violation);
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
                    kept = self.fetches.on_interim(fetch, &head(&response));
                }
                link.http3.recycle(response.into_fields());
                self.record_stop(handle, stream, kept);
            }
            http3::Event::Response { stream, response } => {
                let fetch = fetch_of(stream);
                if let Some(fetch) = fetch
                    && response.status() == 421
                    && self.fetches.all[fetch].server != Some(link.server)
                {
                    self.on_misdirected(now, handle, quic, stream, fetch);
                    return;
                }
                if let Some(fetch) = fetch {
                    kept = self.fetches.on_head(now, fetch, &head(&response));
                }
                link.http3.recycle(response.into_fields());
                self.record_stop(handle, stream, kept);
            }
            http3::Event::Data { stream } => self.read(now, handle, quic, stream),
            http3::Event::Trailers { stream, fields } => {
                if let Some(fetch) = fetch_of(stream) {
                    kept = self.fetches.on_trailers(fetch, &fields);
                }
                link.http3.recycle(fields);
                self.record_stop(handle, stream, kept);
            }
            http3::Event::Finished { stream } => self.on_finished(now, handle, stream),
            http3::Event::Reset { stream, error, .. } => {
                link.uploads.remove(&stream);
                if let Some(fetch) = link.streams.remove(&stream) {
                    let is_refused = error.is_safe_to_retry();
                    if is_refused {
                        self.retire(handle);
                    }
                    let why = Failure::Response(format!("transfer failed: {error}"));
                    self.retry_or_end(now, fetch, is_refused, why);
                    self.close_if_unused(handle);
                }
            }
            http3::Event::SourceFailed { stream, .. } => {
                link.uploads.remove(&stream);
                if let Some(fetch) = link.streams.remove(&stream) {
                    let code = Code::REQUEST_CANCELLED;
                    link.http3.cancel(quic, now, stream, code);
                    self.end(now, fetch, Some(Failure::Read));
                }
            }
            http3::Event::Writable { .. } => self.write_uploads(now, handle, quic),
            http3::Event::RequestsAvailable => self.send_queued(now, handle, quic),
            http3::Event::Settings => {
                if let Some(settings) = link.http3.peer_settings() {
                    let origin = &self.servers.all[link.server].origin;
                    self.memory.put_settings(origin, settings);
                }
            }
            http3::Event::GoAway { .. } => {
                self.fetches
                    .listener
                    .on_disconnected(link.number, "the server accepts no more requests (GOAWAY)");
                self.retire(handle);
            }
            http3::Event::Failed(error) => {
                let why = format!("the server violated HTTP/3: {error}");
                self.on_link_closed(now, handle, Failure::Response(why), true);
            }
            // A stopped request body needs no action: the response decides. The other events do not concern a client.
            _ => {}
        }
    }

    /// Handles status 421: the server rejects requests for this origin on a shared connection (RFC 9110 §15.5.20).
    fn on_misdirected(
        &mut self,
        now: Time,
        handle: Handle,
        quic: &mut Connection,
        stream: StreamId,
        fetch: usize,
    ) {
        if let Some(link) = self.links.get_mut(&handle) {
            link.streams.remove(&stream);
            link.uploads.remove(&stream);
            link.http3
                .cancel(quic, now, stream, Code::REQUEST_CANCELLED);
        }
        if let Some(server) = self.fetches.all[fetch].server {
            self.servers.all[server].is_misdirected = true;
        }
        let what = "the server returned status 421 (Misdirected Request)".to_owned();
        self.retry_or_end(now, fetch, true, Failure::Response(what));
    }

    /// Reads body data that could not be passed on directly from its packet.
    fn read(&mut self, now: Time, handle: Handle, quic: &mut Connection, stream: StreamId) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let mut bodies = Bodies {
            streams: &link.streams,
            stopped: &mut link.stopped,
            fetches: &mut self.fetches,
        };
        let mut take = |bytes: &[u8]| http3::BodySink::body(&mut bodies, stream, bytes);
        // Errors are reported as separate events.
        let _: Result<usize, ReadError> = link.http3.read(quic, now, stream, &mut take);
    }

    fn on_finished(&mut self, now: Time, handle: Handle, stream: StreamId) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        if link.stopped.iter().any(|(stopped, _)| *stopped == stream) {
            return;
        }
        link.last_used = now;
        if let Some(fetch) = link.streams.remove(&stream) {
            link.uploads.remove(&stream);
            self.on_response_end(now, fetch);
        }
        self.close_if_unused(handle);
    }

    /// Closes a connection that accepts no more requests and has none in progress.
    fn close_if_unused(&mut self, handle: Handle) {
        if let Some(link) = self.links.get(&handle)
            && link.is_retired
            && link.streams.is_empty()
        {
            self.to_close.push(handle);
        }
    }

    fn record_stop(&mut self, handle: Handle, stream: StreamId, kept: Result<(), Stop>) {
        if let Err(stop) = kept
            && let Some(link) = self.links.get_mut(&handle)
        {
            link.stopped.push((stream, stop));
        }
    }

    /// Cancels the streams of responses that are no longer needed.
    pub(super) fn cancel_stopped(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let stopped = core::mem::take(&mut link.stopped);
        for (stream, stop) in stopped {
            let Some(link) = self.links.get_mut(&handle) else {
                return;
            };
            let code = Code::REQUEST_CANCELLED;
            link.http3.cancel(quic, now, stream, code);
            link.uploads.remove(&stream);
            if let Some(fetch) = link.streams.remove(&stream) {
                self.on_stopped(now, fetch, stop);
            }
        }
        self.close_if_unused(handle);
    }
}

fn head(response: &lastbyte_http3::Response) -> Head<'_> {
    Head {
        version: Version::Http3,
        response,
        reason: "",
    }
}
