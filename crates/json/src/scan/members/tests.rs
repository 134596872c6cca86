//! Compares the fast paths, of this module and of `stretches`, with the grammar, on every kernel.

use super::super::grammar::next;
use super::super::kernel::{Kernel, Simd, with_kernel};
use super::super::selection::Selection;
use super::super::stretches;
use super::*;
use crate::parse::Projection;
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

/// The values of the first keys of a row, and of keys that it may have.
fn wanted(
    kernel: impl Kernel,
    bytes: &[u8],
    start: usize,
    members: &[Found],
) -> (Option<usize>, Vec<Option<Span>>, Vec<Option<Span>>) {
    let keys = members
        .iter()
        .take(3)
        .map(|((from, to), ..)| &bytes[*from..*to]);
    let keys = keys.chain([&b""[..], b"a", b"ab", b"absent"]);
    let mut keys: Vec<&str> = keys
        .filter_map(|key| std::str::from_utf8(key).ok())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let fields = keys
        .iter()
        .map(|key| (String::from(*key), Projection::Whole));
    let Selection::Fields(fields) = Selection::of(&Projection::Fields(fields.collect())) else {
        unreachable!("a projection of fields");
    };
    let mut found = vec![None; keys.len()];
    let end = stretches::walk(kernel, bytes, start, true, &fields, &mut found);
    let mut known = vec![None; keys.len()];
    for ((from, to), plain, value) in members {
        if let Some(slot) = fields.slot(&bytes[*from..*to], *plain) {
            known[slot] = Some(*value);
        }
    }
    (end, found, known)
}

/// All find the same; whether the line is a row.
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
        let (members, known_end) = known.unzip();
        let members = members.unwrap_or_default();
        let (end, found, known) =
            with_kernel!(simd, kernel => wanted(kernel, bytes, start, &members));
        assert_eq!(end, known_end, "{simd:?}: {text}");
        if row {
            assert_eq!(found, known, "{simd:?}: {text}");
        }
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
        "{\"a\":1,\"b\":{\"ab\":\"x,y\",\"a\":{\"c\":20}},\"d\":\"\"}",
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

/// At the start of a row, and where one stretch ends and the next begins.
#[test]
fn all_sequences_of_tokens_match_the_reference_grammar() {
    const TOKENS: [&str; 9] = [",", ":", "{", "}", "\"a\"", "\"", "0", "12", "-"];
    let length = if cfg!(miri) { 1 } else { 4 };
    for number in 0..TOKENS.len().pow(length) {
        let tokens = (0..length).map(|at| TOKENS[number / TOKENS.len().pow(at) % TOKENS.len()]);
        let tokens: String = tokens.collect();
        for before in ["", "\"k\":1", "\"k\":\"\"", "\"k\":{", "\"k\":1,\"a\""] {
            let at = 64 - before.len() - number % 12;
            let text = "x".repeat(at.saturating_sub(6));
            for start in ["{", &format!("{{\"{text}\":7,")] {
                check(format!("{start}{before}{tokens}}}\n").as_bytes(), 0);
            }
        }
    }
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
    fn arbitrary_tokens_match_the_reference_grammar(
        before in "[ -!#-\\[\\]-~]{0,64}",
        tokens in proptest::collection::vec(select(vec![
            ",", ":", "{", "}", "\"", "\"a\"", "\"ab\":1", ",\"a\":\"\"", ",\"k\":0", "0", "10", "\\", " ", "\"c\":{\"a\":2", "-", "é",
        ]), 0..12),
        end in "[}]{0,3}",
    ) {
        let bytes = format!("{{\"{before}\":7{}{end}\n", tokens.concat());
        check(bytes.as_bytes(), 0);
    }

    #[test]
    fn arbitrary_json_characters_match_the_reference_grammar(
        bytes in proptest::collection::vec(select(b"{}[]\",:\\\n \tabu0159e.-+tn".to_vec()), 0..150),
    ) {
        check(&bytes, 0);
    }
}
