use super::*;

#[test]
fn data_len_max_matches_a_naive_search() {
    for space in (0..200).chain(16_370..16_400) {
        let naive = (0..=space)
            .rev()
            .find(|len| LengthField::Present.encoded_len(*len) + len <= space);
        assert_eq!(LengthField::Present.data_len_max(space), naive, "{space}");
        assert_eq!(LengthField::Absent.data_len_max(space), Some(space));
    }
}

#[test]
fn huge_spaces_do_not_overflow() {
    assert_eq!(
        LengthField::Present.data_len_max((1 << 30) + 3),
        Some((1 << 30) - 1)
    );
    assert!(LengthField::Present.data_len_max(usize::MAX).is_some());
}
