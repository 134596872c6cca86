//! An HTTP/1.1 server that sends scripted bytes, valid or not, depending on the requested path. Shared with the tests
//! of the binary.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test server in separate threads"
)]

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A server in separate threads, which run until the test process ends.
pub(crate) struct ScriptedServer {
    pub(crate) port: u16,
    /// The heads of all requests in lower case, each with the number of its connection.
    pub(crate) heads: Arc<Mutex<Vec<(usize, String)>>>,
}

/// A received request.
struct ReceivedRequest {
    path: String,
    head: String,
    body: Vec<u8>,
    /// The number of requests for this path, including this one.
    request_count: usize,
}

impl ScriptedServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&heads);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let heads = Arc::clone(&shared);
                let Ok(stream) = stream else { return };
                thread::spawn(move || serve(stream, number, &heads));
            }
        });
        Self { port, heads }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(crate) fn heads(&self) -> Vec<(usize, String)> {
        self.heads.lock().expect("no panic").clone()
    }
}

/// The bytes of the body of `/N`.
pub(crate) fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(other, _)| other.trim() == name);
    found.map(|(_, value)| value.trim())
}

fn serve(stream: TcpStream, number: usize, heads: &Mutex<Vec<(usize, String)>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let mut stream = stream;
    let mut is_first = true;
    while let Some(request) = read(&mut reader, &mut stream, number, heads) {
        if !answer(&request, is_first, &mut stream) {
            // Read the rest before closing: unread data would turn the close into a reset.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = reader.read_to_end(&mut Vec::new());
            return;
        }
        is_first = false;
    }
}

fn read(
    reader: &mut BufReader<TcpStream>,
    stream: &mut TcpStream,
    number: usize,
    heads: &Mutex<Vec<(usize, String)>>,
) -> Option<ReceivedRequest> {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if reader.read_line(&mut text).ok()? == 0 {
            return None;
        }
    }
    let path = text.split(' ').nth(1)?.to_owned();
    let head = text.to_ascii_lowercase();
    let request_count = {
        let mut heads = heads.lock().expect("no panic");
        heads.push((number, head.clone()));
        let of_path = format!(" {} http", path.to_ascii_lowercase());
        heads
            .iter()
            .filter(|(_, head)| head.contains(&of_path))
            .count()
    };
    let refuses = path.starts_with("/expect-no");
    if value(&head, "expect").is_some() && !refuses {
        if path.starts_with("/expect-silent") {
            // Like an old server, it ignores `expect`.
        } else {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
    }
    let mut body = Vec::new();
    if refuses {
        return Some(ReceivedRequest {
            path,
            head,
            body,
            request_count,
        });
    }
    if let Some(len) = value(&head, "content-length") {
        body = vec![0; len.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
    } else if value(&head, "transfer-encoding") == Some("chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let len = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut piece = vec![0; len + 2];
            reader.read_exact(&mut piece).ok()?;
            if len == 0 {
                break;
            }
            body.extend_from_slice(&piece[..len]);
        }
    }
    Some(ReceivedRequest {
        path,
        head,
        body,
        request_count,
    })
}

fn full(status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\n{fields}\r\n");
    [head.as_bytes(), body].concat()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).expect("memory");
    encoder.finish().expect("memory")
}

