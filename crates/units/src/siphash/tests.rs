use std::hash::{DefaultHasher, Hasher};

use super::*;

/// The paper's Appendix A, and two of the vectors published with the reference implementation.
#[test]
fn siphash_2_4_vector() {
    let key = SipHash::new([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
    let bytes: Vec<u8> = (0..15).collect();
    assert_eq!(key.hash_2_4(&bytes), 0xa129_ca61_49be_45e5);
    // Vectors of the reference implementation.
    assert_eq!(key.hash_2_4(&[]), 0x726f_db47_dd0e_0e31);
    assert_eq!(key.hash_2_4(&[0]), 0x74f8_39c5_93dc_67fd);
}

/// The standard library's is the same with a key of zero.
#[test]
fn siphash_1_3_matches_the_standard_library() {
    for len in 0_u8..40 {
        let bytes: Vec<u8> = (0..len).map(|byte: u8| byte.wrapping_mul(7) + 1).collect();
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        assert_eq!(SipHash::new([0, 0]).hash(&bytes), hasher.finish());
    }
}
