use super::*;

#[test]
fn rfc9000_8_1_three_times_the_bytes_received_may_be_sent() {
    let mut limit = Amplification::limited();
    assert_eq!(limit.budget(), 0);
    limit.on_datagram_received(1200);
    limit.on_datagram_sent(1200);
    assert_eq!(limit.budget(), 2400);
    limit.on_datagram_sent(2400);
    assert_eq!(limit.budget(), 0);
    limit.on_datagram_received(40);
    assert_eq!(limit.budget(), 120);
}

#[test]
fn rfc9000_8_1_no_limit_once_validated() {
    let mut limit = Amplification::limited();
    limit.validate();
    assert!(limit.is_validated());
    limit.on_datagram_sent(1 << 40);
    assert_eq!(limit.budget(), u64::MAX);
    assert_eq!(Amplification::unlimited(), limit);
}

#[test]
fn sums_saturate() {
    let mut limit = Amplification::limited();
    limit.on_datagram_received(u64::MAX);
    limit.on_datagram_received(u64::MAX);
    assert_eq!(limit.budget(), u64::MAX);
    limit.on_datagram_sent(u64::MAX);
    limit.on_datagram_sent(1);
    assert_eq!(limit.budget(), 0);
}
