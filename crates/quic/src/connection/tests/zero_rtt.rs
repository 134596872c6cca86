use lastbyte_wire::Direction;

use super::*;
use crate::crypto::plain::Resumption;

/// A client that remembers a server with these settings.
pub(super) fn resuming(server: &Config, is_early: bool) -> Arc<dyn ClientCrypto> {
    let (crypto, _) = plain(1);
    let mut pair = Pair::configured(
        &crypto,
        &plain(1).1,
        config(),
        server.clone(),
        1,
        Faults::default(),
    );
    pair.shake_hands();
    let parameters = pair.client.session().peer_parameters().expect("known");
    let mut client = PlainClient::new(5, vec![b"bulk".to_vec()]);
    client.resumption = Some(Resumption {
        parameters: parameters.to_vec(),
        early_data: is_early,
    });
    Arc::new(client)
}

fn server_crypto(accepts: bool) -> PlainServer {
    let mut server = plain(1).1;
    server.accepts_early_data = accepts;
    server
}

#[test]
fn rfc9001_4_6_a_request_in_0_rtt_is_answered_after_one_round_trip() {
    let client = resuming(&config(), true);
    let crypto = server_crypto(true);
    let mut pair = Pair::configured(&client, &crypto, config(), config(), 2, Faults::default());
    assert!(pair.client.is_zero_rtt());
    let id = pair.start_transfer(b"request");
    pair.run_until("request", |pair| pair.arrived.contains_key(&(true, id)));
    assert_eq!(pair.now.since(START), DELAY, "half a round trip");
    pair.finish_transfer(id, b"request", &body(1000, 2));
    assert_eq!(pair.now.since(START), DELAY * 2, "one");
    assert!(events(&mut pair.client).contains(&Event::ZeroRtt { is_accepted: true }));
    assert!(pair.client.statistics().packets.zero_rtt_sent > 0);
    assert!(pair.server.statistics().packets.zero_rtt_received > 0);
}

#[test]
fn rfc9001_4_6_2_rejected_0_rtt_data_is_retransmitted() {
    let client = resuming(&config(), true);
    let crypto = server_crypto(false);
    let mut pair = Pair::configured(&client, &crypto, config(), config(), 2, Faults::default());
    let id = pair.start_transfer(&body(5000, 1));
    pair.finish_transfer(id, &body(5000, 1), &body(1000, 2));
    assert!(events(&mut pair.client).contains(&Event::ZeroRtt { is_accepted: false }));
    assert_eq!(pair.server.statistics().packets.zero_rtt_received, 0);
    assert_eq!(pair.client.recovery_statistics().packets_lost, 0);
}

#[test]
fn rfc9001_4_6_0_rtt_data_arrives_over_a_lossy_path_accepted_or_not() {
    for accepts in [true, false] {
        for seed in 1..=30 {
            let client = resuming(&config(), true);
            let crypto = server_crypto(accepts);
            let mut pair = Pair::configured(&client, &crypto, config(), config(), seed, BAD_PATH);
            let id = pair.start_transfer(&body(9000, 1));
            pair.finish_transfer(id, &body(9000, 1), &body(9000, 2));
            pair.shake_hands();
        }
    }
}

#[test]
fn rfc9000_7_4_1_limits_below_the_remembered_ones_close_the_connection() {
    let client = resuming(&config(), true);
    let mut reduced = config();
    reduced.streams.bidirectional_streams = 1;
    let crypto = server_crypto(true);
    let mut pair = Pair::configured(&client, &crypto, config(), reduced, 2, Faults::default());
    pair.run_to_the_end();
    assert_eq!(
        violation(&pair.client).0,
        TransportError::PROTOCOL_VIOLATION
    );
}

#[test]
fn rfc9001_5_7_1_rtt_packets_before_the_handshake_is_complete_wait() {
    // The client's second flight arrives after its third.
    let mut pair = Pair::new(1, Faults::default());
    pair.run_until("client complete", |pair| {
        pair.client.stage() >= Stage::Complete
    });
    let id = pair.start_transfer(&body(5000, 1));
    pair.transmit();
    let mut flights: Vec<_> = pair.flying.drain().map(|flying| flying.0).collect();
    flights.sort();
    assert!(flights.len() > 1);
    let ecn = crate::ack::Ecn::NotEct;
    for mut flying in flights.into_iter().rev() {
        pair.server.handle_datagram(
            pair.now,
            &SERVER_PATH,
            ecn,
            &mut flying.bytes,
            &mut stream::KeepAll,
        );
    }
    let packets = pair.server.statistics().packets;
    assert!(packets.delayed_max > 0, "{packets:?}");
    assert_eq!(packets.delayed_used, packets.delayed_max);
    assert_eq!(
        pair.server.streams().accept(Direction::Bidirectional),
        Some(id)
    );
    assert_eq!(pair.server.stage(), Stage::Confirmed);
}

#[test]
fn tls_0_rtt_is_accepted_and_its_requests_are_answered() {
    let (client, server) = crate::crypto::tls::testing::pair();
    let client: Arc<dyn ClientCrypto> = Arc::new(client);
    let mut first = Pair::configured(&client, &server, config(), config(), 1, Faults::default());
    first.shake_hands();
    first.pass(DELAY * 4);
    assert!(first.client.session().tickets_received() > 0);
    let mut pair = Pair::configured(&client, &server, config(), config(), 2, Faults::default());
    assert!(pair.client.is_zero_rtt());
    let id = pair.start_transfer(b"request");
    pair.finish_transfer(id, b"request", &body(3000, 2));
    assert_eq!(pair.client.session().is_resumed(), Some(true));
    assert!(events(&mut pair.client).contains(&Event::ZeroRtt { is_accepted: true }));
}
