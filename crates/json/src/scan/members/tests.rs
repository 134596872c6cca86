//! Compares the fast path with the grammar, on every kernel.

use super::super::grammar::next;
use super::super::kernel::{Kernel, Simd, with_kernel};
use super::*;
use proptest::prelude::*;
use proptest::sample::select;

/// Miri takes a thousand times as long.
const MEMBERS_MAX: usize = if cfg!(miri) { 5 } else { 40 };

/// A key, whether it is plain, and its value.
type Found = ((usize, usize), bool, Span);

/// The members of a line, and where the next begins.
fn walked(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<(Vec<Found>, usize)> {
    let mut members = Recorder(Vec::new());
    let end = walk(kernel, bytes, start, true, &mut members)?;
    Some((members.0, end))
}

struct Recorder(Vec<Found>);

impl Visit for Recorder {
    fn member(&mut self, key: (usize, usize), plain_key: bool, value: Span) -> bool {
        self.0.push((key, plain_key, value));
        true
    }
}

fn by_grammar(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<(Vec<Found>, usize)> {
    let mut members = Vec::new();
    let mut at = start;
    loop {
        match next(kernel, bytes, at, at == start)? {
            Next::Member(member) => {
                at = member.value.end;
                members.push((member.key, member.plain_key, member.value));
            }
            Next::End(end) => return Some((members, end)),
        }
    }
}

/// Both find the same; whether the line is a row.
fn check(bytes: &[u8], start: usize) -> bool {
    let mut row = false;
    for simd in Simd::all() {
        let (found, known) = with_kernel!(simd, kernel => (
            walked(kernel, bytes, start),
            by_grammar(kernel, bytes, start)
        ));
        let text = String::from_utf8_lossy(&bytes[start..]);
        row = known.is_some();
        assert_eq!(found, known, "{simd:?}: {text}");
    }
    row
}

fn value() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        4 => "[a-z,:{}\\[ ]",
        1 => select(vec!["\\\"", "\\\\", "\\/", "\\n", "\\u00e9", "\\ud83d\\ude00", "é", "日", "\u{7f}"])
            .prop_map(str::to_owned),
    ];
    let other = vec![
        "true",
        "false",
        "null",
        "[]",
        "{}",
        "[1,[\"]\"]]",
        "{\"a\":[{}],\"b\":\":\"}",
    ];
    prop_oneof![
        4 => "[0-9]|[1-9][0-9]{1,40}",
        2 => "\"[ -!#-\\[\\]-~]{0,90}\"",
        1 => proptest::collection::vec(text, 0..80).prop_map(|text| format!("\"{}\"", text.concat())),
        1 => "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        1 => select(other).prop_map(str::to_owned),
    ]
}

fn line(blank: &str) -> impl Strategy<Value = String> + use<> {
    let (comma, colon) = (format!(",{blank}"), format!(":{blank}"));
    proptest::collection::vec(("[a-z.é]{0,40}", value()), 1..MEMBERS_MAX).prop_map(move |pairs| {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(key, value)| format!("\"{key}\"{colon}{value}"));
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(&comma))
    })
}

proptest! {
    #[test]
    fn rows_are_parsed_at_any_start_and_end_offset(
        before in "[ \"\\\\{]{0,70}",
        line in prop_oneof![line(""), line(" "), line("\t ")],
        end in select(vec!["", "\n", " \r\n", "\n{\"", "\n\"\\n"]),
    ) {
        let bytes = format!("{before}{line}{end}");
        prop_assert!(check(bytes.as_bytes(), before.len()), "{line}");
    }

    #[test]
    fn rows_with_one_changed_byte_match_the_reference_grammar(
        line in prop_oneof![line(""), line(" ")],
        at: prop::sample::Index,
        byte in prop_oneof![select(b"\"\\,:{}[] \n\t\x0c\x1a0a\xc3".to_vec()), any::<u8>()],
    ) {
        let mut bytes = line.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.push(b'\n');
        check(&bytes, 0);
    }

    #[test]
    fn arbitrary_json_characters_match_the_reference_grammar(
        bytes in proptest::collection::vec(select(b"{}[]\",:\\\n \tabu0159e.-+tn".to_vec()), 0..150),
    ) {
        check(&bytes, 0);
    }
}
