//! How builtins are called: what a builtin does not have is refused when the query is compiled, with what to write instead.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Input, Options, Query};

const ROWS: &str = "{\"ttlb\": 9, \"arm\": \"a\", \"ua\": \"Bot/12\", \"list\": [1, 2]}\n{\"ttlb\": 7, \"arm\": \"b\", \"ua\": \"x]\", \"list\": []}\n";

/// What is printed, or the message of the error that the query is refused with.
fn answer(query: &str) -> Result<String, String> {
    let query = Query::compile(query, &[], Options::default()).map_err(|it| it.to_string())?;
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes("rows", ROWS.as_bytes().to_vec());
    query.run(vec![input], &mut out, &mut errors);
    Ok(String::from_utf8([out, errors].concat()).unwrap())
}

fn refused(query: &str, with: &str) {
    let message = answer(query).unwrap_err();
    assert!(message.contains(with), "{query}: {message}");
}

#[test]
fn every_builtin_refuses_an_unknown_keyword() {
    for call in [
        "select(_[\"ttlb\"] > 5, zzz: 1)",
        "map(_[\"list\"], zzz: 1) { |x| x }",
        "map_values(_, zzz: 1) { |x| x }",
        "apply(_[\"list\"], zzz: 1) { |x| x }",
        "group_by(_[\"arm\"], zzz: 1) { count() }",
        "group(_[\"arm\"], zzz: 1)",
        "distinct(_[\"arm\"], zzz: 1)",
        "top(1, _[\"ttlb\"], zzz: 1)",
        "histogram(_[\"ttlb\"], 2, zzz: 1)",
        "sort(_[\"ttlb\"], zzz: 1)",
        "sum(_[\"ttlb\"], zzz: 1)",
        "count(_[\"ttlb\"], zzz: 1)",
        "count(zzz: 1)",
        "count_if(_[\"ttlb\"] > 5, zzz: 1)",
        "min(_[\"ttlb\"], zzz: 1)",
        "max(_[\"ttlb\"], zzz: 1)",
        "average(_[\"ttlb\"], zzz: 1)",
        "stdev(_[\"ttlb\"], zzz: 1)",
        "percentile(_[\"ttlb\"], 0.5, zzz: 1)",
        "reduce(0, zzz: 1) { |sum, row| sum }",
        "flat(zzz: 1)",
    ] {
        refused(call, "zzz");
        refused(&call.replace("zzz: 1", "\"zzz\" => 1"), "zzz");
    }
}

#[test]
fn an_unknown_keyword_is_answered_with_what_to_write() {
    for (query, with) in [
        (
            "sort(_[\"ttlb\"], reverse: true)",
            "unknown keyword: :reverse: `sort` has no keyword `reverse:`; write `sort(-key)`, or `sort { |a, b| b <=> a }`",
        ),
        (
            "count(_[\"arm\"], distinct: true)",
            "write `distinct(e) >> _.length`",
        ),
        (
            "percentile(_[\"ttlb\"], 0.5, weights: _[\"ttlb\"])",
            "unknown keyword: :weights: `percentile` has no keyword `weights:`; write `percentile(e, p, weight: w)`",
        ),
        ("max(_[\"ttlb\"], by: 1)", "write `top(1, key)`"),
        (
            "average(_[\"ttlb\"], weight: 2)",
            "write `[sum(e * weight), sum(weight)] >> _[0].fdiv(_[1])`",
        ),
        (
            "group_by(_[\"arm\"], limit: 1) { count() }",
            "wrong number of arguments (given 2, expected 1): `group_by` has no keyword `limit:`; write `group_by(key) { top(n, e) }`",
        ),
        (
            "count { |r| r[\"ttlb\"] > 5 }",
            "`count` takes no block; write `count_if(p)`",
        ),
        ("map(_[\"list\"])", "map requires a block"),
    ] {
        refused(query, with);
    }
}

/// A setting of the first row would count for all.
#[test]
fn a_setting_that_is_a_value_of_the_row_is_refused() {
    let top = "wrong arguments of `top` (expected `top(n, key)`, with the same n for all rows)";
    for (query, with) in [
        ("top(_[\"ttlb\"], 3)", top),
        ("top(_[\"ttlb\"])", top),
        ("top(_[\"ttlb\"].to_i + 1, _[\"ttlb\"])", top),
        ("group_by(_[\"arm\"]) { |r| top(r[\"ttlb\"], 3) }", top),
        (
            "histogram(100, _[\"ttlb\"])",
            "(expected `histogram(e, width)`, with the same width",
        ),
        (
            "histogram(_[\"ttlb\"], _[\"ttlb\"])",
            "with the same width for all rows",
        ),
        (
            "percentile(0.5, _[\"ttlb\"])",
            "(expected `percentile(e, p)`, with the same p",
        ),
        (
            "percentile(_[\"ttlb\"], _[\"p\"])",
            "with the same p for all rows",
        ),
        (
            "limit(_[\"ttlb\"])",
            "`limit` expects the same number for all rows",
        ),
    ] {
        refused(query, with);
    }
    for query in [
        "$n ||= 1; top($n, _[\"ttlb\"]) >> _.length",
        "n = 1; top(n, _[\"ttlb\"]) >> _.length",
        "top(1, 0) >> _.length",
    ] {
        assert_eq!(answer(query).unwrap(), "1\n", "{query}");
    }
}

