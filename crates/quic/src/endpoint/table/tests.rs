use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

impl Key for u16 {
    fn hash(&self, hash: &SipHash) -> u64 {
        hash.hash(&self.to_be_bytes())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Colliding(u16);

/// The worst case: long runs, around the end of the slots.
impl Key for Colliding {
    fn hash(&self, _: &SipHash) -> u64 {
        u64::from(self.0 % 3).wrapping_sub(2)
    }
}

fn same_as_a_map<K: Key>(actions: &[(bool, u16)], key: impl Fn(u16) -> K) {
    let mut table = Table::new(SipHash::new([1, 2]));
    let mut map = BTreeMap::new();
    for (index, (inserts, number)) in actions.iter().enumerate() {
        if *inserts {
            let is_new = !map.contains_key(number);
            assert_eq!(table.insert(key(*number), index), is_new);
            map.entry(*number).or_insert(index);
        } else {
            let expected = map.remove(number).is_some();
            assert_eq!(table.remove_if(&key(*number), |_| true), expected);
        }
        assert_eq!(table.len(), map.len());
        assert_eq!(table.is_empty(), map.is_empty());
        for number in 0..64 {
            assert_eq!(table.get(&key(number)), map.get(&number).copied());
        }
    }
    assert!(table.slots.len() <= 128);
}

proptest! {
    #[test]
    fn the_table_matches_a_map(
        actions in proptest::collection::vec((any::<bool>(), 0_u16..64), 0..200),
    ) {
        same_as_a_map(&actions, |number| number);
        same_as_a_map(&actions, Colliding);
    }
}

#[test]
fn entries_with_another_value_are_not_replaced_or_removed() {
    let mut table = Table::new(SipHash::new([1, 2]));
    assert!(!table.remove_if(&7_u16, |_| true));
    assert!(table.insert(7_u16, 1));
    assert!(!table.insert(7, 2));
    assert!(!table.remove_if(&7, |value| *value == 2));
    assert_eq!(table.get(&7), Some(1));
}
