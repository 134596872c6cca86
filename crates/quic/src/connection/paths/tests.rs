use lastbyte_congestion::{ControllerFactory, Environment, Spec};
use lastbyte_wire::{StatelessResetToken, VarInt, frame::NewConnectionId};

use super::*;
use crate::connection::tests::pair::{CLIENT, CLIENT_PATH, DELAY, SERVER_PATH, START, id};

/// An address of the peer, distinguished by the number.
fn elsewhere(number: u8) -> NetworkPath {
    NetworkPath {
        local: SERVER_PATH.local,
        remote: ([10, 0, 1, number], 4000).into(),
    }
}

fn paths(side: Side) -> Paths {
    let network = match side {
        Side::Client => CLIENT_PATH,
        Side::Server => SERVER_PATH,
    };
    let amplification = Amplification::unlimited();
    Paths::new(
        START,
        side,
        network,
        amplification,
        id(1),
        MtuConfig::default(),
    )
}

/// The peer's IDs: that of the handshake and two more.
fn peer_ids() -> PeerIds {
    let mut ids = PeerIds::new(id(100), 4);
    for sequence in 1..=2 {
        let token = StatelessResetToken::new([sequence; 16]);
        let number = VarInt::from_u32(sequence.into());
        let own = id(100 + u64::from(sequence));
        let frame = NewConnectionId::new(number, VarInt::ZERO, own, token).expect("a frame");
        ids.on_new(&frame).expect("room");
    }
    ids
}

fn rtt() -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(START, DELAY, Duration::ZERO, None);
    rtt
}

/// Sends a challenge of full size on a path, and receives the response.
fn answer(paths: &mut Paths, path: PathRef, data: ChallengeData) -> Response {
    let one = paths.get_mut(path).expect("known");
    assert!(one.validation.wants_challenge(START));
    one.validation.on_challenge_sent(START, data, true);
    paths.on_response(START, data, &rtt(), Duration::ZERO)
}

#[test]
fn rfc9000_9_a_confirmed_server_accepts_new_addresses_and_a_client_does_not() {
    let server = paths(Side::Server);
    assert_eq!(server.locate(&SERVER_PATH, false), Some(PathRef::Current));
    assert_eq!(server.locate(&elsewhere(1), false), None);
    assert_eq!(server.locate(&elsewhere(1), true), Some(PathRef::New));
    let client = paths(Side::Client);
    let mut other = CLIENT_PATH;
    other.local.set_port(1);
    assert_eq!(client.locate(&other, true), Some(PathRef::Current));
    other.remote = CLIENT;
    assert_eq!(client.locate(&other, true), None);
}

#[test]
fn rfc9000_9_5_a_path_has_its_own_id_unless_the_peer_kept_its_id() {
    let (mut paths, mut ids) = (paths(Side::Server), peer_ids());
    let registered = paths.register(START, elsewhere(1), 50, id(1).as_slice(), &mut ids);
    assert_eq!(registered, Ok(()));
    assert_eq!(paths.get(PathRef::Other(0)).expect("known").cid, None);
    for number in [2, 3] {
        let registered = paths.register(START, elsewhere(number), 50, id(2).as_slice(), &mut ids);
        assert_eq!(registered, Ok(()));
    }
    assert_eq!(paths.get(PathRef::Other(2)).expect("known").cid, Some(2));
    assert_eq!(paths.locate(&elsewhere(3), true), Some(PathRef::Other(2)));
    // An idle one makes room; no IDs are left.
    let registered = paths.register(START, elsewhere(4), 50, id(2).as_slice(), &mut ids);
    assert_eq!(registered, Err(UnknownPath::NoConnectionId));
    assert_eq!(paths.others_len(), 2);
}

#[test]
fn three_paths_under_validation_are_the_limit() {
    let (mut paths, mut ids) = (paths(Side::Server), peer_ids());
    for number in 1..=3 {
        let registered = paths.register(START, elsewhere(number), 50, id(1).as_slice(), &mut ids);
        assert_eq!(registered, Ok(()));
        let path = paths.get_mut(PathRef::Other(usize::from(number) - 1));
        let validation = &mut path.expect("known").validation;
        validation.start(START, &rtt(), Duration::ZERO);
    }
    assert!(paths.are_full());
    let registered = paths.register(START, elsewhere(4), 50, id(1).as_slice(), &mut ids);
    assert_eq!(registered, Err(UnknownPath::TooMany));
}

#[test]
fn a_hundred_failed_addresses_do_not_disable_migration_permanently() {
    let (mut paths, mut ids) = (paths(Side::Server), peer_ids());
    for _ in 0..FailedPaths::MAX {
        paths.failed.on_failed(START);
    }
    let registered = paths.register(START, elsewhere(1), 50, id(1).as_slice(), &mut ids);
    assert_eq!(registered, Err(UnknownPath::TooMany));
    let later = START + FailedPaths::FORGOTTEN_EVERY;
    let registered = paths.register(later, elsewhere(1), 50, id(1).as_slice(), &mut ids);
    assert_eq!(registered, Ok(()));
}

#[test]
fn rfc9000_8_1_a_new_path_may_send_three_times_the_bytes_received_on_it() {
    let (mut paths, mut ids) = (paths(Side::Server), peer_ids());
    let registered = paths.register(START, elsewhere(1), 50, id(1).as_slice(), &mut ids);
    assert_eq!(registered, Ok(()));
    paths.credit(PathRef::Other(0), 100);
    paths.credit(PathRef::New, 1000);
    let path = paths.get(PathRef::Other(0)).expect("known");
    assert_eq!(path.amplification.budget(), 450);
    assert!(!paths.is_amplification_limited());
    assert!(paths.promote(0, 1500, &mut ids).is_some());
    assert!(paths.is_amplification_limited());
}