#[test]
fn pairs_without_braces_are_a_hash_where_a_hash_makes_sense() {
    assert_eq!(
        answer("group(a: _[\"arm\"])").unwrap(),
        "[{\"a\":\"a\"},{\"a\":\"b\"}]\n"
    );
    assert_eq!(
        answer("group_by(a: _[\"arm\"]) { count() } >> _.length").unwrap(),
        "2\n"
    );
    assert_eq!(answer("sum(_[\"ttlb\"], initial: 4)").unwrap(), "20\n");
}

#[test]
fn the_number_of_splatted_arguments_is_checked_too() {
    let printed = answer("sum(*[_[\"ttlb\"], 1])").unwrap();
    assert!(
        printed.contains("wrong number of arguments (given 2, expected 1) (ArgumentError)"),
        "{printed}"
    );
}

#[test]
fn a_reducer_inside_an_argument_of_a_builtin_is_refused() {
    for query in [
        "group_by([_[\"arm\"], count()]) { count() }",
        "group({n: count()})",
        "sum(_[\"list\"].map { |x| max(x) })",
        "sort([sum(_[\"ttlb\"])])",
    ] {
        refused(
            query,
            "a reducer's result is known at the end of input only",
        );
    }
}

#[test]
fn a_regex_after_a_keyword_is_a_regex() {
    for (query, expected) in [
        ("case _[\"ua\"] when /\\d+/ then 1 else 2 end", "1\n2\n"),
        (
            "case _[\"ua\"] when /x/, /[\\]]/ then 1 else 2 end >> sum(_)",
            "3\n",
        ),
        ("x = 1 if /B+/ =~ _[\"ua\"]; x", "1\nnull\n"),
        ("(_[\"ttlb\"] and /o+/ =~ _[\"ua\"]) >> _", "1\nnull\n"),
        ("not /z*x/ =~ _[\"ua\"]", "true\nfalse\n"),
    ] {
        assert_eq!(answer(query).unwrap(), expected, "{query}");
    }
}

#[test]
fn a_shift_inside_keywords_and_blocks_is_no_end_of_a_stage() {
    for (query, expected) in [
        ("if _[\"ttlb\"] >> 3 == 1 then 1 else 2 end", "1\n2\n"),
        ("_[\"list\"].sum do |x| x >> 1 end >> sum(_)", "1\n"),
        ("_[\"ttlb\"] > 8 ? _[\"ttlb\"] >> 1 : 0 >> sum(_)", "4\n"),
        ("_[\"ttlb\"] # >> 5\n >> sum(_)", "16\n"),
    ] {
        assert_eq!(answer(query).unwrap(), expected, "{query}");
    }
    refused("_[\"ttlb\"] } ; proc { 1", "mismatched delimiter \"}\"");
}

/// Values that Ruby has and that we do not: an error, and never another value.
#[test]
fn what_is_not_kept_of_ruby_is_refused_by_name() {
    for (query, with) in [
        (
            "_[\"list\"].permutation(2).to_a",
            "the nearest one is `flat_map`",
        ),
        ("_[\"list\"].map!(&:abs)", "write `x = x.map`"),
        ("Time.at(0).monday?", "the nearest one is `wday`"),
        ("_[\"ttlb\"].equal?(9)", "the nearest one is `==`"),
        ("rand(3)", "does not depend on chance"),
        ("[1, 2].shuffle", "does not depend on chance"),
        ("Random.new(1)", "does not depend on chance"),
        ("Rational(1, 3)", "undefined method 'Rational'"),
    ] {
        refused(query, with);
    }
    for (query, with) in [
        (
            "_[\"ttlb\"] ** -2",
            "is a Rational in Ruby, which is not supported",
        ),
        (
            "format(\"%x\", -_[\"ttlb\"])",
            "%x of a negative number is not supported",
        ),
        ("\"0b1\".to_i(0)", "to_i(0) is not supported"),
        (
            "_[\"list\"][(0..).step(2)]",
            "an index with steps is not supported",
        ),
    ] {
        let answer = answer(query).unwrap();
        assert!(
            answer.contains(with) && answer.ends_with("stage 0\n"),
            "{query}: {answer}"
        );
    }
}
