use proptest::prelude::*;

use super::*;

fn key(number: u32) -> FlowKey {
    let [a, b, c, d] = number.to_be_bytes();
    FlowKey {
        client: SocketAddr::from(([a, b, c, d], 4433)),
        local: None,
    }
}

fn limits(flows: usize) -> FlowLimits {
    FlowLimits {
        flows,
        new_per_second: 1_000_000,
        ..FlowLimits::default()
    }
}

fn flows(count: usize) -> Flows<u32> {
    Flows::new(limits(count), [5; 16])
}

fn seconds(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

fn open(flows: &mut Flows<u32>, now: Time, number: u32) -> Result<Option<u32>, Refused> {
    let opened = flows.open(now, key(number), |_| Some(number));
    opened.map(|(_, displaced)| displaced)
}

fn prove(flows: &mut Flows<u32>, now: Time, number: u32) {
    let index = flows.find(&key(number)).expect("open");
    flows.on_client(now, index, 1200, &[1; 8]);
    flows.on_server(now, index, 3601, &[0x40; 30]);
    assert!(flows.is_proven(index));
}

/// A server's packet with a long header and this source connection ID.
fn from_server(source: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xc0, 0, 0, 0, 1, 0, source.len() as u8];
    packet.extend_from_slice(source);
    packet.extend_from_slice(&[0; 100]);
    packet
}

#[test]
fn using_the_servers_connection_id_validates_a_client() {
    let mut flows = flows(4);
    open(&mut flows, seconds(9), 1).expect("room");
    let index = flows.find(&key(1)).expect("open");
    flows.on_client(seconds(9), index, 1200, &[7; 8]);
    flows.on_server(seconds(9), index, 1200, &from_server(&[9; 8]));
    assert!(!flows.is_proven(index));
    flows.on_client(seconds(9), index, 1200, &[7; 8]);
    assert!(!flows.is_proven(index), "its own choice proves nothing");
    flows.on_client(seconds(9), index, 50, &[9, 9, 9, 9, 9, 9, 9, 9, 1, 2]);
    assert!(flows.is_proven(index));
}

#[test]
fn an_empty_connection_id_does_not_validate_a_client() {
    let mut flows = flows(4);
    open(&mut flows, seconds(9), 1).expect("room");
    flows.on_server(seconds(9), 0, 0, &from_server(&[]));
    flows.on_client(seconds(9), 0, 1200, &[7; 8]);
    assert!(!flows.is_proven(0));
}

#[test]
fn rfc9000_8_1_more_than_three_times_the_bytes_validate_the_address() {
    let mut flows = flows(4);
    open(&mut flows, seconds(9), 1).expect("room");
    flows.on_client(seconds(9), 0, 1000, &[7; 8]);
    flows.on_server(seconds(9), 0, 3000, &[0x40; 30]);
    assert!(!flows.is_proven(0));
    flows.on_server(seconds(9), 0, 1, &[0x40; 30]);
    assert!(flows.is_proven(0));
}

#[test]
fn a_flood_of_new_addresses_displaces_only_itself() {
    let mut flows = flows(100);
    for number in 0..10 {
        open(&mut flows, seconds(9), number).expect("room");
        prove(&mut flows, seconds(9), number);
    }
    let mut displaced = Vec::new();
    for number in 1000..11_000 {
        displaced.extend(open(&mut flows, seconds(10), number).expect("room"));
        assert!(flows.len() <= 100);
    }
    assert_eq!(displaced.len(), 10_000 - 90);
    // The oldest first, and none of the proven.
    assert_eq!(displaced, (1000..1000 + 9910).collect::<Vec<_>>());
    assert!((0..10).all(|number| flows.find(&key(number)).is_some()));
}

#[test]
fn proven_flows_are_displaced_only_when_inactive() {
    let mut flows = flows(2);
    for number in [1, 2] {
        open(&mut flows, seconds(9), number).expect("room");
        prove(&mut flows, seconds(9), number);
    }
    assert_eq!(open(&mut flows, seconds(18), 3), Err(Refused::Full));
    assert_eq!(open(&mut flows, seconds(19), 3), Ok(Some(1)));
    assert!(flows.find(&key(1)).is_none());
}

