//! Limits of what a client over TCP can hold open.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use lastbyte_server::{Site, tcp::Limits};

use crate::{
    operations::plain,
    serving::{Client, PATIENCE, Serving, settings},
};

const SHORT: Duration = Duration::from_millis(200);

fn serving(limits: Limits) -> Serving {
    let mut settings = settings(Site::generated());
    settings.tcp = limits;
    settings.metrics = Some("127.0.0.1:0".parse().expect("an address"));
    Serving::start(settings)
}

/// A connection of HTTP/2, by hand: the preface, an empty SETTINGS frame (RFC 9113 §3.4, §6.5), and then frames.
pub(crate) fn http2(serving: &Serving) -> Client {
    let mut config = (*serving.client(rustls::ALL_VERSIONS)).clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut client = Client::connect(serving.address(), config.into());
    client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    client.send(&frame(SETTINGS, 0, 0, &[]));
    client
}

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const ACK: u8 = 1;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// `GET` of a path, in fields that are written out (RFC 7541 §6.2.2), on a stream that is then at its end.
pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    get_with(stream, path, &[])
}

/// As [`get`], with further fields.
pub(crate) fn get_with(stream: u32, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    // :method GET, :scheme https, of the static table; :authority and :path with values of their own.
    let mut block = vec![0x82, 0x87, 0x01, 9];
    block.extend(b"localhost");
    block.extend([0x04, path.len() as u8]);
    block.extend(path.as_bytes());
    for (name, value) in fields {
        block.extend([0, name.len() as u8]);
        block.extend(name.as_bytes());
        block.push(value.len() as u8);
        block.extend(value.as_bytes());
    }
    // END_STREAM and END_HEADERS.
    frame(HEADERS, 0x5, stream, &block)
}

/// The next frame: its kind, its stream and its payload. Pings that `answers` selects are answered.
pub(crate) fn next_frame(
    client: &mut Client,
    answers: fn(&[u8]) -> bool,
) -> Option<(u8, u32, Vec<u8>)> {
    next_with_flags(client, answers).map(|(kind, _, stream, payload)| (kind, stream, payload))
}

/// As [`next_frame`], with its flags after its kind.
pub(crate) fn next_with_flags(
    client: &mut Client,
    answers: fn(&[u8]) -> bool,
) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    if let Err(error) = client.stream.read_exact(&mut head) {
        let is_late = error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!is_late, "the server neither says anything nor closes");
        return None;
    }
    let [a, b, c, kind, flags, stream @ ..] = head;
    let payload = client.take(u32::from_be_bytes([0, a, b, c]) as usize);
    if kind == PING && flags & ACK == 0 && answers(&payload) {
        client.send(&frame(PING, ACK, 0, &payload));
    }
    Some((kind, flags, u32::from_be_bytes(stream), payload))
}

/// A client that takes the responses of other streams, and answers PINGs.
#[test]
fn rfc9113_5_2_a_stream_whose_window_stays_closed_is_reset() {
    let limits = Limits {
        stall: SHORT,
        ..Limits::default()
    };
    let serving = serving(limits);
    let mut client = http2(&serving);
    // Room for all streams together, and none for this one beyond the 65 535 bytes to begin with.
    client.send(&frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 24).to_be_bytes()));
    client.send(&get(1, "/10m"));
    let mut data = 0;
    let reset = loop {
        let (kind, stream, payload) = next_frame(&mut client, |_| true).expect("it stays open");
        match (kind, stream) {
            (DATA, 1) => data += payload.len(),
            (RST_STREAM, 1) => break payload,
            _ => {}
        }
    };
    assert_eq!((data, reset), (65_535, vec![0, 0, 0, 8]), "CANCEL");
    // Others go on.
    client.send(&get(3, "/100"));
    let answered = loop {
        let (kind, stream, payload) = next_frame(&mut client, |_| true).expect("it stays open");
        if (kind, stream) == (DATA, 3) {
            break payload.len();
        }
    };
    assert_eq!(answered, 100);
    let metrics = serving.server.metrics_address().expect("it listens");
    let text = String::from_utf8_lossy(&plain(metrics, "/metrics").body).into_owned();
    assert!(text.contains("lastbyte_responses_cut_off_total{transport=\"tcp\"} 1"));
    serving.end();
}

/// Cancels requests whose responses have begun, each after `answered` others, and returns how many until the server closes.
fn cancelled_until_closed(answered: u32, most: u32, (large, settings): (&str, &[u8])) -> u32 {
    let serving = serving(Limits::default());
    let mut client = http2(&serving);
    client.send(&frame(SETTINGS, 0, 0, settings));
    let mut stream = 1;
    let mut unsent = Vec::new();
    let mut ask = |path: &str| {
        unsent.extend(get(stream, path));
        // It may be closed already.
        let asked = client.stream.write_all(&unsent);
        unsent.clear();
        let mut frames = std::iter::from_fn(|| next_frame(&mut client, |_| true));
        let begins = |frame: (u8, u32, Vec<u8>)| (frame.0, frame.1) == (HEADERS, stream);
        let has_begun = asked.is_ok() && frames.any(begins);
        if path != "/0" {
            unsent = frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        }
        stream += 2;
        has_begun
    };
    let is_open = |_: &u32| (0..answered).all(|_| ask("/0")) && ask(large);
    let cancelled = (0..most).take_while(is_open).count();
    drop(client);
    serving.end();
    cancelled as u32
}