/// Responds to a request. Returns whether the connection stays open.
#[expect(clippy::too_many_lines, reason = "a table")]
fn answer(request: &ReceivedRequest, is_first: bool, stream: &mut TcpStream) -> bool {
    let path = request.path.trim_start_matches('/');
    let (name, query) = path.split_once('?').unwrap_or((path, ""));
    let is_head = request.head.starts_with("head ");
    let mut send = |bytes: &[u8]| stream.write_all(bytes).is_ok();
    match name {
        "echo" | "expect-silent" => send(&full("200 OK", "", &request.body)),
        // The request head as the body.
        "head" => send(&full("200 OK", "", request.head.as_bytes())),
        "expect-no" => {
            send(&full("417 Expectation Failed", "", b"no"));
            false
        }
        "chunked" => send(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
              5\r\nhello\r\n6\r\n world\r\n0\r\nx-sum: 11\r\n\r\n",
        ),
        "early" => send(
            b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n\
              HTTP/1.1 200 Fine\r\ncontent-length: 2\r\n\r\nok",
        ),
        // Until the client closes_connection the connection.
        "endless-interim" => {
            while send(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n") {}
            false
        }
        "switch" => {
            send(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
            false
        }
        "gzip-chunked" => {
            send(
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nxx\r\n0\r\n\r\n",
            );
            false
        }
        "huge-length" => {
            send(b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\nonly this");
            false
        }
        "cut" => {
            send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nonly this");
            false
        }
        "cut-chunk" => {
            send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\nonly this");
            false
        }
        "bad-chunk" => {
            send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nonly this");
            false
        }
        "cut-head" => {
            send(b"HTTP/1.1 200 OK\r\ncontent-le");
            false
        }
        "empty" => false,
        "garbage" => {
            send(b"\x15\x03\x01 this is not HTTP\r\n\r\n");
            false
        }
        "large-head" => {
            let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
            head.extend(b"x-large: ".iter().chain(&vec![b'a'; 1_000_000]));
            head.extend(b"\r\n\r\n");
            send(&head);
            false
        }
        "many-fields" => {
            let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
            for _ in 0..10_000 {
                head.extend(b"x: y\r\n");
            }
            head.extend(b"\r\n");
            send(&head);
            false
        }
        "two-lengths" => {
            send(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde");
            false
        }
        "close" => {
            send(b"HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nuntil the end");
            false
        }
        // Closes the connection at the second request, without announcing it.
        "stale" => is_first && send(&full("200 OK", "", b"fresh")),
        "never" => true,
        "never-ends" => send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nonly this"),
        "none" => send(b"HTTP/1.1 204 No Content\r\n\r\n"),
        "gzip" => {
            let bytes = gzip(&body(50_000));
            send(&full("200 OK", "content-encoding: gzip\r\n", &bytes))
        }
        // One list on two lines (RFC 9110 §5.3).
        "gzip-twice" => {
            let lines = "content-encoding: gzip\r\nContent-Encoding: gzip\r\n";
            send(&full("200 OK", lines, &gzip(&gzip(&body(100)))))
        }
        "not-gzip" => send(&full("200 OK", "content-encoding: gzip\r\n", b"plain text")),
        // `/to?301,/there` redirects to `/there`.
        "to" => {
            let (status, place) = query.split_once(',').unwrap_or(("302", query));
            send(&full(
                &format!("{status} Elsewhere"),
                &format!("location: {place}\r\n"),
                b"it is elsewhere",
            ))
        }
        // Two of three requests are answered with 503.
        "busy" if !request.request_count.is_multiple_of(3) => send(&full(
            "503 Busy",
            &format!("retry-after: {query}\r\n"),
            b"come again",
        )),
        "busy" => send(&full("200 OK", "", b"at last")),
        // Control characters of C1, in UTF-8 and in Latin-1.
        "c1" => {
            let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-utf-8: ".to_vec();
            bytes.extend("\u{9b}31m".as_bytes());
            bytes.extend(b"\r\nx-latin-1: \x9b31m\r\n\r\nok");
            send(&bytes)
        }
        "loop" => send(&full("302 Found", "location: /loop\r\n", b"")),
        // The requested range of 10 000 bytes.
        "part" => {
            let all = body(10_000);
            let range = value(&request.head, "range").and_then(|it| it.strip_prefix("bytes="));
            let Some((from, to)) = range.and_then(|range| range.split_once('-')) else {
                return send(&full("200 OK", "", &all));
            };
            let from: usize = from.parse().unwrap_or(all.len() - to.parse().unwrap_or(0));
            let to = to
                .parse()
                .map_or(all.len(), |to: usize| to + 1)
                .min(all.len());
            if from >= all.len() {
                return send(&full(
                    "416 Range Not Satisfiable",
                    "content-range: bytes */10000\r\n",
                    b"",
                ));
            }
            let to = to.max(from);
            let fields = format!(
                "content-range: bytes {from}-{}/10000\r\n",
                to.saturating_sub(1)
            );
            send(&full("206 Partial Content", &fields, &all[from..to]))
        }
        name => match name.parse::<usize>() {
            Ok(len) if is_head => {
                send(format!("HTTP/1.1 200 OK\r\ncontent-length: {len}\r\n\r\n").as_bytes())
            }
            Ok(len) => send(&full("200 OK", "", &body(len))),
            Err(_) => send(&full("404 Not Found", "", b"not found")),
        },
    }
}
