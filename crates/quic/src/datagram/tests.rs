use super::*;

#[test]
fn rfc9221_3_nothing_is_sent_to_a_peer_without_support() {
    let mut datagrams = Datagrams::default();
    assert_eq!(
        datagrams.send(vec![1], 1000),
        Err(DatagramError::NotSupported)
    );
    datagrams.on_peer_parameter(100);
    // Type and a length of two bytes are part of the frame's size.
    assert_eq!(datagrams.len_max(1000), Some(97));
    assert_eq!(datagrams.len_max(50), Some(48));
    assert_eq!(
        datagrams.send(vec![1; 98], 1000),
        Err(DatagramError::TooLong)
    );
    assert_eq!(datagrams.send(vec![1; 97], 1000), Ok(()));
}

#[test]
fn both_queues_are_bounded() {
    let mut datagrams = Datagrams::default();
    datagrams.on_peer_parameter(65_535);
    for _ in 0..Datagrams::COUNT_MAX {
        assert_eq!(datagrams.send(vec![7], 1000), Ok(()));
    }
    assert_eq!(datagrams.send(vec![7], 1000), Err(DatagramError::Full));
    for number in 0..Datagrams::COUNT_MAX + 3 {
        datagrams.on_datagram(&Datagram {
            data: &number.to_be_bytes(),
        });
    }
    assert_eq!(datagrams.dropped(), 3);
    let oldest = datagrams.receive().expect("one");
    assert_eq!(oldest, 3_usize.to_be_bytes());
}

#[test]
fn datagrams_that_no_longer_fit_are_dropped_and_the_rest_is_sent() {
    let mut datagrams = Datagrams::default();
    datagrams.on_peer_parameter(65_535);
    for len in [900, 1400, 20] {
        datagrams.send(vec![len as u8; len], 1450).expect("room");
    }
    let mut buffer = [0; 1000];
    let mut writer = Writer::new(&mut buffer);
    let mut receipts = Vec::new();
    datagrams.write_frames(&mut writer, 1000, &mut |receipt| receipts.push(receipt));
    assert_eq!(receipts, [Receipt::Datagram, Receipt::Datagram]);
    assert_eq!(datagrams.dropped(), 1);
    assert!(!datagrams.wants_to_send());
}
