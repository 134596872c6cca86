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
    let opened = flows.open(now, key(number), Opening::Initial, |_| Some(number));
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

/// Otherwise one client could make each lookup of its flows as long as their number.
#[test]
fn flows_that_differ_in_address_or_port_are_spread_over_the_buckets() {
    let flows = flows(1024);
    let host = IpAddr::from([192, 0, 2, 1]);
    let keys: [fn(IpAddr, u16) -> FlowKey; 3] = [
        |host, number| FlowKey {
            client: SocketAddr::new(host, number),
            local: None,
        },
        |_, number| key(number.into()),
        |host, number| FlowKey {
            client: SocketAddr::new(host, 4433),
            local: Some(key(number.into()).client.ip()),
        },
    ];
    for key in keys {
        let buckets: std::collections::BTreeSet<usize> = (0..1024)
            .map(|number| flows.bucket(&key(host, number)))
            .collect();
        assert!(buckets.len() > 400, "{}", buckets.len());
    }
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
            .filter(|number| {
                let opened = flows.open(now, key(*number), Opening::Initial, |_| Some(0));
                opened.is_ok()
            })
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
    assert!(flows.is_empty());
    open(&mut flows, seconds(9), 1).expect("room");
    assert!(!flows.is_empty() && flows.len() == 1);
    assert_eq!(flows.unroutable(0, 77), None);
    flows.set_unroutable(0, 77, 3);
    assert_eq!(flows.unroutable(0, 77), Some(3));
    assert_eq!(flows.unroutable(0, 78), None);
}

/// Clients 0 to 9 have one address, 10 to 12 are in one /56, and each other has an address of its own.
fn client(number: u16) -> FlowKey {
    let ip = match number {
        0..10 => IpAddr::from([192, 0, 2, 1]),
        10..13 => IpAddr::from([0x2001, 0xdb8, 0, number, 0, 0, 0, 1]),
        _ => IpAddr::from([198, 51, 100, number as u8]),
    };
    FlowKey {
        client: SocketAddr::new(ip, 1000 + number),
        local: None,
    }
}

/// A step on a table of [`PLACES`] flows.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open(u16, Opening),
    Client(u16),
    Server(u16),
    Prove(u16),
    Expire,
}

const PLACES: usize = 12;
const CLIENTS: u16 = 24;

fn step() -> impl Strategy<Value = (u64, Step)> {
    let number = 0..CLIENTS;
    let opening = prop_oneof![
        1 => Just(Opening::Validated),
        3 => Just(Opening::Initial),
        1 => Just(Opening::Moved),
        1 => Just(Opening::Other),
    ];
    let step = prop_oneof![
        8 => (number.clone(), opening).prop_map(|(number, opening)| Step::Open(number, opening)),
        2 => number.clone().prop_map(Step::Client),
        4 => number.clone().prop_map(Step::Server),
        4 => number.prop_map(Step::Prove),
        1 => Just(Step::Expire),
    ];
    (0_u64..8, step)
}

/// The same rules, over a list in order of activity.
#[derive(Default)]
struct Model {
    flows: Vec<Known>,
}

#[derive(Clone, Copy)]
struct Known {
    number: u16,
    last_active: u64,
    state: State,
    from_client: u64,
    from_server: u64,
}

/// What may happen when a flow is opened.
#[derive(Debug, PartialEq)]
enum Expected {
    Free,
    /// One of these is displaced.
    Displaced(Vec<u16>),
    Full,
}

impl Model {
    fn of(&self, state: State) -> Vec<Known> {
        let flows = self.flows.iter().filter(|flow| flow.state == state);
        flows.copied().collect()
    }

    /// The oldest flows of the prefixes that have most, if these are more than 4.
    fn of_many(&self, state: State) -> Option<Vec<u16>> {
        self.of_more_than(4, state)
    }

