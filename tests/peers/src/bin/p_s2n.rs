//! s2n-quic, raw streams only: its HTTP/3 adapter is not published.
//!
//! ```text
//! p_s2n server  ADDR
//! p_s2n raw     ADDR SIZE                    one connection, one raw stream (ALPN `bulk`)
//! p_s2n rawload ADDR SIZE N CONNS STREAMS    N streams over CONNS connections, STREAMS at a time on each
//! p_s2n rawhs   ADDR SIZE N CONC             one connection for each stream
//! ```
//!
//! A stream carries an 8-byte little-endian length; the answer has that many bytes. `TLS` names the folder with `cert.pem` and
//! `key.pem`.

use bytes::Bytes;
use s2n_quic::{
    Client, Connection, Server,
    client::Connect,
    provider::{io::tokio as io, limits::Limits, tls::rustls as tls},
};
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicIsize, Ordering::Relaxed},
    },
    time::Instant,
};

type R<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn size(p: &str) -> u64 {
    let p = p.trim_start_matches('/');
    match p.chars().last() {
        Some('k') => p[..p.len() - 1].parse::<u64>().unwrap() << 10,
        Some('m') => p[..p.len() - 1].parse::<u64>().unwrap() << 20,
        Some('g') => p[..p.len() - 1].parse::<u64>().unwrap() << 30,
        _ => p.parse().unwrap(),
    }
}

fn pem(f: &str) -> PathBuf {
    PathBuf::from(std::env::var("TLS").expect("TLS: folder with cert.pem and key.pem")).join(f)
}

fn limits() -> R<Limits> {
    Ok(Limits::new()
        .with_data_window(64 << 20)?
        .with_bidirectional_local_data_window(16 << 20)?
        .with_bidirectional_remote_data_window(16 << 20)?
        .with_max_send_buffer_size(16 << 20)?
        .with_max_open_remote_bidirectional_streams(1000)?)
}

fn sock(addr: SocketAddr) -> R<io::Provider> {
    Ok(io::Provider::builder()
        .with_receive_address(addr)?
        .build()?)
}

async fn server(addr: SocketAddr) -> R<()> {
    let t = tls::Server::builder()
        .with_certificate(pem("cert.pem").as_path(), pem("key.pem").as_path())?
        .with_application_protocols(["bulk"].iter())?
        .build()?;
    let mut s = Server::builder()
        .with_tls(t)?
        .with_io(sock(addr)?)?
        .with_limits(limits()?)?
        .start()?;
    let block = Bytes::from(vec![b'x'; 256 << 10]);
    while let Some(mut c) = s.accept().await {
        let block = block.clone();
        tokio::spawn(async move {
            while let Ok(Some(st)) = c.accept_bidirectional_stream().await {
                let block = block.clone();
                tokio::spawn(async move {
                    let (mut r, mut w) = st.split();
                    let mut b = vec![];
                    while let Some(x) = r.receive().await? {
                        b.extend_from_slice(&x);
                    }
                    let mut n = u64::from_le_bytes(b[..8].try_into()?) as usize;
                    while n > 0 {
                        let k = n.min(block.len());
                        w.send(block.slice(..k)).await?;
                        n -= k;
                    }
                    w.finish()?;
                    R::Ok(())
                });
            }
        });
    }
    Ok(())
}

fn client() -> R<Client> {
    let t = tls::Client::builder()
        .with_certificate(pem("cert.pem").as_path())?
        .with_application_protocols(["bulk"].iter())?
        .build()?;
    Ok(Client::builder()
        .with_tls(t)?
        .with_io(sock("127.0.0.1:0".parse()?)?)?
        .with_limits(limits()?)?
        .start()?)
}

async fn connect(c: &Client, addr: SocketAddr) -> R<Connection> {
    Ok(c.connect(Connect::new(addr).with_server_name("localhost"))
        .await?)
}

async fn get(h: &mut s2n_quic::connection::Handle, n: u64) -> R<usize> {
    let (mut r, mut w) = h.open_bidirectional_stream().await?.split();
    w.send(Bytes::copy_from_slice(&n.to_le_bytes())).await?;
    w.finish()?;
    let mut got = 0;
    while let Some(x) = r.receive().await? {
        got += x.len();
    }
    Ok(got)
}

/// `n` streams from `conns` groups of `streams` tasks; on one connection for the group, or on one for each stream.
async fn load(
    addr: SocketAddr,
    each: u64,
    n: usize,
    conns: usize,
    streams: usize,
    is_shared: bool,
) -> R<(usize, usize)> {
    let c = client()?;
    let left = Arc::new(AtomicIsize::new(isize::try_from(n)?));
    let mut open = Vec::new();
    let mut tasks = Vec::new();
    for _ in 0..conns {
        let shared = if is_shared {
            Some(connect(&c, addr).await?)
        } else {
            None
        };
        for _ in 0..streams {
            let (c, left) = (c.clone(), left.clone());
            let mut shared = shared.as_ref().map(Connection::handle);
            tasks.push(tokio::spawn(async move {
                let (mut reqs, mut bytes) = (0, 0);
                while left.fetch_sub(1, Relaxed) > 0 {
                    bytes += match &mut shared {
                        Some(handle) => get(handle, each).await?,
                        None => {
                            let k = connect(&c, addr).await?;
                            let n = get(&mut k.handle(), each).await?;
                            k.close(0u32.into());
                            n
                        }
                    };
                    reqs += 1;
                }
                R::Ok((reqs, bytes))
            }));
        }
        open.extend(shared);
    }
    let mut total = (0, 0);
    for task in tasks {
        let (reqs, bytes) = task.await??;
        total = (total.0 + reqs, total.1 + bytes);
    }
    Ok(total)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> R<()> {
    let a: Vec<String> = std::env::args().collect();
    let addr: SocketAddr = a[2].parse()?;
    match a[1].as_str() {
        "server" => server(addr).await?,
        "raw" => {
            let c = client()?;
            let k = connect(&c, addr).await?;
            let t = Instant::now();
            let n = get(&mut k.handle(), size(&a[3])).await?;
            println!("raw reqs=1 bytes={n} s={:.3} ", t.elapsed().as_secs_f64());
        }
        what @ ("rawload" | "rawhs") => {
            let number = |i: usize| a.get(i).map_or(Ok(1), |text| text.parse::<usize>());
            let streams = if what == "rawload" { number(6)? } else { 1 };
            let t = Instant::now();
            let (reqs, bytes) = load(
                addr,
                size(&a[3]),
                number(4)?,
                number(5)?,
                streams,
                what == "rawload",
            )
            .await?;
            println!(
                "{what} reqs={reqs} bytes={bytes} s={:.3} ",
                t.elapsed().as_secs_f64()
            );
        }
        what => {
            return Err(
                format!("{what}: no command (expected server, raw, rawload or rawhs)").into(),
            );
        }
    }
    Ok(())
}
