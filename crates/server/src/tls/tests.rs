use rustls::server::ProducesTickets;

use super::*;

fn identity() -> Identity {
    Identity::self_signed(&["localhost".into()], 20_778).expect("one")
}

fn text(secrets: &[u8]) -> Vec<u8> {
    let line = |first: &u8| format!("{first:02x}{}\n", "0123456789abcdef".repeat(4).split_off(2));
    secrets.iter().map(line).collect::<String>().into_bytes()
}

#[test]
fn a_key_of_another_certificate_is_rejected() {
    let (one, other) = (identity(), identity());
    let mixed = Identity {
        chain: one.chain,
        key: other.key,
    };
    let error = check(&[identity(), mixed]).expect_err("they do not fit");
    let expected = "the private key does not match the first certificate, that of `localhost`";
    assert_eq!(error, expected);
    check(&[identity()]).expect("they fit");
    let error = check(&[]).expect_err("none");
    assert!(error.contains("no certificate"), "{error}");
}

/// A certificate of these names, with a key of this algorithm.
fn certified_of(names: &[&str], algorithm: &'static rcgen::SignatureAlgorithm) -> Identity {
    let names = names.iter().map(|name| (*name).to_owned());
    let params = rcgen::CertificateParams::new(names.collect::<Vec<_>>()).expect("names");
    let key = rcgen::KeyPair::generate_for(algorithm).expect("a key");
    Identity {
        chain: vec![
            params
                .self_signed(&key)
                .expect("a certificate")
                .der()
                .clone(),
        ],
        key: key.into(),
    }
}

#[test]
fn rfc6066_3_a_client_gets_the_certificate_with_its_server_name() {
    let (ecdsa, ed25519) = (&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519);
    let all = certified(&[
        certified_of(&["first.example"], ecdsa),
        certified_of(&["*.b.example"], ecdsa),
        certified_of(&["a.b.example", "c.example"], ecdsa),
        certified_of(&["c.example"], ed25519),
    ])
    .expect("certificates");
    let schemes = &[
        SignatureScheme::ED25519,
        SignatureScheme::ECDSA_NISTP256_SHA256,
    ][..];
    let chosen = |name: Option<&str>, schemes: &[SignatureScheme]| {
        let chosen = choose(&all, name, schemes).expect("one");
        let index = all.iter().position(|one| Arc::ptr_eq(&one.0, &chosen.0));
        index.expect("one of them")
    };
    for (name, expected) in [
        (None, 0),
        (Some("other.example"), 0),
        (Some("first.example"), 0),
        (Some("FIRST.Example"), 0),
        (Some("a.b.example"), 2),
        (Some("x.b.example"), 1),
        (Some("b.example"), 0),
        (Some("x.y.b.example"), 0),
        (Some(".b.example"), 1),
        (Some("c.example"), 2),
        (Some(""), 0),
    ] {
        assert_eq!(chosen(name, schemes), expected, "{name:?}");
    }
    // The first key that can sign, of those with the name.
    assert_eq!(chosen(Some("c.example"), &schemes[..1]), 3);
    assert_eq!(chosen(Some("c.example"), &schemes[1..]), 2);
    // None can: the handshake fails, and the name is right.
    assert_eq!(chosen(Some("x.b.example"), &schemes[..1]), 1);
}

#[test]
fn tickets_over_tcp_open_only_with_the_shared_secret() {
    let tickets = |bytes: &[u8]| Keys::shared(&text(bytes)).expect("keys").tcp;
    let one = tickets(&[1]);
    let ticket = one.encrypt(b"a session").expect("a ticket");
    assert_eq!(one.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
    let rotated = tickets(&[2, 1]);
    assert_eq!(rotated.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
    assert_eq!(tickets(&[2]).decrypt(&ticket), None);
    for index in 0..ticket.len() {
        let mut spoiled = ticket.clone();
        spoiled[index] ^= 1;
        assert_eq!(one.decrypt(&spoiled), None, "byte {index}");
        assert_eq!(one.decrypt(&ticket[..index]), None, "cut at {index}");
    }
    one.replace(tickets(&[2]));
    assert_eq!(one.decrypt(&ticket), None, "it was retired");
}

#[test]
fn invalid_ticket_keys_are_errors_that_name_the_line() {
    let error = check_ticket_keys(b"# none\n\nxyz\n").expect_err("no key");
    assert!(error.contains("line 3"), "{error}");
    assert_eq!(
        tickets::secrets(&[b"# a\n".to_vec(), text(&[1, 2])].concat()).len(),
        2
    );
}
