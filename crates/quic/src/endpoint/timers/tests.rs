use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn timers_match_a_sorted_list(
        actions in proptest::collection::vec((0_u32..20, proptest::option::of(0_u64..50)), 0..300),
    ) {
        let mut timers = Timers::default();
        let mut model = BTreeMap::new();
        for (index, deadline) in actions {
            let deadline = deadline.map(Time::from_nanos);
            timers.set(index, deadline);
            match deadline {
                Some(at) => model.insert(index, at),
                None => model.remove(&index),
            };
            let first = model.iter().map(|(index, at)| (*at, *index)).min();
            prop_assert_eq!(timers.next(), first.map(|(at, _)| at));
            prop_assert_eq!(timers.len(), model.len());
            if let Some((at, index)) = first {
                prop_assert_eq!(timers.due(at), Some(index));
                if at > Time::ZERO {
                    prop_assert_eq!(timers.due(Time::from_nanos(at.as_nanos() - 1)), None);
                }
            }
        }
        // Removed one after the other, they are in order.
        let mut last = (Time::ZERO, 0);
        while let Some(index) = timers.due(Time::MAX) {
            let at = timers.next().expect("is there");
            prop_assert!((at, index) >= last);
            prop_assert_eq!(model.remove(&index), Some(at));
            last = (at, index);
            timers.set(index, None);
        }
        prop_assert!(model.is_empty());
    }
}
