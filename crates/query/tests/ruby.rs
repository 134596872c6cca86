//! The same expressions, evaluated by Ruby and by us, over the same values: compared byte for byte. Without a `ruby` the
//! test says so and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Input, Options, Query};
use std::io::Write;
use std::process::{Command, Stdio};

const EXPRESSIONS: &str = include_str!("ruby/expressions.txt");
const VALUES: &str = include_str!("ruby/values.ndjson");

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
      "error"
    end
    puts answer
  end
end
"##;

/// What we do with one value.
fn ours(expression: &str, value: &str) -> String {
    let query = match Query::compile(expression, &[], Options::default()) {
        Ok(query) => query,
        Err(wrong) => return format!("refused: {wrong}"),
    };
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes("row", value.as_bytes().to_vec());
    if query.run(vec![input], &mut out, &mut errors) {
        String::from_utf8(out).unwrap().trim_end().to_owned()
    } else {
        "error".to_owned()
    }
}

#[test]
fn expressions_give_what_ruby_gives() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ruby/");
    let started = Command::new("ruby")
        .args([
            "-",
            &format!("{root}expressions.txt"),
            &format!("{root}values.ndjson"),
        ])
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut ruby) = started else {
        let _ = writeln!(std::io::stderr(), "skipped: ruby is not installed");
        return;
    };
    ruby.stdin
        .take()
        .unwrap()
        .write_all(ORACLE.as_bytes())
        .unwrap();
    let answers = String::from_utf8(ruby.wait_with_output().unwrap().stdout).unwrap();
    let mut answers = answers.lines();
    let mut wrong = Vec::new();
    for expression in EXPRESSIONS.lines() {
        for value in VALUES.lines() {
            let expected = answers.next().unwrap_or("nothing");
            let got = ours(expression, value);
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
