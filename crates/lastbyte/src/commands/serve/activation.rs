//! Sockets from the service manager (`sd_listen_fds(3)`).
//!
//! Finds the sockets. [`Inherited`] checks their purpose.

use lastbyte_server::Inherited;
use listenfd::ListenFd;

use crate::failure::Failure;

/// All that were handed to this process. Only the first call finds them, and only before there are other threads.
pub(super) fn take() -> Result<Inherited, Failure> {
    let mut inherited = Inherited::default();
    // Without it they may belong to another process: our parent received them, and we inherited its environment.
    if std::env::var_os("LISTEN_PID").is_none_or(|id| id.is_empty()) {
        return Ok(inherited);
    }
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut descriptors = ListenFd::from_env();
    for index in 0..descriptors.len() {
        let name = names.next().unwrap_or_default();
        if let Ok(Some(socket)) = descriptors.take_udp_socket(index) {
            inherited.add_udp(name, socket).map_err(Failure::usage)?;
            continue;
        }
        match descriptors.take_tcp_listener(index) {
            Ok(Some(listener)) => inherited.add_tcp(name, listener).map_err(Failure::usage)?,
            Ok(None) => {}
            Err(_) => {
                return Err(Failure::Usage(format!(
                    "cannot use the passed sockets: descriptor {} (`{name}`) is neither a UDP nor a TCP socket \
                     (expected `ListenDatagram=PORT` and `ListenStream=PORT` in the unit)",
                    3 + index
                )));
            }
        }
    }
    Ok(inherited)
}
