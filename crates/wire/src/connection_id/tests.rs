#![expect(
    clippy::disallowed_types,
    reason = "the test looks up an ID by its bytes in a map"
)]

use std::collections::HashMap;

use super::*;

#[test]
fn rfc9000_17_2_connection_ids_are_at_most_20_bytes() {
    assert_eq!(ConnectionId::new(&[]), Some(ConnectionId::EMPTY));
    let longest = ConnectionId::new(&[9; 20]).expect("20 bytes");
    assert_eq!((longest.len(), longest.as_slice()), (20, &[9; 20][..]));
    assert_eq!(ConnectionId::new(&[9; 21]), None);
}

#[test]
fn ids_of_different_lengths_differ() {
    let short = ConnectionId::new(&[1, 0]).expect("short");
    let long = ConnectionId::new(&[1, 0, 0]).expect("short");
    assert_ne!(short, long);
    assert!(!short.is_empty());
    assert!(ConnectionId::EMPTY.is_empty());
}

#[test]
fn a_map_can_be_looked_up_with_a_slice() {
    let id = ConnectionId::new(&[0x83, 0x94, 0xc8]).expect("short");
    let map = HashMap::from([(id, 7)]);
    assert_eq!(map.get(&[0x83, 0x94, 0xc8][..]), Some(&7));
    assert_eq!(map.get(&[0x83, 0x94][..]), None);
}

#[test]
fn displays_as_hex() {
    let id = ConnectionId::new(&[0x83, 0x04]).expect("short");
    assert_eq!(format!("{id} {id:?}"), "8304 ConnectionId(8304)");
}
