#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use aws_lc_rs::{digest, hkdf};

use super::*;
use crate::crypto::testing::vectors::hex;

struct Len(usize);

impl hkdf::KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand(prk: &Prk, info: &[&[u8]], len: usize) -> Vec<u8> {
    let mut output = vec![0; len];
    prk.expand(info, &mut output).unwrap();
    output
}

#[test]
fn rfc5869_a_sha_256_test_vectors() {
    let counted = |first: u8, len: u8| -> Vec<u8> { (0..len).map(|byte| first + byte).collect() };
    for (salt, secret, info, output) in [
        (
            Some(counted(0, 13)),
            vec![0x0b; 22],
            counted(0xf0, 10),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ),
        (
            Some(counted(0x60, 80)),
            counted(0, 80),
            counted(0xb0, 80),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb\
             41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
        ),
        (
            None,
            vec![0x0b; 22],
            Vec::new(),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        ),
    ] {
        let prk = Prk::extract(&digest::SHA256, salt.as_deref(), &secret);
        let expected = hex(output);
        assert_eq!(expand(&prk, &[&info], expected.len()), expected);
        assert_eq!(prk.expand_block(&[&info]).as_ref(), &expected[..32]);
    }
}

#[test]
fn outputs_match_aws_lc_for_both_hashes_and_any_length() {
    for (hash, algorithm) in [
        (&digest::SHA256, hkdf::HKDF_SHA256),
        (&digest::SHA384, hkdf::HKDF_SHA384),
    ] {
        let block_len = hash.output_len();
        let ours = Prk::extract(hash, Some(b"salt"), b"secret");
        let theirs = hkdf::Salt::new(algorithm, b"salt").extract(b"secret");
        let derived = ours.expand_block(&[b"derived"]);
        let of_derived = Prk::new(hash, derived.clone());
        let of_derived_theirs = hkdf::Prk::new_less_safe(algorithm, derived.as_ref());
        assert_eq!(of_derived.block_len(), block_len);
        let info: [&[u8]; 3] = [b"in", b"", b"pieces"];
        for len in [1, block_len - 1, block_len, block_len + 1, 255 * block_len] {
            for (ours, theirs) in [(&ours, &theirs), (&of_derived, &of_derived_theirs)] {
                let mut expected = vec![0; len];
                theirs
                    .expand(&info, Len(len))
                    .unwrap()
                    .fill(&mut expected)
                    .unwrap();
                assert_eq!(expand(ours, &info, len), expected, "{len} bytes");
            }
        }
        let mut too_long = vec![0; 255 * block_len + 1];
        assert!(ours.expand(&info, &mut too_long).is_err());
        assert!(too_long.iter().all(|byte| *byte == 0));
    }
}