    fn of_more_than(&self, kept: usize, state: State) -> Option<Vec<u16>> {
        let mut by_prefix = std::collections::BTreeMap::<_, Vec<u16>>::new();
        for flow in self.of(state) {
            let prefix = AddressPrefix::of(client(flow.number).client.ip());
            by_prefix.entry(prefix).or_default().push(flow.number);
        }
        let most = by_prefix.values().map(Vec::len).max()?;
        let holders = by_prefix.values().filter(|flows| flows.len() == most);
        (most > kept).then(|| holders.map(|flows| flows[0]).collect())
    }

    fn first(&self, state: State) -> Option<Vec<u16>> {
        let oldest = self.of(state).first().map(|flow| vec![flow.number]);
        self.of_many(state).or(oldest)
    }

    fn expected(&self, now: u64, number: u16, opening: Opening) -> Expected {
        let count = |state| self.of(state).len();
        let is_other = matches!(opening, Opening::Moved | Opening::Other);
        let displaced = if is_other && count(State::Unanswered) == PLACES / 4 {
            self.first(State::Unanswered)
        } else if self.flows.len() < PLACES {
            return Expected::Free;
        } else if count(State::Unproven) + usize::from(opening == Opening::Initial) > PLACES / 4 {
            self.first(State::Unproven)
        } else {
            let prefix = |number| AddressPrefix::of(client(number).client.ip());
            let is_own = |flow: &&Known| prefix(flow.number) == prefix(number);
            let own = self.of(State::Proven).iter().filter(is_own).count();
            let kept = match opening {
                Opening::Validated => 4.min(own + 1),
                _ => 4,
            };
            self.of_more_than(kept, State::Proven)
                .or(self.first(State::Unproven))
                .or(self.first(State::Unanswered))
                .or_else(|| {
                    let oldest = *self.of(State::Proven).first()?;
                    (now - oldest.last_active >= 10).then_some(vec![oldest.number])
                })
        };
        displaced.map_or(Expected::Full, Expected::Displaced)
    }

    fn change(&mut self, number: u16, change: impl FnOnce(&mut Known) -> bool) {
        if let Some(at) = self.flows.iter().position(|flow| flow.number == number)
            && change(&mut self.flows[at])
        {
            let flow = self.flows.remove(at);
            self.flows.push(flow);
        }
    }

    fn expire(&mut self, now: u64) -> Vec<u16> {
        let is_over = |flow: &Known| {
            let idle = if flow.state == State::Proven { 120 } else { 30 };
            now - flow.last_active >= idle
        };
        let mut ended: Vec<u16> = self
            .flows
            .iter()
            .filter(|flow| is_over(flow))
            .map(|flow| flow.number)
            .collect();
        self.flows.retain(|flow| !is_over(flow));
        ended.sort_unstable();
        ended
    }
}

