use super::*;

/// The example of the paper, Appendix A, and two of the vectors published with the reference implementation.
#[test]
fn siphash_appendix_a_and_reference_vectors() {
    let key = std::array::from_fn(|index| index as u8);
    let input: Vec<u8> = (0..15).collect();
    assert_eq!(siphash(&key, &input), 0xa129_ca61_49be_45e5);
    assert_eq!(siphash(&key, &[]), 0x726f_db47_dd0e_0e31);
    assert_eq!(siphash(&key, &[0]), 0x74f8_39c5_93dc_67fd);
}
