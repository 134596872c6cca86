use super::*;

const VALID: &str = "\
[retry]
keys = [\"101112131415161718191a1b1c1d1e1f\", \"00112233445566778899aabbccddeeff\"]
balancers = [\"192.0.2.9\", \"2001:db8::9\"]
[[ids]]
config-id = 1
server-id-length = 2
nonce-length = 14
key = \"8f95f09245765f80256934e50c66207f\"
[[ids]]
config-id = 0
server-id-length = 1
nonce-length = 8
[[servers]]
id = 1
address = \"127.0.0.1:4433\"
health = \"127.0.0.1:9100\"
[[servers]]
id = 0x02
address = \"[::1]:4433\"
weight = 3
drain = true
";

fn error(from: &str, to: &str) -> String {
    let text = VALID.replacen(from, to, 1);
    assert_ne!(text, VALID);
    FleetFile::parse("lb.toml", &text).expect_err("invalid")
}

#[test]
fn a_file_has_layouts_and_servers() {
    let file = FleetFile::parse("lb.toml", VALID).expect("valid");
    let [first, second] = &file.fleet.ids[..] else {
        panic!("two layouts");
    };
    assert_eq!(
        (first.rotation, first.server_id_len, first.nonce_len),
        (1, 2, 14)
    );
    assert_eq!(first.key.expect("a key")[..2], [0x8f, 0x95]);
    assert_eq!((second.rotation, second.key), (0, None));
    assert_eq!(file.fleet.hash_key, first.key.expect("a key"));
    let servers = &file.fleet.servers;
    assert_eq!(
        (servers[0].id, servers[0].weight, servers[0].drain),
        (1, 1, false)
    );
    assert_eq!(
        (servers[1].id, servers[1].weight, servers[1].drain),
        (2, 3, true)
    );
    assert_eq!(file.health, [Some(([127, 0, 0, 1], 9100).into()), None]);
    let retry = file.fleet.retry.as_ref().expect("keys");
    assert_eq!(retry.secrets[0][..3], [0x10, 0x11, 0x12]);
    assert_eq!((retry.secrets.len(), retry.addresses.len()), (2, 2));
    // Keys are in no message.
    assert!(!format!("{retry:?}").contains("secret"));
    assert_eq!(&file.layout_for(2).expect("known"), first);
    assert!(file.layout_for(3).is_err());
}

#[test]
fn errors_name_the_file_and_what_is_expected() {
    for (from, to, expected) in [
        (
            "config-id = 1",
            "config-id = 7",
            "connection IDs 7: invalid configuration ID",
        ),
        ("config-id = 1", "config-id = 0", "two layouts"),
        (
            "207f",
            "207",
            "`key`: invalid key (expected 32 hexadecimal digits)",
        ),
        ("8f95", "+f95", "`key`: invalid key"),
        ("nonce-length = 14", "nonce-length = 18", "invalid lengths"),
        ("id = 0x02", "id = 1", "two servers have the ID 1"),
        ("id = 0x02", "id = 300", "server ID 300 does not fit"),
        ("weight = 3", "weight = 2000", "invalid weight 2000"),
        (
            "1e1f",
            "1e1",
            "`keys` of `[retry]`: invalid key (expected 32",
        ),
        ("192.0.2.9", "lb", "invalid IP address"),
        (
            "[\"192.0.2.9\", \"2001:db8::9\"]",
            "[]",
            "0 balancers (expected 1 to 64)",
        ),
        (
            "[\"101112131415161718191a1b1c1d1e1f\", \"00112233445566778899aabbccddeeff\"]",
            "[]",
            "0 keys of Retry (expected 1 to 4)",
        ),
        ("weight", "wait", "unknown field `wait`"),
        ("127.0.0.1:4433", "localhost", "invalid socket address"),
    ] {
        let error = error(from, to);
        assert!(
            error.starts_with("`lb.toml`: ") && error.contains(expected),
            "{error}"
        );
    }
}

/// None of the keys is in it, not even a quarter of one.
fn assert_no_key(error: &str) {
    for key in [
        "8f95f09245765f80256934e50c66207f",
        "101112131415161718191a1b1c1d1e1f",
        "00112233445566778899aabbccddeeff",
    ] {
        let parts = (0..=24).filter_map(|at| key.get(at..at + 8));
        for part in parts {
            assert!(!error.contains(part), "{error}");
        }
    }
}

#[test]
fn errors_contain_no_key() {
    for (from, to, expected) in [
        ("207f\"", "207f", "line 8, column"),
        ("key = \"8f95", "key = 8f95", "line 8, column"),
        (
            "key = \"8f95f09245765f80256934e50c66207f\"",
            "key = [\"8f95f09245765f80256934e50c66207f\"]",
            "invalid type (expected a string)",
        ),
        (
            "[\"101112131415161718191a1b1c1d1e1f\", \"00112233445566778899aabbccddeeff\"]",
            "\"101112131415161718191a1b1c1d1e1f\"",
            "invalid type (expected a sequence)",
        ),
        (
            "config-id = 1",
            "config-id = \"8f95f09245765f80256934e50c66207f\"",
            "line 5, column 13: invalid type (expected u8)",
        ),
        (
            "key = \"8f95f09245765f80256934e50c66207f\"",
            "8f95f09245765f80256934e50c66207f = 1",
            "unknown field …",
        ),
        (
            "key = \"8f95f09245765f80256934e50c66207f\"",
            "key = \"8f95f09245765f80 256934e50c66207f\"",
            "`key`: invalid key",
        ),
        (
            "address = \"127.0.0.1:4433\"",
            "address = \"8f95f09245765f80256934e50c66207f\"",
            "invalid socket address",
        ),
    ] {
        let error = error(from, to);
        assert_no_key(&error);
        assert!(error.contains(expected), "{error}");
    }
}

/// Any character changed, removed or repeated, and the file cut anywhere.
#[test]
fn a_damaged_file_is_refused_or_valid() {
    let (mut refused, mut valid) = (0, 0);
    for at in 0..VALID.len() {
        let (before, rest) = VALID.split_at(at);
        let behind = &rest[1..];
        let damaged = ["", "9", "-", "\"", "\n", "=", "[", "é", "0"];
        let mut texts = damaged
            .map(|text| format!("{before}{text}{behind}"))
            .to_vec();
        texts.extend([before.to_owned(), format!("{before}{rest}{rest}")]);
        for text in texts {
            match FleetFile::parse("lb.toml", &text) {
                Err(error) => {
                    assert!(error.starts_with("`lb.toml`: "), "{error}");
                    assert_no_key(&error);
                    refused += 1;
                }
                Ok(file) => {
                    assert!(file.fleet.validate().is_ok());
                    assert_eq!(file.health.len(), file.fleet.servers.len());
                    valid += 1;
                }
            }
        }
    }
    assert!(refused > 1000 && valid > 100, "{refused} {valid}");
}