proptest! {
    #[test]
    fn arbitrary_steps_match_a_list(steps in proptest::collection::vec(step(), 0..300)) {
        let mut flows: Flows<u16> = Flows::new(limits(PLACES), [5; 16]);
        let mut model = Model::default();
        let mut now = 9;
        for (passed, step) in steps {
            now += passed;
            let at = seconds(now);
            match step {
                Step::Open(number, opening) => {
                    if flows.find(&client(number)).is_some() {
                        continue;
                    }
                    let expected = model.expected(now, number, opening);
                    let opened = flows.open(at, client(number), opening, |_| Some(number));
                    match (opened, expected) {
                        (Ok((_, None)), Expected::Free) => {}
                        (Ok((_, Some(displaced))), Expected::Displaced(any)) => {
                            prop_assert!(any.contains(&displaced), "{displaced} of {any:?}");
                            model.flows.retain(|flow| flow.number != displaced);
                        }
                        (Err(Refused::Full), Expected::Full) => continue,
                        (opened, expected) => prop_assert!(false, "{opened:?} {expected:?}"),
                    }
                    model.flows.push(Known {
                        number,
                        last_active: now,
                        state: match opening {
                            Opening::Validated => State::Proven,
                            Opening::Initial => State::Unproven,
                            Opening::Moved | Opening::Other => State::Unanswered,
                        },
                        from_client: 0,
                        from_server: 0,
                    });
                }
                Step::Client(number) => {
                    if let Some(index) = flows.find(&client(number)) {
                        flows.on_client(at, index, 100, &[1; 8]);
                    }
                    model.change(number, |flow| {
                        flow.from_client += 100;
                        false
                    });
                }
                Step::Server(number) => {
                    if let Some(index) = flows.find(&client(number)) {
                        flows.on_server(at, index, 250, &[0x40; 30]);
                    }
                    model.change(number, |flow| {
                        flow.last_active = now;
                        flow.from_server += 250;
                        let exceeds = flow.from_server > 3 * flow.from_client;
                        if exceeds || flow.state == State::Proven {
                            flow.state = State::Proven;
                        } else {
                            flow.state = State::Unproven;
                        }
                        true
                    });
                }
                Step::Prove(number) => {
                    if let Some(index) = flows.find(&client(number)) {
                        flows.set_proven(at, index);
                    }
                    model.change(number, |flow| {
                        let is_new = flow.state != State::Proven;
                        if is_new {
                            (flow.state, flow.last_active) = (State::Proven, now);
                        }
                        is_new
                    });
                }
                Step::Expire => {
                    let mut ended = Vec::new();
                    flows.expire(at, |value| ended.push(value));
                    ended.sort_unstable();
                    prop_assert_eq!(ended, model.expire(now));
                }
            }
            prop_assert_eq!(flows.len(), model.flows.len());
            for number in 0..CLIENTS {
                let found = flows.find(&client(number)).and_then(|index| flows.get(index));
                let expected = model.flows.iter().find(|flow| flow.number == number);
                prop_assert_eq!(found.map(|(_, value)| *value), expected.map(|flow| flow.number));
            }
            for state in [State::Unanswered, State::Unproven, State::Proven] {
                let of_state = model.of(state);
                let mut prefixes: Vec<_> = of_state
                    .iter()
                    .map(|flow| AddressPrefix::of(client(flow.number).client.ip()))
                    .collect();
                prefixes.sort_unstable();
                prefixes.dedup();
                prop_assert_eq!(flows.list(state).len, of_state.len());
                prop_assert_eq!(flows.holders[state as usize].len(), prefixes.len());
            }
        }
    }
}

/// A table, of which an attacker takes all that it gets, in virtual time.
struct Siege {
    flows: Flows<SocketAddr>,
    now: Time,
    attackers: Vec<IpAddr>,
    opening: Opening,
    next_port: u16,
}

impl Siege {
    /// `opening` is that of all clients.
    fn new(flows: usize, attackers: Vec<IpAddr>, opening: Opening) -> Self {
        let limits = FlowLimits {
            flows,
            ..FlowLimits::default()
        };
        Self {
            flows: Flows::new(limits, [5; 16]),
            now: seconds(100),
            attackers,
            opening,
            next_port: 1,
        }
    }

    /// A client's first packet, the server's answer, and a packet to the connection ID in it. Returns whether the client has
    /// got through.
    fn connect(&mut self, client: SocketAddr) -> bool {
        let key = FlowKey {
            client,
            local: None,
        };
        let opened = self
            .flows
            .open(self.now, key, self.opening, |_| Some(client));
        let Ok((index, _)) = opened else {
            return false;
        };
        self.flows.on_client(self.now, index, 1200, &[7; 8]);
        self.flows
            .on_server(self.now, index, 1200, &from_server(&[9; 8]));
        self.flows.on_client(self.now, index, 50, &[9; 30]);
        self.flows.is_proven(index)
    }

