use tokio::{io::AsyncReadExt, runtime};

use super::*;

const SHORT: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);

/// Two ends of a connection.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
    (near.expect("it listens"), far.expect("a client").0)
}

/// Runs the client and the server of a relayed connection, and then waits for the end of the relay.
fn relayed<T>(stall: Duration, ends: impl AsyncFnOnce(TcpStream, TcpStream) -> T) -> T {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (client, from_client) = connection().await;
        let (to_server, server) = connection().await;
        let all =
            async { tokio::join!(relay(from_client, to_server, stall), ends(client, server)) };
        let ended = time::timeout(PATIENCE, all).await;
        ended.expect("the relay ends").1
    })
}

#[test]
fn a_burst_of_connections_waits_to_be_accepted() {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener = listen(any).expect("a port");
        let address = listener.local_addr().expect("it listens");
        let mut connected = Vec::new();
        for _ in 0..500 {
            let connecting = time::timeout(PATIENCE, TcpStream::connect(address)).await;
            connected.push(connecting.expect("there is room").expect("it listens"));
        }
    });
}

/// As an early 413, from a server that closes with data unread.
#[test]
fn rfc9112_9_6_a_response_before_the_end_of_an_upload_reaches_the_client() {
    for round in 0..20 {
        let got = relayed(
            PATIENCE,
            async |mut client: TcpStream, server: TcpStream| {
                // Until nothing on the way takes more.
                let piece = [0; 1 << 14];
                while let Ok(written) = time::timeout(SHORT, client.write(&piece)).await {
                    written.expect("it is open");
                }
                let mut server = server;
                server.write_all(b"early").await.expect("it is open");
                drop(server);
                let mut got = Vec::new();
                let read = client.read_to_end(&mut got).await;
                (got, read.is_ok())
            },
        );
        assert_eq!(got, (b"early".to_vec(), true), "{round}");
    }
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    // The client is open until the relay has ended.
    let _client = relayed(SHORT, async |client, mut server| {
        let piece = vec![0; 65_536];
        while server.write_all(&piece).await.is_ok() {}
        client
    });
}

#[test]
fn a_client_that_does_not_close_after_its_server_is_disconnected() {
    let _client = relayed(SHORT, async |client, server| {
        drop(server);
        client
    });
}

#[test]
fn a_client_that_closes_its_side_receives_the_response() {
    let response = relayed(PATIENCE, async |mut client, mut server| {
        client.write_all(b"request").await.expect("it is open");
        client.shutdown().await.expect("it is open");
        let mut request = Vec::new();
        server.read_to_end(&mut request).await.expect("it ends");
        server.write_all(&request).await.expect("it is open");
        drop(server);
        let mut response = Vec::new();
        client.read_to_end(&mut response).await.expect("it ends");
        response
    });
    assert_eq!(response, b"request");
}
