//! Tables of events at one end; the peer is simulated by keys of any generation.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use lastbyte_wire::{Side, packet::PacketType};

use super::*;
use crate::crypto::{
    plain::{self, Limits, Secret},
    testing::{PTO, number, open_short, short_packet},
};

fn keys_with(side: Side, limits: Limits) -> OneRttKeys {
    let secret = Secret::new(42, limits);
    let updates = plain::KeyUpdates {
        secret,
        side,
        generation: 0,
    };
    OneRttKeys::new(
        secret.keys(PacketType::OneRtt, side),
        KeyUpdates::plain(updates),
    )
}

fn ours() -> OneRttKeys {
    keys_with(Side::Client, Limits::default())
}

/// The peer's keys after this many updates.
fn peers(generation: u64) -> OneRttKeys {
    let mut keys = keys_with(Side::Server, Limits::default());
    for _ in 0..generation {
        keys.advance();
    }
    keys
}

fn ms(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// An event at our end. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// We seal a packet with this number.
    Seal(u32),
    /// A packet with this number arrives, sealed with keys of this generation: the generation it opens with, or an
    /// error.
    Open(u32, u64, Result<u64, OpenError>),
    /// We have acknowledged up to this number.
    AckSent(u32),
    /// An ACK of our packets up to this number, in a packet of this generation.
    Acked(u32, u64, Result<(), KeyUpdateErrorKind>),
    Confirmed,
    /// We update our keys.
    Update(Result<(), NoUpdate>),
    /// The time is now this.
    At(u64),
    /// Then this is our generation.
    Generation(u64),
    /// And this is the next deadline.
    Timeout(Option<u64>),
    /// The next keys are derived.
    Prepare,
}

use Event::{AckSent, Acked, At, Confirmed, Generation, Open, Prepare, Seal, Timeout, Update};

fn run(name: &str, events: &[Event]) {
    let mut keys = ours();
    let mut now = ms(0);
    for (step, event) in events.iter().enumerate() {
        let at = format!("{name}, step {step}: {event:?}");
        match *event {
            Seal(n) => drop(short_packet(&mut keys, n, b"frames").expect(&at)),
            Open(n, generation, expected) => {
                let mut packet = short_packet(&mut peers(generation), n, b"frames").unwrap();
                let before = keys.generation();
                let opened = open_short(&mut keys, &mut packet, now);
                let updated = opened.as_ref().is_ok_and(|opened| opened.updated);
                assert_eq!(opened.map(|opened| opened.generation), expected, "{at}");
                assert_eq!(updated, keys.generation() > before, "{at}");
            }
            AckSent(n) => keys.on_ack_sent(number(n)),
            Acked(n, generation, expected) => {
                let result = keys.on_ack(number(n), generation, now, PTO);
                assert_eq!(result, expected, "{at}");
            }
            Confirmed => keys.on_handshake_confirmed(),
            Update(expected) => assert_eq!(keys.update(now), expected, "{at}"),
            At(millis) => {
                now = ms(millis);
                keys.on_timeout(now);
            }
            Generation(expected) => {
                assert_eq!(keys.generation(), expected, "{at}");
                assert_eq!(keys.key_phase(), expected % 2 == 1, "{at}");
            }
            Timeout(expected) => assert_eq!(keys.next_timeout(), expected.map(ms), "{at}"),
            Prepare => keys.prepare(),
        }
    }
}

const FORGED: Result<u64, OpenError> = Err(OpenError::NotAuthentic);

const fn fault(fault: KeyUpdateErrorKind) -> Result<u64, OpenError> {
    Err(OpenError::KeyUpdate(fault))
}

