//! Replacement of a running server by a later process, without a lost connection.
//!
//! The later process connects to a Unix socket of the earlier one, and receives its listening sockets (`SCM_RIGHTS`). The
//! earlier process then stops reading UDP, keeps the connections that it has, and drains. The later one forwards the
//! datagrams of those connections to it ([`lastbyte_driver::relay`]).
//!
//! | later process | earlier process |
//! |---|---|
//! | connects, sends `lastbyte handover 1` | checks that the peer has its user ID |
//! | | sends each socket with its purpose, the link, and the number of workers |
//! | reads its configuration, opens its logs, sends `stop` | stops reading UDP, sends `stopped` |
//! | starts its threads, sends `serving` | drains, and exits |
//!
//! # Decisions
//!
//! - *Sockets are passed between the two processes*, as in Envoy's hot restart, and not by a parent that holds them, as with
//!   H2O's `start_server`: so it works with and without a service manager, and in a container.
//! - *Only one process reads a UDP socket at a time.* The other would answer packets of connections that it does not know
//!   with stateless resets, which end them. Datagrams wait in the socket's buffer between `stopped` and `serving`.
//! - *A connection belongs to the process that knows its ID*, whatever the format of IDs is, so that load balancers and
//!   encrypted IDs need no generation number in them.
//! - *If the later process fails before `serving`*, the earlier one reads its sockets again, and continues as before.
//! - TCP needs no forwarding: established connections stay with their process, and those that wait to be accepted are in the
//!   listening socket, which both processes have.
//!
//! # Bounds
//!
//! One hand-over at a time; 5 s for each message; 64 bytes and one descriptor a message; at most 768 sockets. Both processes
//! close the connection to a peer with another user ID.

use std::{
    fmt, fs, io,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    num::NonZeroUsize,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use lastbyte_driver::{Inlet, Remote, relay};
use rustix::{
    cmsg_space,
    event::{Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
        accept_with, bind, connect, listen, recvmsg, sendmsg, shutdown, socket_with,
        sockopt::{Timeout, set_socket_timeout, socket_peercred},
    },
    process::geteuid,
};
use tokio::{sync::oneshot, task::AbortHandle};

use lastbyte_origin::application::Command;

#[cfg(test)]
mod tests;

/// Time limit for each message, and for the workers to stop.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest message in bytes.
const MESSAGE_MAX: usize = 64;
/// The most sockets that are taken over: for 255 workers and threads.
const SOCKETS_MAX: usize = 768;
/// The pause after a connection could not be accepted, for instance because too many files are open.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

const HELLO: &str = "lastbyte handover 1";
const LINK: &str = "link";
const STOP: &str = "stop";
const STOPPED: &str = "stopped";
const SERVING: &str = "serving";

/// The purpose of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// HTTP/3.
    Udp,
    /// HTTP/1.1 and 2.
    Tcp,
    /// Redirects to HTTPS.
    Plain,
    /// Metrics and health checks.
    Metrics,
}

impl Purpose {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Udp, "udp"),
        (Self::Tcp, "tcp"),
        (Self::Plain, "http"),
        (Self::Metrics, "metrics"),
    ];

    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(purpose, _)| *purpose == self);
        found.map_or("", |(_, name)| name)
    }

    fn of(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(purpose, _)| *purpose)
    }
}

