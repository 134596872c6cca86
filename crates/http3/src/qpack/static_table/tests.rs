use super::*;

#[test]
fn every_entry_and_every_name_is_found() {
    for (index, (name, value)) in ENTRIES.iter().enumerate() {
        let name_hash = hash(name.as_bytes());
        let found = find(name.as_bytes(), name_hash, value.as_bytes());
        assert_eq!(found, Found::Field(index as u8));
        let lowest = ENTRIES.iter().position(|(other, _)| other == name);
        let found = find(name.as_bytes(), name_hash, b"no such value");
        assert_eq!(Some(found), lowest.map(|index| Found::Name(index as u8)));
    }
    assert_eq!(find(b"x-none", hash(b"x-none"), b""), Found::Nothing);
    assert_eq!(find(b"", hash(b""), b""), Found::Nothing);
}

#[test]
fn rfc9204_a_first_and_last() {
    assert_eq!(get(0), Some((":authority", "")));
    assert_eq!(get(98), Some(("x-frame-options", "sameorigin")));
    assert_eq!(get(99), None);
    assert_eq!(get(u64::MAX), None);
}
