#![expect(clippy::disallowed_methods, reason = "the test reads what was written")]

use std::future::poll_fn;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};

use super::*;
use crate::{
    log::{self, LogSettings, LogThread},
    site::Temporary,
};

const PATIENCE: Duration = Duration::from_secs(10);
const LEN: usize = 100_000;

/// A connection whose client's system takes a few kilobytes before the client reads.
struct Connection {
    observation: Arc<Observation>,
    stream: Stream<TcpStream>,
    client: TcpStream,
    directory: Temporary,
    thread: LogThread,
}

impl Connection {
    async fn new(name: &str, is_multiplexed: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a size");
        let client = socket.connect(listener.local_addr().expect("an address"));
        let client = client.await.expect("a connection");
        let (server, _) = listener.accept().await.expect("it is there");
        let directory = Temporary::new(name);
        let (writer, thread) =
            log::start(&directory.0.join("log"), &LogSettings::default()).expect("a file");
        let observation = Arc::new(Observation::new(
            writer,
            Sites::new(Some("fra".into()), Vec::new()),
            3,
            1,
        ));
        observation.on_handshake(Session {
            proto: "HTTP/2",
            tls: "1.3",
            is_resumed: false,
            is_multiplexed,
            config_hash: None,
        });
        Self {
            stream: Stream::new(server, Some(Arc::clone(&observation))),
            observation,
            client,
            directory,
            thread,
        }
    }

    /// Writes a response, of which the system accepts this much.
    async fn respond(&mut self, written: usize) {
        let observed = self.observation.on_request("GET");
        observed.on_head(Some(LEN as u64));
        observed.on_body(LEN);
        self.stream
            .write_all(&vec![7; written])
            .await
            .expect("room");
        observed.on_end(true);
    }

    /// As hyper does while it waits for a request; until everything was acknowledged, or for this long.
    async fn is_acknowledged(&mut self, limit: Duration) -> bool {
        let mut bytes = [0; 16];
        let acknowledged = poll_fn(|context| {
            let mut buffer = ReadBuf::new(&mut bytes);
            let _ = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            if self.observation.is_asking.load(Ordering::Relaxed) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        });
        timeout(limit, acknowledged).await.is_ok()
    }

    fn line(self) -> Value {
        drop((self.stream, self.observation));
        let (statistics, error) = self.thread.finish();
        assert_eq!((statistics.written, error.is_none()), (1, true));
        let text = std::fs::read_to_string(self.directory.0.join("log")).expect("a line");
        serde_json::from_str(&text).expect("JSON")
    }
}

#[tokio::test]
async fn ttlb_ends_when_the_last_byte_is_acknowledged_not_when_it_is_written() {
    let mut connection = Connection::new("observed", false).await;
    connection.respond(LEN).await;
    assert!(!connection.is_acknowledged(Duration::from_millis(60)).await);
    let mut all = vec![0; LEN];
    connection.client.read_exact(&mut all).await.expect("all");
    assert!(connection.is_acknowledged(PATIENCE).await);
    let line = connection.line();
    assert!(line["ttlb"].as_u64() >= Some(60), "{line}");
    assert_eq!(line["complete"], true);
    assert_eq!(line["content_length"], LEN);
    assert_eq!(line["tcp.bytes.acked"], LEN);
    assert_eq!(
        (&line["transport"], &line["conn_id"], &line["site"]),
        (&"tcp".into(), &3.into(), &"fra".into())
    );
}

#[tokio::test]
async fn bytes_not_yet_written_to_the_socket_are_not_acknowledged() {
    let mut connection = Connection::new("observed-above", false).await;
    connection.respond(LEN / 2).await;
    let mut half = vec![0; LEN / 2];
    connection.client.read_exact(&mut half).await.expect("all");
    assert!(!connection.is_acknowledged(Duration::from_millis(60)).await);
    let line = connection.line();
    // No failure was reported, either.
    assert_eq!(
        (&line["ttlb"], &line["complete"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn concurrent_responses_have_no_ttlb() {
    let mut connection = Connection::new("observed-shared", true).await;
    let first = connection.observation.on_request("GET");
    connection.respond(LEN).await;
    first.on_body(5);
    first.on_end(true);
    drop(first);
    let mut all = vec![0; LEN];
    connection.client.read_exact(&mut all).await.expect("all");
    assert!(connection.is_acknowledged(PATIENCE).await);
    let line = connection.line();
    assert_eq!(
        (&line["ttlb"], &line["complete"]),
        (&Value::Null, &true.into())
    );
    assert_eq!(
        (&line["requests"], &line["body-bytes"]),
        (&2.into(), &(LEN + 5).into())
    );
}

#[tokio::test]
async fn an_aborted_response_is_not_complete() {
    let connection = Connection::new("observed-cut", false).await;
    let request = connection.observation.on_request("GET");
    request.on_head(Some(5));
    request.on_end(false);
    drop(request);
    let line = connection.line();
    assert_eq!(
        (&line["complete"], &line["content_length"]),
        (&false.into(), &5.into())
    );
}

#[tokio::test]
async fn a_connection_without_a_handshake_has_no_line() {
    let connection = Connection::new("observed-none", false).await;
    connection.observation.state().session = None;
    drop((connection.stream, connection.observation));
    assert_eq!(connection.thread.finish().0.written, 0);
}
