use lastbyte_wire::{Reader, frame::Frame};

use super::*;

fn id(last: u8) -> ConnectionId {
    ConnectionId::new(&[7, 7, 7, last]).expect("short")
}

fn token(last: u8) -> StatelessResetToken {
    StatelessResetToken::new([last; 16])
}

fn new(sequence: u8, retire_prior_to: u8) -> NewConnectionId {
    named(sequence, retire_prior_to, sequence)
}

fn named(sequence: u8, retire_prior_to: u8, name: u8) -> NewConnectionId {
    NewConnectionId::new(
        VarInt::from_u32(u32::from(sequence)),
        VarInt::from_u32(u32::from(retire_prior_to)),
        id(name),
        token(name),
    )
    .expect("a legal frame")
}

fn ids(limit: usize) -> PeerIds {
    PeerIds::new(id(0), limit)
}

fn knows(ids: &PeerIds, last: u8) -> bool {
    ids.reset_tokens().any(|known| known == token(last))
}

fn retired(ids: &mut PeerIds) -> Vec<u64> {
    let mut buffer = [0; 200];
    let mut writer = Writer::new(&mut buffer);
    ids.write_frames(&mut writer, &mut |_| {});
    let mut reader = Reader::new(writer.written());
    let mut sequences = Vec::new();
    while let Ok(Frame::RetireConnectionId(frame)) = Frame::decode(&mut reader) {
        sequences.push(frame.sequence.get());
    }
    sequences
}

#[test]
fn rfc9000_5_1_2_switching_retires_the_id_in_use() {
    let mut ids = ids(4);
    assert_eq!(ids.on_new(&new(2, 0)), Ok(None));
    assert_eq!(ids.on_new(&new(1, 0)), Ok(None));
    assert_eq!((*ids.current(), ids.spare.len()), (id(0), 2));
    assert_eq!(ids.move_on(), Ok(Some(id(1))));
    assert_eq!(retired(&mut ids), [0]);
    assert_eq!(retired(&mut ids), [0; 0], "once");
    ids.on_lost(0);
    assert_eq!(retired(&mut ids), [0]);
    ids.on_acked(0);
    ids.on_lost(0);
    assert!(!ids.wants_to_send());
}

#[test]
fn without_a_spare_id_there_is_no_switch() {
    assert_eq!(ids(4).move_on(), Ok(None));
}

#[test]
fn rfc9000_5_1_2_retire_prior_to_switches_at_once() {
    let mut ids = ids(4);
    ids.on_new(&new(1, 0)).expect("legal");
    ids.on_new(&new(2, 0)).expect("legal");
    assert_eq!(ids.on_new(&new(3, 2)), Ok(Some(id(2))));
    assert_eq!(retired(&mut ids), [1, 0]);
    assert_eq!(ids.spare.len(), 1);
}

#[test]
fn rfc9000_19_15_an_id_below_retire_prior_to_is_retired_on_arrival() {
    let mut ids = ids(4);
    ids.on_new(&new(3, 2)).expect("legal");
    assert_eq!(*ids.current(), id(3));
    assert_eq!(ids.on_new(&new(1, 0)), Ok(None));
    assert_eq!((*ids.current(), ids.spare.len()), (id(3), 0));
    assert_eq!(retired(&mut ids), [0, 1]);
}

#[test]
fn rfc9000_19_15_a_repeated_frame_has_no_effect() {
    let mut ids = ids(4);
    ids.on_new(&new(1, 0)).expect("legal");
    assert_eq!(ids.on_new(&new(1, 0)), Ok(None));
    assert_eq!(ids.spare.len(), 1);
}

#[test]
fn rfc9000_19_15_contradictions_are_violations() {
    let mut known = ids(4);
    known.on_new(&new(1, 0)).expect("legal");
    assert_eq!(
        known.clone().on_new(&named(1, 0, 9)),
        Err(PeerIdError::Contradiction)
    );
    assert_eq!(
        known.clone().on_new(&named(9, 0, 1)),
        Err(PeerIdError::Contradiction)
    );
    let other_token = NewConnectionId::new(VarInt::from_u32(1), VarInt::ZERO, id(1), token(5));
    assert_eq!(
        known.on_new(&other_token.expect("a legal frame")),
        Err(PeerIdError::Contradiction)
    );
    let mut without = PeerIds::new(ConnectionId::EMPTY, 4);
    assert_eq!(without.on_new(&new(1, 0)), Err(PeerIdError::Empty));
}

#[test]
fn rfc9000_5_1_1_more_than_the_limit_is_an_error() {
    let mut ids = ids(3);
    ids.on_new(&new(1, 0)).expect("legal");
    ids.on_new(&new(2, 0)).expect("legal");
    let error = ids.on_new(&new(3, 0)).expect_err("one too many");
    assert_eq!(error, PeerIdError::TooMany);
    assert_eq!(
        error.transport_error(),
        TransportError::CONNECTION_ID_LIMIT_ERROR
    );
}

#[test]
fn rfc9000_5_1_2_a_flood_of_retirements_is_bounded() {
    let mut ids = ids(2);
    let mut accepted = 0;
    let error = loop {
        accepted += 1;
        if let Err(error) = ids.on_new(&new(accepted, accepted)) {
            break error;
        }
        assert!(accepted < 100, "no end");
    };
    assert_eq!(error, PeerIdError::TooManyToRetire);
    assert!(accepted >= 4, "twice the limit has to be taken: {accepted}");
}

#[test]
fn rfc9000_10_3_1_reset_tokens_of_all_ids_in_use() {
    let mut ids = ids(4);
    assert!(!knows(&ids, 0));
    ids.set_reset_token(token(0));
    ids.on_new(&new(1, 0)).expect("legal");
    assert!(knows(&ids, 0) && knows(&ids, 1));
    ids.move_on().expect("spare");
    assert!(!knows(&ids, 0), "retired");
}

/// An ID that we retired, above `retire_prior_to`, whose retirement the peer has acknowledged.
#[test]
fn rfc9000_19_15_a_late_copy_of_a_retired_id_does_not_bring_it_back() {
    let mut ids = ids(4);
    assert_eq!(ids.on_new(&new(1, 0)), Ok(None));
    let reserved = ids.reserve().expect("a spare one");
    ids.release(reserved).expect("few to retire");
    assert_eq!(retired(&mut ids), [1]);
    ids.on_acked(1);
    assert_eq!(ids.on_new(&new(1, 0)), Ok(None));
    assert_eq!((ids.spare.len(), ids.wants_to_send()), (0, false));
    // Its `retire_prior_to` counts.
    assert_eq!(ids.on_new(&new(2, 0)), Ok(None));
    assert_eq!(ids.on_new(&new(1, 1)), Ok(Some(id(2))));
    assert_eq!(retired(&mut ids), [0]);
}
