//! A small DNS server with fixed records, over UDP and TCP. Shared with the tests of the binary.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test server in separate threads"
)]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::{Arc, Mutex},
    thread,
};

pub(crate) const A: u16 = 1;
pub(crate) const HTTPS: u16 = 65;

/// How the server responds to a query for an HTTPS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DnsBehavior {
    /// It answers normally.
    Normal,
    /// It does not respond.
    Silent,
    /// It responds with the code REFUSED (RFC 1035 §4.1.1).
    Refusing,
    /// Its answer is cut off.
    Malformed,
    /// Its answer over UDP is truncated, so that the client repeats the query over TCP (RFC 1035 §4.2.1).
    Truncating,
}

/// A record: owner name, type and data.
pub(crate) type Record = (&'static str, u16, Vec<u8>);

/// A server in separate threads, which run until the test process ends.
pub(crate) struct Dns {
    pub(crate) address: SocketAddr,
    queries: Arc<Mutex<Vec<(String, u16)>>>,
}

impl Dns {
    pub(crate) fn start(behavior: DnsBehavior, records: Vec<Record>) -> Self {
        // Find a port that is free for both UDP and TCP.
        let (socket, listener) = loop {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
            let address = listener.local_addr().expect("an address");
            if let Ok(socket) = UdpSocket::bind(address) {
                break (socket, listener);
            }
        };
        let address = socket.local_addr().expect("an address");
        let queries = Arc::new(Mutex::new(Vec::new()));
        let records = Arc::new(records);
        let (shared, of_udp) = (Arc::clone(&queries), Arc::clone(&records));
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((len, from)) = socket.recv_from(&mut buffer) {
                let question = &buffer[..len];
                let (name, kind) = parse(question);
                shared.lock().expect("no panic").push((name, kind));
                let mut answer = answer(question, &of_udp);
                if kind == HTTPS {
                    match behavior {
                        DnsBehavior::Normal => {}
                        DnsBehavior::Silent => continue,
                        DnsBehavior::Refusing => answer[3] = 5,
                        DnsBehavior::Malformed => answer.truncate(answer.len() - 3),
                        DnsBehavior::Truncating => {
                            answer.truncate(len);
                            answer[2] |= 2;
                            answer[7] = 0;
                        }
                    }
                }
                let _ = socket.send_to(&answer, from);
            }
        });
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut len = [0; 2];
                if stream.read_exact(&mut len).is_err() {
                    continue;
                }
                let mut question = vec![0; usize::from(u16::from_be_bytes(len))];
                if stream.read_exact(&mut question).is_ok() {
                    let answer = answer(&question, &records);
                    let len = (answer.len() as u16).to_be_bytes();
                    let _ = stream.write_all(&[&len[..], &answer].concat());
                }
            }
        });
        Self { address, queries }
    }

    /// The queries received over UDP.
    pub(crate) fn queries(&self) -> Vec<(String, u16)> {
        self.queries.lock().expect("no panic").clone()
    }
}

/// The data of an HTTPS record with these parameters, in wire format.
pub(crate) fn https(priority: u16, target: &str, parameters: &[(u16, &[u8])]) -> Vec<u8> {
    let mut data = priority.to_be_bytes().to_vec();
    for label in target.split('.').filter(|label| !label.is_empty()) {
        data.push(label.len() as u8);
        data.extend_from_slice(label.as_bytes());
    }
    data.push(0);
    for (key, value) in parameters {
        data.extend_from_slice(&key.to_be_bytes());
        data.extend_from_slice(&(value.len() as u16).to_be_bytes());
        data.extend_from_slice(value);
    }
    data
}

/// The queried name and type.
fn parse(question: &[u8]) -> (String, u16) {
    let mut at = 12;
    let mut labels = Vec::new();
    while question[at] > 0 {
        let len = usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..=at + len]).into_owned());
        at += 1 + len;
    }
    let kind = u16::from_be_bytes([question[at + 1], question[at + 2]]);
    (labels.join(".").to_ascii_lowercase(), kind)
}

fn answer(question: &[u8], records: &[Record]) -> Vec<u8> {
    let (name, kind) = parse(question);
    let mut end = 12;
    while question[end] > 0 {
        end += 1 + usize::from(question[end]);
    }
    let found: Vec<_> = records
        .iter()
        .filter(|(of, is, _)| *of == name && *is == kind)
        .collect();
    let mut answer = question[..end + 5].to_vec();
    // A response with recursion available: one question, and the answers.
    answer[2] = 0x81;
    answer[3] = 0x80;
    answer[7] = found.len() as u8;
    answer[8..12].fill(0);
    for (_, kind, data) in found {
        // A pointer to the name in the question.
        answer.extend_from_slice(&[0xc0, 12]);
        answer.extend_from_slice(&kind.to_be_bytes());
        answer.extend_from_slice(&[0, 1, 0, 0, 0, 60]);
        answer.extend_from_slice(&(data.len() as u16).to_be_bytes());
        answer.extend_from_slice(data);
    }
    answer
}
