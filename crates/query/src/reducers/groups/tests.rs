use super::{FILES, LEVELS_MAX, file_of};
use crate::value::Value;
use crate::value::compare::hash_of;
use std::collections::BTreeSet;

#[test]
fn the_keys_of_a_file_are_spread_over_the_index() {
    let keys: [fn(i64) -> Value; 2] = [Value::Int, |it| Value::str(format!("key {it}"))];
    for key in keys {
        let hashes: Vec<u64> = (0..200_000).map(|it| hash_of(&key(it))).collect();
        for level in 0..LEVELS_MAX {
            let mut files = vec![BTreeSet::new(); FILES];
            for hash in &hashes {
                files[file_of(*hash, level)].insert(hash & 0xffff);
            }
            // Of about 6250 random places, 5960 differ.
            let least = files.iter().map(BTreeSet::len).min();
            assert!(least > Some(5000), "{least:?} at level {level}");
        }
    }
}