#[test]
fn new_flows_have_a_maximum_rate() {
    let limits = FlowLimits {
        flows: 1000,
        new_per_second: 10,
        ..FlowLimits::default()
    };
    let mut flows: Flows<u32> = Flows::new(limits, [5; 16]);
    let mut opened = |now: Time, first: u32| {
        let numbers = first..first + 100;
        numbers
            .filter(|number| flows.open(now, key(*number), |_| Some(0)).is_ok())
            .count()
    };
    assert_eq!(opened(seconds(100), 0), 21, "two seconds of them, and one");
    assert_eq!(opened(seconds(100), 100), 0);
    assert_eq!(opened(seconds(101), 200), 10);
}

#[test]
fn inactive_flows_end() {
    let mut flows = flows(10);
    for number in [1, 2, 3] {
        open(&mut flows, seconds(9), number).expect("room");
    }
    prove(&mut flows, seconds(9), 2);
    let mut expired = |now| {
        let mut ended = Vec::new();
        flows.expire(seconds(now), |value| ended.push(value));
        ended
    };
    assert_eq!(expired(38), []);
    assert_eq!(expired(39), [1, 3]);
    assert_eq!(expired(128), []);
    assert_eq!(expired(129), [2]);
    assert!(flows.is_empty());
}

#[test]
fn the_server_of_an_unroutable_packet_is_remembered_for_its_connection_id() {
    let mut flows = flows(10);
    open(&mut flows, seconds(9), 1).expect("room");
    assert_eq!(flows.unroutable(0, 77), None);
    flows.set_unroutable(0, 77, 3);
    assert_eq!(flows.unroutable(0, 77), Some(3));
    assert_eq!(flows.unroutable(0, 78), None);
}

/// A step on a table of 5 flows.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open(u32),
    Client(u32),
    Server(u32),
    Expire,
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let number = 0_u32..12;
    let step = prop_oneof![
        4 => number.clone().prop_map(Step::Open),
        2 => number.clone().prop_map(Step::Client),
        2 => number.prop_map(Step::Server),
        1 => Just(Step::Expire),
    ];
    (0_u64..20, step)
}

/// The same rules, over a list in order of activity.
#[derive(Default)]
struct Model {
    /// Number, last activity, proven, bytes from client and server.
    flows: Vec<(u32, u64, bool, u64, u64)>,
}

impl Model {
    fn open(&mut self, now: u64, number: u32) -> Result<Option<u32>, Refused> {
        let mut displaced = None;
        if self.flows.len() == 5 {
            let at = self.flows.iter().position(|flow| !flow.2).or_else(|| {
                let oldest = self.flows.iter().position(|flow| flow.2);
                oldest.filter(|at| now - self.flows[*at].1 >= 10)
            });
            displaced = Some(self.flows.remove(at.ok_or(Refused::Full)?).0);
        }
        self.flows.push((number, now, false, 0, 0));
        Ok(displaced)
    }

    fn touch(&mut self, now: u64, number: u32, client: u64, server: u64) {
        if let Some(at) = self.flows.iter().position(|flow| flow.0 == number) {
            let mut flow = self.flows.remove(at);
            flow.1 = now;
            flow.3 += client;
            flow.4 += server;
            flow.2 |= server > 0 && flow.4 > 3 * flow.3;
            self.flows.push(flow);
        }
    }

    fn expire(&mut self, now: u64) -> Vec<u32> {
        let is_over =
            |flow: &(u32, u64, bool, u64, u64)| now - flow.1 >= if flow.2 { 120 } else { 30 };
        let mut ended: Vec<u32> = self
            .flows
            .iter()
            .filter(|flow| is_over(flow))
            .map(|flow| flow.0)
            .collect();
        self.flows.retain(|flow| !is_over(flow));
        ended.sort_unstable();
        ended
    }
}

