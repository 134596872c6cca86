use super::*;
use proptest::prelude::*;

fn by_serde(value: &serde_json::Value) -> String {
    value.to_string()
}

proptest! {
    #[test]
    fn integers_are_printed_like_rust_display(it: i64, small in -120_i64..120) {
        for it in [it, small, i64::MIN, i64::MAX, it >> (small & 63)] {
            let mut out = String::new();
            write_integer(&mut out, it);
            prop_assert_eq!(out, it.to_string());
        }
    }

    #[test]
    fn strings_are_escaped_where_needed(text in "([a-z]|[\"\\\\]|[\\x00-\\x1f]|\\PC){0,40}") {
        let mut out = String::new();
        write_string(&mut out, &text);
        prop_assert_eq!(out, by_serde(&text.into()));
    }
}
