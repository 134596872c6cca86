//! quinn with h3.
//!
//! ```text
//! p_quinn server ADDR                          raw streams (ALPN `bulk`) and HTTP/3 (ALPN `h3`) on one port
//! p_quinn raw    ADDR SIZE                     one connection, one raw stream
//! p_quinn get    ADDR PATH [FILE]              one HTTP/3 GET; the body goes to FILE
//! p_quinn load   ADDR PATH N CONNS STREAMS     N HTTP/3 GETs over CONNS connections, STREAMS at a time on each
//! p_quinn hs     ADDR PATH N CONC full|resume|0rtt   one connection for each request
//! p_quinn rawhs  ADDR SIZE N CONC              one connection for each raw stream
//! ```
//!
//! `/<n>[k|m|g]` has that many bytes. A raw stream carries an 8-byte little-endian length; the answer has that many bytes.
//! `TLS` names the folder with `cert.pem` and `key.pem`. `CONGESTION` is a spec of Lastbyte's congestion control, in place
//! of quinn's CUBIC.

use bytes::{Buf, Bytes};
use lastbyte_peers::Controllers;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};
use std::{fs::File, future::poll_fn, io::Write, net::SocketAddr, sync::Arc, time::Instant};

type R<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    use rustls::crypto::aws_lc_rs as c;
    let mut p = c::default_provider();
    p.kx_groups = vec![c::kx_group::X25519];
    p.cipher_suites
        .retain(|s| s.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(p)
}

/// Accepts any certificate; verifies the handshake signature.
#[derive(Debug)]
struct AnyCert(Arc<rustls::crypto::CryptoProvider>);
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
impl ServerCertVerifier for AnyCert {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("tls12".into()))
    }
    fn verify_tls13_signature(
        &self,
        m: &[u8],
        c: &CertificateDer<'_>,
        d: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(m, c, d, &self.0.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Tickets that have arrived and were not waited for yet.
static TICKETS: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(0);

/// rustls' cache of sessions, which counts the tickets that arrive.
#[derive(Debug)]
struct Sessions(rustls::client::ClientSessionMemoryCache);

impl Default for Sessions {
    fn default() -> Self {
        Self(rustls::client::ClientSessionMemoryCache::new(256))
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, server: ServerName<'static>, group: rustls::NamedGroup) {
        self.0.set_kx_hint(server, group);
    }
    fn kx_hint(&self, server: &ServerName<'_>) -> Option<rustls::NamedGroup> {
        self.0.kx_hint(server)
    }
    fn set_tls12_session(&self, server: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.0.set_tls12_session(server, session);
    }
    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(server)
    }
    fn remove_tls12_session(&self, server: &ServerName<'static>) {
        self.0.remove_tls12_session(server);
    }
    fn insert_tls13_ticket(&self, server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(server, ticket);
        TICKETS.add_permits(1);
    }
    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(server)
    }
}

fn transport() -> Arc<quinn::TransportConfig> {
    let mut t = quinn::TransportConfig::default();
    if let Ok(spec) = std::env::var("CONGESTION") {
        let spec: lastbyte_congestion::Spec = spec.parse().expect("CONGESTION: a spec");
        t.congestion_controller_factory(Arc::new(Controllers(Arc::new(spec))));
    }
    t.stream_receive_window((16u32 << 20).into())
        .receive_window((64u32 << 20).into())
        .send_window(16 << 20);
    Arc::new(t)
}

fn client(alpn: &str, resume: bool) -> R<quinn::Endpoint> {
    let p = provider();
    let mut tls = rustls::ClientConfig::builder_with_provider(p.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCert(p)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.into()];
    tls.enable_early_data = resume;
    tls.resumption = if resume {
        rustls::client::Resumption::store(Arc::new(Sessions::default()))
    } else {
        rustls::client::Resumption::disabled()
    };
    let mut cfg = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    cfg.transport_config(transport());
    let mut ec = quinn::EndpointConfig::default();
    ec.max_udp_payload_size(65527)?;
    let s = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let mut e = quinn::Endpoint::new(ec, None, s, Arc::new(quinn::TokioRuntime))?;
    e.set_default_client_config(cfg);
    Ok(e)
}

fn size(p: &str) -> usize {
    let p = p.trim_start_matches('/');
    let (n, m) = match p.chars().last() {
        Some('k') => (&p[..p.len() - 1], 1 << 10),
        Some('m') => (&p[..p.len() - 1], 1 << 20),
        Some('g') => (&p[..p.len() - 1], 1 << 30),
        _ => (p, 1),
    };
    n.parse::<usize>().unwrap_or(0) * m
}