/// Each is accepted before it is cancelled, so that h2 does not count it.
#[test]
fn rfc9113_10_5_rapid_resets_close_the_connection() {
    // More than a window, so that it never ends.
    let cancelled = cancelled_until_closed(0, 2000, ("/100k", &[]));
    assert!((200..2000).contains(&cancelled), "{cancelled}");
    assert_eq!(
        cancelled_until_closed(1, 300, ("/100k", &[])),
        300,
        "answered ones permit as many"
    );
}

/// The only piece of each response waits for a window that is closed.
#[test]
fn rfc9113_10_5_rapid_resets_of_short_responses_close_the_connection() {
    // SETTINGS_INITIAL_WINDOW_SIZE
    let closed = [0, 4, 0, 0, 0, 0];
    let cancelled = cancelled_until_closed(0, 2000, ("/1k", &closed));
    assert!((200..2000).contains(&cancelled), "{cancelled}");
}

/// What h2 asks with before the last GOAWAY; other PINGs, by which it finds out whether a client is there, are answered.
const LAST_PING: [u8; 8] = [0x0b, 0x7b, 0xa2, 0xf0, 0x8b, 0x9b, 0xfe, 0x54];

/// Requests that are reset before the server has accepted them: they are in one record of TLS. Fewer than those that may be
/// reset later.
#[test]
fn rfc9113_10_5_requests_that_are_reset_before_they_are_accepted_close_the_connection() {
    let serving = serving(Limits::default());
    let mut client = http2(&serving);
    let mut requests = Vec::new();
    for stream in (1..200).step_by(2) {
        requests.extend(get(stream, "/100"));
        requests.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    client.send(&requests);
    let code = loop {
        let (kind, _, payload) = next_frame(&mut client, |_| true).expect("a reason");
        if kind == GOAWAY {
            break payload[4..8].to_vec();
        }
    };
    assert_eq!(code, [0, 0, 0, 11], "ENHANCE_YOUR_CALM");
    serving.end();
}

#[test]
fn rfc9113_6_8_shutdown_does_not_wait_for_a_client_that_ignores_the_last_ping() {
    let limits = Limits {
        idle: SHORT,
        stall: SHORT,
        ..Limits::default()
    };
    let serving = serving(limits);
    let mut client = http2(&serving);
    client.send(&get(1, "/100"));
    let mut seen = Vec::new();
    while let Some((kind, _, payload)) = next_frame(&mut client, |ping| ping != LAST_PING) {
        assert!(seen.len() < 1000, "the server does not close");
        seen.push((kind, payload));
    }
    assert!(seen.contains(&(PING, LAST_PING.to_vec())), "{seen:?}");
    serving.end();
}

/// The system accepts it, and the server closes it at once; others, and the same later, are served.
#[test]
fn connections_of_an_address_are_limited() {
    let limits = Limits {
        connections_per_prefix: 2,
        ..Limits::default()
    };
    let serving = serving(limits);
    let held = [serving.connect(), serving.connect()].map(|mut client| {
        client.send(b"GET /10 HTTP/1.1\r\nhost: x\r\n\r\n");
        client.head();
        client
    });
    let mut refused = TcpStream::connect(serving.address()).expect("it listens");
    refused.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let read = refused.read(&mut [0; 1]);
    assert!(matches!(read, Ok(0)), "{read:?}");
    let metrics = serving.server.metrics_address().expect("it listens");
    let text = String::from_utf8_lossy(&plain(metrics, "/metrics").body).into_owned();
    assert!(text.contains("\nlastbyte_tcp_refused_total 1\n"), "{text}");
    drop(held);
    let began = Instant::now();
    loop {
        let mut client = serving.connect();
        let asked = client
            .stream
            .write_all(b"GET /10 HTTP/1.1\r\nhost: x\r\n\r\n");
        if asked.is_ok()
            && client
                .stream
                .read(&mut [0; 1])
                .is_ok_and(|count| count == 1)
        {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "it is waited for");
    }
    serving.end();
}

/// Whether the server closes a connection that sends nothing, instead of waiting for its first bytes.
fn is_refused(address: SocketAddr) -> bool {
    let mut client = TcpStream::connect(address).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    matches!(client.read(&mut [0; 1]), Ok(0))
}

/// Connections of both count, since each is a descriptor. No address has more than there is room left: of 4, 2 and 1.
#[test]
fn connections_to_the_redirecting_listener_count_with_the_others() {
    let mut settings = settings(Site::generated());
    settings.tcp.connections = 4;
    settings.plain = Some("[::1]:0".parse().expect("an address"));
    let serving = Serving::start(settings);
    let plain = serving.server.plain_address().expect("it listens");
    let _held = [plain, plain].map(|address| TcpStream::connect(address).expect("it listens"));
    assert!(is_refused(plain));
    let mut client = serving.connect();
    client.send(b"GET /10 HTTP/1.1\r\nhost: x\r\n\r\n");
    client.head();
    assert!(is_refused(serving.address()));
    serving.end();
}

#[test]
fn clients_that_send_nothing_leave_metrics_and_health_to_others() {
    let mut settings = settings(Site::generated());
    settings.metrics = Some("[::]:0".parse().expect("an address"));
    let serving = Serving::start(settings);
    let metrics = serving.server.metrics_address().expect("it listens");
    // More than there may be, from one address.
    let attacker = SocketAddr::from((Ipv6Addr::LOCALHOST, metrics.port()));
    let _held: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(attacker).expect("it listens"))
        .collect();
    assert!(is_refused(attacker));
    let other = SocketAddr::from((Ipv4Addr::LOCALHOST, metrics.port()));
    assert_eq!(plain(other, "/healthz").status, 200);
    serving.end();
}

