use super::{ALL, M};
use crate::run::{Input, Options, Query};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/query.md");

/// A value of each class.
const CLASSES: &[(&str, &str)] = &[
    ("Integer", "7"),
    ("Float", "1.5"),
    ("String", "\"text\""),
    ("Symbol", ":name"),
    ("Array", "[3, 1, 2]"),
    ("Hash", "{\"k\" => 1}"),
    ("Range", "(1..3)"),
    ("Enumerator", "[1, 2].each"),
    ("Regexp", "/t/"),
    ("MatchData", "\"text\".match(/t/)"),
    ("Time", "Time.at(0).utc"),
    ("Proc", "->(x) { x }"),
    ("NilClass", "nil"),
    ("Class Time", "Time"),
    ("Class Regexp", "Regexp"),
    ("Class Array", "Array"),
    ("Class Hash", "Hash"),
    ("Class String", "String"),
    ("Module Math", "Math"),
];

/// The names to which a value answers that is not an error of name.
fn answered(receiver: &str) -> BTreeSet<&'static str> {
    let names: Vec<String> = ALL.iter().map(|(name, _)| format!("{name:?}")).collect();
    let query = format!(
        "[{}].select {{ |name| {receiver}.respond_to?(name) }} >> flat",
        names.join(", ")
    );
    let query = Query::compile(&query, &[], Options::default()).expect("it is a query");
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let row = Input::from_bytes("row", b"0".to_vec());
    assert!(
        query.run(vec![row], &mut out, &mut errors),
        "{receiver}: {}",
        String::from_utf8_lossy(&errors)
    );
    let out = String::from_utf8(out).expect("UTF-8");
    let known = |name: &str| M::find(name).map(M::name);
    out.lines()
        .filter_map(|line| known(line.trim_matches('"')))
        .collect()
}

/// A line of names, wrapped.
fn wrapped(class: &str, names: &BTreeSet<&str>) -> String {
    let (mut text, mut width) = (format!("{class}:"), class.len() + 1);
    for name in names {
        if width + name.len() >= 118 {
            text.push_str("\n ");
            width = 1;
        }
        text.push(' ');
        text.push_str(name);
        width += name.len() + 1;
    }
    text.push('\n');
    text
}

/// Arguments that a method may be called with, beside its own class.
const ARGUMENTS: &str = r#"
    one = [nil, true, 2, -1, 1.5, "a", :a, [1], { "k" => 2 }, 1..2, /a/, Time.at(0), ->(x) { x }, 2**70]
    two = [nil, 1, -2, "b", [0], { half: :even }]
    calls = [[]] + one.map { |x| [x] } + two.flat_map { |x| two.map { |y| [x, y] } } + [[1, 2, 3], [nil, nil, nil], [1, 2, 3, 4]]
"#;

/// Calls each method of each class with none to four arguments of every class, with and without a block. None panics,
/// and each that `respond_to?` knows has a function that knows it.
#[test]
fn each_method_takes_any_arguments() {
    let mut known = BTreeSet::new();
    for (class, value) in CLASSES.iter().chain(&[
        ("Enumerator::ArithmeticSequence", "1.step(9, 2)"),
        ("Exception", "(begin; raise \"x\"; rescue => e; e; end)"),
        ("Class Range", "Range"),
        ("Module JSON", "JSON"),
    ]) {
        let names = answered(value);
        // They call other methods, by name.
        let listed: Vec<String> = names
            .iter()
            .filter(|name| !matches!(**name, "send" | "public_send"))
            .map(|name| format!("{name:?}"))
            .collect();
        let query = format!(
            r#"{ARGUMENTS}
            wrong = []
            [{}].each do |name|
              calls.each do |given|
                [false, true].each do |with|
                  x = {value}
                  x = x.dup
                  begin
                    with ? x.public_send(name, *given) {{ |*it| break it.first }} : x.public_send(name, *given)
                  rescue NoMethodError => e
                    wrong << [name, e.message] if e.message.start_with?("undefined method '" + name + "' for") && e.message.end_with?(" {class}")
                  rescue StandardError, NotImplementedError
                    nil
                  end
                end
              end
            end
            wrong"#,
            listed.join(", ")
        );
        let query = Query::compile(&query, &[], Options::default()).expect("it is a query");
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let row = Input::from_bytes("row", b"0".to_vec());
        let good = query.run(vec![row], &mut out, &mut errors);
        let (out, errors) = (
            String::from_utf8_lossy(&out).into_owned(),
            String::from_utf8_lossy(&errors).into_owned(),
        );
        assert!(good && out == "[]\n", "{class}: {out}{errors}");
        known.extend(names);
    }
    let all = ALL.iter().map(|(name, _)| *name);
    let nowhere: Vec<&str> = all.filter(|name| !known.contains(name)).collect();
    assert!(nowhere.is_empty(), "no class has {nowhere:?}");
}

#[test]
fn what_is_refused_has_no_entry_and_a_hint() {
    for line in super::REFUSED.lines() {
        let (names, hint) = line.split_once(": ").expect("names and a hint");
        for name in names.split(' ') {
            assert!(M::find(name).is_none(), "{name}");
            let instead = super::instead(name).expect("a hint");
            assert!(instead.ends_with(hint), "{name}: {instead}");
        }
    }
    assert_eq!(
        super::instead("upcase!").as_deref(),
        Some("write `x = x.upcase`")
    );
}

#[test]
fn the_reference_lists_all_methods() {
    let all: Vec<_> = CLASSES
        .iter()
        .map(|(class, value)| (*class, answered(value)))
        .collect();
    let mut common = all[0].1.clone();
    for (_, names) in &all {
        common.retain(|name| names.contains(name));
    }
    let mut wanted = wrapped("Every value", &common);
    for (class, names) in &all {
        wanted += &wrapped(class, &names.difference(&common).copied().collect());
    }
    let shown = PAGE
        .split("```methods\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    assert!(
        shown == Some(wanted.as_str()),
        "docs/query.md should list:\n{wanted}"
    );
}
