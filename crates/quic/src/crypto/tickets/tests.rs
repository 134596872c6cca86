//! Complete handshakes with tickets, between servers that share keys.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use lastbyte_wire::{TransportError, packet::Version};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs::kx_group};

use super::{
    message::NewSessionTicket,
    testing::{
        Clock, DAY, Fleet, Kind, LIMIT, connect, early_flows, keys, kind, parameters, replay,
        sent_tickets, start_client, start_server,
    },
    *,
};
use crate::crypto::{
    ClientCrypto as _, EarlyData, ServerCrypto as _, Space,
    testing::{End, drive},
    tls::{
        ConfigError, TlsClient, TlsServer,
        testing::{all_suites, server_config},
    },
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A client receives tickets from one server, and connects to another after some time.
fn from_one_to_another(fleet: &Fleet, one: &TlsServer, another: &TlsServer) -> Kind {
    let client = fleet.client();
    assert_eq!(connect(&client, one), Kind::Full);
    connect(&client, another)
}

#[test]
fn the_rustls_version_matches_the_lock_file() {
    let lock = include_str!("../../../../../Cargo.lock");
    let entry = format!("name = \"rustls\"\nversion = \"{RUSTLS_VERSION}\"\n");
    assert!(lock.contains(&entry), "update `RUSTLS_VERSION`");
    assert_eq!(lock.matches("name = \"rustls\"\n").count(), 1);
}

#[test]
fn a_server_with_the_shared_key_resumes_and_opens_0rtt() {
    let fleet = Fleet::new();
    let one = fleet.server(fleet.tickets(&[1]));
    let another = fleet.server(fleet.tickets(&[1]));
    let client = fleet.client();
    assert_eq!(connect(&client, &one), Kind::Full);
    fleet.clock.pass(seconds(30));

    let (mut c, mut s) = (start_client(&client), start_server(&another));
    assert_eq!(
        c.session.remembered_parameters(),
        Some(&parameters(LIMIT)[..])
    );
    let hello = c.take_output();
    s.receive(&hello, 50).unwrap();
    s.take_output();
    assert!(early_flows(&c, &s), "right after the ClientHello");
    let ticket = s.session.resumed_ticket().unwrap();
    assert_eq!(fleet.clock.now(), ticket.issued + seconds(30));
    assert_eq!(ticket.refusal, None);
    // And to the end, with new tickets, which permit 0-RTT at the first server again.
    assert_eq!(connect(&client, &another), Kind::Early);
    assert_eq!(connect(&client, &one), Kind::Early);
}

#[test]
fn rfc8446_4_6_1_each_ticket_lasts_a_week_and_permits_early_data() {
    let fleet = Fleet::new();
    let client = fleet.client();
    let (mut c, mut s) = (
        start_client(&client),
        start_server(&fleet.plain_server(&[1])),
    );
    drive(&mut c, &mut s, 7).unwrap();
    assert_eq!(c.session.tickets_received(), 2);
    let messages = sent_tickets(&s);
    assert_eq!(messages.len(), 2);
    for message in &messages {
        let ticket = NewSessionTicket::decode(message).unwrap();
        assert_eq!(ticket.lifetime_s, 604_800);
        assert_eq!(ticket.extensions, [0, 42, 0, 4, 255, 255, 255, 255]);
        let contents = keys(&[1]).open(ticket.ticket).unwrap();
        let contents = contents::Contents::decode(&contents).unwrap();
        assert_eq!(contents.parameters, parameters(LIMIT));
        assert!(ticket.ticket.len() < 200, "{}", ticket.ticket.len());
    }
    assert_ne!(messages[0], messages[1]);
}

#[test]
fn an_old_key_still_opens_and_a_retired_one_does_not() {
    let fleet = Fleet::new();
    let old = fleet.plain_server(&[1]);
    let rotated = fleet.plain_server(&[2, 1]);
    let retired = fleet.plain_server(&[3, 2]);
    assert_eq!(from_one_to_another(&fleet, &old, &rotated), Kind::Early);
    assert_eq!(from_one_to_another(&fleet, &old, &retired), Kind::Full);
    assert_eq!(from_one_to_another(&fleet, &rotated, &retired), Kind::Early);
}

#[test]
fn keys_are_changed_while_the_server_runs() {
    let fleet = Fleet::new();
    let tickets = Arc::new(fleet.tickets(&[1]));
    let config = server_config(all_suites(), &fleet.identity);
    let server = TlsServer::with_tickets(config, Arc::clone(&tickets)).unwrap();
    let client = fleet.client();
    assert_eq!(connect(&client, &server), Kind::Full);
    tickets.set_keys(keys(&[2, 1]));
    fleet.clock.pass(replay_filter::DEPTH);
    assert_eq!(connect(&client, &server), Kind::Early);
    tickets.set_keys(keys(&[3]));
    fleet.clock.pass(replay_filter::DEPTH);
    assert_eq!(connect(&client, &server), Kind::Full);
    assert_eq!(connect(&client, &server), Kind::Early);
}

/// An earlier process may have held the new key, and accepted what is replayed now.
#[test]
fn rfc8446_8_2_shared_keys_permit_no_0rtt_during_the_replay_window() {
    let fleet = Fleet::new();
    let tickets = Arc::new(fleet.tickets(&[1]));
    let config = server_config(all_suites(), &fleet.identity);
    let server = TlsServer::with_tickets(config, Arc::clone(&tickets)).unwrap();
    let before = fleet.plain_server(&[2]);
    let client = fleet.client();
    assert_eq!(connect(&client, &before), Kind::Full);
    let hello = start_client(&client).take_output();
    assert_eq!(replay(&hello, &before).0, EarlyData::Accepted);
    tickets.set_keys(keys(&[2, 1]));
    assert_eq!(replay(&hello, &server).1, Some(Refusal::RegisterBlind));
    // Keys that it already has are not new, in any order.
    let almost = replay_filter::DEPTH.saturating_sub(seconds(1));
    fleet.clock.pass(almost);
    tickets.set_keys(keys(&[1, 2]));
    tickets.set_keys(keys(&[2]));
    let client = fleet.client();
    assert_eq!(connect(&client, &server), Kind::Full);
    assert_eq!(connect(&client, &server), Kind::Resumed);
    fleet.clock.pass(seconds(1));
    assert_eq!(connect(&client, &server), Kind::Early);
}

/// A server's 1-RTT messages with replaced tickets.
fn spoil(sent_data: &mut [(Space, Vec<u8>)], spoiled: &dyn Fn(&[u8]) -> Vec<u8>) {
    for (space, data) in sent_data {
        if *space != Space::Application {
            continue;
        }
        let mut messages = message::Messages::default();
        messages.push(&std::mem::take(data));
        while let Some(message) = messages.next() {
            let read = NewSessionTicket::decode(&message).unwrap();
            let ticket = spoiled(read.ticket);
            let ticket = &ticket[..];
            data.extend(NewSessionTicket { ticket, ..read }.encode().unwrap());
        }
    }
}

#[test]
fn a_corrupt_ticket_leads_to_a_full_handshake_without_error() {
    type Spoil = fn(&[u8]) -> Vec<u8>;
    let spoils: [(&str, Spoil); 8] = [
        ("a bit flipped", |ticket| {
            let mut ticket = ticket.to_vec();
            ticket[40] ^= 1;
            ticket
        }),
        ("another nonce", |ticket| {
            let mut ticket = ticket.to_vec();
            ticket[9] ^= 1;
            ticket
        }),
        ("another key", |ticket| {
            [&keys(&[2]).seal([0; 12], b"").unwrap()[..4], &ticket[4..]].concat()
        }),
        ("a byte less", |ticket| ticket[..ticket.len() - 1].to_vec()),
        ("10 bytes", |ticket| ticket[..10].to_vec()),
        ("1 byte", |_| vec![1]),
        ("32 bytes", |_| (100..132).collect()),
        ("16 KiB", |_| vec![1; 16 * 1024]),
    ];
    let fleet = Fleet::new();
    let server = fleet.plain_server(&[1, 2]);
    for (name, spoiled) in spoils {
        let client = fleet.client();
        let (mut c, mut s) = (start_client(&client), start_server(&server));
        for _ in 0..3 {
            let sent_data = c.take_output();
            s.receive(&sent_data, usize::MAX).unwrap();
            let mut sent_data = s.take_output();
            spoil(&mut sent_data, &spoiled);
            c.receive(&sent_data, usize::MAX).unwrap();
        }
        assert_eq!(c.session.tickets_received(), 2);
        assert_eq!(connect(&client, &server), Kind::Full, "{name}");
    }
}

#[test]
fn rfc8446_8_2_a_replayed_client_hello_resumes_without_0rtt() {
    let fleet = Fleet::new();
    let (one, another) = (fleet.plain_server(&[1]), fleet.plain_server(&[1]));
    let client = fleet.client();
    assert_eq!(connect(&client, &one), Kind::Full);
    let mut c = start_client(&client);
    let hello = c.take_output();
    let (early, refusal, _) = replay(&hello, &one);
    assert_eq!((early, refusal), (EarlyData::Accepted, None));
    fleet.clock.pass(seconds(60));
    let mut s = start_server(&one);
    s.receive(&hello, 100).unwrap();
    let ticket = s.session.resumed_ticket().unwrap();
    assert_eq!(ticket.refusal, Some(Refusal::Replayed));
    // The real client continues with this response.
    let flight = s.take_output();
    c.receive(&flight, usize::MAX).unwrap();
    drive(&mut c, &mut s, usize::MAX).unwrap();
    assert_eq!(kind(&c, &s), Kind::Resumed);
    assert_eq!(c.session.early_data(), EarlyData::Rejected);
    // Not guaranteed: another server accepts it once more.
    assert_eq!(replay(&hello, &another).0, EarlyData::Accepted);
    assert_eq!(replay(&hello, &another).0, EarlyData::Unavailable);
}

#[test]
fn rfc8446_8_3_a_delayed_client_hello_is_not_fresh() {
    let fleet = Fleet::new();
    let one = fleet.plain_server(&[1]);
    for (late, expected) in [
        (60, EarlyData::Accepted),
        (61, EarlyData::Unavailable),
        (122, EarlyData::Unavailable),
    ] {
        let client = fleet.client();
        connect(&client, &one);
        let hello = start_client(&client).take_output();
        fleet.clock.pass(seconds(late));
        let (early, refusal, session) = replay(&hello, &one);
        assert_eq!(early, expected, "{late} s");
        assert_eq!(session.is_resumed(), Some(true));
        assert_eq!(refusal, None, "it is the TLS library that refuses");
    }
}

#[test]
fn the_replay_filter_records_client_hellos_and_not_tickets() {
    let fleet = Fleet::new();
    let server = fleet.plain_server(&[1]);
    // All tickets that this client receives are the same.
    let client = fleet.client();
    let (mut c, mut s) = (start_client(&client), start_server(&server));
    let mut seen = None;
    for _ in 0..3 {
        let sent_data = c.take_output();
        s.receive(&sent_data, usize::MAX).unwrap();
        let mut sent_data = s.take_output();
        // The second message is a copy of the first, so that both have one key, nonce and ticket.
        for (_, data) in sent_data
            .iter_mut()
            .filter(|(space, _)| *space == Space::Application)
        {
            let mut messages = message::Messages::default();
            messages.push(&std::mem::take(data));
            let first = messages.next().unwrap();
            data.extend_from_slice(&first);
            data.extend_from_slice(&first);
            seen = NewSessionTicket::decode(&first).map(|read| read.ticket.to_vec());
        }
        c.receive(&sent_data, usize::MAX).unwrap();
    }
    let ticket = seen.unwrap();
    let hellos = [
        start_client(&client).take_output(),
        start_client(&client).take_output(),
    ];
    for hello in &hellos {
        let carries = hello[0].1.windows(ticket.len()).any(|part| part == ticket);
        assert!(carries, "both offer the one ticket");
        assert_eq!(replay(hello, &server).0, EarlyData::Accepted);
    }
    for hello in &hellos {
        assert_eq!(replay(hello, &server).1, Some(Refusal::Replayed));
    }
}

#[test]
fn a_full_or_blind_filter_rejects_0rtt_and_resumes() {
    let fleet = Fleet::new();
    let with = |replay_filter| {
        let tickets = fleet.tickets(&[1]);
        fleet.server(tickets.with_zero_rtt(ZeroRtt::AnyServer(Arc::new(replay_filter))))
    };
    let server = with(ReplayFilter::new(1, None));
    let client = fleet.client();
    assert_eq!(connect(&client, &server), Kind::Full);
    for _ in 0..8 {
        assert_eq!(connect(&client, &server), Kind::Early);
    }
    assert_eq!(connect(&client, &server), Kind::Resumed);
    let hello = start_client(&client).take_output();
    assert_eq!(replay(&hello, &server).1, Some(Refusal::RegisterFull));

    let server = with(ReplayFilter::new(1, Some(fleet.clock.now())));
    assert_eq!(connect(&client, &server), Kind::Resumed);
    let hello = start_client(&client).take_output();
    assert_eq!(replay(&hello, &server).1, Some(Refusal::RegisterBlind));
    fleet.clock.pass(replay_filter::DEPTH);
    assert_eq!(connect(&client, &server), Kind::Early);
}

#[test]
fn rfc9000_7_4_1_reduced_parameters_reject_0rtt_and_resume() {
    let fleet = Fleet::new();
    let server = fleet.plain_server(&[1]);
    let start = |parameters: &[u8]| End::new(server.start(Version::V1, parameters).unwrap());
    for (limit, expected, refusal) in [
        (LIMIT - 1, Kind::Resumed, Some(Refusal::Reduced)),
        (LIMIT, Kind::Early, None),
        (LIMIT + 1, Kind::Early, None),
    ] {
        let client = fleet.client();
        assert_eq!(connect(&client, &server), Kind::Full);
        let (mut c, mut s) = (start_client(&client), start(&parameters(limit)));
        drive(&mut c, &mut s, usize::MAX).unwrap();
        assert_eq!(kind(&c, &s), expected);
        assert_eq!(s.session.resumed_ticket().unwrap().refusal, refusal);
    }
    // Transport parameters that cannot be decoded permit nothing.
    let client = fleet.client();
    let (mut c, mut s) = (start_client(&client), start(b"unreadable"));
    drive(&mut c, &mut s, usize::MAX).unwrap();
    assert_eq!(
        connect(&client, &server),
        Kind::Early,
        "nothing was promised"
    );
    let (mut c, mut s) = (start_client(&client), start(b"unreadable"));
    drive(&mut c, &mut s, usize::MAX).unwrap();
    assert_eq!(kind(&c, &s), Kind::Resumed);
}

#[test]
fn rfc8446_4_6_1_a_ticket_lives_for_a_week_and_no_longer() {
    let fleet = Fleet::new();
    let server = fleet.plain_server(&[1]);
    for (time, expected) in [
        (DAY, Kind::Early),
        (6 * DAY, Kind::Early),
        (7 * DAY, Kind::Early),
        (7 * DAY + seconds(1), Kind::Full),
    ] {
        let client = fleet.client();
        assert_eq!(connect(&client, &server), Kind::Full);
        fleet.clock.pass(time);
        assert_eq!(connect(&client, &server), expected, "{time:?}");
    }
    // A client whose clock has stopped offers what the server no longer accepts.
    for (time, expected) in [
        (seconds(60), Kind::Early),
        (seconds(61), Kind::Resumed),
        (7 * DAY, Kind::Resumed),
        (7 * DAY + seconds(1), Kind::Full),
    ] {
        let client = fleet.client_with(&Clock::new());
        assert_eq!(connect(&client, &server), Kind::Full);
        fleet.clock.pass(time);
        assert_eq!(connect(&client, &server), expected, "{time:?}");
    }
}

#[test]
fn a_ticket_from_the_future_is_accepted_up_to_a_minute() {
    let fleet = Fleet::new();
    for (ahead, expected) in [(60, Kind::Early), (61, Kind::Full)] {
        let client = fleet.client_with(&Clock::new());
        assert_eq!(connect(&client, &fleet.plain_server(&[1])), Kind::Full);
        fleet.clock.set_back(seconds(ahead));
        // A server of its own, whose replay filter has not seen the later time.
        let kind = connect(&client, &fleet.plain_server(&[1]));
        assert_eq!(kind, expected, "{ahead} s");
        fleet.clock.pass(seconds(ahead));
    }
}

#[test]
fn rfc8446_4_2_11_a_wrong_binder_is_fatal_and_not_recorded() {
    let fleet = Fleet::new();
    let server = fleet.plain_server(&[1]);
    let client = fleet.client();
    connect(&client, &server);
    let hello = start_client(&client).take_output();
    let mut forged = hello.clone();
    // The binder ends the ClientHello.
    *forged[0].1.last_mut().unwrap() ^= 1;
    let mut s = start_server(&server);
    let error = s.receive(&forged, usize::MAX).unwrap_err();
    // decrypt_error.
    assert_eq!(error.code, TransportError::from_tls_alert(51));
    assert_eq!(s.session.resumed_ticket(), None);
    assert_eq!(replay(&hello, &server).0, EarlyData::Accepted);
}

#[test]
fn rfc9369_5_a_ticket_of_another_version_is_not_accepted() {
    let fleet = Fleet::new();
    let server = fleet.plain_server(&[1]);
    let client = fleet.client();
    let connect_by = |version| {
        let mut c = End::new(client.start(version, "localhost", b"client").unwrap());
        let mut s = End::new(server.start(version, &parameters(LIMIT)).unwrap());
        drive(&mut c, &mut s, usize::MAX).unwrap();
        c.session.is_resumed()
    };
    assert_eq!(connect_by(Version::V2), Some(false));
    assert_eq!(connect_by(Version::V2), Some(true));
    assert_eq!(connect_by(Version::V1), Some(false));
}

#[test]
fn without_0rtt_tickets_do_not_offer_it_and_none_is_accepted() {
    let fleet = Fleet::new();
    let off = fleet.server(fleet.tickets(&[1]).with_zero_rtt(ZeroRtt::Off));
    let client = fleet.client();
    assert_eq!(connect(&client, &off), Kind::Full);
    let mut c = start_client(&client);
    assert_eq!(c.session.early_data(), EarlyData::Unavailable);
    drive(&mut c, &mut start_server(&off), usize::MAX).unwrap();
    // With a ticket that promised it.
    let client = fleet.client();
    assert_eq!(connect(&client, &fleet.plain_server(&[1])), Kind::Full);
    let hello = start_client(&client).take_output();
    let (early, refusal, session) = replay(&hello, &off);
    assert_eq!(early, EarlyData::Unavailable);
    assert_eq!(refusal, Some(Refusal::Off));
    assert_eq!(session.is_resumed(), Some(true));
}

#[test]
fn concurrent_handshakes_on_one_thread_keep_their_tickets() {
    let fleet = Fleet::new();
    let server = fleet.plain_server(&[1]);
    let clients: Vec<TlsClient> = (0..3).map(|_| fleet.client()).collect();
    let mut ends: Vec<(End, End)> = clients
        .iter()
        .map(|client| (start_client(client), start_server(&server)))
        .collect();
    // One step of each at a time, so that all are in the same state simultaneously.
    for _ in 0..4 {
        for (c, s) in &mut ends {
            s.receive(&c.take_output(), usize::MAX).unwrap();
        }
        for (c, s) in ends.iter_mut().rev() {
            c.receive(&s.take_output(), usize::MAX).unwrap();
        }
    }
    for client in &clients {
        let (mut c, mut s) = (start_client(client), start_server(&server));
        drive(&mut c, &mut s, usize::MAX).unwrap();
        assert_eq!(kind(&c, &s), Kind::Early);
    }
}

#[test]
fn rfc8446_4_2_10_a_hello_retry_request_rejects_0rtt_and_resumes() {
    let with_groups = |groups: &[&'static dyn SupportedKxGroup]| {
        Arc::new(CryptoProvider {
            kx_groups: groups.to_vec(),
            ..(*all_suites()).clone()
        })
    };
    let fleet = Fleet::new();
    let one = fleet.plain_server(&[1]);
    let another = fleet.server_of(with_groups(&[kx_group::SECP256R1]), fleet.tickets(&[1]));
    let client = fleet.client();
    assert_eq!(connect(&client, &one), Kind::Full);
    let (mut c, mut s) = (start_client(&client), start_server(&another));
    assert_eq!(c.session.early_data(), EarlyData::Offered);
    s.receive(&c.take_output(), usize::MAX).unwrap();
    assert_eq!(s.session.early_data(), EarlyData::Unavailable);
    c.receive(&s.take_output(), usize::MAX).unwrap();
    assert_eq!(c.session.early_data(), EarlyData::Rejected);
    drive(&mut c, &mut s, usize::MAX).unwrap();
    assert_eq!(c.session.early_data(), EarlyData::Rejected);
    for end in [&c, &s] {
        assert_eq!(end.session.is_resumed(), Some(true));
    }
    let ticket = s.session.resumed_ticket().unwrap();
    assert_eq!(ticket.refusal, Some(Refusal::NotFirst));
    assert!(s.early.is_none());
}

#[test]
fn a_configuration_with_its_own_ticketer_is_rejected() {
    let fleet = Fleet::new();
    let mut config = server_config(all_suites(), &fleet.identity);
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
    let error = TlsServer::with_tickets(config, Arc::new(fleet.tickets(&[1]))).unwrap_err();
    assert_eq!(error, ConfigError::Ticketer);
}
