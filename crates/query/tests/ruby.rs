//! The same expressions, evaluated by Ruby and by us, over the same values: compared byte for byte. Without a `ruby` the
//! test says so and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Input, Options, Query};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

const EXPRESSIONS: &str = include_str!("ruby/expressions.txt");
const VALUES: &str = include_str!("ruby/values.ndjson");
/// Expressions that do not look at the row. Of errors the class is compared.
const FIXED: &str = include_str!("ruby/fixed.txt");
const PAGE: &str = include_str!("../../../docs/query.md");

/// What Ruby does with each value: its result as JSON, or the class of its error.
const ORACLE: &str = r##"
require "json"; require "time"
Warning[:deprecated] = false
row = nil
# As Ruby 3.4 and we write it.
class Hash
  def inspect
    "{" + map { |k, v| (k.is_a?(Symbol) ? "#{k}: " : "#{k.inspect} => ") + v.inspect }.join(", ") + "}"
  end
  alias to_s inspect
end
expressions = File.readlines(ARGV[0], chomp: true)
values = File.readlines(ARGV[1], chomp: true)
expressions.each do |expression|
  code = begin
    eval("proc { |_|\n#{expression}\n}")
  rescue SyntaxError
    nil
  end
  values.each do |text|
    row = JSON.parse(text)
    answer = begin
      code ? JSON.generate(code.call(row)) : "SyntaxError"
    rescue => e
      ARGV[2] ? "error #{e.class}" : "error"
    end
    puts answer
  end
end
"##;

/// What we do with one value: what was printed, or the errors.
fn answer(expression: &str, value: &str) -> Result<String, String> {
    let query =
        Query::compile(expression, &[], Options::default()).map_err(|wrong| wrong.to_string())?;
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes("row", value.as_bytes().to_vec());
    if query.run(vec![input], &mut out, &mut errors) {
        return Ok(String::from_utf8(out).unwrap().trim_end().to_owned());
    }
    Err(String::from_utf8(errors).unwrap())
}

/// What we do with one value: what was printed, or the class of an error.
fn ours(expression: &str, value: &str) -> Result<String, String> {
    answer(expression, value).map_err(|errors| {
        let class = errors
            .rsplit_once(" (")
            .and_then(|(_, rest)| rest.split_once(')'));
        class.map_or(errors.clone(), |(class, _)| class.to_owned())
    })
}

/// What Ruby answers to a script with these arguments, a line each; `None` where there is no Ruby.
fn ruby(script: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let started = Command::new("ruby")
        .arg("-")
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut ruby) = started else {
        lastbyte_testkit::skip("no `ruby`");
        return None;
    };
    let mut script_in = ruby.stdin.take().unwrap();
    script_in.write_all(script.as_bytes()).unwrap();
    drop(script_in);
    let answers = String::from_utf8(ruby.wait_with_output().unwrap().stdout).unwrap();
    Some(answers.lines().map(str::to_owned).collect())
}

