//! The callbacks of the worker: datagrams, turns, deadlines.

use lastbyte_driver::{Application, Datagram, Next, Status};
use lastbyte_quic::{
    Time,
    connection::Connection,
    endpoint::{Closed, Endpoint, Handle},
};

use super::{Client, Event, TICK};
use crate::{dns, link::Bodies};

impl Application for Client<'_> {
    /// Signals that the mailbox contains events.
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}

    fn on_datagram(
        &mut self,
        now: Time,
        handle: Handle,
        connection: &mut Connection,
        (): &mut (),
        datagram: Datagram<'_>,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        let Some(link) = self.links.get_mut(&handle) else {
            let sink = &mut lastbyte_quic::stream::KeepAll;
            connection.handle_datagram(now, &path, ecn, bytes, sink);
            return;
        };
        let mut bodies = Bodies {
            streams: &link.streams,
            stopped: &mut link.stopped,
            fetches: &mut self.fetches,
        };
        let mut sink = link.http3.sink(&mut bodies);
        connection.handle_datagram(now, &path, ecn, bytes, &mut sink);
    }

    fn on_ready(&mut self, now: Time, handle: Handle, connection: &mut Connection, (): &mut ()) {
        while let Some(event) = connection.poll_event() {
            self.on_transport_event(now, handle, connection, event);
        }
        loop {
            let Some(link) = self.links.get_mut(&handle) else {
                return;
            };
            let Some(event) = link.http3.poll(connection, now) else {
                break;
            };
            self.on_event(now, handle, connection, event);
        }
        self.cancel_stopped(now, handle, connection);
        self.write_uploads(now, handle, connection);
    }

    fn on_closed(&mut self, now: Time, closed: Closed) {
        let mut quic = closed.connection;
        let close = quic.close_reason();
        let phrase = quic.close_phrase().to_owned();
        while quic.poll_event().is_some() {}
        self.on_quic_closed(now, closed.handle, close, &phrase);
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {}

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        self.read_mailbox(now, endpoint);
        if self.next_tick <= now {
            self.next_tick = now + TICK;
            self.watch_network(now, endpoint);
            if !self.fetches.listener.on_tick() {
                self.interrupt(now);
                self.end_overdue(now, endpoint, true);
            }
        }
        if self.next_limit.is_some_and(|limit| limit <= now) {
            self.end_overdue(now, endpoint, false);
        }
        self.close_unneeded(now, endpoint);
        let mut deadline = [self.next_limit, Some(self.next_tick)]
            .into_iter()
            .flatten()
            .min();
        // A fetch that fails at once makes room for the next, and a redirect can add a server. Repeat until nothing
        // changes.
        loop {
            let before = (self.next, self.servers.all.len(), self.active.len());
            self.start_fetches(now);
            for number in 0..self.servers.all.len() {
                let at = self.serve(now, number, endpoint);
                deadline = deadline.into_iter().chain(at).min();
            }
            if before == (self.next, self.servers.all.len(), self.active.len()) {
                break;
            }
        }
        self.close_unneeded(now, endpoint);
        let is_over = self.active.is_empty() && self.next >= self.fetches.all.len();
        let mut is_done = false;
        if is_over {
            let until = self.ticket_deadline(now, endpoint);
            is_done = until.is_none();
            deadline = deadline.into_iter().chain(until).min();
        }
        if is_done {
            for handle in self.links.keys().copied().collect::<Vec<_>>() {
                self.drop_link(now, handle, endpoint);
            }
            self.tcp.close();
        }
        Next {
            deadline,
            status: Status::stopped_if(is_done),
        }
    }
}

impl Client<'_> {
    fn close_unneeded(&mut self, now: Time, endpoint: &mut Endpoint) {
        for handle in core::mem::take(&mut self.to_close) {
            self.drop_link(now, handle, endpoint);
        }
    }

    fn on_resolve_event(&mut self, server: usize, event: dns::Event) {
        match event {
            dns::Event::Addresses {
                host,
                family,
                at,
                found,
            } => {
                if let Some(server) = self.servers.all.get_mut(server)
                    && let Some(resolution) = &mut server.resolution
                {
                    resolution.on_answer(at, &host, family, found);
                }
            }
            dns::Event::Services { at, found } => self.on_services(at, server, found),
        }
    }

    fn read_mailbox(&mut self, now: Time, endpoint: &mut Endpoint) {
        for event in self.mailbox.take() {
            match event {
                Event::Resolve { server, event } => self.on_resolve_event(server, event),
                Event::Tcp { connection, event } => self.on_tcp_event(now, connection, event),
                Event::NetworkChanged => self.follow_network(now, endpoint),
                Event::UploadReadable => {
                    for handle in self.links.keys().copied().collect::<Vec<_>>() {
                        if let Some(quic) = endpoint.connection(handle) {
                            self.write_uploads(now, handle, quic);
                        }
                    }
                }
            }
        }
    }
}
