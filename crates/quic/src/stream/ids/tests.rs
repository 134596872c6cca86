use super::*;

#[test]
fn rfc9000_3_2_lower_numbered_streams_are_opened_too() {
    let mut peer = PeerStreams::new(10);
    assert_eq!(peer.open_to(2), Ok(0..3));
    assert_eq!(peer.open_to(1), Ok(3..3));
    assert_eq!(peer.open_to(9), Ok(3..10));
    assert_eq!(peer.open_to(10), Err(BeyondLimit));
    let accepted: Vec<_> = std::iter::from_fn(|| peer.accept()).collect();
    assert_eq!(accepted, (0..10).collect::<Vec<_>>());
}

#[test]
fn rfc9000_4_6_limit_rises_when_half_of_the_streams_finished() {
    let mut peer = PeerStreams::new(4);
    peer.on_finished();
    assert!(!peer.is_due());
    peer.on_finished();
    assert!(peer.is_due());
    assert_eq!(peer.next_limit().get(), 6);
    peer.on_limit_sent();
    assert!(!peer.is_due());
    assert_eq!(peer.open_to(5), Ok(0..6));

    let mut single = PeerStreams::new(1);
    single.on_finished();
    assert!(single.is_due());
}

#[test]
fn rfc9000_4_6_lower_limits_are_ignored_and_streams_blocked_is_sent_once() {
    let mut local = LocalStreams::default();
    let count = |count| StreamCount::new(count).expect("within the limits");
    assert!(!local.raise(count(1)), "no waiting streams");
    assert_eq!(local.open(), Some(0));
    assert_eq!(local.blocked_to_send(), None);
    assert_eq!(local.open(), None);
    assert_eq!(local.blocked_to_send(), Some(count(1)));
    local.on_blocked_sent();
    assert_eq!(local.blocked_to_send(), None);
    local.on_blocked_lost();
    assert_eq!(local.blocked_to_send(), Some(count(1)));
    assert!(!local.raise(count(0)));
    assert!(local.raise(count(2)));
    assert_eq!(local.blocked_to_send(), None);
    assert_eq!(local.open(), Some(1));
}
