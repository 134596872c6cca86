#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use proptest::prelude::*;

use super::*;

fn secret(seed: u8) -> [u8; SECRET_LEN] {
    std::array::from_fn(|index| seed.wrapping_mul(31).wrapping_add(index as u8))
}

fn keys(seeds: &[u8]) -> TicketKeys {
    let secrets: Vec<_> = seeds.iter().map(|seed| secret(*seed)).collect();
    TicketKeys::new(&secrets).unwrap()
}

fn line(seed: u8) -> String {
    use std::fmt::Write as _;
    secret(seed).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn the_first_key_seals_and_all_open() {
    let old = keys(&[1]).seal([7; NONCE_LEN], b"content").unwrap();
    let rotated = keys(&[2, 1]);
    assert_eq!(rotated.open(&old).as_deref(), Some(&b"content"[..]));
    let new = rotated.seal([8; NONCE_LEN], b"later").unwrap();
    assert_eq!(keys(&[2]).open(&new).as_deref(), Some(&b"later"[..]));
    assert_eq!(keys(&[1]).open(&new), None);
    assert_eq!(keys(&[3, 2]).open(&old), None);
    assert_eq!(new.len(), b"later".len() + OVERHEAD);
}

#[test]
fn tickets_of_another_version_of_the_tls_library_are_unknown() {
    let other = TicketKeys::of_version(&[secret(1)], "0.23.0").unwrap();
    let ticket = other.seal([7; NONCE_LEN], b"content").unwrap();
    assert_eq!(keys(&[1]).open(&ticket), None);
    assert_ne!(
        ticket[..4],
        keys(&[1]).seal([7; 12], b"content").unwrap()[..4]
    );
    assert!(other.open(&ticket).is_some());
}

#[test]
fn changed_and_truncated_tickets_do_not_open() {
    let keys = keys(&[1]);
    let ticket = keys.seal([7; NONCE_LEN], b"some content").unwrap();
    for index in 0..ticket.len() {
        assert_eq!(keys.open(&ticket[..index]), None, "cut to {index}");
        for bit in 0..8 {
            let mut ticket = ticket.clone();
            ticket[index] ^= 1 << bit;
            assert_eq!(keys.open(&ticket), None, "bit {bit} of byte {index}");
        }
    }
}

#[test]
fn ticket_sizes_are_bounded() {
    let keys = keys(&[1]);
    let longest = vec![0; TICKET_MAX - OVERHEAD];
    let ticket = keys.seal([0; NONCE_LEN], &longest).unwrap();
    assert_eq!(keys.open(&ticket).unwrap(), longest);
    assert_eq!(
        keys.seal([0; NONCE_LEN], &[&longest[..], b"1"].concat()),
        None
    );
    assert_eq!(keys.open(&vec![0; TICKET_MAX + 1]), None);
}

#[test]
fn key_files_may_have_comments_and_either_case() {
    let text = format!(
        "# keys of the fleet\n\n  {} # since Monday\r\n{}\n",
        line(1).to_uppercase(),
        line(2)
    );
    let parsed = TicketKeys::parse(text.as_bytes()).unwrap();
    assert_eq!(parsed.others.len(), 1);
    let by_first = keys(&[1]).seal([7; NONCE_LEN], b"1").unwrap();
    let by_second = keys(&[2]).seal([7; NONCE_LEN], b"2").unwrap();
    assert_eq!(parsed.open(&by_first).as_deref(), Some(&b"1"[..]));
    assert_eq!(parsed.open(&by_second).as_deref(), Some(&b"2"[..]));
    // The first of the file seals.
    assert!(
        keys(&[1])
            .open(&parsed.seal([0; 12], b"").unwrap())
            .is_some()
    );
}

#[test]
fn errors_name_the_line_without_its_secret() {
    let good = line(1);
    let error = |text: &str| TicketKeys::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        error(&format!("{good}\n{}", &good[1..])),
        "line 2 of the ticket keys: a key has 64 hexadecimal digits, not 63"
    );
    assert_eq!(
        error(&format!("#\n{}g", &good[1..])),
        "line 2 of the ticket keys: character 64 is not a hexadecimal digit"
    );
    assert_eq!(
        error(&format!("{good}\n# again\n{good}")),
        "line 3 of the ticket keys: the key is that of line 1"
    );
    assert_eq!(
        error(&"00".repeat(32)),
        "line 1 of the ticket keys: the key is not random"
    );
    let empty = "no ticket key (expected lines of 64 random hexadecimal digits)";
    assert_eq!(error("# nothing yet\n"), empty);
    assert_eq!(error(""), empty);
    let many: Vec<String> = (0..17).map(line).collect();
    assert_eq!(
        error(&many.join("\n")),
        "line 17 of the ticket keys: there are more than 16 keys"
    );
    assert_eq!(
        TicketKeys::parse(many[..16].join("\n").as_bytes())
            .unwrap()
            .others
            .len(),
        15
    );
    let secrets: Vec<_> = (0..17).map(secret).collect();
    assert_eq!(TicketKeys::new(&secrets).unwrap_err(), UnfitKeys);
    assert_eq!(TicketKeys::new(&[]).unwrap_err(), UnfitKeys);
}

#[test]
fn no_secret_is_in_a_debug_text() {
    let text = format!("{:?}", keys(&[1, 2]));
    assert_eq!(text.matches("TicketKey(").count(), 2);
    assert!(text.len() < 60, "{text}");
}

proptest! {
    #[test]
    fn arbitrary_key_files_are_parsed_or_rejected(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(keys) = TicketKeys::parse(&text) {
            prop_assert!(keys.others.len() < KEYS_MAX);
        }
    }

    #[test]
    fn arbitrary_tickets_do_not_open(ticket in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(keys(&[1]).open(&ticket), None);
    }
}