/// A body that arrives in single bytes occupies a handler for the time limit at most.
#[test]
fn a_request_whose_body_arrives_byte_by_byte_is_aborted() {
    use crate::http3::echo;
    let mut settings = echo().0;
    settings.tcp.stall = SHORT;
    let serving = Serving::start(settings);
    let mut client = serving.connect();
    client.send(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n");
    client.head();
    let began = Instant::now();
    while client.stream.write_all(b"x").is_ok() && is_open_for(&mut client, SHORT / 20) {
        assert!(began.elapsed() < PATIENCE, "it goes on");
    }
    serving.end();
}

/// Reads for this long, or until the server closes. Returns whether the connection is still open.
fn is_open_for(client: &mut Client, span: Duration) -> bool {
    let end = Instant::now() + span;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        client
            .stream
            .sock
            .set_read_timeout(Some(left))
            .expect("a timeout");
        match client.stream.read(&mut [0; 64]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
            Err(_) => return false,
        }
    }
}

/// Frames until the server closes: their kinds, and how many bytes of data. Pings are answered.
fn frames(client: &mut Client) -> (Vec<u8>, usize) {
    let (mut kinds, mut data) = (Vec::new(), 0);
    let mut head = [0; 9];
    loop {
        if let Err(error) = client.stream.read_exact(&mut head) {
            let is_late = error.kind() == std::io::ErrorKind::WouldBlock;
            assert!(!is_late, "the server does not close: {kinds:?}");
            return (kinds, data);
        }
        let [a, b, c, kind, flags, ..] = head;
        let payload = client.take(u32::from_be_bytes([0, a, b, c]) as usize);
        match kind {
            DATA => data += payload.len(),
            PING if flags & ACK == 0 => {
                // The server may be gone by then.
                let _ = client.stream.write_all(&frame(PING, ACK, 0, &payload));
                let _ = client.stream.flush();
            }
            _ => {}
        }
        kinds.push(kind);
        // A server that keeps the connection sends keep-alive PINGs forever.
        assert!(kinds.len() < 100, "the server does not close: {kinds:?}");
    }
}

#[test]
fn an_http2_connection_without_requests_is_closed() {
    let limits = Limits {
        idle: SHORT,
        ..Limits::default()
    };
    let serving = serving(limits);
    let mut client = http2(&serving);
    client.send(&get(1, "/100"));
    let (kinds, data) = frames(&mut client);
    assert_eq!(data, 100);
    assert!(kinds.contains(&GOAWAY), "{kinds:?}");
    // A request that takes longer than that is none of idleness.
    let mut client = http2(&serving);
    client.send(&get(1, "/delay/1s/100"));
    let (kinds, data) = frames(&mut client);
    assert!(data == 100 && kinds.contains(&GOAWAY), "{kinds:?}");
    serving.end();
}

#[test]
fn a_client_that_reads_nothing_of_a_response_is_disconnected() {
    let limits = Limits {
        stall: SHORT,
        ..Limits::default()
    };
    let serving = serving(limits);
    let mut client = serving.connect();
    // More than all buffers between hold.
    client.send(b"GET /100m HTTP/1.1\r\nhost: x\r\n\r\n");
    client.head();
    // It takes nothing until the server says that it was cut off.
    let metrics = serving.server.metrics_address().expect("it listens");
    let said = "lastbyte_responses_cut_off_total{transport=\"tcp\"} 1";
    let began = Instant::now();
    while !String::from_utf8_lossy(&plain(metrics, "/metrics").body).contains(said) {
        assert!(began.elapsed() < PATIENCE, "it is waited for");
    }
    let mut rest = Vec::new();
    let _ = client.stream.read_to_end(&mut rest);
    assert!(rest.len() < 100_000_000, "{}", rest.len());
    serving.end();
}
