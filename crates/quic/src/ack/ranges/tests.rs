use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};

use super::*;

fn ranges(set: &PacketNumberRanges) -> Vec<(u64, u64)> {
    set.iter()
        .map(|range| (range.start().get(), range.end().get()))
        .collect()
}

#[test]
fn numbers_in_order_are_one_range() {
    let mut set = PacketNumberRanges::new();
    for number in 0..1000 {
        assert_eq!(set.insert(number), Insertion::New);
    }
    assert_eq!(ranges(&set), [(0, 999)]);
    assert_eq!(set.insert(500), Insertion::Duplicate);
}

#[test]
fn a_number_between_two_ranges_joins_them() {
    let mut set = PacketNumberRanges::new();
    for number in [1, 2, 5, 6, 3] {
        set.insert(number);
    }
    assert_eq!(ranges(&set), [(5, 6), (1, 3)]);
    set.insert(4);
    assert_eq!(ranges(&set), [(1, 6)]);
}

#[test]
fn rfc9000_12_3_packets_below_the_tracked_ranges_are_duplicates() {
    let mut set = PacketNumberRanges::new();
    for index in 0..=PacketNumberRanges::RANGES_MAX as u64 {
        set.insert(index * 2);
    }
    assert_eq!(set.iter().count(), PacketNumberRanges::RANGES_MAX);
    assert!(set.contains_or_below(0));
    assert_eq!(set.insert(0), Insertion::Duplicate);
    assert_eq!(set.insert(1), Insertion::New); // only the range of 0 was dropped
}

#[test]
fn rfc9000_13_2_4_ranges_known_to_the_peer_are_dropped_except_the_largest() {
    let mut set = PacketNumberRanges::new();
    (0..10).chain(20..30).for_each(|number| {
        set.insert(number);
    });
    set.forget_up_to(24);
    assert_eq!(ranges(&set), [(25, 29)]);
    set.forget_up_to(40);
    assert_eq!(ranges(&set), [(29, 29)]);
    assert!(set.contains_or_below(3));
    assert_eq!(set.insert(15), Insertion::Duplicate);
}

#[test]
fn rfc9000_13_2_4_the_largest_is_kept_even_if_it_is_packet_0() {
    let mut set = PacketNumberRanges::new();
    set.insert(0);
    set.forget_up_to(0);
    assert_eq!(ranges(&set), [(0, 0)]);
    assert_eq!(set.insert(0), Insertion::Duplicate);
}

proptest! {
    #[test]
    fn agrees_with_a_naive_set(
        numbers in vec(0_u64..300, 0..400),
        forget in vec((0_usize..400, 0_u64..300), 0..4),
    ) {
        let mut set = PacketNumberRanges::new();
        let mut model = BTreeSet::new();
        let mut floor = 0;
        for (index, number) in numbers.into_iter().enumerate() {
            let insertion = set.insert(number);
            let is_new = number >= floor && model.insert(number);
            prop_assert_eq!(insertion == Insertion::New, is_new);
            for (at, upto) in &forget {
                if *at == index && let Some(largest) = model.last().copied() {
                    set.forget_up_to(*upto);
                    floor = floor.max((*upto).min(largest.saturating_sub(1)) + 1);
                    model = model.split_off(&floor);
                }
            }
            // 300 numbers sometimes exceed the bound on ranges: the model drops what the set drops.
            let kept: Vec<u64> = set
                .iter()
                .flat_map(|range| range.start().get()..=range.end().get())
                .collect();
            if let Some(smallest) = kept.iter().min()
                && kept.len() < model.len()
            {
                prop_assert_eq!(set.iter().count(), PacketNumberRanges::RANGES_MAX);
                let gone = model.iter().rfind(|number| *number < smallest).copied();
                floor = floor.max(gone.map_or(0, |number| number + 1));
                model = model.split_off(&floor);
            }
            let mut kept = kept;
            kept.sort_unstable();
            prop_assert_eq!(kept, model.iter().copied().collect::<Vec<_>>());
            for candidate in 0..300 {
                let known = candidate < floor || model.contains(&candidate);
                prop_assert_eq!(set.contains_or_below(candidate), known, "{}", candidate);
            }
            let largest = model.last().copied().unwrap_or(0);
            for from in [0, 7, 150] {
                let missing = (from.max(floor)..largest).find(|number| !model.contains(number));
                prop_assert_eq!(set.smallest_missing(from), missing);
            }
        }
    }
}
