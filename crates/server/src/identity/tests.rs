use super::*;

#[test]
fn rfc4648_10_base64_test_vectors() {
    let all = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
    assert_eq!(
        all,
        [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"
        ]
    );
}

#[test]
fn the_hash_is_that_of_the_generated_public_key() {
    let identity = Identity::self_signed(&["localhost".into(), "::1".into()], 20_778).expect("one");
    let der = identity.key.secret_der();
    let key = KeyPair::try_from(der).expect("its own key");
    let expected = base64(
        digest(
            &SHA256,
            &rcgen::PublicKeyData::subject_public_key_info(&key),
        )
        .as_ref(),
    );
    assert_eq!(identity.public_key_hash(), Some(expected));
}

#[test]
fn errors_name_missing_and_empty_certificate_files() {
    let missing = Path::new("/nowhere/chain.pem");
    let error = Identity::read(missing, missing).expect_err("nothing there");
    assert!(
        error.to_string().contains("`/nowhere/chain.pem`"),
        "{error}"
    );
    let empty = Path::new("/dev/null");
    let error = Identity::read(empty, empty).expect_err("nothing in it");
    assert!(error.to_string().contains("no certificate"), "{error}");
}

/// Files in each other's place are named by what they are.
#[test]
fn errors_say_what_a_file_is_in_place_of_a_certificate_or_key() {
    let folder = std::env::temp_dir().join(format!("lastbyte-identity-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("room");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("one");
    let (chain, key, text) = (
        folder.join("chain"),
        folder.join("key"),
        folder.join("text"),
    );
    fs::write(&chain, made.cert.pem()).expect("room");
    fs::write(&key, made.signing_key.serialize_pem()).expect("room");
    fs::write(&text, "text\n").expect("room");
    for (certificates, private, expected) in [
        (
            &key,
            &chain,
            "key`: a private key (expected a certificate chain in PEM)",
        ),
        (&text, &key, "text`: no certificate found (expected PEM)"),
        (
            &chain,
            &chain,
            "chain`: a certificate (expected a private key in PEM)",
        ),
        (
            &chain,
            &text,
            "text`: no private key found (expected a private key in PEM)",
        ),
    ] {
        let error = Identity::read(certificates, private).expect_err(expected);
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    Identity::read(&chain, &key).expect("an identity");
    fs::remove_dir_all(&folder).expect("it was there");
}
