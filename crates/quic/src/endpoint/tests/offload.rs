//! Retry packets of load balancers.

use lastbyte_wire::packet::{DecodeConfig, Packet, Packets, Version};

use super::*;
use crate::crypto::retry;

const SECRETS: [[u8; 32]; 1] = [[6; 32]];
const NOW: WallTime = WallTime::from_unix(DAY);

fn offload(secrets: &[[u8; 32]]) -> RetryOffload {
    RetryOffload::new(secrets, [3; 32]).expect("a secret")
}

/// The token and source of the Retry that answers a first packet.
fn retry_of(offload: &mut RetryOffload, version: Version, token: &[u8]) -> (Vec<u8>, ConnectionId) {
    let probe = Probe {
        version,
        token,
        ..Probe::new()
    };
    let mut buffer = [0; RetryOffload::RETRY_LEN_MAX];
    let decision = offload.decide(NOW, client_address(0), &probe.datagram(), &mut buffer);
    let OffloadDecision::Retry(len) = decision else {
        panic!("{decision:?}");
    };
    assert!(len < 200, "{len}");
    let config = DecodeConfig {
        connection_id_len: 8,
        grease_quic_bit: false,
    };
    let Some(Ok(Packet::Retry(packet))) = Packets::new(&mut buffer[..len], config).next() else {
        panic!("a Retry");
    };
    assert_eq!(
        (packet.version, packet.destination),
        (version, probe.source)
    );
    assert!(retry::is_authentic(&packet, &probe.destination));
    assert_ne!(packet.source, probe.destination);
    assert_eq!(packet.source.as_slice()[0] >> 5, 7, "not routable");
    (packet.token.to_vec(), packet.source)
}

fn decide(
    offload: &mut RetryOffload,
    now: WallTime,
    index: usize,
    probe: &Probe<'_>,
) -> OffloadDecision {
    let mut buffer = [0; RetryOffload::RETRY_LEN_MAX];
    offload.decide(now, client_address(index), &probe.datagram(), &mut buffer)
}

/// A server that trusts these balancers.
fn server(retry: RetryPolicy, secrets: &[[u8; 32]], address: &str) -> Endpoint {
    let server = server_with(|config| policy(config, retry));
    let balancers = RetryBalancers {
        secrets: secrets.to_vec(),
        addresses: vec![address.parse().expect("an address")],
    };
    let tokens = &server.server.as_ref().expect("a server").tokens;
    tokens.store.set_balancers(Some(&balancers));
    server
}

#[test]
fn rfc9000_8_1_2_a_token_is_valid_for_its_address_and_time_at_any_balancer() {
    for version in [Version::V1, Version::V2] {
        let (token, source) = retry_of(&mut offload(&SECRETS), version, &[]);
        // Another process with the same key.
        let mut other = RetryOffload::new(&[[9; 32], SECRETS[0]], [4; 32]).expect("secrets");
        let again = Probe {
            version,
            destination: source,
            token: &token,
            ..Probe::new()
        };
        let late = NOW + Duration::from_secs(16);
        let elsewhere = Probe {
            destination: id(&[0xe; 8]),
            ..again
        };
        assert_eq!(
            decide(&mut other, NOW, 0, &again),
            OffloadDecision::Validated
        );
        for (now, index, probe) in [(NOW, 1, again), (late, 0, again), (NOW, 0, elsewhere)] {
            let decision = decide(&mut other, now, index, &probe);
            assert_eq!(decision, OffloadDecision::Invalid);
        }
        let mut retired = offload(&[[9; 32]]);
        let decision = decide(&mut retired, NOW, 0, &again);
        assert!(
            matches!(decision, OffloadDecision::Retry(_)),
            "{decision:?}"
        );
    }
}

/// RFC 9000 §8.1.3: as if the client had none.
#[test]
fn tokens_of_servers_and_forged_ones_are_answered_with_a_retry() {
    let mut offload = offload(&SECRETS);
    let (mut token, source) = retry_of(&mut offload, Version::V1, &[]);
    retry_of(&mut offload, Version::V1, &[7; 100]);
    retry_of(&mut offload, Version::V1, &[7; 900]);
    for at in 0..token.len() {
        token[at] ^= 1;
        let probe = Probe {
            destination: source,
            token: &token,
            ..Probe::new()
        };
        let decision = decide(&mut offload, NOW, 0, &probe);
        assert!(
            matches!(decision, OffloadDecision::Retry(_)),
            "{at}: {decision:?}"
        );
        token[at] ^= 1;
    }
}

