//! QUIC connections and their requests.

use core::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use lastbyte_http3::{self as http3, Body, Code, RequestError};
use lastbyte_quic::{
    Time,
    connection::{Connection, NetworkPath},
    endpoint::{Endpoint, Handle},
};
use lastbyte_wire::StreamId;
use tokio::sync::mpsc::error::TryRecvError;

use super::{Client, events};
use crate::{
    failure::Failure,
    fetch::{SharedSource, Upload},
    head::Version,
    link::{Link, Source, StreamUpload},
    upload,
};

impl Client<'_> {
    /// Sends the requests queued for this connection, up to the server's limit.
    pub(super) fn send_queued(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        loop {
            let Some(link) = self.links.get_mut(&handle) else {
                return;
            };
            let Some(&fetch) = link.queue.front() else {
                return;
            };
            if !self.active.contains(&fetch) {
                link.queue.pop_front();
                continue;
            }
            let it = &mut self.fetches.all[fetch];
            let is_early = !link.is_open;
            if is_early && !(quic.is_zero_rtt() && it.current.is_safe()) {
                return;
            }
            let request = it.http_request(Version::Http3);
            let (body, reader) = match &it.current.upload {
                None => (Body::Empty, None),
                Some(Upload::Source(source)) => {
                    let sent = it.upload_sent.insert(Arc::default());
                    let source = SharedSource::new(Arc::clone(source), Arc::clone(sent));
                    (Body::Source(Box::new(source)), None)
                }
                Some(Upload::Stream(stream)) => (Body::Follows, Some(stream.clone())),
            };
            match link.http3.request(quic, &request, body) {
                Ok(stream) => {
                    link.queue.pop_front();
                    link.streams.insert(stream, fetch);
                    link.last_used = now;
                    let outcome = &mut it.outcome;
                    outcome.connection = Some(link.number);
                    outcome.is_early = is_early;
                    outcome.sent = 0;
                    outcome.timing.request = Some(now);
                    outcome.timing.connect = link.started.take();
                    if outcome.timing.connect.is_some() {
                        outcome.timing.connected = link.opened;
                    }
                    let (number, server) = (link.number, link.server);
                    self.fetches
                        .on_request(fetch, number, Version::Http3, &request);
                    self.charge_lookup(fetch, server);
                    if let Some(reader) = reader {
                        self.start_upload(now, handle, quic, stream, fetch, &reader);
                    }
                }
                Err(RequestError::Blocked) => return,
                Err(RequestError::GoingAway) => {
                    self.retire(handle);
                    return;
                }
                Err(error) => {
                    link.queue.pop_front();
                    let what = format!("cannot send the request: {error}");
                    self.end(now, fetch, Some(Failure::Request(what)));
                }
            }
        }
    }

    /// Adds the times of the lookup to the first fetch that waited for it.
    pub(super) fn charge_lookup(&mut self, fetch: usize, server: usize) {
        let server = &mut self.servers.all[server];
        if server.is_lookup_charged {
            return;
        }
        server.is_lookup_charged = true;
        if let Some(resolution) = &server.resolution {
            let timing = &mut self.fetches.all[fetch].outcome.timing;
            timing.lookup = Some(resolution.lookup.start);
            timing.resolved = resolution.lookup.end;
        }
    }

    // ---- uploads of unknown length -----------------------------------------------------------------------------------

    fn start_upload(
        &mut self,
        now: Time,
        handle: Handle,
        quic: &mut Connection,
        stream: StreamId,
        fetch: usize,
        reader: &crate::fetch::Stream,
    ) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let Some(reader) = reader.take() else {
            link.http3
                .cancel(quic, now, stream, Code::REQUEST_CANCELLED);
            link.streams.remove(&stream);
            self.end(now, fetch, Some(Failure::Rewind));
            return;
        };
        let source = upload::read(
            reader,
            self.mailbox.sender(|()| super::Event::UploadReadable),
        );
        let rest = Bytes::new();
        link.uploads.insert(stream, StreamUpload { source, rest });
    }

    /// Writes data of the uploads to their streams, up to the limits of flow control.
    pub(super) fn write_uploads(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let mut over = Vec::new();
        for (stream, upload) in &mut link.uploads {
            let fetch = link.streams.get(stream).copied();
            loop {
                if upload.rest.is_empty() {
                    match upload.source.try_recv() {
                        Ok(Ok(piece)) => upload.rest = piece,
                        Ok(Err(_)) => {
                            over.push((*stream, fetch));
                            break;
                        }
                        Err(TryRecvError::Empty) => break,
                        Err(TryRecvError::Disconnected) => {
                            // Errors of the stream are reported as separate events.
                            let _ = link.http3.finish(quic, *stream);
                            over.push((*stream, None));
                            break;
                        }
                    }
                }
                match link.http3.write(quic, *stream, &upload.rest) {
                    Ok(0) => break,
                    Ok(taken) => {
                        upload.rest.advance(taken);
                        if let Some(fetch) = fetch {
                            self.fetches.all[fetch].outcome.sent += taken as u64;
                        }
                    }
                    Err(_) => {
                        over.push((*stream, None));
                        break;
                    }
                }
            }
        }
        for (stream, failed) in over {
            let Some(link) = self.links.get_mut(&handle) else {
                return;
            };
            link.uploads.remove(&stream);
            if let Some(fetch) = failed {
                link.http3
                    .cancel(quic, now, stream, Code::REQUEST_CANCELLED);
                link.streams.remove(&stream);
                self.end(now, fetch, Some(Failure::Read));
            }
        }
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    /// Sends no more requests on a connection. The requests in its queue move to another.
    pub(super) fn retire(&mut self, handle: Handle) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        link.is_retired = true;
        let queue = core::mem::take(&mut link.queue);
        let server = &mut self.servers.all[link.server];
        if server.link == Some(handle) {
            server.link = None;
        }
        if link.streams.is_empty() {
            self.to_close.push(handle);
        }
        self.requeue(queue);
    }

    /// Handles the end of a connection and of all requests on it. If the server has violated a protocol, it would do so again,
    /// and no request is repeated.
    pub(super) fn on_link_closed(
        &mut self,
        now: Time,
        handle: Handle,
        failure: Failure,
        is_violation: bool,
    ) {
        let Some(link) = self.links.remove(&handle) else {
            return;
        };
        let server = &mut self.servers.all[link.server];
        if server.link == Some(handle) {
            server.link = None;
        }
        self.requeue(link.queue);
        let why = failure.to_string();
        self.fetches.listener.on_disconnected(link.number, &why);
        if link.is_open {
            for (_, fetch) in link.streams {
                let may_retry = !is_violation && self.fetches.all[fetch].current.is_safe();
                self.retry_or_end(now, fetch, may_retry, Failure::Response(why.clone()));
            }
            return;
        }
        // Requests sent in 0-RTT move to the attempt that succeeds.
        self.requeue(link.streams.into_values());
        if let Some(attempts) = &mut self.servers.all[link.server].happy_eyeballs {
            attempts.on_failed(Some(handle), failure);
        }
    }

    /// Handles a completed handshake.
    pub(super) fn on_link_open(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let handshake = events::handshake(quic);
        link.is_open = true;
        link.opened = Some(now);
        link.remote = Some(handshake.remote);
        link.certificate.clone_from(&handshake.certificate);
        link.source = Source::towards(handshake.remote);
        let server = &mut self.servers.all[link.server];
        link.queue.extend(server.waiting.drain(..));
        self.memory
            .put_remote(&server.origin, quic.network().remote);
        for fetch in link.streams.values() {
            self.fetches.all[*fetch].outcome.timing.connected = Some(now);
        }
        let (number, server) = (link.number, link.server);
        self.on_quic_won(server, handle);
        self.fetches.listener.on_connected(number, &handshake);
        self.send_queued(now, handle, quic);
    }

    /// Starts a connection attempt to one address.
    pub(super) fn attempt(
        &mut self,
        now: Time,
        number: usize,
        remote: SocketAddr,
        endpoint: &mut Endpoint,
    ) {
        let server = &mut self.servers.all[number];
        let path = NetworkPath {
            local: self.local,
            remote,
        };
        let connected = endpoint.connect(
            now,
            path,
            &server.origin.host,
            &self.transport,
            Arc::clone(&self.crypto.client),
            self.memory.take_token(&server.origin),
        );
        let Some(attempts) = &mut server.happy_eyeballs else {
            return;
        };
        let handle = match connected {
            Ok(handle) => handle,
            Err(error) => {
                let what = format!("cannot connect to {remote}: {error}");
                attempts.on_failed(None, Failure::Connect(what));
                return;
            }
        };
        let Some(quic) = endpoint.connection(handle) else {
            return;
        };
        let connection = self.connections;
        self.connections += 1;
        let listener = &mut *self.fetches.listener;
        listener.on_quic_connecting(connection, &server.origin, remote);
        if let Some(trace) = listener.trace(now, connection) {
            quic.set_trace(trace);
        }
        let mut http3 = http3::Connection::client(&self.settings.http3);
        let remembered = self.memory.settings(&server.origin);
        let is_early = quic.is_zero_rtt() && remembered.is_some();
        if is_early && let Some(remembered) = remembered {
            http3 = http3.with_remembered(remembered);
        }
        attempts.on_started(now, handle, remote, is_early);
        attempts.wait_until(now + self.settings.attempt_delay);
        let mut link = Link::new(connection, number, now, http3);
        if is_early {
            link.queue.extend(server.waiting.drain(..));
        }
        self.links.insert(handle, link);
        if is_early {
            self.send_queued(now, handle, quic);
        }
    }

    /// Closes a connection. Its requests wait for another.
    pub(super) fn drop_link(&mut self, now: Time, handle: Handle, endpoint: &mut Endpoint) {
        let Some(mut link) = self.links.remove(&handle) else {
            return;
        };
        if let Some(quic) = endpoint.connection(handle) {
            link.http3.close(quic, now, Code::NO_ERROR);
        }
        self.requeue(link.queue);
        for fetch in link.streams.into_values() {
            self.fetches.all[fetch].reset_attempt();
            self.requeue([fetch]);
        }
    }
}
