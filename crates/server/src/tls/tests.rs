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
    let error = check(&mixed).expect_err("they do not fit");
    assert!(
        error.contains("does not match the first certificate"),
        "{error}"
    );
    check(&identity()).expect("they fit");
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
