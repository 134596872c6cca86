//! A question and its answer: over UDP, and over TCP if it does not fit (RFC 1035 §4.2, RFC 7766). Waits; so it runs in a
//! thread of its own.

#![expect(
    clippy::disallowed_types,
    reason = "sockets that wait, in a thread of their own"
)]

use core::{net::SocketAddr, time::Duration};
use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, Ipv6Addr, TcpStream, UdpSocket},
};

use lastbyte_driver::Clock;
use lastbyte_quic::Time;

use super::message::{self, Answer, AnswerError, Kind};

/// How long the first answer of a server is waited for; then twice as long each time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How often each server is asked.
const ATTEMPTS: u32 = 3;

/// Whom to ask, and how long.
pub(super) struct Exchange<'a> {
    pub(super) servers: &'a [SocketAddr],
    pub(super) clock: Clock,
    pub(super) until: Time,
}

impl Exchange<'_> {
    /// The first answer of any of the servers, which are asked one after the other.
    pub(super) fn query(&self, name: &str, kind: Kind) -> Result<Answer, String> {
        let mut why = "there is no DNS server to ask".to_owned();
        for attempt in 0..ATTEMPTS {
            for server in self.servers {
                let timeout = ANSWER_TIMEOUT * (1 << attempt);
                let until = self.until.min(self.clock.now() + timeout);
                match self.query_server(*server, name, kind, until) {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(what)) => why = what,
                    Err(error) if is_timeout(&error) => {
                        why = format!("the DNS server {server} does not answer");
                    }
                    Err(error) => why = format!("the DNS server {server}: {error}"),
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
        let Some(question) = message::question(id, name, kind) else {
            return Ok(Err(format!("`{name}` is no name")));
        };
        let local: SocketAddr = if server.is_ipv6() {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        };
        // A port of its own for each question: one thing more to be guessed by those who would like to answer (RFC 5452).
        let socket = UdpSocket::bind(local)?;
        socket.connect(server)?;
        socket.send(&question)?;
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
        let answer = self.query_over_tcp(server, &question, until)?;
        match message::answer(&answer, id, name, kind) {
            Ok(answer) => Ok(Ok(answer)),
            Err(AnswerError::Failed(what)) => Ok(Err(what)),
            Err(_) => Ok(Err("the DNS server answers something else".to_owned())),
        }
    }

    fn query_over_tcp(
        &self,
        server: SocketAddr,
        question: &[u8],
        until: Time,
    ) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&server, self.remaining(until)?)?;
        stream.set_write_timeout(Some(self.remaining(until)?))?;
        // A question is a name and a few bytes.
        let len = (question.len() as u16).to_be_bytes();
        stream.write_all(&[&len[..], question].concat())?;
        let mut len = [0; 2];
        self.read_exact(&mut stream, &mut len, until)?;
        let mut answer = vec![0; usize::from(u16::from_be_bytes(len))];
        self.read_exact(&mut stream, &mut answer, until)?;
        Ok(answer)
    }

    /// As the standard library's, but in time as a whole.
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

    /// How much time there is.
    fn remaining(&self, until: Time) -> io::Result<Duration> {
        let now = self.clock.now();
        if now < until {
            Ok(until.since(now))
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// What is said of a socket that waited in vain differs by system.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
