//! Two endpoints, and between them a path that does what the bytes say: it drops, duplicates, reorders and corrupts
//! datagrams, replaces the frames of packets and adds packets, sealed with the right keys. Shared by the replay of the
//! corpus and the fuzz target.
//!
//! What is checked: no panic; no peer can cause an `INTERNAL_ERROR`; a turn sends a bounded number of datagrams; stream data
//! in memory stays within the windows; a path that only drops, duplicates and reorders never causes a protocol error; both
//! endpoints forget the connection in the end.

mod frames;
mod packets;
mod tapped;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use lastbyte_congestion::Time;
use lastbyte_quic::{
    ack::Ecn,
    close::CloseReason,
    connection::{Config, Connection, NetworkPath},
    crypto::plain::{self, PlainClient, PlainServer, Resumption},
    endpoint::{Endpoint, EndpointConfig, Handle, RetryPolicy, Route},
    flow::WindowSize,
    stream::KeepAll,
};
use lastbyte_wire::{Direction, TransportError, VarInt};

use self::{frames::Input, packets::KeyRing, tapped::Tapped};

/// What a connection may have of the peer's data, in bytes.
const WINDOW: u64 = 64 << 10;
const SEND_BUFFER: usize = 16 << 10;
const STREAMS: u64 = 8;
/// Datagrams under way, beyond which the oldest are lost.
const FLYING: usize = 64;

struct World {
    /// The client, then the server.
    ends: [Endpoint; 2],
    rings: [Arc<Mutex<KeyRing>>; 2],
    client_port: u16,
    /// To which end, from which port of the client, and what.
    flying: Vec<(usize, u16, Vec<u8>)>,
    now: Time,
    /// Whether all packets that arrived are those that were sent.
    is_honest: bool,
}

fn config(flags: u8) -> Arc<Config> {
    let specs = ["cubic", "bbr", "rapid-start", "newreno"];
    let spec = specs[usize::from(flags >> 2 & 3)];
    let mut config = Config::new(spec.parse().expect("a spec"));
    let window = WindowSize {
        initial: WINDOW / 2,
        maximum: WINDOW,
    };
    config.streams.connection_window = window;
    config.streams.stream_window = window;
    config.streams.bidirectional_streams = STREAMS;
    config.streams.unidirectional_streams = STREAMS;
    config.streams.send_buffer = SEND_BUFFER;
    config.max_idle_timeout = Duration::from_secs(5);
    Arc::new(config)
}

impl World {
    /// With 0x20, the client resumes an earlier connection with 0-RTT.
    fn new(flags: u8) -> Self {
        if flags & 0x20 == 0 {
            return Self::resuming(flags, None);
        }
        let mut earlier = Self::resuming(flags & 0x80, None);
        earlier.shake_hands();
        let connection = earlier.connection(0).expect("a connection");
        let parameters = connection.session().peer_parameters();
        let parameters = parameters.expect("the server's").to_vec();
        let resumption = Resumption {
            parameters,
            early_data: true,
        };
        Self::resuming(flags, Some(resumption))
    }

    fn resuming(flags: u8, resumption: Option<Resumption>) -> Self {
        let rings: [Arc<Mutex<KeyRing>>; 2] = Default::default();
        let alpn = || vec![b"bulk".to_vec()];
        let limits = plain::Limits {
            // With a low limit, keys are updated often.
            confidentiality: if flags & 2 == 0 { 1 << 23 } else { 40 },
            ..plain::Limits::default()
        };
        let mut client = PlainClient::new(1, alpn());
        client.limits = limits;
        client.resumption = resumption;
        let mut server = PlainServer::new(2, alpn());
        server.limits = limits;
        let config = config(flags);
        let [at_client, at_server] = rings.clone();
        let tapped = Arc::new(Tapped::new(server, at_server));
        let mut at_server = Config::clone(&config);
        if flags & 0x80 != 0 {
            at_server.versions.reverse();
        }
        let mut server = EndpointConfig::server(Arc::new(at_server), tapped);
        if let Some(server) = &mut server.server
            && flags & 0x40 != 0
        {
            server.retry = RetryPolicy::Always;
        }
        let mut world = Self {
            ends: [
                Endpoint::new(EndpointConfig::client(), [1; 32]).expect("an endpoint"),
                Endpoint::new(server, [2; 32]).expect("an endpoint"),
            ],
            rings,
            client_port: 1000,
            flying: Vec::new(),
            now: Time::from_nanos(1_000_000_000),
            is_honest: true,
        };
        let tapped = Arc::new(Tapped::new(client, at_client));
        let path = world.path(0);
        world.ends[0]
            .connect(world.now, path, "localhost", &config, tapped, Vec::new())
            .expect("a connection");
        world
    }