/// Checks that a socket can be created at `path`: the name is free, or that of a socket, which is replaced.
///
/// # Errors
///
/// Returns the system's error, or `AlreadyExists` if a file that is not a socket has this name.
pub fn check(path: &Path) -> io::Result<()> {
    SocketAddrUnix::new(path)?;
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(()),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file that is not a socket (expected a socket, or a new name)",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The sockets and state that a running server hands over.
pub struct Offer {
    pub(crate) sockets: Vec<(Purpose, OwnedFd)>,
    pub(crate) workers: usize,
    pub(crate) remotes: Vec<Remote<Command>>,
    pub(crate) inlet: Option<Arc<Inlet>>,
    /// The listener of the metrics.
    pub(crate) metrics: Option<AbortHandle>,
}

/// A running server's end: waits for a later process.
#[derive(Debug)]
pub struct Successor {
    listener: Arc<OwnedFd>,
    path: PathBuf,
    /// Device and inode of the socket file.
    file: (u64, u64),
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
    taken: oneshot::Receiver<()>,
}

impl Successor {
    /// Creates the Unix socket `path`, which only this user can connect to, and offers the server to the first process that
    /// connects and starts. The socket of an earlier process at this path is replaced; any other file stays.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the socket or the thread cannot be created, or that of [`check`].
    pub fn listen(path: &Path, offer: Offer) -> io::Result<Self> {
        check(path)?;
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let listener = open()?;
        bind(&listener, &SocketAddrUnix::new(&temporary)?)?;
        let created = || {
            // No process can connect before `listen`.
            fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))?;
            listen(&listener, 4)?;
            let found = fs::metadata(&temporary)?;
            fs::rename(&temporary, path)?;
            Ok::<_, io::Error>((found.dev(), found.ino()))
        };
        let file = created().inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        let listener = Arc::new(listener);
        let is_over = Arc::new(AtomicBool::new(false));
        let (sender, taken) = oneshot::channel();
        let (of_thread, over) = (Arc::clone(&listener), Arc::clone(&is_over));
        let thread = thread::Builder::new()
            .name("handover".into())
            .spawn(move || wait(&of_thread, &over, offer, sender))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            file,
            is_over,
            thread: Some(thread),
            taken,
        })
    }

    /// Waits until a later process serves. The server is then to be shut down.
    pub async fn taken(&mut self) {
        if (&mut self.taken).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Ends the offer: closes its sockets, and removes the socket file. For a server that is shut down without a successor.
    pub fn close(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Ends `accept`.
        let _ = shutdown(&*self.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.file) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Offers the server until a later process has taken it; then passes on what that forwards.
fn wait(listener: &OwnedFd, is_over: &AtomicBool, offer: Offer, taken: oneshot::Sender<()>) {
    let link = loop {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = accept_with(listener, SocketFlags::CLOEXEC) else {
            if !is_over.load(Ordering::Relaxed) {
                let _ = poll(&mut [], Some(&PAUSE));
            }
            continue;
        };
        // After a failure, this server serves as before, and the other process reports the reason.
        if let Ok(link) = offer.hand_over(&stream) {
            break link;
        }
    };
    if let Some(metrics) = &offer.metrics {
        metrics.abort();
    }
    let inlet = offer.inlet.clone();
    drop(offer);
    let _ = taken.send(());
    if let Some(inlet) = inlet {
        // It ends with either process.
        let _ = inlet.run(link);
    }
}

impl Offer {
    /// Hands over to the process at the other end. Returns this process's end of the link.
    fn hand_over(&self, stream: &OwnedFd) -> io::Result<OwnedFd> {
        prepare(stream)?;
        expect(stream, HELLO)?;
        let (later, earlier) = relay::link()?;
        for (purpose, socket) in &self.sockets {
            send(stream, purpose.name(), Some(socket.as_fd()))?;
        }
        send(stream, LINK, Some(later.as_fd()))?;
        drop(later);
        send(stream, &self.workers.to_string(), None)?;
        expect(stream, STOP)?;
        let finish = || {
            self.pause()?;
            send(stream, STOPPED, None)?;
            expect(stream, SERVING)
        };
        match finish() {
            Ok(()) => Ok(earlier),
            Err(error) => {
                for remote in &self.remotes {
                    remote.resume();
                }
                Err(error)
            }
        }
    }

    /// Returns when no worker reads its socket any more.
    fn pause(&self) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        for remote in &self.remotes {
            let sender = sender.clone();
            let is_sent = remote.pause(move |()| _ = sender.send(()));
            if !is_sent {
                return Err(io::Error::other("a worker has ended"));
            }
        }
        for _ in &self.remotes {
            let answer = receiver.recv_timeout(PATIENCE);
            answer.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        }
        Ok(())
    }
}

/// A later process's end: the sockets of the running server.
#[derive(Debug)]
pub struct Takeover {
    stream: OwnedFd,
    /// The sockets, until the settings take them.
    pub(crate) sockets: Vec<(Purpose, OwnedFd)>,
    pub(crate) link: Arc<OwnedFd>,
    pub(crate) workers: NonZeroUsize,
}

impl Takeover {
    /// Receives the sockets of the server that listens at `path`. `None` if no server does.
    ///
    /// # Errors
    ///
    /// Returns the system's error; `PermissionDenied` if the server is another user's, and `InvalidData` if it sends anything
    /// else than expected.
    pub fn begin(path: &Path) -> io::Result<Option<Self>> {
        let stream = open()?;
        match connect(&stream, &SocketAddrUnix::new(path)?) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        prepare(&stream)?;
        send(&stream, HELLO, None)?;
        let mut sockets = Vec::new();
        let mut link = None;
        for _ in 0..SOCKETS_MAX + 2 {
            match receive(&stream)? {
                (name, Some(socket)) => match Purpose::of(&name) {
                    Some(purpose) => sockets.push((purpose, socket)),
                    None if name == LINK => link = Some(socket),
                    None => return Err(unexpected(&name)),
                },
                (count, None) => {
                    let (Ok(workers), Some(link)) = (count.parse(), link) else {
                        return Err(unexpected(&count));
                    };
                    return Ok(Some(Self {
                        stream,
                        sockets,
                        link: Arc::new(link),
                        workers,
                    }));
                }
            }
        }
        Err(unexpected("too many sockets"))
    }

    /// Asks the running server to stop reading its UDP sockets. To be called directly before the start: until
    /// [`Takeover::finish`], datagrams wait.
    ///
    /// # Errors
    ///
    /// Returns the system's error, or `InvalidData` if the server sends anything else than expected.
    pub fn stop_predecessor(&self) -> io::Result<()> {
        send(&self.stream, STOP, None)?;
        expect(&self.stream, STOPPED)
    }

    /// Reports that this process serves. The earlier one drains from now on. Without this call, it serves again.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn finish(self) -> io::Result<()> {
        send(&self.stream, SERVING, None)
    }
}

