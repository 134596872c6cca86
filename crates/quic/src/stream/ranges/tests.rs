use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};

use super::*;

fn offsets(set: &RangeSet) -> BTreeSet<u64> {
    set.iter().flatten().collect()
}

fn assert_canonical(set: &RangeSet) {
    let ranges: Vec<_> = set.iter().collect();
    assert!(ranges.iter().all(|range| !range.is_empty()));
    assert!(ranges.is_sorted_by(|left, right| left.end < right.start));
}

proptest! {
    #[test]
    fn ranges_match_a_set(actions in vec((0..3_u8, 0..40_u64, 0..12_u64), 0..60)) {
        let (mut set, mut other) = (RangeSet::default(), RangeSet::default());
        let (mut model, mut other_model) = (BTreeSet::new(), BTreeSet::new());
        for (action, start, len) in actions {
            let range = start..start + len;
            match action {
                0 => {
                    set.insert(range.clone());
                    model.extend(range);
                }
                1 => {
                    set.remove(range.clone());
                    model.retain(|offset| !range.contains(offset));
                    other.insert(range.clone());
                    other_model.extend(range);
                }
                _ => {
                    set.insert_except(range.clone(), &other);
                    model.extend(range.filter(|offset| !other_model.contains(offset)));
                }
            }
            prop_assert_eq!(offsets(&set), model.clone());
            assert_canonical(&set);
            assert_canonical(&other);
            prop_assert_eq!(set.end(), model.last().map(|last| last + 1));
        }
    }
}