    fn shake_hands(&mut self) {
        for _ in 0..6 {
            self.transmit();
            self.deliver_all();
        }
        self.read();
    }

    /// The path as this end sees it.
    fn path(&self, end: usize) -> NetworkPath {
        let client = SocketAddr::from(([192, 0, 2, 2], self.client_port));
        let server = SocketAddr::from(([192, 0, 2, 1], 443));
        if end == 0 {
            NetworkPath {
                local: client,
                remote: server,
            }
        } else {
            NetworkPath {
                local: server,
                remote: client,
            }
        }
    }

    fn connection(&mut self, end: usize) -> Option<&mut Connection> {
        let handle = self.ends[end].handles().next()?;
        self.ends[end].connection(handle)
    }

    /// Both ends are checked, and send what they may.
    fn transmit(&mut self) {
        let mut buffer = [0; 9000];
        for end in [0, 1] {
            self.check(end);
            let mut sent = 0;
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut buffer) {
                sent += transmit.len.div_ceil(transmit.segment_len);
                assert!(sent < 1000, "a sender without end");
                let address = if end == 0 {
                    transmit.path.local
                } else {
                    transmit.path.remote
                };
                for datagram in buffer[..transmit.len].chunks(transmit.segment_len) {
                    self.rings[end].lock().expect("unpoisoned").note(datagram);
                    self.flying
                        .push((1 - end, address.port(), datagram.to_vec()));
                }
            }
            while let Some(closed) = self.ends[end].poll_closed() {
                self.check_reason(closed.connection.close_reason());
            }
        }
        let surplus = self.flying.len().saturating_sub(FLYING);
        self.flying.drain(..surplus);
    }

    /// What an end holds is within its limits.
    fn check(&mut self, end: usize) {
        let handles: Vec<Handle> = self.ends[end].handles().collect();
        for handle in handles {
            let connection = self.ends[end].connection(handle).expect("just found");
            let reason = connection.close_reason();
            let streams = connection.streams();
            // Sent: the send buffer of each stream. Received: twice the window, as `stream::Config` says.
            let live = streams.live();
            assert!(live <= 4 * STREAMS as usize + 4, "{live} streams");
            let buffered = streams.buffered();
            assert!(
                buffered <= live * SEND_BUFFER + 2 * WINDOW as usize + 4096,
                "{buffered} bytes"
            );
            assert!(connection.recovery().in_flight() <= 1 << 30);
            self.check_reason(reason);
        }
    }

    fn check_reason(&self, reason: Option<CloseReason>) {
        if let Some(CloseReason::Local { code, reason, .. }) = reason {
            assert_ne!(code, TransportError::INTERNAL_ERROR, "{reason}");
            // Keys that may not be used any more end a connection whose acknowledgments are all lost.
            let is_fair = code == TransportError::AEAD_LIMIT_REACHED;
            assert!(!self.is_honest || is_fair, "{code}: {reason}");
        }
    }

    /// A datagram arrives.
    fn deliver(&mut self, end: usize, port: u16, datagram: &mut [u8]) {
        let current = std::mem::replace(&mut self.client_port, port);
        let path = self.path(end);
        self.client_port = current;
        let route = self.ends[end].route(self.now, &path, datagram);
        if let Route::Connection(handle) | Route::Accepted(handle) = route {
            let connection = self.ends[end].connection(handle).expect("just found");
            connection.handle_datagram(self.now, &path, Ecn::NotEct, datagram, &mut KeepAll);
        }
    }

    fn deliver_all(&mut self) {
        for (end, port, mut datagram) in std::mem::take(&mut self.flying) {
            self.deliver(end, port, &mut datagram);
        }
    }

    /// Time passes until the next deadline. False if there is none.
    fn wait(&mut self) -> bool {
        let deadlines = self.ends.iter().filter_map(Endpoint::deadline);
        let Some(next) = deadlines.min() else {
            return false;
        };
        self.now = self.now.max(next);
        for end in &mut self.ends {
            while end.poll_timeout(self.now).is_some() {}
        }
        true
    }

    /// The applications read what there is.
    fn read(&mut self) {
        let now = self.now;
        for end in [0, 1] {
            let Some(connection) = self.connection(end) else {
                continue;
            };
            while connection.poll_event().is_some() {}
            let streams = connection.streams();
            while let Some(event) = streams.poll_event() {
                if let lastbyte_quic::stream::StreamEvent::Readable(id) = event {
                    let _ = streams.read(id, now, &mut <[u8]>::len);
                }
            }
        }
    }

    /// An application does something.
    fn act(&mut self, input: &mut Input<'_>) {
        let (end, what) = (usize::from(input.byte() & 1), input.byte());
        let now = self.now;
        let Some(connection) = self.connection(end) else {
            return;
        };
        let direction = if what & 1 == 0 {
            Direction::Bidirectional
        } else {
            Direction::Unidirectional
        };
        let streams = connection.streams();
        match what >> 1 & 7 {
            0 | 1 => {
                if let Some(id) = streams.open(direction) {
                    let len = usize::from(input.byte()) * 256;
                    let _ = streams.write(id, &vec![what; len]);
                    if what & 0x10 != 0 {
                        let _ = streams.finish(id);
                    }
                }
            }
            2 | 3 => {
                while let Some(id) = streams.accept(direction) {
                    let len = usize::from(input.byte()) * 64;
                    let _ = streams.write(id, &vec![what; len]);
                    let _ = streams.finish(id);
                    if what & 0x10 != 0 {
                        let _ = streams.reset(id, VarInt::from_u32(7));
                    }
                    if what & 0x20 != 0 {
                        let _ = streams.stop_sending(id, VarInt::from_u32(7), now);
                    }
                }
            }
            4 => self.read(),
            // Was a DATAGRAM frame, in the corpus.
            5 => drop(input.byte()),
            6 if end == 0 => {
                // A NAT gives the client another port, or the client moves by itself.
                self.client_port = 1000 + u16::from(input.byte() & 3);
                if what & 0x10 != 0 {
                    let path = self.path(0);
                    if let Some(connection) = self.connection(0) {
                        let _ = connection.migrate(now, path);
                    }
                }
            }
            _ if what & 0xf0 == 0xf0 => connection.close(now, u64::from(what)),
            _ => {}
        }
    }

    /// One datagram of those under way meets its fate.
    fn fate(&mut self, what: u8, input: &mut Input<'_>) {
        if self.flying.is_empty() {
            return;
        }
        let index = usize::from(input.byte()) % self.flying.len();
        let (end, port, mut datagram) = self.flying.remove(index);
        match what {
            0 => return,
            1 => self.deliver(end, port, &mut datagram.clone()),
            2 => {
                let at = usize::from(input.byte()) * 8 % datagram.len();
                datagram[at] ^= input.byte();
                if input.byte() & 1 != 0 {
                    datagram.truncate(at + 1);
                }
                // Of the handshake's packets, not all of a header is authentic.
                self.is_honest = false;
            }
            3 => {
                let mut ring = self.rings[1 - end].lock().expect("unpoisoned");
                if let Some(changed) = ring.rewrite(1 - end, &datagram, input) {
                    datagram = changed;
                    self.is_honest = false;
                }
            }
            _ => {}
        }
        self.deliver(end, port, &mut datagram);
    }

    /// A packet that its sender knows nothing of.
    fn inject(&mut self, input: &mut Input<'_>) {
        let from = usize::from(input.byte() & 1);
        let Some(id) = self.ends[1 - from]
            .handles()
            .next()
            .and_then(|handle| self.ends[1 - from].peek(handle)?.local_ids().next())
        else {
            return;
        };
        let forged = self.rings[from]
            .lock()
            .expect("unpoisoned")
            .forge(id, input);
        if let Some(mut datagram) = forged {
            self.is_honest = false;
            self.deliver(1 - from, self.client_port, &mut datagram);
        }
    }

    /// Nothing interferes any more: both ends come to an end.
    fn finish(&mut self) {
        let now = self.now;
        if let Some(connection) = self.connection(0) {
            connection.close(now, 0);
        }
        for _ in 0..10_000 {
            self.transmit();
            self.deliver_all();
            self.read();
            self.transmit();
            if self.flying.is_empty() && !self.wait() {
                break;
            }
        }
        for end in &self.ends {
            let left: Vec<_> = end.handles().map(|handle| end.peek(handle)).collect();
            assert!(left.is_empty(), "without end at {:?}: {left:?}", self.now);
        }
    }
}

/// Does what the bytes say.
pub(crate) fn play(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.byte();
    let mut world = World::new(flags);
    if flags & 1 == 0 {
        world.shake_hands();
    }
    while !input.is_empty() {
        let what = input.byte();
        match what % 16 {
            0..=3 => world.fate(what % 4, &mut input),
            4..=6 => world.fate(3, &mut input),
            7 | 8 => world.inject(&mut input),
            9..=11 => world.act(&mut input),
            12 => world.deliver_all(),
            13 => world.read(),
            14 => drop(world.wait()),
            _ => world.now = world.now + Duration::from_millis(u64::from(input.byte())),
        }
        world.transmit();
    }
    world.finish();
}
