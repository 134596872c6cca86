use proptest::prelude::*;

use super::*;

fn read(text: &str) -> (u8, bool) {
    let priority = Priority::default().updated(text.as_bytes());
    (priority.urgency, priority.is_incremental)
}

#[test]
fn rfc9218_4_parameters_and_their_defaults() {
    for (text, expected) in [
        ("", (3, false)),
        ("u=0", (0, false)),
        ("u=7, i", (7, true)),
        ("i", (3, true)),
        ("i=?0", (3, false)),
        ("i=?1,u=5", (5, true)),
        ("u=1 ,\ti", (1, true)),
        ("u=1;x=2;y, i;z=\"a\\\"b\"", (1, true)),
    ] {
        assert_eq!(read(text), expected, "{text:?}");
    }
}

#[test]
fn rfc9218_4_invalid_values_and_unknown_parameters_are_ignored() {
    for (text, expected) in [
        ("u=8, i", (3, true)),
        ("u=-1", (3, false)),
        ("u=2.5, i", (3, true)),
        ("u=?1, i=1", (3, false)),
        ("u, i", (3, true)),
        ("u=\"1\"", (3, false)),
        ("u=1, u=9", (3, false)),
        ("foo=(1 2 tok;p=1), u=2, bar=:aGk=:, i", (2, true)),
    ] {
        assert_eq!(read(text), expected, "{text:?}");
    }
}

#[test]
fn rfc8941_4_2_an_invalid_dictionary_is_ignored() {
    for text in [
        "u=1,",
        "u=1 i",
        "U=1",
        "u=",
        ",u=1",
        "u=1, i=?2",
        "u=1, =3",
        "u=1\0",
        "u=1, a=(1",
        "u=1, a=\"",
        "u=1, a=1.",
    ] {
        assert_eq!(read(text), (3, false), "{text:?}");
    }
}

#[test]
fn rfc9218_8_parameters_absent_from_a_response_keep_the_clients_values() {
    let client = Priority {
        urgency: 5,
        is_incremental: true,
    };
    assert_eq!(
        client.updated(b"u=1"),
        Priority {
            urgency: 1,
            is_incremental: true
        }
    );
    assert_eq!(
        client.updated(b"i=?0"),
        Priority {
            urgency: 5,
            is_incremental: false
        }
    );
}

proptest! {
    #[test]
    fn priorities_round_trip(urgency in 0u8..8, is_incremental in any::<bool>()) {
        let priority = Priority { urgency, is_incremental };
        prop_assert_eq!(Priority::default().updated(priority.to_string().as_bytes()), priority);
    }

    #[test]
    fn arbitrary_bytes_parse_to_a_priority(text in "[ui=?01-9.,;\"\\\\() \ta-z:]{0,24}") {
        let priority = Priority::default().updated(text.as_bytes());
        prop_assert!(priority.urgency <= 7);
    }
}
