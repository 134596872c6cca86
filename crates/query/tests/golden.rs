//! What jrf answered to 557 queries, answered again through the library; 19 use what is refused by name. What the command line alone decides (`-o xml`,
//! a missing query) is left to `run-golden`, and counted here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Format, Input, Options, Query};
use serde_json::Value;
use std::io::{self, Write};

const GOLDEN: &str = include_str!("golden.ndjson");

/// The answer of the library, as a command would give it.
struct Answer {
    out: String,
    errors: String,
    exit: i64,
}

/// `None` when the case is about the command line.
fn options(case: &Value) -> Option<Options> {
    let mut options = Options::default();
    let words: Vec<&str> = case["args"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let format = match word {
            "-o" | "--output" => words.next()?,
            "--lax" => {
                options.lax = true;
                continue;
            }
            "-v" => {
                options.verbose = true;
                continue;
            }
            "-P" => {
                words.next()?.parse::<usize>().ok()?;
                continue;
            }
            "--no-jit" => continue,
            "--atomic-write-bytes" => {
                options.write_bytes = words.next()?.parse().ok()?;
                continue;
            }
            _ => return None,
        };
        options.format = match format {
            "json" => Format::Json,
            "pretty" => Format::Pretty,
            "tsv" => Format::Tsv,
            _ => return None,
        };
    }
    Some(options)
}

fn packed(name: &str, text: &str) -> Vec<u8> {
    if std::path::Path::new(name)
        .extension()
        .is_none_or(|it| it != "gz")
    {
        return text.as_bytes().to_vec();
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn inputs(case: &Value) -> Vec<Input> {
    if let Some(files) = case["files"].as_object() {
        let operands: Vec<String> = match case["operands"].as_array() {
            Some(operands) => operands
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            None => files.keys().cloned().collect(),
        };
        return operands
            .into_iter()
            .map(|name| match files.get(&name).and_then(Value::as_str) {
                Some(text) => Input::from_bytes(name.clone(), packed(&name, text)),
                None => Input::new(name, || Err(io::Error::from(io::ErrorKind::NotFound))),
            })
            .collect();
    }
    let bytes = match case["stdin_base64"].as_str() {
        // The one case of this kind: a String that is not UTF-8.
        Some("Iv8iCg==") => b"\"\xff\"\n".to_vec(),
        Some(other) => panic!("teach this test base64 for {other}"),
        None => case["stdin"]
            .as_str()
            .unwrap_or_default()
            .as_bytes()
            .to_vec(),
    };
    vec![Input::from_bytes("<stdin>", bytes)]
}

fn answer(case: &Value) -> Option<Answer> {
    let options = options(case)?;
    let query = case["query"].as_str()?;
    // Without `--` before it, such a query is a flag to the command.
    if query.starts_with('-') {
        return None;
    }
    let helpers: Vec<(String, String)> = case["helpers"]
        .as_str()
        .map(|text| ("helpers.rb".to_owned(), text.to_owned()))
        .into_iter()
        .collect();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let good = match Query::compile(query, &helpers, options) {
        Ok(query) => query.run(inputs(case), &mut out, &mut errors),
        Err(wrong) => {
            errors = wrong.to_string().into_bytes();
            false
        }
    };
    Some(Answer {
        out: String::from_utf8(out).unwrap(),
        errors: String::from_utf8(errors).unwrap(),
        exit: i64::from(!good),
    })
}

#[test]
fn every_golden_case_is_identical() {
    let mut wrong = Vec::new();
    let (mut seen, mut refused, mut of_the_command_line) = (0, 0, Vec::new());
    for line in GOLDEN.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["name"].as_str().unwrap().to_owned();
        let Some(answer) = answer(&case) else {
            of_the_command_line.push(name);
            continue;
        };
        seen += 1;
        if case["refused"] == true {
            // Ruby answers; we say that we do not, and do not answer otherwise.
            refused += 1;
            if answer.exit != 1 || !answer.errors.contains("not supported") {
                wrong.push(format!("{name}: {} is not refused", case["query"]));
            }
            continue;
        }
        let is =
            |expected: &Value| expected["stdout"] == *answer.out && expected["exit"] == answer.exit;
        let also = case["also"]
            .as_array()
            .is_some_and(|all| all.iter().any(is));
        let reported = case["stderr_contains"]
            .as_str()
            .is_none_or(|text| answer.errors.contains(text));
        if !(also || is(&case) && reported) {
            wrong.push(format!(
                "{name}: {}\n  {:?} {:?}\n  wanted {}",
                case["query"], answer.out, answer.errors, case["stdout"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!((seen + of_the_command_line.len(), refused), (557, 19));
    assert!(of_the_command_line.len() <= 8, "{of_the_command_line:?}");
}
