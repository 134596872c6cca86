//! A small HTTP/3 server, well-behaved or not, depending on the requested path. Shared with the tests of the binary.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use lastbyte_driver::{Application, Clock, Datagram, Next, Status, SteeringRule, WorkerPool};
use lastbyte_http3::{Body, Code, Config, Connection as Http3, Event, Fields, Request, Response};
use lastbyte_quic::{
    Time,
    connection::{self, Connection},
    crypto::tls::TlsServer,
    endpoint::{Closed, Endpoint, EndpointConfig, Handle, RetryPolicy},
};
use lastbyte_udp::{Options, Steering, bind_group};
use lastbyte_wire::StreamId;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;

/// A server in a separate thread, which ends when it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// Its self-signed certificate in PEM.
    pub(crate) certificate: String,
    /// The number of accepted connections.
    pub(crate) accepted: Arc<AtomicUsize>,
    pool: Option<WorkerPool<()>>,
}

impl Server {
    /// Starts a server for this name, or several names separated by commas.
    pub(crate) fn start(name: &str, retry: RetryPolicy) -> Self {
        let names: Vec<String> = name.split(',').map(str::to_owned).collect();
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(names).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a pair");
        config.alpn_protocols = vec![lastbyte_http3::ALPN.to_vec()];
        config.max_early_data_size = u32::MAX;
        let crypto = Arc::new(TlsServer::new(config).expect("for QUIC"));
        let address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let options = Options::default();
        let (sockets, _) = bind_group(address, 1, &options, Steering::ByAddress).expect("a socket");
        let port = sockets[0].local_address().port();
        let steering = SteeringRule {
            byte: 0,
            workers: 1,
        };
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        let make = move |_| {
            let transport = connection::Config::new("cubic".parse().expect("a spec"));
            let mut config = EndpointConfig::server(Arc::new(transport), crypto.clone());
            if let Some(server) = &mut config.server {
                server.retry = retry;
            }
            let endpoint = Endpoint::new(config, [7; 32]).map_err(std::io::Error::other)?;
            let site = Site {
                accepted: Arc::clone(&counter),
                connections: BTreeMap::new(),
                rejected: 0,
                to_abort: Vec::new(),
                is_done: false,
            };
            Ok((endpoint, site))
        };
        let pool = WorkerPool::start(sockets, steering, Clock::new(), None, make).expect("a pool");
        Self {
            port,
            certificate: cert.pem(),
            accepted,
            pool: Some(pool),
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}/{path}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            for remote in pool.remotes() {
                let _ = remote.send(());
            }
            let _ = pool.join();
        }
    }
}

/// The bytes of the body of `/N`.
pub(crate) fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn len_of(response: Response, len: usize) -> Response {
    response.with("content-length", len.to_string())
}

struct Site {
    accepted: Arc<AtomicUsize>,
    connections: BTreeMap<Handle, (Http3, BTreeMap<StreamId, Vec<u8>>)>,
    rejected: usize,
    /// Messages to be aborted once the data sent so far has been acknowledged; `true` aborts the whole connection.
    to_abort: Vec<(Handle, StreamId, bool)>,
    is_done: bool,
}