#[test]
fn conditions_for_a_local_key_update() {
    run(
        "not before the handshake is confirmed",
        &[
            Seal(0),
            Acked(0, 0, Ok(())),
            Update(Err(NoUpdate::Unconfirmed)),
            Confirmed,
            Update(Ok(())),
            Generation(1),
        ],
    );
    run(
        "not before a packet of the generation is acknowledged",
        &[
            Confirmed,
            Update(Err(NoUpdate::Unacknowledged)),
            Acked(7, 0, Ok(())), // of 0-RTT packets: nothing was sealed with these keys
            Update(Err(NoUpdate::Unacknowledged)),
            Seal(8),
            Acked(7, 0, Ok(())),
            Update(Err(NoUpdate::Unacknowledged)),
            Acked(8, 0, Ok(())),
            Update(Ok(())),
            Update(Err(NoUpdate::Unacknowledged)),
            Seal(9),
            Acked(8, 0, Ok(())),
            Update(Err(NoUpdate::Unacknowledged)),
        ],
    );
    run(
        "then not before three PTO have passed",
        &[
            Confirmed,
            Seal(0),
            Acked(0, 0, Ok(())),
            Update(Ok(())),
            Seal(1),
            Open(0, 1, Ok(1)),
            At(50),
            Acked(1, 1, Ok(())),
            Update(Err(NoUpdate::TooSoon(ms(350)))),
            At(349),
            Acked(1, 1, Ok(())), // does not restart the wait
            Update(Err(NoUpdate::TooSoon(ms(350)))),
            At(350),
            Update(Ok(())),
            Generation(2),
        ],
    );
}

#[test]
fn a_key_update_of_the_peer_is_followed() {
    run(
        "old packets are opened for three PTO",
        &[
            Open(0, 0, Ok(0)),
            Open(10, 1, Ok(1)),
            Generation(1),
            Timeout(Some(300)),
            Open(9, 0, Ok(0)),
            Open(11, 1, Ok(1)),
            Timeout(Some(300)), // from the first packet on
            At(299),
            Open(8, 0, Ok(0)),
            At(300),
            Timeout(None),
            Open(7, 0, FORGED),
            Open(12, 1, Ok(1)),
        ],
    );
    run(
        "again and again, with an acknowledgment between",
        &[
            Open(0, 1, Ok(1)),
            Prepare,
            AckSent(0),
            Open(1, 2, Ok(2)),
            Open(2, 2, Ok(2)),
            Prepare,
            AckSent(2),
            Open(3, 3, Ok(3)),
            Generation(3),
        ],
    );
    run(
        "keys that are not there yet open nothing",
        &[
            Open(0, 1, Ok(1)),
            AckSent(0),
            Open(1, 2, FORGED),
            Prepare,
            Open(1, 2, Ok(2)),
        ],
    );
    run(
        "two generations on there is nothing to be opened",
        &[Open(0, 2, FORGED), Open(1, 3, FORGED), Generation(0)],
    );
}

#[test]
fn a_local_key_update_is_followed_by_the_peer() {
    run(
        "old packets are opened until it does, and three PTO more",
        &[
            Open(0, 0, Ok(0)),
            Confirmed,
            Seal(0),
            Acked(0, 0, Ok(())),
            Update(Ok(())),
            Timeout(None),
            At(10_000),
            Open(1, 0, Ok(0)),
            Open(3, 1, Ok(1)),
            Timeout(Some(10_300)),
            Open(2, 0, Ok(0)),
            Generation(1),
        ],
    );
    run(
        "both at once",
        &[
            Confirmed,
            Seal(0),
            Acked(0, 0, Ok(())),
            Open(0, 0, Ok(0)),
            Update(Ok(())),
            Seal(1),
            Open(1, 1, Ok(1)), // it sealed this before it saw ours
            Acked(1, 1, Ok(())),
            Generation(1),
        ],
    );
}

#[test]
fn invalid_updates_are_key_update_errors() {
    run(
        "an update after an update, without an acknowledgment between",
        &[
            Open(0, 1, Ok(1)),
            Prepare,
            Open(1, 2, fault(KeyUpdateErrorKind::Consecutive)),
        ],
    );
    run(
        "the same after ours",
        &[
            Confirmed,
            Seal(0),
            Acked(0, 0, Ok(())),
            Update(Ok(())),
            Prepare,
            Open(0, 1, Ok(1)),
            Open(1, 2, fault(KeyUpdateErrorKind::Consecutive)),
        ],
    );
    run(
        "old keys between two packets with newer ones",
        &[
            Open(10, 1, Ok(1)),
            Open(12, 1, Ok(1)),
            Open(11, 0, fault(KeyUpdateErrorKind::OldKeys)),
        ],
    );
    run(
        "old keys after all packets with newer ones are not even tried",
        &[Open(10, 1, Ok(1)), Prepare, Open(11, 0, FORGED)],
    );
    run(
        "an acknowledgment of newer keys with old ones",
        &[
            Confirmed,
            Seal(0),
            Acked(0, 0, Ok(())),
            Update(Ok(())),
            Seal(1),
            Acked(0, 0, Ok(())), // of the packet before the update: fine
            Acked(1, 0, Err(KeyUpdateErrorKind::AcknowledgedWithOldKeys)),
        ],
    );
    let error = OpenError::KeyUpdate(KeyUpdateErrorKind::Consecutive);
    assert_eq!(
        error.transport_error(),
        Some(lastbyte_wire::TransportError::KEY_UPDATE_ERROR)
    );
}

