//! The replacement of a worker's socket by its application.

use std::{cell::Cell, fmt, rc::Rc};

use lastbyte_udp::Socket;

/// The place where an application puts a socket on another port, which takes the place of its worker's before the worker sends
/// next. Connections that have not moved there keep the current one, until it is replaced a second time. Its clones are the
/// same place.
#[derive(Clone, Default)]
pub struct NextSocket(Rc<Cell<Option<Socket>>>);

impl NextSocket {
    /// Replaces the worker's socket. It takes the place of a socket that the worker has not taken yet.
    pub fn set(&self, socket: Socket) {
        self.0.set(Some(socket));
    }

    /// Whether the worker has not taken the last one yet.
    pub fn is_set(&self) -> bool {
        let socket = self.0.take();
        let is_set = socket.is_some();
        self.0.set(socket);
        is_set
    }

    pub(super) fn take(&self) -> Option<Socket> {
        self.0.take()
    }
}

impl fmt::Debug for NextSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextSocket").finish_non_exhaustive()
    }
}
