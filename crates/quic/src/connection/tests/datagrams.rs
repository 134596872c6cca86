use super::*;

fn takes_datagrams() -> Config {
    let mut config = config();
    config.max_datagram_frame_size = 1200;
    config
}

#[test]
fn rfc9221_datagrams_arrive_once_or_not_at_all() {
    for seed in 1..=5 {
        let faults = Faults {
            lose: 5,
            double: 5,
            ..Faults::default()
        };
        let mut pair = Pair::with_configs(seed, faults, takes_datagrams(), takes_datagrams());
        pair.shake_hands();
        for number in 0..200_u32 {
            let data = number.to_be_bytes().to_vec();
            pair.client.send_datagram(data).expect("room");
            if number.is_multiple_of(10) {
                pair.pass(DELAY);
            }
        }
        pair.pass(DELAY * 20);
        let mut seen = Vec::new();
        while let Some(data) = pair.server.receive_datagram() {
            seen.push(u32::from_be_bytes(data.try_into().expect("4 bytes")));
        }
        let before = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), before, "none comes twice");
        assert!((100..200).contains(&before), "{before}: some are lost, few");
    }
}

#[test]
fn rfc9221_3_a_datagram_to_a_peer_without_support_is_rejected_locally() {
    let mut pair = Pair::with_configs(1, Faults::default(), takes_datagrams(), config());
    pair.shake_hands();
    assert_eq!(pair.client.datagram_len_max(), None);
    assert_eq!(
        pair.client.send_datagram(vec![1]),
        Err(DatagramError::NotSupported)
    );
    let longest = pair.server.datagram_len_max().expect("taken");
    assert!((1100..1200).contains(&longest), "{longest}");
    assert_eq!(pair.server.send_datagram(vec![1; longest]), Ok(()));
    assert_eq!(
        pair.server.send_datagram(vec![1; longest + 1]),
        Err(DatagramError::TooLong)
    );
    pair.pass(DELAY * 4);
    assert_eq!(
        pair.client.receive_datagram().map(|data| data.len()),
        Some(longest)
    );
}

#[test]
fn rfc9221_3_an_unsolicited_datagram_closes_the_connection() {
    let mut pair = Pair::with_configs(1, Faults::default(), takes_datagrams(), config());
    pair.shake_hands();
    pair.client.sources.datagrams.on_peer_parameter(1000);
    pair.client.send_datagram(vec![1]).expect("sent");
    pair.run_to_the_end();
    assert_eq!(
        violation(&pair.server).0,
        TransportError::PROTOCOL_VIOLATION
    );
    assert_eq!(
        pair.client.close_phrase(),
        "a DATAGRAM frame above max_datagram_frame_size"
    );
}
