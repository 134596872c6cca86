use std::{
    collections::{BTreeMap, BTreeSet},
    sync::mpsc,
};

use lastbyte_quic::endpoint::EndpointConfig;

use super::*;

#[test]
fn the_counters_of_all_workers_are_added() {
    let one = Statistics {
        accepted: 1,
        handshakes: 2,
        resumed: 3,
        zero_rtt: 4,
        zero_rtt_refused: [1, 2, 3, 4, 5, 6],
        requests: 5,
        early_requests: 6,
        responses: [7, 8, 9, 10, 11, 12],
        sent: 16,
        resets: 13,
        cut_off: 14,
        failed: 15,
    };
    let mut sum = Statistics::default();
    for workers in 1..=3 {
        sum.add(&one);
        let expected = Statistics {
            accepted: workers,
            handshakes: 2 * workers,
            resumed: 3 * workers,
            zero_rtt: 4 * workers,
            zero_rtt_refused: one.zero_rtt_refused.map(|count| count * workers),
            requests: 5 * workers,
            early_requests: 6 * workers,
            responses: one.responses.map(|count| count * workers),
            sent: 16 * workers,
            resets: 13 * workers,
            cut_off: 14 * workers,
            failed: 15 * workers,
        };
        assert_eq!(sum, expected);
    }
}

/// They are removed when the copy is complete, and the oldest when there are too many.
#[test]
fn receivers_of_a_copy_are_bounded_and_each_is_called_once() {
    let config = EndpointConfig::client();
    let endpoint = Endpoint::<()>::new(config, [1; 32]).expect("an endpoint");
    let mut measure = Measure::new(0);
    let (sender, receiver) = mpsc::channel();
    for number in 0..ANSWERS_MAX + 3 {
        let sender = sender.clone();
        measure.begin(&endpoint, Box::new(move |_| _ = sender.send(number)));
    }
    assert!(!measure.advance(&endpoint));
    assert!(receiver.try_iter().eq(3..ANSWERS_MAX + 3));
    assert!(measure.answers.is_empty() && !measure.advance(&endpoint));
}

#[test]
fn a_slice_is_bounded() {
    let mut pass = Pass {
        sums: Vec::new(),
        left: 0..10 * SLICE + 1,
    };
    let mut next = 0;
    for left in (0..=10).rev() {
        let slice = pass.next_slice();
        assert_eq!(slice.start, next);
        assert!(slice.len() <= SLICE as usize);
        next = slice.end;
        assert_eq!(pass.left.is_empty(), left == 0);
    }
    assert_eq!(next, 10 * SLICE + 1);
    assert!(pass.next_slice().is_empty());
}

/// Connections open, count and close between slices, and indices are reused.
#[test]
fn each_connection_is_added_once_and_sums_never_decrease() {
    // A linear congruential generator.
    let mut state = 7_u64;
    let mut below = move |limit: u32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32 % limit
    };
    // By index: the number of the connection, and its count.
    let mut open = BTreeMap::<u32, (u64, u64)>::new();
    let (mut opened, mut ended, mut before) = (0, 0, 0);
    for _ in 0..200 {
        let at_start: Vec<u64> = open.values().map(|(number, _)| *number).collect();
        let end = open.last_key_value().map_or(0, |(index, _)| index + 1);
        let mut pass = Pass {
            sums: vec![ended],
            left: 0..end,
        };
        let mut added = BTreeSet::new();
        while !pass.left.is_empty() {
            for (number, count) in open.range(pass.next_slice()).map(|(_, one)| one) {
                pass.sums[0] += count;
                assert!(added.insert(*number), "{number} twice");
            }
            for _ in 0..20 {
                let index = below(300);
                match open.get(&index).copied() {
                    None => {
                        opened += 1;
                        open.insert(index, (opened, 1));
                    }
                    Some((number, count)) if below(2) == 0 => {
                        open.remove(&index);
                        ended += count;
                        if pass.is_ahead(index) {
                            pass.sums[0] += count;
                            assert!(added.insert(number), "{number} twice");
                        }
                    }
                    Some((number, count)) => {
                        open.insert(index, (number, count + u64::from(below(10))));
                    }
                }
            }
        }
        assert!(at_start.iter().all(|number| added.contains(number)));
        assert!(pass.sums[0] >= before);
        before = pass.sums[0];
        // Between two passes.
        for index in 0..300 {
            if !open.contains_key(&index) && below(3) == 0 {
                opened += 1;
                open.insert(index, (opened, u64::from(below(5))));
            }
        }
    }
    assert!(before > 10_000, "{before}");
}
