//! Any configuration, and any packets of clients and servers, for a load balancer: a connection ID leads to the server that
//! issued it, other packets to a server that takes new connections, and flows stay within their limits. Shared by the
//! replay of the corpus and the fuzz target.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use lastbyte_balancer::{
    Fleet, FlowLimits, Flows, Route, Server, ServerIndex, Table,
    fleet::server_id_bytes,
    flows::{DISPLACED_AFTER, FlowKey, KEPT, Opening, Refused},
};
use lastbyte_quic::cid::{QuicLb, QuicLbConfig};
use lastbyte_testkit::Input;
use lastbyte_units::Time;
use lastbyte_wire::packet::{InitialHeader, Invariant, VersionNumber};

const LIMITS: FlowLimits = FlowLimits {
    flows: 6,
    new_per_second: 5,
    idle: Duration::from_secs(20),
    unproven_idle: Duration::from_secs(5),
};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
const OTHER_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2));

/// The next bytes, with zeros behind their end.
fn padded(input: &mut Input<'_>, len: usize) -> Vec<u8> {
    let mut bytes = input.take(len).to_vec();
    bytes.resize(len, 0);
    bytes
}

fn fleet(input: &mut Input<'_>) -> Fleet {
    let ids = (0..=input.byte() % 3).map(|_| {
        let how = input.byte();
        QuicLbConfig {
            rotation: how % 8,
            server_id_len: usize::from(input.byte() % 20),
            nonce_len: usize::from(input.byte() % 20),
            key: (how & 8 != 0).then_some([how; 16]),
            encodes_length: how & 16 != 0,
        }
    });
    let ids = ids.collect();
    let servers = (0..=input.byte() % 3).map(|index| {
        let how = input.byte();
        let id = if how & 1 == 0 {
            u64::from(input.byte())
        } else {
            u64::from_le_bytes(padded(input, 8).try_into().expect("8 bytes"))
        };
        Server {
            id,
            address: SocketAddr::from(([192, 0, 2, index], 443)),
            weight: u32::from(how >> 2) * 20,
            drain: how & 2 != 0,
        }
    });
    Fleet {
        ids,
        servers: servers.collect(),
        hash_key: [input.byte(); 16],
        retry: None,
    }
}

/// A packet, and the server that it has to reach, if a server issued its connection ID.
fn packet(input: &mut Input<'_>, fleet: &Fleet) -> (Vec<u8>, Option<ServerIndex>) {
    let how = input.byte();
    let len = usize::from(input.byte());
    let kind = how & 3;
    if kind == 0 {
        return (input.take(len).to_vec(), None);
    }
    let layout = &fleet.ids[usize::from(input.byte()) % fleet.ids.len()];
    let index = usize::from(input.byte()) % fleet.servers.len();
    let server = server_id_bytes(fleet.servers[index].id, layout.server_id_len);
    let nonce = padded(input, layout.nonce_len);
    let codec = QuicLb::new(layout.clone()).expect("a valid layout");
    let id = codec.encode(&server.expect("it fits"), &nonce, how >> 2);
    let mut id = id.expect("right lengths").as_slice().to_vec();
    let is_forged = kind == 3;
    if is_forged {
        let at = len % id.len();
        id[at] ^= how.max(1);
    }
    let mut packet = if how & 4 == 0 {
        [&[0x40], &id[..]].concat()
    } else {
        let source = input.take(usize::from(how >> 3));
        let destination_len = id.len() as u8;
        let lengths = [&[0xc0, 0, 0, 0, 1, destination_len], &id[..]].concat();
        [&lengths[..], &[source.len() as u8], source].concat()
    };
    packet.extend_from_slice(input.take(len));
    (packet, (!is_forged).then_some(index))
}

