use std::iter;

use aws_lc_rs::hmac;

use super::*;
use crate::crypto::testing::vectors::hex;

#[test]
fn rfc4231_test_cases() {
    let data = b"what do ya want for nothing?";
    for (key, message, sha_256, sha_384) in [
        (
            vec![0x0b; 20],
            b"Hi There".to_vec(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6",
        ),
        (
            b"Jefe".to_vec(),
            data.to_vec(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            vec![0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            "4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c60c2ef6ab4030fe8296248df163f44952",
        ),
    ] {
        for (hash, expected) in [(&digest::SHA256, sha_256), (&digest::SHA384, sha_384)] {
            let tag = sign(hash, &key, iter::once(&message[..]));
            assert_eq!(tag.as_ref(), hex(expected));
        }
    }
}

#[test]
fn tags_match_aws_lc_for_any_length_of_key_and_message() {
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(1000).collect();
    for (hash, theirs) in [
        (&digest::SHA256, hmac::HMAC_SHA256),
        (&digest::SHA384, hmac::HMAC_SHA384),
    ] {
        for key_len in (0..=140).chain([1000]) {
            let key = hmac::Key::new(theirs, &bytes[..key_len]);
            for len in [0, 1, 55, 64, 128, 255, 256, 257, 319, 320, 321, 1000] {
                let (first, second) = bytes[..len].split_at(len / 3);
                let ours = sign(hash, &bytes[..key_len], [first, second].into_iter());
                let expected = hmac::sign(&key, &bytes[..len]);
                assert_eq!(ours.as_ref(), expected.as_ref(), "{key_len}, {len}");
            }
        }
    }
}