#[test]
fn what_is_no_first_packet_is_not_answered() {
    let mut offload = offload(&SECRETS);
    let small = Probe {
        len: 1199,
        ..Probe::new()
    };
    let short_id = Probe {
        destination: id(&[1; 7]),
        ..Probe::new()
    };
    for probe in [small, short_id] {
        assert_eq!(
            decide(&mut offload, NOW, 0, &probe),
            OffloadDecision::Invalid
        );
    }
    let datagram = Probe::new().datagram();
    let mut decide = |at: usize, byte: u8, len: usize| {
        let mut datagram = datagram.clone();
        datagram[at] = byte;
        let mut buffer = [0; RetryOffload::RETRY_LEN_MAX];
        offload.decide(NOW, client_address(0), &datagram[..len], &mut buffer)
    };
    let first = datagram[0];
    // A short header, 0-RTT, Handshake, another version, and the end of the datagram.
    for (at, byte, len) in [
        (0, 0x40, 1200),
        (0, first | 0x10, 1200),
        (0, first | 0x20, 1200),
        (1, 9, 1200),
        (0, first, 12),
    ] {
        assert_eq!(decide(at, byte, len), OffloadDecision::NotInitial);
    }
    // RFC 9287: the fixed bit may be 0.
    let greased = decide(0, first & !0x40, 1200);
    assert!(matches!(greased, OffloadDecision::Retry(_)));
}

/// The balancer's packets come from its address, so the server cannot check the client's.
#[test]
fn a_server_accepts_the_tokens_of_its_balancers_only() {
    let (token, source) = retry_of(&mut offload(&SECRETS), Version::V1, &[]);
    let again = Probe {
        destination: source,
        token: &token,
        ..Probe::new()
    };
    let balancer = client_address(5).ip().to_string();
    let path = from_client(5);
    let route = |secrets: &[[u8; 32]], address: &str, now, probe: &Probe<'_>| {
        let mut server = server(RetryPolicy::Always, secrets, address);
        let route = deliver(&mut server, now, &path, &probe.datagram());
        let validated = server.statistics().accepted_after_retry;
        assert_eq!(validated == 1, matches!(route, Route::Accepted(_)));
        route
    };
    let accepted = route(&[[9; 32], SECRETS[0]], &balancer, START + DELAY, &again);
    assert!(matches!(accepted, Route::Accepted(_)), "{accepted:?}");
    let mapped = format!("::ffff:{balancer}");
    let accepted = route(&SECRETS, &mapped, START, &again);
    assert!(matches!(accepted, Route::Accepted(_)), "{accepted:?}");
    // Another key, or another sender: no token.
    for (secrets, address) in [(&[[9; 32]], &*balancer), (&SECRETS, "192.0.2.200")] {
        assert_eq!(
            route(secrets, address, START, &again),
            Route::Answered(Answer::Retry)
        );
    }
    // Late, or to another connection ID.
    let refused = Route::Answered(Answer::Refused(
        lastbyte_wire::TransportError::INVALID_TOKEN,
    ));
    let late = START + Duration::from_secs(16);
    assert_eq!(route(&SECRETS, &balancer, late, &again), refused);
    let elsewhere = Probe {
        destination: id(&[0xe; 8]),
        ..again
    };
    assert_eq!(route(&SECRETS, &balancer, START, &elsewhere), refused);
}

/// Its address is the balancer's, from which the packets of all clients come.
#[test]
fn a_token_of_an_earlier_connection_validates_no_address_behind_a_balancer() {
    let balancer = client_address(5).ip().to_string();
    for (index, is_validated) in [(5, false), (6, true)] {
        let path = from_client(index);
        let deliver_first = |server: &mut Endpoint| {
            let token = server.new_token(START, path.remote, None);
            let token = token.expect("short");
            let probe = Probe {
                token: &token,
                ..Probe::new()
            };
            deliver(server, START, &path, &probe.datagram())
        };
        let mut strict = server(RetryPolicy::Always, &SECRETS, &balancer);
        let route = deliver_first(&mut strict);
        assert_eq!(matches!(route, Route::Accepted(_)), is_validated);
        assert_eq!(route == Route::Answered(Answer::Retry), !is_validated);

        let mut open = server(RetryPolicy::Never, &SECRETS, &balancer);
        assert!(matches!(deliver_first(&mut open), Route::Accepted(_)));
        let counted = open.statistics().accepted_with_token;
        assert_eq!(counted, u64::from(is_validated));
    }
}