proptest! {
    #[test]
    fn arbitrary_steps_match_a_list(steps in proptest::collection::vec(step(), 0..200)) {
        let mut flows = flows(5);
        let mut model = Model::default();
        let mut now = 9;
        for (passed, step) in steps {
            now += passed;
            match step {
                Step::Open(number) => {
                    if flows.find(&key(number)).is_none() {
                        prop_assert_eq!(open(&mut flows, seconds(now), number), model.open(now, number));
                    }
                }
                Step::Client(number) => {
                    if let Some(index) = flows.find(&key(number)) {
                        flows.on_client(seconds(now), index, 100, &[1; 8]);
                    }
                    model.touch(now, number, 100, 0);
                }
                Step::Server(number) => {
                    if let Some(index) = flows.find(&key(number)) {
                        flows.on_server(seconds(now), index, 250, &[0x40; 30]);
                    }
                    model.touch(now, number, 0, 250);
                }
                Step::Expire => {
                    let mut ended = Vec::new();
                    flows.expire(seconds(now), |value| ended.push(value));
                    ended.sort_unstable();
                    prop_assert_eq!(ended, model.expire(now));
                }
            }
            prop_assert_eq!(flows.len(), model.flows.len());
            for number in 0..12 {
                let found = flows.find(&key(number)).and_then(|index| flows.get(index));
                let expected = model.flows.iter().find(|flow| flow.0 == number);
                prop_assert_eq!(found.map(|(_, value)| *value), expected.map(|flow| flow.0));
            }
        }
    }
}

/// docs/security.md.
#[test]
fn a_flow_takes_256_bytes_at_most() {
    assert!(size_of::<Entry<lastbyte_udp::Socket>>() <= 256);
}

/// RFC 9000 §17.2.1: its source connection ID is the destination of the client's packet, whoever sent that.
#[test]
fn a_version_negotiation_packet_proves_no_address() {
    let mut flows = flows(4);
    open(&mut flows, seconds(9), 1).expect("room");
    let index = flows.find(&key(1)).expect("open");
    let mut negotiation = from_server(&[9; 8]);
    negotiation[4] = 0;
    flows.on_client(seconds(9), index, 1200, &[9; 8]);
    flows.on_server(seconds(9), index, 100, &negotiation);
    assert!(!flows.is_offered(index, &[9; 8]));
    flows.on_client(seconds(9), index, 1200, &[9; 8]);
    assert!(!flows.is_proven(index));
    flows.on_server(seconds(9), index, 100, &from_server(&[9; 8]));
    assert!(flows.is_offered(index, &[9; 8]) && !flows.is_offered(index, &[9; 7]));
}

#[test]
fn half_of_the_new_flows_or_a_quarter_of_unproven_ones_is_load() {
    let limits = |flows, new_per_second| FlowLimits {
        flows,
        new_per_second,
        ..FlowLimits::default()
    };
    let mut by_rate = Flows::new(limits(1000, 10), [5; 16]);
    // Twenty may arrive at once.
    for number in 0..20 {
        assert_eq!(by_rate.is_half_used(seconds(9)), number > 10, "{number}");
        assert_eq!(by_rate.is_under_load(seconds(9)), number > 10, "{number}");
        open(&mut by_rate, seconds(9), number).expect("room");
    }
    assert!(!by_rate.is_under_load(seconds(11)));
    let mut by_number = Flows::new(limits(8, 1_000_000), [5; 16]);
    for number in 0..8 {
        assert_eq!(by_number.is_under_load(seconds(9)), number > 1, "{number}");
        open(&mut by_number, seconds(9), number).expect("room");
    }
    for number in 0..8 {
        assert!(!by_number.is_half_used(seconds(9)));
        assert_eq!(by_number.is_under_load(seconds(9)), number < 7, "{number}");
        let index = by_number.find(&key(number)).expect("open");
        by_number.set_proven(seconds(9), index);
        assert!(by_number.is_proven(index));
    }
    by_number.expire(seconds(1000), |_| ());
    assert!(by_number.is_empty() && !by_number.is_under_load(seconds(1000)));
}