fn check_route(
    table: &Table,
    fleet: &Fleet,
    packet: &[u8],
    expected: Option<ServerIndex>,
    client: SocketAddr,
) {
    let route = table.route(packet);
    if let Some(index) = expected {
        assert_eq!(route, Some(Route::ConnectionId(index)));
    }
    match route {
        Some(Route::ConnectionId(index)) => assert!(index < fleet.servers.len()),
        Some(Route::Hash { destination, .. }) => {
            assert!(destination.len() < packet.len());
            let local = SocketAddr::from(([192, 0, 2, 9], 443));
            if let Some(index) = table.by_addresses(client, local) {
                let server = &fleet.servers[index];
                assert!(server.weight > 0 && !server.drain && table.share(index) > 0);
            } else {
                let takes_new = |server: &Server| server.weight > 0 && !server.drain;
                assert!(!fleet.servers.iter().any(takes_new));
            }
        }
        None => {}
    }
}

/// What is known of a flow.
struct Known {
    last_active: Time,
    is_proven: bool,
    from_client: u64,
    from_server: u64,
    offered: Vec<u8>,
    unroutable: Option<(u64, u64)>,
}

/// The flows, and what has to be true of them.
struct Model {
    flows: Flows<SocketAddr>,
    known: BTreeMap<SocketAddr, Known>,
}

impl Model {
    /// The flow of a client, opened if there is none.
    fn index(&mut self, now: Time, client: SocketAddr, opening: Opening) -> Option<usize> {
        let key = FlowKey {
            client,
            local: None,
        };
        if let Some(index) = self.flows.find(&key) {
            assert!(self.known.contains_key(&client));
            return Some(index);
        }
        assert!(!self.known.contains_key(&client));
        let proven_and_active =
            |known: &Known| known.is_proven && now.since(known.last_active) < DISPLACED_AFTER;
        let of_address = |ip| {
            let flows = self.known.iter();
            let flows = flows.filter(|(client, known)| client.ip() == ip && known.is_proven);
            flows.count()
        };
        let counts = [CLIENT, OTHER_CLIENT].map(of_address);
        let kept = match opening {
            Opening::Validated => KEPT.min(of_address(client.ip()) + 1),
            _ => KEPT,
        };
        match self.flows.open(now, key, opening, |_| Some(client)) {
            Ok((index, displaced)) => {
                if let Some(displaced) = displaced {
                    let known = self.known.remove(&displaced).expect("it was open");
                    let [most, least] = [counts.iter().max(), counts.iter().min()];
                    let is_of_many = (most > Some(&kept))
                        && (most == least || counts[0] > counts[1]) == (displaced.ip() == CLIENT);
                    assert!(
                        !proven_and_active(&known) || is_of_many,
                        "{displaced} is displaced"
                    );
                }
                assert_eq!(self.flows.get(index), Some((&key, &client)));
                self.known.insert(
                    client,
                    Known {
                        last_active: now,
                        is_proven: opening == Opening::Validated,
                        from_client: 0,
                        from_server: 0,
                        offered: Vec::new(),
                        unroutable: None,
                    },
                );
                Some(index)
            }
            Err(Refused::Full) => {
                assert_eq!(self.known.len(), LIMITS.flows);
                assert!(self.known.values().all(proven_and_active));
                assert!(counts.iter().all(|count| *count <= kept));
                None
            }
            Err(Refused::Rate) => None,
            Err(Refused::Empty) => panic!("it held something"),
        }
    }

