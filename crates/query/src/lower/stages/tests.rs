#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use super::split;

fn texts(query: &str) -> Vec<&str> {
    split(query)
        .unwrap()
        .into_iter()
        .map(|piece| piece.text)
        .collect()
}

fn message(query: &str) -> String {
    split(query).unwrap_err().message
}

#[test]
fn stages_are_split_outside_brackets_strings_and_regexes() {
    assert_eq!(texts("a >> b>>c"), ["a", "b", "c"]);
    assert_eq!(texts(">> _ + 1 >>  >> _ * 2 >>"), ["_ + 1", "_ * 2"]);
    assert_eq!(
        texts("[1 >> 2] >> (_ >> 1) >> {a: 8 >> 1}"),
        ["[1 >> 2]", "(_ >> 1)", "{a: 8 >> 1}"]
    );
    assert_eq!(
        texts(r#"_ + " >> " >> _.sub(/>>/, '>>')"#),
        [r#"_ + " >> ""#, "_.sub(/>>/, '>>')"]
    );
    assert_eq!(texts(r#"_["x"] / 2 >> _ / 3"#), [r#"_["x"] / 2"#, "_ / 3"]);
}

#[test]
fn syntax_that_jrf_misreads_is_parsed() {
    assert_eq!(texts(r#""\"" >> _"#), [r#""\"""#, "_"]);
    assert_eq!(texts(r"'it\'s' >> _"), [r"'it\'s'", "_"]);
    assert_eq!(texts("%w[( a] >> _"), ["%w[( a]", "_"]);
    assert_eq!(
        texts(r##""#{_["a >> b"]}" >> _"##),
        [r##""#{_["a >> b"]}""##, "_"]
    );
    assert_eq!(texts("{} / 2 >> _ # >> no"), ["{} / 2", "_ # >> no"]);
    assert_eq!(texts("$' >> _.count('(')"), ["$'", "_.count('(')"]);
    assert_eq!(texts("?( >> _ ? 1 : 2"), ["?(", "_ ? 1 : 2"]);
}

#[test]
fn errors_name_the_place() {
    assert_eq!(message(" >> >> "), "empty expression");
    for (query, expected) in [
        ("_ + 1)", "mismatched delimiter \")\" at offset 5"),
        (
            "[1, {a: 2]",
            "unclosed or mismatched delimiter: expected a `}` to close the hash literal",
        ),
        (
            "é + {a: 2",
            "unclosed or mismatched delimiter: expected a `}` to close the hash literal",
        ),
        (
            "_ >> foo(1",
            "unclosed or mismatched delimiter: unexpected end-of-input; expected a `)` to close the arguments",
        ),
        (
            "select(_[1] and _[2])",
            "unclosed or mismatched delimiter: unexpected 'and'; expected a `)` to close the arguments; write `&&`",
        ),
        (
            "select(_[1] or not _[2])",
            "unclosed or mismatched delimiter: unexpected 'or'; expected a `)` to close the arguments; write `||`",
        ),
    ] {
        let message = crate::lower::compile(query, &[]).err().unwrap().message;
        assert_eq!(message, expected, "{query}");
    }
}

#[test]
fn the_number_of_stages_is_bounded() {
    assert_eq!(message(&"(>>".repeat(1001)), "more than 1000 `>>`");
}

#[test]
fn a_character_literal_may_be_any_character() {
    assert_eq!(
        texts("?a >> ?ä >> ?\\n >> ?\\ä >> _"),
        ["?a", "?ä", "?\\n", "?\\ä", "_"]
    );
    assert_eq!(texts("?\\"), ["?\\"]);
}