fn open() -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sets the time limits of a connection, and checks that the peer is of the same user.
fn prepare(stream: &OwnedFd) -> io::Result<()> {
    set_socket_timeout(stream, Timeout::Recv, Some(PATIENCE))?;
    set_socket_timeout(stream, Timeout::Send, Some(PATIENCE))?;
    if socket_peercred(stream)?.uid != geteuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

fn send(stream: &OwnedFd, text: &str, socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sockets = socket.map(|socket| [socket]);
    if let Some(sockets) = &sockets {
        control.push(SendAncillaryMessage::ScmRights(sockets));
    }
    let text = [IoSlice::new(text.as_bytes())];
    sendmsg(stream, &text, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// A message, and the descriptor that came with it. The kernel closes further ones.
fn receive(stream: &OwnedFd) -> io::Result<(String, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0; MESSAGE_MAX];
    let mut buffers = [IoSliceMut::new(&mut text)];
    let received =
        recvmsg(stream, &mut buffers, &mut control, RecvFlags::CMSG_CLOEXEC).map_err(|error| {
            match error {
                Errno::AGAIN => io::ErrorKind::TimedOut.into(),
                error => io::Error::from(error),
            }
        })?;
    let mut socket = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(sockets) = message {
            socket = sockets.last();
        }
    }
    let text = text.get(..received.bytes).unwrap_or_default();
    if text.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((String::from_utf8_lossy(text).into_owned(), socket))
}

fn expect(stream: &OwnedFd, text: &str) -> io::Result<()> {
    let (received, _) = receive(stream)?;
    if received == text {
        Ok(())
    } else {
        Err(unexpected(&received))
    }
}

fn unexpected(text: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("unexpected message `{}`", text.escape_debug()),
    )
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer")
            .field("sockets", &self.sockets)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
