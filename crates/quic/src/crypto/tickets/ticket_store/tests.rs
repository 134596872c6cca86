//! The store without a handshake around it.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use aws_lc_rs::digest::digest;
use proptest::{collection::vec, prelude::*};

use super::{
    super::testing::{Fleet, LIMIT, keys, parameters},
    *,
};

const SESSION: &[u8] = b"a session, and its offset";

fn server_tickets() -> ServerTickets {
    let tickets = Arc::new(Fleet::new().tickets(&[1]));
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    ServerTickets::new(
        &tickets,
        random,
        (Version::V1, Version::V1),
        &parameters(LIMIT),
    )
}

/// As rustls writes it: with a name in place of a ticket.
fn message(name: &[u8]) -> Vec<u8> {
    let message = NewSessionTicket {
        lifetime_s: 86_400,
        age_add: 1,
        nonce: &[2],
        ticket: name,
        extensions: &[],
    };
    message.encode().unwrap()
}

fn ticket(message: &[u8]) -> Vec<u8> {
    let read = NewSessionTicket::decode(message).unwrap();
    assert_eq!((read.lifetime_s, read.age_add), (604_800, 1));
    assert_eq!(read.nonce, [2]);
    read.ticket.to_vec()
}

#[test]
fn each_ticket_gets_its_own_session_in_any_order() {
    let mut tickets = server_tickets();
    for name in [b"one", b"two"] {
        let session = [&name[..], SESSION].concat();
        assert!(tickets.store().put(name.to_vec(), session));
    }
    let mut written = b"before".to_vec();
    written.extend([message(b"two"), message(b"one")].concat());
    tickets.rewrite(&mut written, b"before".len());
    let rest = written.strip_prefix(b"before").unwrap();
    let mut messages = Messages::default();
    messages.push(rest);
    for name in [b"two", b"one"] {
        let sealed = ticket(&messages.next().unwrap());
        let contents = keys(&[1]).open(&sealed).unwrap();
        let session = Contents::decode(&contents).unwrap().session;
        assert_eq!(session, [&name[..], SESSION].concat());
    }
    assert_eq!(messages.next(), None);
    assert!(tickets.store.state().stored.is_empty());
}

#[test]
fn a_fragmented_message_is_reassembled() {
    let mut tickets = server_tickets();
    tickets.store().put(b"one".to_vec(), SESSION.to_vec());
    let whole = message(b"one");
    let mut written = Vec::new();
    for (index, byte) in whole.iter().enumerate() {
        let start = written.len();
        written.push(*byte);
        tickets.rewrite(&mut written, start);
        assert_eq!(written.is_empty(), index + 1 < whole.len());
    }
    assert!(keys(&[1]).open(&ticket(&written)).is_some());
}

#[test]
fn other_messages_pass_and_tickets_without_a_session_are_removed() {
    let mut tickets = server_tickets();
    let other = [24, 0, 0, 1, 0];
    let malformed = [NEW_SESSION_TICKET, 0, 0, 1, 0];
    let mut written = [&other[..], &malformed, &message(b"nobody's"), &other].concat();
    tickets.rewrite(&mut written, 0);
    assert_eq!(written, [other, other].concat());
    // Too long to be assembled: as it is, and at once.
    let mut overlong = vec![9, 1, 0, 0, 5, 5];
    tickets.rewrite(&mut overlong, 0);
    assert_eq!(overlong, [9, 1, 0, 0, 5, 5]);
}

#[test]
fn tickets_above_the_total_size_limit_are_not_sent() {
    let mut tickets = server_tickets();
    let mut written = Vec::new();
    for name in 0..5 {
        tickets.store().put(vec![name; 32], vec![0; 15_000]);
        written.extend(message(&[name; 32]));
    }
    tickets.rewrite(&mut written, 0);
    assert!(written.len() > 4 * 15_000 && written.len() <= CRYPTO_OUT_MAX);
    // One that is too long alone is not sent.
    tickets.store().put(b"one".to_vec(), vec![0; 17_000]);
    let mut written = message(b"one");
    tickets.rewrite(&mut written, 0);
    assert!(written.is_empty());
}

#[test]
fn stored_sessions_and_examined_tickets_are_bounded() {
    let mut tickets = server_tickets();
    let store = tickets.store();
    for number in 0..STORED_MAX {
        assert!(store.put(vec![number as u8], SESSION.to_vec()));
    }
    assert!(!store.put(b"more".to_vec(), SESSION.to_vec()));
    let mut written = message(&[0]);
    tickets.rewrite(&mut written, 0);
    let sealed = ticket(&written);
    tickets.on_initial(&[1, 0, 0, 1, 0]);
    for offer in 0..OFFERS_MAX {
        let taken = store.take(&sealed).unwrap();
        // The first as it was stored, all others marked as not fresh.
        assert_eq!(taken == SESSION, offer == 0);
        assert_eq!(taken.len(), SESSION.len());
    }
    assert_eq!(store.take(&sealed), None);
}

#[test]
fn a_session_without_an_offset_is_not_used_if_0rtt_is_rejected() {
    assert_eq!(make_stale(&mut [1, 2, 3]), None);
    let mut session = [1, 2, 3, 4, 5];
    assert_eq!(make_stale(&mut session), Some(()));
    assert_eq!(session, [1, 0x82, 3, 4, 5]);
}

proptest! {
    #[test]
    fn any_segmentation_of_a_client_hello_gives_its_hash(
        bodies in vec(vec(any::<u8>(), 0..700), 1..3),
        portion in 1..500usize,
        tail in 0..4usize,
    ) {
        let whole: Vec<Vec<u8>> = bodies
            .iter()
            .map(|body| {
                let length = (body.len() as u32).to_be_bytes();
                [&[1], &length[1..], body].concat()
            })
            .collect();
        let mut hello = Hello::default();
        // A message without a body is complete once something follows it.
        let data = [whole.concat(), vec![1, 0, 0, 9, 0][..=tail].to_vec()].concat();
        for part in data.chunks(portion) {
            hello.read(part);
        }
        let last = digest(&SHA256, whole.last().unwrap());
        prop_assert_eq!(hello.count, whole.len());
        prop_assert_eq!(&hello.hash.unwrap()[..], last.as_ref());
    }
}
