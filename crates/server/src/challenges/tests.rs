use super::*;
use crate::identity::Identity;

#[test]
fn a_challenge_is_answered_until_it_is_dropped() {
    let challenges = Challenges::default();
    let of = |name: &str| challenges.certificate(name);
    assert!(of("a.example").is_none());
    let first = challenges.add("a.example", "t1", "t1.key").expect("a name");
    let other = challenges.add("b.example", "t2", "t2.key").expect("a name");
    let again = challenges.add("a.example", "t3", "t3.key").expect("a name");
    let latest = of("A.example").expect("pending");
    assert!(Arc::ptr_eq(&latest, &again.certificate), "the latest");
    let proof = |path: &str| challenges.proof(path);
    let folder = "/.well-known/acme-challenge";
    assert_eq!(
        proof(&format!("{folder}/t1")).as_deref(),
        Some(&b"t1.key"[..])
    );
    for path in ["", "/t1", "t1", "/t9", "//t1", "/t1/"] {
        assert_eq!(proof(&format!("{folder}{path}")).is_some(), path == "/t1");
    }
    assert!(proof("/t1").is_none());
    drop(again);
    let earlier = of("a.example").expect("pending");
    assert!(Arc::ptr_eq(&earlier, &first.certificate));
    drop(first);
    assert!(of("a.example").is_none() && of("b.example").is_some());
    drop(other);
    assert!(challenges.0.read().expect("no panic").is_empty());
}

#[test]
fn rfc8737_3_the_certificate_has_the_digest_and_one_name() {
    let certified = certificate("a.example", "token.thumbprint").expect("a name");
    let identity = Identity {
        chain: certified.cert.clone(),
        key: KeyPair::generate().expect("a key").into(),
    };
    let contents = identity.contents().expect("a certificate");
    assert_eq!(contents.names, ["a.example"]);
    // id-pe-acmeIdentifier 1.3.6.1.5.5.7.1.31, critical, an OCTET STRING of 32 bytes in the extension's.
    let mut expected =
        b"\x06\x08\x2b\x06\x01\x05\x05\x07\x01\x1f\x01\x01\xff\x04\x22\x04\x20".to_vec();
    expected.extend_from_slice(digest(&SHA256, b"token.thumbprint").as_ref());
    let der = &*certified.cert[0];
    assert!(
        der.windows(expected.len()).any(|bytes| bytes == expected),
        "{der:02x?}"
    );
    let error = certificate("not a name\u{e9}", "x").expect_err("not ASCII");
    assert!(
        error.to_string().contains("cannot prove control"),
        "{error}"
    );
}
