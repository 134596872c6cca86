//! Connections over QUIC, and the requests on them.

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
    link::{Link, Pump},
    upload,
};

impl Client<'_> {
    /// Sends the requests that wait for this connection, as many as the server permits.
    pub(super) fn launch(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        loop {
            let Some(link) = self.links.get_mut(&handle) else {
                return;
            };
            let Some(&job) = link.queue.front() else {
                return;
            };
            if !self.active.contains(&job) {
                link.queue.pop_front();
                continue;
            }
            let it = &mut self.jobs.all[job];
            let is_early = !link.is_open;
            if is_early && !(quic.is_zero_rtt() && it.fetch.is_safe()) {
                return;
            }
            let request = it.request(self.memory);
            let (body, reader) = match &it.fetch.upload {
                None => (Body::Empty, None),
                Some(Upload::Source(source)) => {
                    let source = SharedSource(Arc::clone(source));
                    (Body::Source(Box::new(source)), None)
                }
                Some(Upload::Stream(stream)) => (Body::Follows, Some(stream.clone())),
            };
            let sent = it.fetch.upload.as_ref().and_then(Upload::len);
            match link.http3.request(quic, &request, body) {
                Ok(stream) => {
                    link.queue.pop_front();
                    link.streams.insert(stream, job);
                    link.last_used = now;
                    let outcome = &mut it.outcome;
                    outcome.connection = Some(link.number);
                    outcome.is_early = is_early;
                    outcome.sent = sent.unwrap_or(0);
                    outcome.timing.request = Some(now);
                    outcome.timing.connect = link.begin.take();
                    if outcome.timing.connect.is_some() {
                        outcome.timing.connected = link.opened;
                    }
                    let (number, server) = (link.number, link.server);
                    self.jobs.on_request(job, number, Version::Http3, &request);
                    self.charge_lookup(job, server);
                    if let Some(reader) = reader {
                        self.begin_pump(now, handle, quic, stream, job, &reader);
                    }
                }
                Err(RequestError::Blocked) => return,
                Err(RequestError::GoingAway) => {
                    self.retire(handle);
                    return;
                }
                Err(error) => {
                    link.queue.pop_front();
                    let what = format!("the request cannot be sent: {error}");
                    self.end(now, job, Some(Failure::Request(what)));
                }
            }
        }
    }

    /// A fetch is told of the lookup that it waited for, if nobody was before.
    pub(super) fn charge_lookup(&mut self, job: usize, server: usize) {
        let server = &mut self.servers.all[server];
        if server.is_lookup_charged {
            return;
        }
        server.is_lookup_charged = true;
        if let Some(resolution) = &server.resolution {
            let timing = &mut self.jobs.all[job].outcome.timing;
            timing.lookup = Some(resolution.lookup.begin);
            timing.resolved = resolution.lookup.end;
        }
    }

    // ---- what is sent as it is read ----------------------------------------------------------------------------------

    fn begin_pump(
        &mut self,
        now: Time,
        handle: Handle,
        quic: &mut Connection,
        stream: StreamId,
        job: usize,
        reader: &crate::fetch::Stream,
    ) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let Some(reader) = reader.take() else {
            link.http3
                .cancel(quic, now, stream, Code::REQUEST_CANCELLED);
            link.streams.remove(&stream);
            self.end(now, job, Some(Failure::Rewind));
            return;
        };
        let source = upload::read(
            reader,
            self.mailbox.sender(|()| super::Event::UploadReadable),
        );
        let rest = Bytes::new();
        link.pumps.insert(stream, Pump { source, rest });
    }

    /// Sends what was read, as far as there is room.
    pub(super) fn pump(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let mut over = Vec::new();
        for (stream, pump) in &mut link.pumps {
            let job = link.streams.get(stream).copied();
            loop {
                if pump.rest.is_empty() {
                    match pump.source.try_recv() {
                        Ok(Ok(piece)) => pump.rest = piece,
                        Ok(Err(_)) => {
                            over.push((*stream, job));
                            break;
                        }
                        Err(TryRecvError::Empty) => break,
                        Err(TryRecvError::Disconnected) => {
                            // What is wrong with the stream is told as an event of its own.
                            let _ = link.http3.finish(quic, *stream);
                            over.push((*stream, None));
                            break;
                        }
                    }
                }
                match link.http3.write(quic, *stream, &pump.rest) {
                    Ok(0) => break,
                    Ok(taken) => {
                        pump.rest.advance(taken);
                        if let Some(job) = job {
                            self.jobs.all[job].outcome.sent += taken as u64;
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
            link.pumps.remove(&stream);
            if let Some(job) = failed {
                link.http3
                    .cancel(quic, now, stream, Code::REQUEST_CANCELLED);
                link.streams.remove(&stream);
                self.end(now, job, Some(Failure::Read));
            }
        }
    }

    // ---- connections -------------------------------------------------------------------------------------------------

    /// A connection takes no more requests; those that wait for it go to another.
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

    /// A connection is over, and all on it.
    pub(super) fn on_link_over(&mut self, now: Time, handle: Handle, failure: Failure) {
        let Some(link) = self.links.remove(&handle) else {
            return;
        };
        let server = &mut self.servers.all[link.server];
        if server.link == Some(handle) {
            server.link = None;
        }
        self.requeue(link.queue);
        let why = failure.to_string();
        self.jobs.listener.on_disconnected(link.number, &why);
        if link.is_open {
            for (_, job) in link.streams {
                let is_safe = self.jobs.all[job].fetch.is_safe();
                self.retry_or_end(now, job, is_safe, Failure::Response(why.clone()));
            }
            return;
        }
        // What was sent in 0-RTT is for whoever answers.
        self.requeue(link.streams.into_values());
        if let Some(attempts) = &mut self.servers.all[link.server].happy_eyeballs {
            attempts.on_failed(Some(handle), failure);
        }
    }

    /// A handshake is complete.
    pub(super) fn on_link_open(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        let Some(link) = self.links.get_mut(&handle) else {
            return;
        };
        let handshake = events::handshake(quic);
        link.is_open = true;
        link.opened = Some(now);
        link.remote = Some(handshake.remote);
        link.certificate.clone_from(&handshake.certificate);
        let server = &mut self.servers.all[link.server];
        link.queue.extend(server.waiting.drain(..));
        self.memory
            .put_remote(&server.origin, quic.network().remote);
        for job in link.streams.values() {
            self.jobs.all[*job].outcome.timing.connected = Some(now);
        }
        let (number, server) = (link.number, link.server);
        self.on_quic_won(server, handle);
        self.jobs.listener.on_connected(number, &handshake);
        self.launch(now, handle, quic);
    }

    /// Tries one address.
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
        let listener = &mut *self.jobs.listener;
        listener.on_connecting(connection, &server.origin, remote);
        if let Some(trace) = listener.trace(now, connection) {
            quic.set_trace(trace);
        }
        let mut http3 = http3::Connection::client(&self.settings.http3);
        let remembered = self.memory.settings(&server.origin);
        let is_early = quic.is_zero_rtt() && remembered.is_some();
        if is_early && let Some(remembered) = remembered {
            http3 = http3.with_remembered(remembered);
        }
        attempts.on_begun(now, handle, remote, is_early);
        attempts.wait_until(now + self.settings.attempt_delay);
        let mut link = Link::new(connection, number, now, http3);
        if is_early {
            link.queue.extend(server.waiting.drain(..));
        }
        self.links.insert(handle, link);
        if is_early {
            self.launch(now, handle, quic);
        }
    }

    /// Gives a connection up. What was on it waits for another.
    pub(super) fn drop_link(&mut self, now: Time, handle: Handle, endpoint: &mut Endpoint) {
        let Some(mut link) = self.links.remove(&handle) else {
            return;
        };
        if let Some(quic) = endpoint.connection(handle) {
            link.http3.close(quic, now, Code::NO_ERROR);
        }
        self.requeue(link.queue);
        for job in link.streams.into_values() {
            self.jobs.all[job].restart();
            self.requeue([job]);
        }
    }
}
