use super::*;
use crate::path::MtuConfig;

/// A pair whose server starts with datagrams of this size, and has a certificate of this size.
fn with_server(initial: u16, certificate: u16) -> Pair {
    let (client, mut server) = plain(1);
    server.sizes.certificate = certificate;
    let mut server_config = config();
    server_config.mtu = MtuConfig {
        initial,
        maximum: initial.max(1472),
    };
    Pair::configured(
        &client,
        &server,
        config(),
        server_config,
        1,
        Faults::default(),
    )
}

/// The lengths of the datagrams with which the server answers the first datagram of the client.
fn first_flight(pair: &mut Pair) -> Vec<usize> {
    let is_from_server = |(_, to_server, _): &&(Time, bool, usize)| !to_server;
    pair.run_until("an answer", |pair| {
        pair.trace.iter().any(|one| is_from_server(&&one.clone()))
    });
    let flight = pair.trace.iter().filter(is_from_server);
    flight.map(|(.., len)| *len).collect()
}

#[test]
fn rfc9000_8_1_a_handshake_takes_a_round_trip_with_any_initial_datagram_size() {
    for initial in [
        1200, 1201, 1472, 1799, 1801, 3500, 3600, 3601, 3700, 8952, 9000,
    ] {
        let mut pair = with_server(initial, 2400);
        let flight = first_flight(&mut pair);
        assert!(
            flight.iter().sum::<usize>() <= 3600,
            "{initial}: {flight:?}"
        );
        assert!(flight[0] >= 1200, "{initial}: {flight:?}");
        pair.run_until("the client's handshake", |pair| {
            pair.client.stage() != Stage::Handshaking
        });
        assert_eq!(pair.now.since(START), 2 * DELAY, "{initial}: {flight:?}");
        pair.shake_hands();
        pair.transfer(&body(100, 1), &body(100_000, 2));
    }
}

#[test]
fn rfc9000_8_1_no_credit_is_left_while_there_is_data() {
    for (initial, expected) in [
        (1200, &[1200, 1200, 1200][..]),
        (1472, &[1472, 1472, 656]),
        (3500, &[3500]),
        (8952, &[1200, 2400]),
    ] {
        let mut pair = with_server(initial, 9000);
        assert_eq!(first_flight(&mut pair), expected, "{initial}");
        pair.shake_hands();
    }
}

/// The server's first flight is lost: the client's probes give it credit for another.
#[test]
fn rfc9000_8_1_a_handshake_whose_first_flight_is_lost_recovers_with_any_initial_datagram_size() {
    for initial in [1200, 1472, 3700, 9000] {
        let mut pair = with_server(initial, 2400);
        first_flight(&mut pair);
        pair.flying.clear();
        pair.shake_hands();
        assert!(
            pair.now.since(START) < Duration::from_secs(3),
            "{initial}: {:?}",
            pair.now
        );
    }
}
