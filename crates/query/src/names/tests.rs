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
    ("Class Integer", "Integer"),
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
