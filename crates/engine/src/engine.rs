//! The order of a turn.

use core::{fmt, time::Duration};
use std::io;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    WallTime,
    ack::Ecn,
    connection::{NetworkPath, Transmit},
    endpoint::{Endpoint, Route},
};

use crate::application::{Application, Datagram, Next, Status};

#[cfg(test)]
mod tests;

/// The longest time from the end of the application to that of its engine.
pub const DRAIN_MAX: Duration = Duration::from_secs(1);

/// An endpoint with its application. [The crate](crate) has the order of calls.
pub struct Engine<A: Application> {
    endpoint: Endpoint<A::Data>,
    application: A,
    /// The application's wishes after its last turn.
    next: Next,
    /// When it may end at the latest. `None` while the application is running.
    until: Option<Time>,
    /// Whether nothing was left to send.
    has_sent_all: bool,
}

impl<A: Application> Engine<A> {
    /// Creates an engine.
    pub const fn new(endpoint: Endpoint<A::Data>, application: A) -> Self {
        Self {
            endpoint,
            application,
            next: Next {
                deadline: None,
                status: Status::Running,
            },
            until: None,
            has_sent_all: false,
        }
    }

    /// Sets the wall-clock time that belongs to a time.
    pub fn set_wall_clock(&mut self, now: Time, wall_time: WallTime) {
        self.endpoint.set_wall_clock(now, wall_time);
    }

    /// Lets an application that has stopped have turns again.
    pub const fn resume(&mut self) {
        self.next.status = Status::Running;
        self.until = None;
    }

    /// Passes a received datagram to its connection, which may be new. It is decrypted in place.
    pub fn receive(&mut self, now: Time, path: NetworkPath, ecn: Ecn, bytes: &mut [u8]) {
        let application = &mut self.application;
        let route = self
            .endpoint
            .route_with(now, &path, bytes, |handle, connection| {
                application.on_accepted(now, handle, connection)
            });
        if let Route::Connection(handle) | Route::Accepted(handle) = route
            && let Some((connection, data)) = self.endpoint.entry(handle)
        {
            let datagram = Datagram { path, ecn, bytes };
            application.on_datagram(now, handle, connection, data, datagram);
        }
    }

    /// Passes a command to the application.
    pub fn command(&mut self, now: Time, command: A::Command) {
        self.application
            .on_command(now, &mut self.endpoint, command);
    }

    /// Reports to the application that a datagram could not be sent, for a reason that may be temporary.
    pub fn on_send_error(&mut self, now: Time, path: &NetworkPath, error: &io::Error) {
        self.application.on_send_error(now, path, error);
    }

    /// Handles expired timers, and calls the application: for connections that may have events, for its turn, and for
    /// connections that may have events after that. An application that has stopped has no more turns.
    pub fn run(&mut self, now: Time) {
        while self.endpoint.poll_timeout(now).is_some() {}
        self.notify_ready(now);
        if self.next.status != Status::Stopped {
            self.next = self.application.on_turn(now, &mut self.endpoint);
            self.notify_ready(now);
        }
        self.has_sent_all = false;
        match self.next.status {
            Status::Running => self.until = None,
            Status::Finished => _ = self.until.get_or_insert(now + DRAIN_MAX),
            Status::Stopped => {
                self.next.deadline = None;
                self.endpoint.set_accepting(false);
                self.until.get_or_insert(now + DRAIN_MAX);
            }
        }
    }

    /// Calls the application once for each connection that may have events.
    fn notify_ready(&mut self, now: Time) {
        while let Some(handle) = self.endpoint.poll_touched() {
            if let Some((connection, data)) = self.endpoint.entry(handle) {
                self.application.on_ready(now, handle, connection, data);
            }
        }
    }

    /// Writes the next datagrams to send into a buffer. `None` if there are none now.
    pub fn poll_transmit(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, buffer);
        self.has_sent_all = transmit.is_none();
        transmit
    }

    /// Ends a turn: reports connections that have ended to the application, and returns when the next turn is due, if nothing
    /// arrives before. The status is that of the application once all is sent, and [`Status::Running`] until then, for up to
    /// [`DRAIN_MAX`].
    ///
    /// `is_blocked`: datagrams of this engine wait for the socket. Deadlines of connections that only have data to send are
    /// left out then.
    pub fn finish(&mut self, now: Time, is_blocked: bool) -> Next {
        let mut has_closed = false;
        while let Some(closed) = self.endpoint.poll_closed() {
            has_closed = true;
            self.application.on_closed(now, closed);
        }
        let is_drained = self.has_sent_all && !is_blocked;
        let is_over = self.until.is_some_and(|until| is_drained || now >= until);
        let due = self.endpoint.deadline();
        let due = due.filter(|due| !is_blocked || *due > Time::ZERO);
        let mut deadline = Time::earlier(due, self.next.deadline);
        if let Some(until) = self.until {
            deadline = Time::earlier(deadline, (!is_over).then_some(until));
            if !self.has_sent_all && !is_blocked {
                // The shell sent as much as it does in a turn, and perhaps all.
                deadline = Time::earlier(deadline, Some(now));
            }
        }
        if has_closed {
            // The application may have waited for it.
            deadline = Time::earlier(deadline, Some(now));
        }
        Next {
            deadline,
            status: if is_over {
                self.next.status
            } else {
                Status::Running
            },
        }
    }

    /// The application.
    pub const fn application(&mut self) -> &mut A {
        &mut self.application
    }

    /// The endpoint.
    pub const fn endpoint(&mut self) -> &mut Endpoint<A::Data> {
        &mut self.endpoint
    }

    /// The endpoint and the application.
    pub const fn parts(&mut self) -> (&mut Endpoint<A::Data>, &mut A) {
        (&mut self.endpoint, &mut self.application)
    }
}

impl<A: Application> fmt::Debug for Engine<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
