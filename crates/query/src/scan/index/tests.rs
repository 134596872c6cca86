//! What the index gives against what the grammar gives, on every kernel.

use super::super::grammar::{Next, next};
use super::super::kernel::{Kernel, Simd, with_kernel};
use super::*;
use proptest::prelude::*;
use proptest::sample::select;

/// A key, its value's begin and end, and whether the value is told to be plain.
type Found = ((usize, usize), usize, usize, bool);

/// The members of a line, and where the next begins.
fn by_index(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<(Vec<Found>, usize)> {
    let mut index = Index::default();
    let end = kernel.index(&mut index, bytes, start)?;
    let mut members = Noted(Vec::new());
    let whole = index.members(kernel, bytes, start, true, &mut members);
    whole.then_some((members.0, end))
}

struct Noted(Vec<Found>);

impl Visit for Noted {
    fn member(&mut self, key: (usize, usize), value: Span) -> bool {
        let plain = matches!(value.kind, Kind::Plain | Kind::Digits);
        self.0.push((key, value.start, value.end, plain));
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
                let plain = matches!(member.value.kind, Kind::Plain | Kind::Digits);
                members.push((member.key, member.value.start, at, plain));
            }
            Next::End(end) => return Some((members, end)),
        }
    }
}

/// What the index takes, the grammar takes, and finds the same; whether the index took it.
fn check(bytes: &[u8], start: usize) -> bool {
    let mut taken = None;
    for simd in Simd::all() {
        let (found, known) = with_kernel!(simd, kernel => (
            by_index(kernel, bytes, start),
            by_grammar(kernel, bytes, start)
        ));
        let text = String::from_utf8_lossy(&bytes[start..]);
        let is_taken = found.is_some();
        assert_eq!(*taken.get_or_insert(is_taken), is_taken, "{simd:?}: {text}");
        let Some((members, end)) = found else {
            continue;
        };
        let (expected, expected_end) = known.unwrap_or_default();
        assert_eq!(end, expected_end, "{simd:?}: {text}");
        assert_eq!(members.len(), expected.len(), "{simd:?}: {text}");
        for (found, known) in members.iter().zip(&expected) {
            let places = |it: &Found| (it.0, it.1, it.2);
            assert_eq!(places(found), places(known), "{simd:?}: {text}");
            assert!(known.3 || !found.3, "{simd:?}: {text}");
        }
    }
    taken == Some(true)
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
    proptest::collection::vec(("[a-z.é]{0,40}", value()), 1..40).prop_map(move |pairs| {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(key, value)| format!("\"{key}\"{colon}{value}"));
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(&comma))
    })
}

proptest! {
    #[test]
    fn rows_are_taken_wherever_they_begin_and_end(
        before in "[ \"\\\\{]{0,70}",
        line in prop_oneof![line(""), line(" "), line("\t ")],
        end in select(vec!["", "\n", " \r\n", "\n{\"", "\n\"\\n"]),
    ) {
        let bytes = format!("{before}{line}{end}");
        prop_assert!(check(bytes.as_bytes(), before.len()), "{line}");
    }

    #[test]
    fn rows_with_a_byte_changed_are_not_taken_for_others(
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
    fn any_signs_are_read_as_the_grammar_reads_them(
        bytes in proptest::collection::vec(select(b"{}[]\",:\\\n \tabu0159e.-+tn".to_vec()), 0..150),
    ) {
        check(&bytes, 0);
    }
}
