//! A small proxy: tunnels lead to the requested port of this machine, whatever the host. Other requests are answered with
//! their own head. Shared with the tests of the binary.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test server in separate threads"
)]

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A proxy in separate threads, which run until the test process ends.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let heads = Arc::clone(&shared);
                let Ok(stream) = stream else { return };
                thread::spawn(move || serve(stream, &heads));
            }
        });
        Self { port, heads }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The heads of all requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

fn serve(mut stream: TcpStream, heads: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        heads.lock().expect("no panic").push(head.clone());
        let target = head.split(' ').nth(1)?.to_owned();
        if !head.starts_with("CONNECT ") {
            let len = head.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {len}\r\n\r\n{head}");
            stream.write_all(answer.as_bytes()).ok()?;
            continue;
        }
        let (host, port) = target.rsplit_once(':')?;
        let answer: &[u8] = match host {
            "forbidden.example" => b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
            "locked.example" if !head.contains("Basic bWU6c2VjcmV0") => {
                b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n"
            }
            "mute.example" => return None,
            _ => b"",
        };
        if !answer.is_empty() {
            stream.write_all(answer).ok()?;
            return None;
        }
        let server = TcpStream::connect(("127.0.0.1", port.parse().ok()?)).ok()?;
        stream
            .write_all(b"HTTP/1.1 200 Connected\r\nvia: a test\r\n\r\n")
            .ok()?;
        let (mut up, mut down) = (server.try_clone().ok()?, server);
        let mut back = stream.try_clone().ok()?;
        thread::spawn(move || {
            let _ = io::copy(&mut down, &mut back);
            let _ = back.shutdown(Shutdown::Write);
        });
        let _ = io::copy(&mut reader.by_ref(), &mut up);
        let _ = up.shutdown(Shutdown::Write);
        return None;
    }
}