async fn server(addr: SocketAddr) -> R<()> {
    let dir = std::env::var("TLS").expect("TLS: folder with cert.pem and key.pem");
    let cert = CertificateDer::from_pem_file(format!("{dir}/cert.pem"))?;
    let key = PrivateKeyDer::from_pem_file(format!("{dir}/key.pem"))?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)?;
    tls.alpn_protocols = vec!["h3".into(), "bulk".into()];
    tls.max_early_data_size = u32::MAX;
    let mut cfg = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    cfg.transport_config(transport());
    let mut ec = quinn::EndpointConfig::default();
    ec.max_udp_payload_size(65527)?;
    let e = quinn::Endpoint::new(
        ec,
        Some(cfg),
        std::net::UdpSocket::bind(addr)?,
        Arc::new(quinn::TokioRuntime),
    )?;
    let block = Bytes::from(vec![b'x'; 256 << 10]);
    while let Some(inc) = e.accept().await {
        let block = block.clone();
        tokio::spawn(async move {
            let c = match inc.accept()?.into_0rtt() {
                Ok((c, _)) => c,
                Err(c) => c.await?,
            };
            // ALPN is known once the ClientHello was read, before `into_0rtt` returns a usable connection.
            let alpn = loop {
                if let Some(a) = alpn(&c) {
                    break a;
                }
                tokio::task::yield_now().await;
            };
            if alpn == b"bulk" {
                raw_conn(c, block).await
            } else {
                h3_conn(c, block).await
            }
        });
    }
    Ok(())
}

fn alpn(c: &quinn::Connection) -> Option<Vec<u8>> {
    c.handshake_data().map(|d| {
        d.downcast::<quinn::crypto::rustls::HandshakeData>()
            .unwrap()
            .protocol
            .unwrap_or_default()
    })
}

async fn raw_conn(c: quinn::Connection, block: Bytes) -> R<()> {
    loop {
        let (mut s, mut r) = c.accept_bi().await?;
        let mut b = [0; 8];
        r.read_exact(&mut b).await?;
        let mut n = u64::from_le_bytes(b) as usize;
        while n > 0 {
            let k = n.min(block.len());
            s.write_chunk(block.slice(..k)).await?;
            n -= k;
        }
        s.finish()?;
    }
}

async fn h3_conn(c: quinn::Connection, block: Bytes) -> R<()> {
    let mut h = h3::server::builder()
        .build::<_, Bytes>(h3_quinn::Connection::new(c))
        .await?;
    while let Some(res) = h.accept().await? {
        let block = block.clone();
        tokio::spawn(async move {
            let (req, mut s) = res.resolve_request().await?;
            let mut n = size(req.uri().path());
            // Read to the end of the request: dropping an unread receive side sends STOP_SENDING 0, which curl reports as a reset.
            while s.recv_data().await?.is_some() {}
            s.send_response(
                http::Response::builder()
                    .status(200)
                    .header("content-length", n)
                    .body(())?,
            )
            .await?;
            while n > 0 {
                let k = n.min(block.len());
                s.send_data(block.slice(..k)).await?;
                n -= k;
            }
            s.finish().await?;
            R::Ok(())
        });
    }
    Ok(())
}

type Send3 = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;

async fn h3_client(c: quinn::Connection) -> R<Send3> {
    let (mut d, s) = h3::client::new(h3_quinn::Connection::new(c)).await?;
    tokio::spawn(async move { poll_fn(|cx| d.poll_close(cx)).await });
    Ok(s)
}

async fn get(s: &mut Send3, addr: SocketAddr, path: &str, mut to: Option<File>) -> R<usize> {
    let req = http::Request::get(format!("https://localhost:{}{path}", addr.port())).body(())?;
    let mut st = s.send_request(req).await?;
    st.finish().await?;
    let r = st.recv_response().await?;
    if r.status() != 200 {
        return Err(format!("status {}", r.status()).into());
    }
    let mut n = 0;
    while let Some(mut b) = st.recv_data().await? {
        n += b.remaining();
        if let Some(f) = &mut to {
            f.write_all(&b.copy_to_bytes(b.remaining()))?;
        }
    }
    Ok(n)
}

/// The length of the answer to a raw stream that asks for this many bytes.
async fn raw_get(c: &quinn::Connection, size: u64) -> R<usize> {
    let (mut s, mut r) = c.open_bi().await?;
    s.write_all(&size.to_le_bytes()).await?;
    s.finish()?;
    let mut n = 0;
    while let Some(ch) = r.read_chunk(1 << 20, true).await? {
        n += ch.bytes.len();
    }
    Ok(n)
}

