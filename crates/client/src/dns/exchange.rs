//! A DNS query and its answer: over UDP, and over TCP if the answer is truncated (RFC 1035 §4.2, RFC 7766). Blocks, so it
//! runs in a separate thread.

#![expect(
    clippy::disallowed_types,
    reason = "blocking sockets, in a separate thread"
)]

use core::{net::SocketAddr, time::Duration};
use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, Ipv6Addr, TcpStream, UdpSocket},
};

use lastbyte_driver::Clock;
use lastbyte_quic::Time;

use super::message::{self, Answer, AnswerError, Kind};

/// The timeout of the first attempt. It doubles with each further attempt.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of attempts for each server.
const ATTEMPTS: u32 = 3;

/// The servers to query, and the deadline.
pub(super) struct Exchange<'a> {
    pub(super) servers: &'a [SocketAddr],
    pub(super) clock: Clock,
    pub(super) until: Time,
}

impl Exchange<'_> {
    /// The first answer of any server. The servers are queried one after the other.
    pub(super) fn query(&self, name: &str, kind: Kind) -> Result<Answer, String> {
        let mut why = "no DNS server configured".to_owned();
        for attempt in 0..ATTEMPTS {
            for server in self.servers {
                let timeout = ANSWER_TIMEOUT * (1 << attempt);
                let until = self.until.min(self.clock.now() + timeout);
                match self.query_server(*server, name, kind, until) {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(what)) => why = what,
                    Err(error) if is_timeout(&error) => {
                        why = format!("no response from the DNS server {server}");
                    }
                    Err(error) => why = format!("DNS server {server} failed: {error}"),
                }
                if self.clock.now() >= self.until {
                    return Err(why);
                }
            }
        }
        Err(why)
    }

    fn query_server(
        &self,
        server: SocketAddr,
        name: &str,
        kind: Kind,
        until: Time,
    ) -> io::Result<Result<Answer, String>> {
        let mut id = [0; 2];
        getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
        let id = u16::from_be_bytes(id);
        let Some(query) = message::query(id, name, kind) else {
            return Ok(Err(format!("invalid DNS name `{name}`")));
        };
        let local: SocketAddr = if server.is_ipv6() {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        };
        // A new port for each query makes forged answers harder (RFC 5452 §9.2).
        let socket = UdpSocket::bind(local)?;
        socket.connect(server)?;
        socket.send(&query)?;
        let mut buffer = vec![0; usize::from(u16::MAX)];
        loop {
            socket.set_read_timeout(Some(self.remaining(until)?))?;
            let len = socket.recv(&mut buffer)?;
            match message::answer(&buffer[..len], id, name, kind) {
                Ok(answer) => return Ok(Ok(answer)),
                Err(AnswerError::Failed(what)) => return Ok(Err(what)),
                Err(AnswerError::Truncated) => break,
                Err(AnswerError::Unrelated) => {}
            }
        }
        let answer = self.query_over_tcp(server, &query, until)?;
        match message::answer(&answer, id, name, kind) {
            Ok(answer) => Ok(Ok(answer)),
            Err(AnswerError::Failed(what)) => Ok(Err(what)),
            Err(_) => Ok(Err("unrelated answer from the DNS server".to_owned())),
        }
    }

    fn query_over_tcp(&self, server: SocketAddr, query: &[u8], until: Time) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&server, self.remaining(until)?)?;
        stream.set_write_timeout(Some(self.remaining(until)?))?;
        // A query is short: a name and a few bytes.
        let len = (query.len() as u16).to_be_bytes();
        stream.write_all(&[&len[..], query].concat())?;
        let mut len = [0; 2];
        self.read_exact(&mut stream, &mut len, until)?;
        let mut answer = vec![0; usize::from(u16::from_be_bytes(len))];
        self.read_exact(&mut stream, &mut answer, until)?;
        Ok(answer)
    }

    /// Like [`io::Read::read_exact`], with a deadline for the whole read.
    fn read_exact(
        &self,
        stream: &mut TcpStream,
        mut buffer: &mut [u8],
        until: Time,
    ) -> io::Result<()> {
        while !buffer.is_empty() {
            stream.set_read_timeout(Some(self.remaining(until)?))?;
            match stream.read(buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => buffer = &mut buffer[len..],
            }
        }
        Ok(())
    }

    /// The time until the deadline.
    fn remaining(&self, until: Time) -> io::Result<Duration> {
        let now = self.clock.now();
        if now < until {
            Ok(until.since(now))
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// Whether a read timed out. The error kind depends on the system.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