    fn on_client(&mut self, now: Time, client: SocketAddr, table: &Table, packet: &[u8]) {
        let opening = match (InitialHeader::decode(packet), table.route(packet)) {
            (Some(initial), _) if !initial.token.is_empty() => Opening::Validated,
            (Some(_), _) => Opening::Initial,
            (None, Some(Route::ConnectionId(_))) => Opening::Moved,
            (None, _) => Opening::Other,
        };
        let Some(index) = self.index(now, client, opening) else {
            return;
        };
        let known = self.known.get_mut(&client).expect("it is open");
        if let Some(Route::Hash { destination, .. }) = table.route(packet) {
            let hash = table.id_hash(destination);
            let remembered = known.unroutable.filter(|(other, _)| *other == hash);
            let remembered = remembered.map(|(_, server)| server);
            assert_eq!(self.flows.unroutable(index, hash), remembered);
            let server = packet.len() as u64;
            self.flows.set_unroutable(index, hash, server);
            known.unroutable = Some((hash, server));
        }
        let destination = match Invariant::decode(packet) {
            Ok(Invariant::Long(long)) => long.destination,
            Ok(Invariant::Short(short)) => short.rest,
            Err(_) => &[],
        };
        self.flows.on_client(now, index, packet.len(), destination);
        known.from_client += packet.len() as u64;
        if !known.is_proven && !known.offered.is_empty() && destination.starts_with(&known.offered)
        {
            (known.is_proven, known.last_active) = (true, now);
        }
        assert_eq!(self.flows.is_proven(index), known.is_proven);
    }

    fn on_server(&mut self, now: Time, client: SocketAddr, packet: &[u8]) {
        let key = FlowKey {
            client,
            local: None,
        };
        let Some(index) = self.flows.find(&key) else {
            return;
        };
        self.flows.on_server(now, index, packet.len(), packet);
        let known = self.known.get_mut(&client).expect("it is open");
        known.from_server += packet.len() as u64;
        known.last_active = now;
        if let Ok(Invariant::Long(long)) = Invariant::decode(packet)
            && !known.is_proven
            && long.version != VersionNumber::NEGOTIATION
            && long.source.len() <= 20
        {
            known.offered = long.source.to_vec();
        }
        // RFC 9000 §8.1: no more than that before the server validated the address.
        known.is_proven |= known.from_server > 3 * known.from_client;
        assert_eq!(self.flows.is_proven(index), known.is_proven);
    }

    fn expire(&mut self, now: Time) {
        let known = &mut self.known;
        self.flows.expire(now, |client| {
            let known = known.remove(&client).expect("it was open");
            let idle = if known.is_proven {
                LIMITS.idle
            } else {
                LIMITS.unproven_idle
            };
            assert!(now.since(known.last_active) >= idle, "{client} is active");
        });
    }
}

/// Reads a configuration from the bytes, and hands in the packets that follow.
pub(crate) fn play(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let fleet = fleet(&mut input);
    let up = input.byte();
    let table = Table::new(&fleet, |server| up >> (server.id % 8) & 1 == 0);
    assert_eq!(table.is_ok(), fleet.validate().is_ok());
    let Ok(table) = table else {
        return;
    };
    let mut model = Model {
        flows: Flows::new(LIMITS, [7; 16]),
        known: BTreeMap::new(),
    };
    let mut now = Time::ZERO + Duration::from_secs(60);
    let mut previous = Vec::new();
    while !input.is_empty() {
        let how = input.byte();
        now = now + Duration::from_millis(u64::from(how & 3) * 400);
        let number = how >> 2 & 7;
        let ip = if number < 6 { CLIENT } else { OTHER_CLIENT };
        let client = SocketAddr::new(ip, u16::from(number));
        let (packet, expected) = packet(&mut input, &fleet);
        check_route(&table, &fleet, &packet, expected, client);
        if table.is_same_destination(&previous, &packet) {
            let before = table.route(&previous);
            let is_by_id = matches!(before, Some(Route::ConnectionId(_)));
            let route = table.route(&packet);
            assert!(if is_by_id {
                before == route
            } else {
                !matches!(route, Some(Route::ConnectionId(_)))
            });
        }
        if how & 0x20 == 0 {
            model.on_client(now, client, &table, &packet);
        } else {
            model.on_server(now, client, &packet);
        }
        if how & 0x40 != 0 {
            model.expire(now);
        }
        assert_eq!(model.flows.len(), model.known.len());
        assert!(model.flows.len() <= LIMITS.flows);
        previous = packet;
    }
    model.expire(now + LIMITS.idle);
    assert!(model.flows.is_empty());
}