    /// As many new flows of each attacker as the rate permits in this time, while all send 21 bytes on each flow, and the server
    /// answers some.
    fn attack(&mut self, time: Duration, is_answered: impl Fn(u16) -> bool) {
        let until = self.now + time;
        while self.now < until {
            self.now = self.now + Duration::from_millis(100);
            for _ in 0..500_usize.div_ceil(self.attackers.len()) {
                self.next_port = self.next_port.wrapping_add(1);
                for ip in self.attackers.clone() {
                    self.connect(SocketAddr::new(ip, self.next_port));
                }
            }
            for index in 0..self.flows.limits.flows {
                let Some((key, _)) = self.flows.get(index) else {
                    continue;
                };
                let client = key.client;
                if self.attackers.contains(&client.ip()) {
                    self.flows.on_client(self.now, index, 21, &[0x55; 20]);
                    if is_answered(client.port()) {
                        self.flows.on_server(self.now, index, 40, &[0x40; 40]);
                    }
                }
            }
            self.flows.expire(self.now, |_| ());
        }
    }

    /// Others get through at once, and stay.
    fn check_others(&mut self, others: u8) {
        let others: Vec<SocketAddr> = (0..others)
            .map(|host| SocketAddr::from(([203, 0, 113, host], 443)))
            .collect();
        for (at, client) in others.iter().enumerate() {
            assert!(self.connect(*client), "client {at}");
            self.attack(Duration::from_millis(100), |_| true);
        }
        for (at, client) in others.iter().enumerate() {
            let key = FlowKey {
                client: *client,
                local: None,
            };
            assert!(
                self.flows.find(&key).is_some(),
                "client {at} has lost its flow"
            );
        }
    }
}

#[test]
fn flows_that_one_address_holds_leave_room_for_others() {
    let attacker = || vec![IpAddr::from([192, 0, 2, 1])];
    for opening in [Opening::Initial, Opening::Validated] {
        for flows in [150, 2000, 16_384] {
            let mut siege = Siege::new(flows, attacker(), opening);
            siege.attack(Duration::from_secs(5), |_| true);
            assert_eq!(siege.flows.len(), flows, "it may have all");
            siege.check_others(20);
        }
    }
}

#[test]
fn a_site_or_several_addresses_leave_room_for_others() {
    let site = (0..256).map(|network| IpAddr::from([0x2001, 0xdb8, 0, network, 0, 0, 0, 1]));
    let hosts = (0..25).map(|host| IpAddr::from([192, 0, 2, host]));
    for opening in [Opening::Initial, Opening::Validated] {
        for attackers in [site.clone().collect::<Vec<_>>(), hosts.clone().collect()] {
            let mut siege = Siege::new(150, attackers, opening);
            siege.attack(Duration::from_secs(2), |_| true);
            assert_eq!(siege.flows.len(), 150);
            siege.check_others(20);
        }
    }
}

#[test]
fn first_packets_of_one_address_displace_no_handshakes_of_others() {
    let mut flows: Flows<u32> = flows(100);
    for number in 0..20 {
        open(&mut flows, seconds(9), number).expect("room");
    }
    for port in 0..10_000 {
        let client = SocketAddr::from(([192, 0, 2, 1], port));
        let key = FlowKey {
            client,
            local: None,
        };
        flows
            .open(seconds(10), key, Opening::Initial, |_| Some(77))
            .expect("room");
    }
    assert!((0..20).all(|number| flows.find(&key(number)).is_some()));
}

/// As without a descriptor or port for it.
#[test]
fn a_flow_that_holds_nothing_leaves_its_place_free() {
    let mut flows = flows(2);
    for number in [1, 2] {
        open(&mut flows, seconds(9), number).expect("room");
    }
    let opened = flows.open(seconds(9), key(3), Opening::Initial, |_| None);
    assert_eq!(opened.err(), Some(Refused::Empty));
    assert_eq!(flows.len(), 1);
    assert!(flows.find(&key(3)).is_none());
    assert_eq!(open(&mut flows, seconds(9), 4), Ok(None));
    assert_eq!(open(&mut flows, seconds(9), 5), Ok(Some(2)));
}

