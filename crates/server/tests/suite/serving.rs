//! A server for a test, and a client over TCP that speaks in bytes.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use lastbyte_quic::connection::Config;
use lastbyte_server::{Arm, Arms, Handler, Identity, Server, Settings, Site};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

/// Long enough for anything that works; a test that waits for it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn arms() -> Arms {
    let arm = Arm {
        name: "cubic".into(),
        share: 1.0,
        config: Arc::new(Config::new("cubic".parse().expect("a spec"))),
    };
    Arms::new(vec![arm]).expect("an arm")
}

pub(crate) fn identity() -> Identity {
    let days = lastbyte_driver::Clock::since_epoch().as_secs() / 86_400;
    Identity::self_signed(&["localhost".into()], days.cast_signed()).expect("an identity")
}

/// What the tests' servers are made of: one worker, on loopback.
pub(crate) fn settings(handler: impl Handler + 'static) -> Settings {
    let address = "127.0.0.1:0".parse().expect("an address");
    let mut settings = Settings::new(address, identity(), arms(), Arc::new(handler));
    settings.workers = std::num::NonZeroUsize::new(1);
    settings
}

/// What a client of HTTP/1.1 is made of.
pub(crate) fn client(
    versions: &[&'static SupportedProtocolVersion],
    roots: Arc<RootCertStore>,
) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// A server that runs, and what its clients trust.
pub(crate) struct Serving {
    pub(crate) server: Server,
    pub(crate) roots: Arc<RootCertStore>,
}

impl Serving {
    pub(crate) fn start(settings: Settings) -> Self {
        let mut roots = RootCertStore::empty();
        let own = settings.identities[0].chain[0].clone();
        roots.add(own).expect("a certificate");
        Self {
            server: Server::start(settings).expect("a server"),
            roots: Arc::new(roots),
        }
    }

    pub(crate) fn site(site: Site) -> Self {
        Self::start(settings(site))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        client(versions, Arc::clone(&self.roots))
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address(), self.client(rustls::ALL_VERSIONS))
    }

    /// What comes back for these bytes until the server closes.
    pub(crate) fn ask(&self, request: &str) -> Response {
        let mut client = self.connect();
        client.send(request.as_bytes());
        Response::parse(&client.rest())
    }

    /// What comes back for a request with these fields, which is the last of its connection.
    pub(crate) fn get(&self, path: &str, fields: &str) -> Response {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n"
        ))
    }

    pub(crate) fn end(self) {
        drop(self.server.shut_down(PATIENCE));
    }
}

/// A connection over TLS.
pub(crate) struct Client {
    pub(crate) stream: StreamOwned<ClientConnection, TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, config: Arc<ClientConfig>) -> Self {
        Self::over(TcpStream::connect(address).expect("a listener"), config)
    }

    pub(crate) fn over(socket: TcpStream, config: Arc<ClientConfig>) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        let name = "localhost".try_into().expect("a name");
        let connection = ClientConnection::new(config, name).expect("a client");
        Self {
            stream: StreamOwned::new(connection, socket),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("it is taken");
        self.stream.flush().expect("it is taken");
    }

    /// Reads this many bytes.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("they come");
        bytes
    }

    /// Up to the end of a head.
    pub(crate) fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(self.take(1));
        }
        String::from_utf8(head).expect("text")
    }

    /// All that comes until the server closes, in whatever way.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return bytes,
                Ok(count) => bytes.extend(&buffer[..count]),
                Err(error) => {
                    let is_late = error.kind() == std::io::ErrorKind::WouldBlock;
                    assert!(!is_late, "the server neither answers nor closes");
                    return bytes;
                }
            }
        }
    }
}

/// A response, as it came.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no head: {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
        let status = head
            .get(9..12)
            .expect("a status")
            .parse()
            .expect("a number");
        Self {
            status,
            head,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A folder of its own, gone when the test is over.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lastbyte-suite-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("room");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("room");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