impl Site {
    fn answer(
        &mut self,
        now: Time,
        handle: Handle,
        quic: &mut Connection,
        stream: StreamId,
        request: &Request,
    ) {
        let Some((http3, uploads)) = self.connections.get_mut(&handle) else {
            return;
        };
        let path = request.path().unwrap_or_default().trim_start_matches('/');
        let source = |len: usize| Body::Source(Box::new(body(len)));
        let ok = Response::new(200);
        let part = |http3: &mut Http3, quic: &mut Connection| {
            let response = Response::new(200).with("content-length", "100000");
            http3
                .respond(quic, stream, &response, Body::Follows)
                .expect("open");
            http3.write(quic, stream, &body(5000)).expect("open");
        };
        match path {
            "reset" | "close" => {
                part(http3, quic);
                self.to_abort.push((handle, stream, path == "close"));
            }
            // A body that is shorter than `content-length`. Our own HTTP/3 implementation would not send this.
            "short" => {
                let bytes = b"\x01\x09\0\0\xd9\x54\x041000\x00\x05hello";
                quic.streams().write(stream, bytes).expect("room");
                quic.streams().finish(stream).expect("open");
            }
            // DATA before HEADERS (RFC 9114 §4.1).
            "violation" => {
                quic.streams().write(stream, b"\0\x01x").expect("room");
            }
            "goaway" => {
                http3.respond(quic, stream, &ok, source(10)).expect("open");
                http3.shut_down(quic, now);
            }
            "reject-once" if self.rejected == 0 => {
                self.rejected += 1;
                http3.cancel(quic, now, stream, Code::REQUEST_REJECTED);
            }
            "reject" => http3.cancel(quic, now, stream, Code::REQUEST_REJECTED),
            "never" => {}
            // Names that are covered by the certificate, but rejected by this server.
            _ if request
                .authority()
                .is_some_and(|it| it.starts_with("elsewhere")) =>
            {
                let misdirected = Response::new(421);
                http3
                    .respond(quic, stream, &misdirected, source(9))
                    .expect("open");
            }
            "echo" => {
                uploads.insert(stream, Vec::new());
            }
            "all" => {
                let interim = Response::new(103).with("link", "</style.css>");
                http3.inform(quic, stream, &interim).expect("open");
                let response = Response::new(200).with("x-test", "ab");
                http3
                    .respond(quic, stream, &response, Body::Follows)
                    .expect("open");
                http3.write(quic, stream, b"hello").expect("open");
                let trailers = Fields::new().with("x-sum", "5");
                http3.trailers(quic, stream, &trailers).expect("open");
            }
            // Our own client permits 100 (`lastbyte_http3::Limits::informational`).
            "hints" => {
                for _ in 0..110 {
                    let interim = Response::new(103);
                    http3.inform(quic, stream, &interim).expect("room");
                }
            }
            path => {
                let (response, body) = match path.parse::<usize>() {
                    Ok(len) if request.method() == "HEAD" => (len_of(ok, len), Body::Empty),
                    Ok(len) => (len_of(ok, len), source(len)),
                    Err(_) => (Response::new(404), source(9)),
                };
                http3.respond(quic, stream, &response, body).expect("open");
            }
        }
    }
}

impl Site {
    fn abort_messages(&mut self, now: Time, handle: Handle, quic: &mut Connection) {
        let Some((http3, _)) = self.connections.get_mut(&handle) else {
            return;
        };
        if quic.recovery().in_flight() > 0 {
            return;
        }
        for (_, stream, closes_connection) in self.to_abort.extract_if(.., |(of, ..)| *of == handle)
        {
            if closes_connection {
                http3.close(quic, now, Code::INTERNAL_ERROR);
            } else {
                http3.reset(quic, stream, Code::INTERNAL_ERROR);
            }
        }
    }
}

impl Application for Site {
    type Command = ();
    type Data = ();

    fn on_accepted(&mut self, _: Time, handle: Handle, _: &mut Connection) {
        self.accepted.fetch_add(1, Ordering::SeqCst);
        let http3 = Http3::server(&Config::default());
        self.connections.insert(handle, (http3, BTreeMap::new()));
    }

    fn on_datagram(
        &mut self,
        now: Time,
        _: Handle,
        quic: &mut Connection,
        (): &mut (),
        datagram: Datagram<'_>,
    ) {
        let Datagram { path, ecn, bytes } = datagram;
        quic.handle_datagram(now, &path, ecn, bytes, &mut lastbyte_quic::stream::KeepAll);
    }

    fn on_ready(&mut self, now: Time, handle: Handle, quic: &mut Connection, (): &mut ()) {
        self.abort_messages(now, handle, quic);
        while quic.poll_event().is_some() {}
        loop {
            let Some((http3, uploads)) = self.connections.get_mut(&handle) else {
                return;
            };
            match http3.poll(quic, now) {
                None => return,
                Some(Event::Request { stream, request }) => {
                    self.answer(now, handle, quic, stream, &request);
                }
                Some(Event::Data { stream }) => {
                    let upload = uploads.entry(stream).or_default();
                    let _ = http3.read(quic, now, stream, &mut |bytes| {
                        upload.extend_from_slice(bytes);
                        bytes.len()
                    });
                }
                Some(Event::Finished { stream }) => {
                    if let Some(upload) = uploads.remove(&stream) {
                        let body = Body::Source(Box::new(upload));
                        http3
                            .respond(quic, stream, &Response::new(200), body)
                            .expect("open");
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn on_closed(&mut self, _: Time, closed: Closed) {
        self.connections.remove(&closed.handle);
    }

    fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {
        self.is_done = true;
    }

    fn on_turn(&mut self, now: Time, endpoint: &mut Endpoint) -> Next {
        let mut deadline = None;
        for (handle, (http3, _)) in &mut self.connections {
            let Some(at) = http3.deadline() else { continue };
            if at <= now
                && let Some(quic) = endpoint.connection(*handle)
            {
                while http3.poll(quic, now).is_some() {}
            }
            deadline = deadline.into_iter().chain(http3.deadline()).min();
        }
        Next {
            deadline,
            status: Status::stopped_if(self.is_done),
        }
    }
}
