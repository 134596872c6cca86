use lastbyte_link::Time;

use super::*;

fn arrival(client: u64, direction: Direction, ecn: Ecn, len: usize) -> Arrival {
    Arrival {
        client,
        address: SocketAddr::from(([127, 0, 0, 1], client as u16)),
        direction,
        at: Time::ZERO,
        ecn,
        bytes: vec![client as u8; len],
    }
}

fn plain(len: usize) -> Arrival {
    arrival(1, Direction::Up, Ecn::NotEct, len)
}

/// A train of datagrams of client 1 with these lengths.
fn train(lens: &[usize]) -> Train {
    let mut train = Train::new();
    for len in lens {
        assert!(train.push(&plain(*len)), "{len} of {lens:?}");
    }
    train
}

/// The lengths of the calls that send the train, and how many datagrams were not sent.
fn sent(
    train: &mut Train,
    proven: &mut usize,
    mut result: impl FnMut(usize) -> Result<(), SendError>,
) -> (Vec<usize>, usize) {
    let mut calls = Vec::new();
    let unsent = train.send(proven, |bytes, segment_len| {
        calls.push(bytes.len());
        result(segment_len.min(bytes.len()))
    });
    (calls, unsent)
}

#[test]
fn datagrams_of_another_client_direction_mark_or_a_greater_length_are_sent_apart() {
    let apart = [
        arrival(2, Direction::Up, Ecn::NotEct, 1200),
        arrival(1, Direction::Down, Ecn::NotEct, 1200),
        arrival(1, Direction::Up, Ecn::Ce, 1200),
        plain(1201),
    ];
    for other in apart {
        let mut train = train(&[1200, 1200]);
        assert!(!train.push(&other), "{other:?}");
        assert_eq!(sent(&mut train, &mut 1200, |_| Ok(())), (vec![2400], 0));
        assert!(train.push(&other), "the first of the next train");
    }
}

#[test]
fn a_shorter_datagram_ends_a_train() {
    let mut train = train(&[1200, 1200, 700]);
    assert!(!train.push(&plain(700)));
    assert!(!train.push(&plain(100)));
    assert_eq!(sent(&mut train, &mut 1200, |_| Ok(())), (vec![3100], 0));
}

#[test]
fn a_train_has_at_most_as_many_bytes_as_one_call_accepts() {
    let mut train = train(&[1000; 65]);
    assert!(!train.push(&plain(1000)));
    // One datagram of any length is a train.
    train.clear();
    assert!(train.push(&plain(65_507)));
    assert!(!train.push(&plain(1)));
}

#[test]
fn a_length_is_sent_alone_before_datagrams_of_it_are_joined() {
    let mut proven = 0;
    let ok = |_| Ok(());
    assert_eq!(
        sent(&mut train(&[1200, 1200, 1200]), &mut proven, ok),
        (vec![1200, 2400], 0)
    );
    assert_eq!(
        sent(&mut train(&[1200, 1200]), &mut proven, ok),
        (vec![2400], 0)
    );
    // A probe that exceeds the MTU, and the datagram after it.
    let mtu_1400 = |len| match len {
        0..=1400 => Ok(()),
        _ => Err(SendError::TooLarge),
    };
    assert_eq!(
        sent(&mut train(&[1452, 1200]), &mut proven, mtu_1400),
        (vec![1452, 1200], 1)
    );
    assert_eq!(
        sent(&mut train(&[1452, 1452, 800]), &mut proven, mtu_1400),
        (vec![1452, 1452, 800], 2)
    );
    assert_eq!(proven, 1200);
}

#[test]
fn datagrams_that_a_full_socket_did_not_take_are_counted() {
    let full = |sent| move |_| Err(SendError::Full { sent });
    let lens = [1000, 1000, 1000, 10];
    for (offset, unsent) in [(0, 4), (1000, 3), (3000, 1)] {
        let mut train = train(&lens);
        assert_eq!(
            sent(&mut train, &mut 1000, full(offset)),
            (vec![3010], unsent)
        );
        assert_eq!(sent(&mut train, &mut 1000, |_| Ok(())), (vec![], 0));
    }
    let failed = |_| {
        Err(SendError::Failed(
            std::io::ErrorKind::PermissionDenied.into(),
        ))
    };
    assert_eq!(sent(&mut train(&lens), &mut 1000, failed), (vec![3010], 4));
}
