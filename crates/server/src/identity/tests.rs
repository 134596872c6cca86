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
fn a_chain_is_valid_while_all_its_certificates_are() {
    let of = |names: &[&str], from: i32, until: i32| {
        let names = names.iter().map(|name| (*name).to_owned());
        let mut params = CertificateParams::new(names.collect::<Vec<_>>()).expect("names");
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        (certificate.der().clone(), key)
    };
    // UTCTime ends with 2049 (RFC 5280 §4.1.2.5).
    let (own, key) = of(&["*.a.example", "::1", "a.example"], 2020, 2060);
    let (above, _) = of(&["authority"], 2021, 2050);
    let mut identity = Identity {
        chain: vec![own, above],
        key: key.into(),
    };
    let contents = identity.contents().expect("certificates");
    assert_eq!(contents.names, ["*.a.example", "a.example"]);
    let expected = Validity {
        from: 1_609_459_200,
        until: 2_524_608_000,
    };
    assert_eq!(contents.validity, expected);
    identity.chain.truncate(1);
    let own = identity.contents().expect("a certificate");
    assert_eq!(own.validity.until, 2_840_140_800);
    let cut = identity.chain[0].len() - 1;
    identity.chain[0] = identity.chain[0][..cut].to_vec().into();
    let error = identity.contents().expect_err("it is cut");
    assert!(error.to_string().contains("cannot parse"), "{error}");
    assert_eq!(identity.public_key_hash(), None);
    identity.chain.clear();
    assert!(identity.contents().is_err());
}

#[test]
fn errors_name_missing_certificate_files_and_those_that_are_no_files() {
    let missing = Path::new("/nowhere/chain.pem");
    // A pipe, say; opening that would wait for another process.
    let device = Path::new("/dev/null");
    let error = Identity::read(device, device).expect_err("a device");
    assert_eq!(
        error.to_string(),
        "cannot read `/dev/null`: not a regular file"
    );
    let error = Identity::read(missing, missing).expect_err("nothing there");
    assert!(
        error.to_string().contains("`/nowhere/chain.pem`"),
        "{error}"
    );
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
    let empty = folder.join("empty");
    fs::write(&empty, "").expect("room");
    for (certificates, private, expected) in [
        (
            &empty,
            &empty,
            "empty`: no certificate found (expected PEM)",
        ),
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