#[test]
fn expressions_match_ruby() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ruby/");
    let expressions = format!("{root}expressions.txt");
    let values = format!("{root}values.ndjson");
    let Some(answers) = ruby(ORACLE, &[&expressions, &values]) else {
        return;
    };
    let mut answers = answers.iter().map(String::as_str);
    let mut wrong = Vec::new();
    for expression in EXPRESSIONS.lines() {
        for value in VALUES.lines() {
            let expected = answers.next().unwrap_or("nothing");
            let got = ours(expression, value).unwrap_or_else(|class| {
                if class.contains(':') && !class.contains("::") {
                    format!("refused: {class}")
                } else {
                    "error".to_owned()
                }
            });
            if got != expected {
                wrong.push(format!(
                    "{expression}   with {value}\n    ruby: {expected}\n    ours: {got}"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn fixed_expressions_match_ruby() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ruby/");
    let one = format!("{root}one.ndjson");
    let Some(answers) = ruby(ORACLE, &[&format!("{root}fixed.txt"), &one, "classes"]) else {
        return;
    };
    assert_eq!(answers.len(), FIXED.lines().count());
    let mut wrong = Vec::new();
    for (expression, expected) in FIXED.lines().zip(&answers) {
        // What is not there at all is refused before a row is read.
        let got = match ours(expression, "null") {
            Ok(printed) => printed,
            Err(refused) if refused.contains("(NoMethodError): it is not supported") => {
                "error NoMethodError".to_owned()
            }
            Err(class) => format!("error {class}"),
        };
        if got != *expected {
            wrong.push(format!(
                "{expression}\n    ruby: {expected}\n    ours: {got}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The methods of each class that docs/query.md lists.
fn methods() -> BTreeMap<&'static str, Vec<&'static str>> {
    let shown = PAGE.split("```methods\n").nth(1).unwrap();
    let shown = shown.split("```").next().unwrap();
    let starts = shown.match_indices('\n').map(|(at, _)| at + 1);
    let mut starts: Vec<usize> = starts.filter(|at| !shown[*at..].starts_with(' ')).collect();
    starts.insert(0, 0);
    let lines = starts.windows(2).map(|pair| &shown[pair[0]..pair[1]]);
    lines
        .map(|line| {
            let (class, names) = line.split_once(": ").unwrap();
            (class, names.split_whitespace().collect())
        })
        .collect()
}

/// Whether an error names something that is not supported, or a method that the class does not have.
fn is_refusal(errors: &str, methods: &BTreeMap<&str, Vec<&str>>) -> bool {
    let unknown = || {
        let (_, rest) = errors.split_once("undefined method '")?;
        let (name, rest) = rest.split_once('\'')?;
        let class = rest
            .strip_prefix(" for an instance of ")
            .unwrap_or("NilClass");
        let class = class.split([' ', ':']).next()?;
        let known = |class| methods.get(class).is_some_and(|list| list.contains(&name));
        Some(!known(class) && !known("Every value"))
    };
    errors.contains("not supported") || unknown() == Some(true)
}

/// Compares expressions and Ruby's answers, in lines with a tab between; of errors, only that there is one. Returns the number
/// of those that are refused.
fn compare(lines: &[String]) -> usize {
    let methods = methods();
    let (mut refused, mut wrong) = (0, Vec::new());
    for line in lines {
        let (expression, expected) = line.split_once('\t').unwrap();
        let got = answer(expression, "0");
        match (&got, expected.starts_with("error ")) {
            (Ok(got), false) if got == expected => {}
            (Err(_), true) => {}
            (Err(errors), false) if is_refusal(errors, &methods) => refused += 1,
            _ => wrong.push(format!(
                "{expression}\n    ruby: {expected}\n    ours: {}",
                got.unwrap_or_else(|errors| format!("error {errors}"))
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        lines.len(),
        wrong.join("\n")
    );
    refused
}

/// Answers to other random expressions, of Ruby 3.1.
const ANSWERS: &str = include_str!("random/answers.txt");

#[test]
fn random_expressions_have_the_answers_of_ruby() {
    let lines: Vec<String> = ANSWERS.lines().map(str::to_owned).collect();
    let refused = compare(&lines);
    assert!(refused * 50 < lines.len(), "{refused} of {}", lines.len());
}

/// `RANDOM_SEED` and `RANDOM_COUNT` in the environment draw others.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a run by hand draws other expressions"
)]
fn random_expressions_match_ruby() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/query.md");
    let chosen = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let (seed, count) = (chosen("RANDOM_SEED", "1"), chosen("RANDOM_COUNT", "6000"));
    let script = include_str!("random/generate.rb");
    if let Some(lines) = ruby(script, &[page, &seed, &count]) {
        assert!(lines.len() > 100, "{lines:?}");
        let refused = compare(&lines);
        assert!(refused * 50 < lines.len(), "{refused} of {}", lines.len());
    }
}

/// A receiver of each class that docs/query.md lists.
const RECEIVERS: &[(&str, &str)] = &[
    ("Integer", "7"),
    ("Float", "1.5"),
    ("String", "\"text\".dup"),
    ("Symbol", ":name"),
    ("Array", "[3, 1, 2]"),
    ("Hash", "{ \"k\" => 1 }"),
    ("Range", "(1..3)"),
    ("Enumerator", "[1, 2].each"),
    ("Regexp", "/t/"),
    ("MatchData", "\"text\".match(/t/)"),
    ("Time", "Time.at(0).utc"),
    ("Proc", "->(*x) { x }"),
    ("NilClass", "nil"),
    ("Class Time", "Time"),
    ("Class Regexp", "Regexp"),
    ("Class Array", "Array"),
    ("Class Hash", "Hash"),
    ("Class String", "String"),
    ("Module Math", "Math"),
];

/// Ruby looks at the arguments of these only once they walk, or words the number in its own way.
const LAZY: &[&str] = &[
    "String#match",
    "Symbol#match",
    // Ruby 3.3 took the third argument away.
    "Class Regexp#new",
    "Array#each_with_index",
    "Hash#each_with_index",
    "Hash#reverse_each",
    "Range#each_with_index",
    "Range#reverse_each",
    "Enumerator#each",
    "Enumerator#reverse_each",
];

/// Methods whose options are refused: those of case, of several bits, of a Hash to add to, of more than one separator.
const NARROWER: &[&str] = &["capitalize", "downcase", "upcase", "tally", "each_line"];

#[test]
fn method_arities_match_ruby() {
    let of_class = methods();
    let common = &of_class["Every value"];
    let mut asked = Vec::new();
    for (class, receiver) in RECEIVERS {
        for name in common.iter().chain(&of_class[class]) {
            asked.push((class, receiver, name));
        }
    }
    // As an expression of both: the message about the number of arguments, for several numbers.
    let expression = |receiver: &str, name: &str| {
        format!(
            "[0, 1, 2, 3, 12].map {{ |n| begin; x = {receiver}; x.public_send({name:?}, *([nil] * n)); \"\"; rescue Exception => e; e.message.to_s[/wrong number of arguments .given \\d+/] || \"\"; end }}"
        )
    };
    let script: String =
        std::iter::once("require 'json'; require 'time'; require 'set'\n".to_owned())
            .chain(asked.iter().map(|(_, receiver, name)| {
                format!("puts JSON.generate({})\n", expression(receiver, name))
            }))
            .collect();
    let Some(answers) = ruby(&script, &[]) else {
        return;
    };
    assert_eq!(answers.len(), asked.len());
    let mut wrong = Vec::new();
    for ((class, receiver, name), expected) in asked.iter().zip(&answers) {
        let got = ours(&expression(receiver, name), "null").unwrap_or_else(|class| class);
        let full = format!("{class}#{name}");
        let narrower =
            NARROWER.contains(name) || ["Integer#[]", "MatchData#[]"].contains(&full.as_str());
        if got != *expected && !narrower && !LAZY.contains(&full.as_str()) {
            wrong.push(format!(
                "{class}#{name}\n    ruby: {expected}\n    ours: {got}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