#[test]
fn keys_are_updated_before_their_limit_and_not_used_beyond_it() {
    let limits = Limits {
        confidentiality: 8,
        integrity: 1 << 52,
        ..Limits::default()
    };
    let mut keys = keys_with(Side::Client, limits);
    keys.on_handshake_confirmed();
    for n in 0..4 {
        assert!(!keys.update_if_due(ms(0)), "packet {n}");
        short_packet(&mut keys, n, b"frames").unwrap();
    }
    // Due, but not permitted: nothing is acknowledged.
    assert!(!keys.update_if_due(ms(0)));
    for n in 4..8 {
        short_packet(&mut keys, n, b"frames").unwrap();
    }
    let error = short_packet(&mut keys, 8, b"frames").unwrap_err();
    assert_eq!(error, SealError::LimitReached);
    assert_eq!(
        error.transport_error(),
        lastbyte_wire::TransportError::AEAD_LIMIT_REACHED
    );
    // An acknowledgment helps even then.
    keys.on_ack(number(3), 0, ms(0), PTO).unwrap();
    assert!(keys.update_if_due(ms(0)));
    assert!(!keys.update_if_due(ms(0)));
    short_packet(&mut keys, 8, b"frames").unwrap();
    assert_eq!(keys.generation(), 1);
}

#[test]
fn forgeries_are_counted_over_all_generations() {
    let limits = Limits {
        confidentiality: 1 << 23,
        integrity: 3,
        ..Limits::default()
    };
    let mut keys = keys_with(Side::Client, limits);
    let forge = |keys: &mut OneRttKeys| {
        let mut packet = short_packet(&mut peers(5), 1, b"frames").unwrap();
        open_short(keys, &mut packet, ms(0)).unwrap_err()
    };
    assert_eq!(forge(&mut keys), OpenError::NotAuthentic);
    let mut packet = short_packet(&mut peers(1), 0, b"frames").unwrap();
    open_short(&mut keys, &mut packet, ms(0)).unwrap();
    assert_eq!(forge(&mut keys), OpenError::NotAuthentic);
    let error = forge(&mut keys);
    assert_eq!(error, OpenError::IntegrityLimitReached);
    assert_eq!(
        error.transport_error(),
        Some(lastbyte_wire::TransportError::AEAD_LIMIT_REACHED)
    );
}

#[test]
fn rfc9001_6_6_the_integrity_limit_is_shared_by_all_keys() {
    let limits = Limits {
        integrity: 10,
        ..Limits::default()
    };
    let mut keys = keys_with(Side::Client, limits);
    // Of the handshake, and of its late packets.
    assert_eq!(keys.count_forged(8), OpenError::NotAuthentic);
    assert_eq!(keys.count_forged(1), OpenError::NotAuthentic);
    assert_eq!(keys.count_forged(1), OpenError::IntegrityLimitReached);
}

#[test]
fn keys_of_the_first_update_are_derived_when_one_is_possible() {
    let open = |keys: &mut OneRttKeys, n, generation| {
        let mut packet = short_packet(&mut peers(generation), n, b"frames").unwrap();
        open_short(keys, &mut packet, ms(0)).map(|opened| opened.generation)
    };
    let mut keys = ours();
    let last = PREPARED_FROM as u32 - 1;
    for n in 0..=last {
        assert_eq!(open(&mut keys, n, 0), Ok(0));
        keys.prepare();
        assert!(keys.next.is_none(), "after packet {n}");
    }
    assert_eq!(open(&mut keys, last + 1, 0), Ok(0));
    assert!(keys.next.is_none(), "not while the packet is opened");
    keys.prepare();
    assert!(keys.next.is_some());

    // Earlier by a packet of the next generation, authentic or not.
    let mut keys = ours();
    assert_eq!(open(&mut keys, 0, 3), FORGED);
    assert!(keys.next.is_some());
    assert_eq!(keys.generation(), 0);
    assert_eq!(open(&mut keys, 1, 1), Ok(1));
    assert!(keys.next.is_none());
    keys.prepare();
    assert!(keys.next.is_some(), "of later updates always ahead");
}