#[test]
fn rfc9000_9_3_a_server_challenges_both_ends_of_a_move() {
    let (mut paths, mut ids) = (paths(Side::Server), peer_ids());
    let registered = paths.register(START, elsewhere(1), 2000, id(2).as_slice(), &mut ids);
    assert_eq!(registered, Ok(()));
    let promotion = paths.promote(0, 1500, &mut ids).expect("known");
    assert_eq!(promotion.network, elsewhere(1));
    assert_eq!(*ids.current(), id(101));
    let change = promotion.change.expect("another host");
    assert!(change.saved.is_none());
    paths.challenge_after_move(START, 0, &rtt(), Duration::ZERO, &mut ids);
    // The peer has not moved: this is an attacker's copy (§9.3.2).
    assert_eq!(
        answer(&mut paths, PathRef::Other(0), [1; 8]),
        Response::Path(PathRef::Other(0))
    );
    let late = START + Duration::from_secs(60);
    let back = paths.expire_current(late, &rtt(), Duration::ZERO);
    assert_eq!(back, Some(0));
    assert!(paths.promote(0, 1500, &mut ids).is_some());
    assert_eq!(paths.current().network, SERVER_PATH);
    assert_eq!(*ids.current(), id(100));
    paths.remove_network(&elsewhere(1), &mut ids);
    assert_eq!(paths.others_len(), 0);
}

#[test]
fn rfc9000_8_2_4_without_a_previous_path_validation_is_restarted() {
    let mut paths = paths(Side::Server);
    let validation = &mut paths.current_mut().validation;
    validation.start(START, &rtt(), Duration::ZERO);
    let late = START + Duration::from_secs(60);
    assert_eq!(paths.expire_current(late, &rtt(), Duration::ZERO), None);
    let state = paths.current().validation.state();
    assert_eq!(state, ValidationState::Validating);
}

#[test]
fn rfc9000_9_4_congestion_state_is_saved_for_a_return_and_kept_on_rebinding() {
    let (mut paths, mut ids) = (paths(Side::Server), peer_ids());
    let mut rebound = SERVER_PATH;
    rebound.remote.set_port(4001);
    let registered = paths.register(START, rebound, 2000, id(1).as_slice(), &mut ids);
    assert_eq!(registered, Ok(()));
    let promotion = paths.promote(0, 1500, &mut ids).expect("known");
    assert!(promotion.change.is_none(), "at most the port differs");
    let registered = paths.register(START, elsewhere(1), 2000, id(1).as_slice(), &mut ids);
    assert_eq!(registered, Ok(()));
    let change = paths.promote(1, 1500, &mut ids).expect("known").change;
    let spec: Spec = "cubic".parse().expect("a spec");
    let control = PathControl::new(spec.build(&Environment {
        max_datagram_size: 1200,
        seed: 1,
    }));
    paths.save(1, control, change.expect("another host").mtu_left);
    let change = paths.promote(1, 1500, &mut ids).expect("known").change;
    assert!(change.expect("another host").saved.is_some());
}

#[test]
fn expired_paths_are_removed_and_only_requested_ones_are_reported() {
    let (mut paths, mut ids) = (paths(Side::Client), peer_ids());
    let mut there = CLIENT_PATH;
    there.local.set_port(1);
    let path_cid = ids.reserve().expect("a spare ID");
    paths.try_path(START, there, path_cid, &rtt(), Duration::ZERO);
    let late = START + Duration::from_secs(60);
    let removed = RemovedPath {
        network: there,
        was_wanted: true,
    };
    assert_eq!(paths.expire_other(late, &mut ids), Some(removed));
    assert_eq!(paths.expire_other(late, &mut ids), None);
    let path_cid = ids.reserve().expect("a spare ID");
    paths.try_path(START, there, path_cid, &rtt(), Duration::ZERO);
    let answered = answer(&mut paths, PathRef::Other(0), [1; 8]);
    assert_eq!(answered, Response::Path(PathRef::Other(0)));
    assert!(paths.is_to_move(0, &mut ids));
    assert!(paths.promote(0, 1500, &mut ids).is_some());
    paths.challenge_after_move(START, 0, &rtt(), Duration::ZERO, &mut ids);
    assert_eq!((paths.current().network, paths.others_len()), (there, 0));
}

#[test]
fn rfc9000_5_1_2_a_path_whose_id_is_retired_is_removed() {
    let (mut paths, mut ids) = (paths(Side::Client), peer_ids());
    let path_cid = ids.reserve().expect("a spare ID");
    paths.try_path(START, CLIENT_PATH, path_cid, &rtt(), Duration::ZERO);
    assert_eq!(paths.remove_without_id(&mut ids), None);
    let number = VarInt::from_u32;
    let token = StatelessResetToken::new([9; 16]);
    let frame = NewConnectionId::new(number(9), number(9), id(109), token).expect("a frame");
    ids.on_new(&frame).expect("room");
    assert!(paths.remove_without_id(&mut ids).is_some());
    assert_eq!(paths.others_len(), 0);
}

#[test]
fn a_new_datagram_size_is_returned_once() {
    let mut paths = paths(Side::Server);
    assert_eq!(paths.take_new_size(), None);
    paths.mtu_mut().start(65_527);
    paths.mtu_mut().on_full_datagram();
    let size = paths.mtu_mut().next_probe(START).expect("a probe");
    paths.mtu_mut().on_probe_sent();
    paths.mtu_mut().on_probe_acked();
    assert_eq!(paths.take_new_size(), Some(size));
    assert_eq!(paths.take_new_size(), None);
    assert_eq!(paths.datagram_size(), size);
}