/// Random bytes on a flow do not keep it: its server does not answer them.
#[test]
fn a_flow_is_kept_by_what_its_server_sends() {
    let mut flows = flows(10);
    for number in [1, 2] {
        open(&mut flows, seconds(9), number).expect("room");
        prove(&mut flows, seconds(9), number);
    }
    for second in 10..129 {
        for number in [1, 2] {
            let index = flows.find(&key(number)).expect("open");
            flows.on_client(seconds(second), index, 21, &[0x55; 20]);
        }
        let index = flows.find(&key(2)).expect("open");
        flows.on_server(seconds(second), index, 40, &[0x40; 40]);
        flows.expire(seconds(second), |_| ());
    }
    let mut ended = Vec::new();
    flows.expire(seconds(129), |number| ended.push(number));
    assert_eq!(ended, [1]);
}

/// Packets with short headers, of unknown versions and of other types than Initial.
#[test]
fn packets_that_are_no_first_ones_open_a_quarter_of_the_flows_and_leave_the_others() {
    let mut flows: Flows<u32> = Flows::new(FlowLimits::default(), [5; 16]);
    let mut opened = 0;
    // A flood, of which no packet is answered.
    for step in 0..40_000_u32 {
        let now = seconds(100) + Duration::from_micros(u64::from(step) * 100);
        let result = flows.open(now, key(step), Opening::Other, |_| Some(step));
        opened += u32::from(result.is_ok());
        assert!(flows.len() <= 4096);
    }
    // A quarter of the rate for 4 s, and of what may arrive at once.
    assert_eq!(opened, 1250 + 4 * 1250);
    assert_eq!(flows.len(), 4096);
    // Clients that moved have the other half of the quarter, and the server's answer takes their flows out of it.
    let now = seconds(104);
    let mut others = 100_000..;
    let mut moved = Vec::new();
    for number in others.by_ref().take(1000) {
        let opened = flows.open(now, key(number), Opening::Moved, |_| Some(number));
        let (index, _) = opened.expect("room");
        flows.on_server(now, index, 1200, &[0x40; 30]);
        moved.push(number);
    }
    // First packets do not compete with them.
    for number in others.take(5000) {
        assert!(open(&mut flows, now, number).is_ok());
    }
    for step in 0..40_000_u32 {
        let now = now + Duration::from_micros(u64::from(step) * 100);
        let _ = flows.open(now, key(200_000 + step), Opening::Other, |_| Some(step));
    }
    assert!(
        moved
            .iter()
            .all(|number| flows.find(&key(*number)).is_some())
    );
}

/// 100 new flows per second: 200 may arrive at once, and 50 of clients that moved besides. Each rate permits one more.
#[test]
fn clients_that_moved_use_their_own_rate_first() {
    let limits = FlowLimits {
        new_per_second: 100,
        ..FlowLimits::default()
    };
    let mut flows: Flows<u32> = Flows::new(limits, [5; 16]);
    let mut numbers = 0..;
    let mut opened = |opening| {
        let some = numbers.by_ref().take(300);
        some.filter(|number| {
            let opened = flows.open(seconds(100), key(*number), opening, |_| Some(0));
            opened.is_ok()
        })
        .count()
    };
    assert_eq!(opened(Opening::Other), 26, "half of theirs");
    assert_eq!(opened(Opening::Moved), 25 + 51, "and a quarter of all");
    assert_eq!(opened(Opening::Initial), 150, "the rest");
    assert_eq!(opened(Opening::Initial), 0);
}

/// The half that is left to clients with a token is shared as flows are.
#[test]
fn an_address_with_many_flows_leaves_half_of_the_new_ones_to_others() {
    let mut siege = Siege::new(1000, Vec::new(), Opening::Validated);
    siege.flows.limits.new_per_second = 1000;
    siege.flows.rate = Rate::new(SECOND / 1000);
    let mut connect = |ip: [u8; 4], port| siege.connect(SocketAddr::new(ip.into(), port));
    let opened = (0..5000)
        .filter(|port| connect([192, 0, 2, 1], *port))
        .count();
    assert_eq!(opened, 1001, "two seconds, of which it leaves one");
    for host in 0..250 {
        let opened = (0..5)
            .filter(|port| connect([203, 0, 113, host], *port))
            .count();
        assert!(opened >= 4 || host > 198, "{host}: {opened}");
    }
}

