use std::{
    convert::Infallible,
    future::poll_fn,
    sync::atomic::{AtomicUsize, Ordering},
    task::Waker,
};

use bytes::Bytes;
use http::Response;
use hyper::body::{Body, Frame};
use lastbyte_http3::Priority;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    runtime,
    task::yield_now,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client};

use super::*;
use crate::tcp::{
    http2::stream::Sending,
    test_tls::configurations,
    turns::{ROOM, Turn},
};

const PIECE: usize = 16 << 10;

/// What a server did.
#[derive(Default)]
struct Counts {
    /// Writes to its socket.
    writes: AtomicUsize,
    /// Bytes that its responses passed to h2.
    taken: AtomicUsize,
}

/// The server's socket.
struct Counted {
    stream: DuplexStream,
    counts: Arc<Counts>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A response body that takes its turns.
struct Turning {
    turns: Arc<Turns>,
    turn: Turn,
    left: usize,
    counts: Arc<Counts>,
}

impl Body for Turning {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.left.min(PIECE);
        if piece == 0 {
            return Poll::Ready(None);
        }
        let lens = (piece, self.left as u64);
        ready!(self.turns.poll_take(context, self.turn, lens));
        self.left -= piece;
        self.counts.taken.fetch_add(piece, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(vec![0; piece].into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}

impl Drop for Turning {
    fn drop(&mut self) {
        self.turns.end(self.turn);
    }
}

/// Both ends of a TLS connection over a socket that holds `room` bytes.
async fn connected(
    room: usize,
) -> (
    TlsStream<Counted>,
    client::TlsStream<DuplexStream>,
    Arc<Counts>,
) {
    let (tls, client) = configurations();
    let (near, far) = duplex(room);
    let counts = Arc::<Counts>::default();
    let stream = Counted {
        stream: near,
        counts: Arc::clone(&counts),
    };
    let name = "localhost".try_into().expect("a name");
    let accepted = tokio::spawn(TlsAcceptor::from(Arc::new(tls)).accept(stream));
    let client = TlsConnector::from(Arc::new(client)).connect(name, far);
    let client = client.await.expect("a handshake");
    let server = accepted.await.expect("no panic").expect("a handshake");
    (server, client, counts)
}

/// A server whose responses have as many bytes as their path says, over a socket that holds `room` bytes.
async fn server(room: usize) -> (client::TlsStream<DuplexStream>, Arc<Counts>) {
    let (tls, client, counts) = connected(room).await;
    let serving = Arc::clone(&counts);
    tokio::spawn(async move {
        let transport = Transport::new(tls);
        let turns = Arc::<Turns>::default();
        let of_responses = Arc::clone(&turns);
        let accepted = transport.clone();
        let connection = async move {
            let mut connection = h2::server::Builder::new()
                .max_send_buffer_size(ROOM)
                .handshake(accepted)
                .await
                .expect("a preface");
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let body = Turning {
                    turn: of_responses.begin(Priority::default()).expect("an index"),
                    turns: Arc::clone(&of_responses),
                    left: request.uri().path()[1..].parse().expect("a length"),
                    counts: Arc::clone(&serving),
                };
                let sending = Sending::start(&mut respond, Response::new(body));
                tokio::spawn(sending.expect("a body"));
            }
        };
        Sent::new(connection, transport, turns).await;
    });
    (client, counts)
}

async fn send(client: &mut client::TlsStream<DuplexStream>, bytes: &[u8]) {
    client.write_all(bytes).await.expect("room");
    client.flush().await.expect("room");
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The beginning of a connection with the largest windows, and requests for bodies of these lengths (RFC 9113 §3.4, §6.5, §6.9).
fn requests(lens: &[usize]) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]));
    bytes.extend(frame(8, 0, 0, &0x7000_0000_u32.to_be_bytes()));
    for (index, len) in lens.iter().enumerate() {
        let path = format!("/{len}");
        let mut block = vec![0x82, 0x87, 0x01, 1, b'x', 0x04, path.len() as u8];
        block.extend(path.as_bytes());
        bytes.extend(frame(1, 0x5, index as u32 * 2 + 1, &block));
    }
    bytes
}

/// Reads frames until all these streams have ended. Returns the bytes of data.
async fn read(client: &mut client::TlsStream<DuplexStream>, streams: usize) -> usize {
    let (mut data, mut ended) = (0, 0);
    while ended < streams {
        let mut head = [0; 9];
        client.read_exact(&mut head).await.expect("a frame");
        let [a, b, c, kind, flags, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        client.read_exact(&mut payload).await.expect("a payload");
        if kind == 0 {
            data += payload.len();
            ended += usize::from(flags & 1);
        }
    }
    data
}

/// Lets the other tasks of the thread run until they wait.
async fn settle() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn many_frames_are_sent_at_once() {
    run(async {
        let (mut client, counts) = server(1 << 20).await;
        send(&mut client, &requests(&[])).await;
        settle().await;
        let before = counts.writes.load(Ordering::Relaxed);
        let lens = [32 << 10; 10];
        let all = requests(&lens);
        send(&mut client, &all[requests(&[]).len()..]).await;
        assert_eq!(read(&mut client, lens.len()).await, 320 << 10);
        // 64 KiB each.
        let writes = counts.writes.load(Ordering::Relaxed) - before;
        assert!(writes <= 6, "{writes} writes");
    });
}

#[test]
fn a_client_that_reads_nothing_holds_bounded_memory() {
    run(async {
        let (mut client, counts) = server(1 << 10).await;
        let lens = [10_000_000; 20];
        send(&mut client, &requests(&lens)).await;
        settle().await;
        // h2 has what there was room for, and the session has what was written before the socket was full.
        let taken = counts.taken.load(Ordering::Relaxed);
        let most = COLLECTED_MAX + ROOM + 2 * PIECE;
        assert!((ROOM..=most).contains(&taken), "{taken} bytes");
        settle().await;
        assert_eq!(counts.taken.load(Ordering::Relaxed), taken);
        assert_eq!(read(&mut client, lens.len()).await, 200_000_000);
    });
}

#[test]
fn nothing_stays_unsent_while_the_server_waits() {
    run(async {
        // Smaller than a record, and than a frame.
        for room in [100, 1000, 10_000, 1 << 20] {
            let (mut client, _) = server(room).await;
            for len in [1, 16, 1000, 16_384, 65_536, 100_000] {
                let (mut one, _) = server(room).await;
                send(&mut one, &requests(&[len])).await;
                assert_eq!(read(&mut one, 1).await, len, "{room}");
            }
            send(&mut client, &requests(&[5; 50])).await;
            assert_eq!(read(&mut client, 50).await, 250, "{room}");
        }
    });
}

/// A connection is not idle then: what its last response passed to h2 is still to be received.
#[test]
fn output_that_waits_for_room_is_being_sent() {
    run(async {
        let (server, mut client, _) = connected(1000).await;
        let mut transport = Transport::new(server);
        assert!(!transport.is_sending());
        transport.write_all(&vec![7; 20_000]).await.expect("room");
        let sent = transport.poll_send(&mut Context::from_waker(Waker::noop()));
        assert!(sent.is_pending() && transport.is_sending());
        let sending = transport.clone();
        let sent = tokio::spawn(poll_fn(move |context| sending.poll_send(context)));
        let mut received = vec![0; 20_000];
        client.read_exact(&mut received).await.expect("bytes");
        sent.await.expect("no panic").expect("a socket");
        assert!(!transport.is_sending());
    });
}