fn report(what: &str, reqs: usize, bytes: usize, t: Instant, extra: &str) {
    let s = t.elapsed().as_secs_f64();
    println!("{what} reqs={reqs} bytes={bytes} s={s:.3} {extra}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> R<()> {
    let a: Vec<String> = std::env::args().collect();
    let addr: SocketAddr = a[2].parse()?;
    match a[1].as_str() {
        "server" => server(addr).await?,
        "raw" => {
            let e = client("bulk", false)?;
            let c = e.connect(addr, "localhost")?.await?;
            let t = Instant::now();
            let n = raw_get(&c, size(&a[3]) as u64).await?;
            report("raw", 1, n, t, "");
        }
        "rawhs" => {
            let (n, conc): (usize, usize) = (a[4].parse()?, a[5].parse()?);
            let (e, size) = (client("bulk", false)?, size(&a[3]) as u64);
            let left = Arc::new(std::sync::atomic::AtomicIsize::new(n as isize));
            let t = Instant::now();
            let mut tasks = vec![];
            for _ in 0..conc {
                let (e, left) = (e.clone(), left.clone());
                tasks.push(tokio::spawn(async move {
                    let mut done = (0, 0);
                    while left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) > 0 {
                        let c = e.connect(addr, "localhost")?.await?;
                        done.1 += raw_get(&c, size).await?;
                        done.0 += 1;
                        c.close(0u32.into(), b"");
                    }
                    R::Ok(done)
                }));
            }
            let mut tot = (0, 0);
            for x in tasks {
                let d = x.await??;
                tot = (tot.0 + d.0, tot.1 + d.1);
            }
            report("rawhs", tot.0, tot.1, t, "");
        }
        "get" => {
            let e = client("h3", false)?;
            let c = e.connect(addr, "localhost")?.await?;
            let mut s = h3_client(c).await?;
            let t = Instant::now();
            let n = get(&mut s, addr, &a[3], a.get(4).map(File::create).transpose()?).await?;
            report("get", 1, n, t, "");
        }
        "load" => {
            let (n, conns, streams): (usize, usize, usize) =
                (a[4].parse()?, a[5].parse()?, a[6].parse()?);
            let e = client("h3", false)?;
            let left = Arc::new(std::sync::atomic::AtomicIsize::new(n as isize));
            let t = Instant::now();
            let mut tasks = vec![];
            for _ in 0..conns {
                let s = h3_client(e.connect(addr, "localhost")?.await?).await?;
                for _ in 0..streams {
                    let (mut s, left, path) = (s.clone(), left.clone(), a[3].clone());
                    tasks.push(tokio::spawn(async move {
                        let mut done = (0, 0);
                        while left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) > 0 {
                            done.1 += get(&mut s, addr, &path, None).await?;
                            done.0 += 1;
                        }
                        R::Ok(done)
                    }));
                }
            }
            let mut tot = (0, 0);
            for x in tasks {
                let d = x.await??;
                tot = (tot.0 + d.0, tot.1 + d.1);
            }
            report("load", tot.0, tot.1, t, "");
        }
        "hs" => {
            let (n, conc, mode): (usize, usize, String) =
                (a[4].parse()?, a[5].parse()?, a[6].clone());
            let e = client("h3", mode != "full")?;
            let left = Arc::new(std::sync::atomic::AtomicIsize::new(n as isize));
            if mode != "full" {
                for _ in 0..conc.min(4) {
                    let c = e.connect(addr, "localhost")?.await?;
                    let mut s = h3_client(c.clone()).await?;
                    get(&mut s, addr, &a[3], None).await?;
                    TICKETS.acquire().await?.forget();
                    c.close(0x100u32.into(), b"");
                }
            }
            let t = Instant::now();
            let mut tasks = vec![];
            for _ in 0..conc {
                let (e, left, path, early) =
                    (e.clone(), left.clone(), a[3].clone(), mode == "0rtt");
                let resumes = mode != "full";
                tasks.push(tokio::spawn(async move {
                    let mut d = (0, 0, 0);
                    while left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) > 0 {
                        let cn = e.connect(addr, "localhost")?;
                        let mut acc = None;
                        let c = if early {
                            match cn.into_0rtt() {
                                Ok((c, a)) => {
                                    acc = Some(a);
                                    c
                                }
                                Err(cn) => cn.await?,
                            }
                        } else {
                            cn.await?
                        };
                        let mut s = h3_client(c.clone()).await?;
                        d.1 += get(&mut s, addr, &path, None).await?;
                        d.0 += 1;
                        if let Some(a) = acc {
                            if a.await {
                                d.2 += 1
                            }
                        }
                        if resumes {
                            // Of the next connection: the response to 0-RTT comes before it.
                            TICKETS.acquire().await?.forget();
                        }
                        c.close(0x100u32.into(), b"");
                    }
                    R::Ok(d)
                }));
            }
            let mut tot = (0, 0, 0);
            for x in tasks {
                let d = x.await??;
                tot = (tot.0 + d.0, tot.1 + d.1, tot.2 + d.2);
            }
            report(
                &format!("hs-{mode}"),
                tot.0,
                tot.1,
                t,
                &format!("early_accepted={}", tot.2),
            );
        }
        what => {
            return Err(format!(
                "unknown command `{what}` (expected server, raw, get, load, hs or rawhs)"
            )
            .into());
        }
    }
    Ok(())
}