/// Fewer than four flows, or at most half as many as the prefix that has most.
#[test]
fn the_half_that_is_left_is_for_prefixes_with_few_flows() {
    // The flows of each prefix, and whether it has few.
    let many = [(20, false), (11, false), (10, true), (4, true), (0, true)];
    let few = [(5, false), (4, false), (3, true), (1, true), (0, true)];
    let limits = FlowLimits {
        new_per_second: 1000,
        ..FlowLimits::default()
    };
    let at = |host: usize, port: u16| FlowKey {
        client: SocketAddr::from(([192, 0, 2, host as u8], port)),
        local: None,
    };
    let now = seconds(100);
    for prefixes in [many, few] {
        let mut flows: Flows<u32> = Flows::new(limits, [5; 16]);
        let validated = |flows: &mut Flows<u32>, key| {
            let opened = flows.open(now, key, Opening::Validated, |_| Some(0));
            opened.map(|_| ())
        };
        for (host, (count, _)) in prefixes.iter().enumerate() {
            for port in 0..*count {
                assert_eq!(validated(&mut flows, at(host, port)), Ok(()));
            }
        }
        let mut others = 0..;
        while !flows.is_half_used(now) {
            let number = others.next().expect("endless");
            open(&mut flows, now, number).expect("room");
        }
        for (host, (count, has_few)) in prefixes.iter().enumerate() {
            let expected = if *has_few { Ok(()) } else { Err(Refused::Rate) };
            assert_eq!(validated(&mut flows, at(host, 1000)), expected, "{count}");
        }
    }
}

/// docs/security.md.
#[test]
fn a_flow_takes_256_bytes_at_most() {
    let bytes = size_of::<Entry<lastbyte_udp::Socket>>();
    assert!(bytes <= 256, "{bytes}");
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

/// Prefixes with few flows each, which their servers keep, fill the table: a client with a token gets room.
#[test]
fn many_prefixes_with_two_flows_leave_room_for_clients_with_a_token() {
    const PREFIXES: u8 = 8;
    let mut flows = Flows::new(limits(2 * usize::from(PREFIXES)), [5; 16]);
    let at = |host: u8, port: u16| FlowKey {
        client: SocketAddr::from(([192, 0, 2, host], port)),
        local: None,
    };
    let mut open = |now, key, opening| flows.open(now, key, opening, |_| Some(0_u16));
    for host in 0..PREFIXES {
        for port in [1, 2] {
            open(seconds(9), at(host, port), Opening::Validated).expect("room");
        }
    }
    assert_eq!(
        open(seconds(9), at(100, 1), Opening::Initial),
        Err(Refused::Full)
    );
    for host in 0..PREFIXES {
        assert!(
            open(seconds(9), at(100 + host, 1), Opening::Validated).is_ok(),
            "{host}"
        );
        // Not a second one, as long as others have none.
        let second = open(seconds(9), at(100 + host, 2), Opening::Validated);
        assert_eq!(second, Err(Refused::Full), "{host}");
    }
    // Each has one.
    let more = open(seconds(9), at(200, 1), Opening::Validated);
    assert_eq!(more, Err(Refused::Full));
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
        // It is full.
        assert!(by_number.is_under_load(seconds(9)), "{number}");
        let index = by_number.find(&key(number)).expect("open");
        by_number.set_proven(seconds(9), index);
        assert!(by_number.is_proven(index));
    }
    by_number.expire(seconds(1000), |_| ());
    assert!(by_number.is_empty() && !by_number.is_under_load(seconds(1000)));
}
