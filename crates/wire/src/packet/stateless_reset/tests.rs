use super::*;

#[test]
fn rfc9000_10_3_layout() {
    let token = StatelessResetToken::new([0xab; 16]);
    let reset = StatelessReset { token };
    for random in [0x00, 0xff, 0x80] {
        let mut datagram = [random; 40];
        reset.encode(&mut datagram).expect("is long enough");
        assert_eq!(datagram[0] & 0xc0, 0x40);
        assert_eq!(datagram[0] & 0x3f, random & 0x3f);
        assert_eq!(datagram[1..24], [random; 23]);
        assert_eq!(StatelessReset::decode(&datagram), Some(reset));
    }
}

#[test]
fn rfc9000_10_3_datagrams_below_21_bytes_are_not_stateless_resets() {
    let token = StatelessResetToken::new([1; 16]);
    assert_eq!(StatelessReset { token }.encode(&mut [0; 20]), None);
    assert_eq!(StatelessReset::decode(&[0; 20]), None);
    let mut shortest = [0; 21];
    assert_eq!(StatelessReset { token }.encode(&mut shortest), Some(()));
    assert_eq!(
        StatelessReset::decode(&shortest),
        Some(StatelessReset { token })
    );
}
