//! Lines that are in the logs twice.

use super::*;

fn read_all(files: &[(&str, &str)]) -> Result<Comparison, Error> {
    let inputs = files
        .iter()
        .map(|(name, text)| Input::from_bytes(*name, text.as_bytes().to_vec()));
    Comparison::read(inputs.collect(), quick())
}

/// Lines of a production server.
fn production(lines: u64) -> String {
    let of = |number: u64| {
        line(&json!({
            "module": "lastbyte", "time": 1_773_026_516_280_u64 + number, "conn_id": number, "worker": number % 4,
            "arm": if number % 7 < 3 { "b" } else { "a" }, "ttlb": 100 + number * 37 % 90, "content_length": 300_000,
        }))
    };
    (0..lines).map(of).collect()
}

#[test]
fn a_copy_of_a_log_is_an_error() {
    let text = production(600);
    let expected = "600 of 1200 lines are copies of lines before them; the first is in a.ndjson and in b.ndjson (expected each connection once): \
                    give each log once, or remove the copies";
    let error = read_all(&[("a.ndjson", &text), ("b.ndjson", &text)]).expect_err("an error");
    assert_eq!(error.to_string(), expected);
    // In any order, and within a file.
    let reversed: Vec<&str> = text.split_inclusive('\n').rev().collect();
    let reversed = reversed.concat();
    let error = read_all(&[("a.ndjson", &text), ("b.ndjson", &reversed)]).expect_err("an error");
    assert_eq!(error.to_string(), expected);
    let error = read_all(&[("a.ndjson", &(text.clone() + &text))]).expect_err("an error");
    assert!(
        error.to_string().contains("the first is twice in a.ndjson"),
        "{error}"
    );
    // Of simulations, whose lines have a seed.
    let text = log(3, 400, &ARMS, 0.0);
    let error = read_all(&[("a", &text), ("b", &text)]).expect_err("an error");
    assert!(matches!(error, Error::Copies(_)), "{error}");
}

#[test]
fn a_few_copies_are_the_first_warning() {
    let text = production(600);
    let few: Vec<&str> = text.split_inclusive('\n').take(4).collect();
    let few = few.concat();
    let comparison = read_all(&[("a.ndjson", &text), ("b.ndjson", &few)]).expect("a report");
    assert!(comparison.has_copies());
    assert_eq!(
        comparison.warnings()[0],
        "4 of 604 lines are copies of lines before them; the first is in a.ndjson and in b.ndjson. Their connections count twice, which makes \
         intervals too narrow."
    );
    assert!(comparison.html().contains("4 of 604 lines are copies"));
}

/// The name of its file is not of a line, whatever it is used for.
#[test]
fn a_copy_under_another_name_is_one_where_the_name_counts() {
    let text = production(600);
    let anonymous = text.replace("\"conn_id\"", "\"none\"");
    let name = || Some("$FILENAME".to_owned());
    let metric = crate::comparison::Metric::of("$FILENAME == 'a' ? 1 : 2");
    let by_name = [
        Settings {
            site: name(),
            ..quick()
        },
        Settings {
            by: name(),
            ..quick()
        },
        Settings {
            arm: name(),
            ..quick()
        },
        Settings { metric, ..quick() },
    ];
    for settings in by_name {
        for text in [&text, &anonymous] {
            let inputs = ["a", "b"].map(|name| Input::from_bytes(name, text.as_bytes().to_vec()));
            let error = Comparison::read(inputs.into(), settings.clone()).expect_err("an error");
            assert!(
                error
                    .to_string()
                    .starts_with("600 of 1200 lines are copies"),
                "{error}"
            );
        }
    }
}

/// Two runs of one simulation may have the same outcome.
#[test]
fn connections_of_one_seed_in_arms_by_file_are_pairs() {
    let text = log(3, 400, &ARMS[..1], 0.0);
    let inputs = ["a", "b"].map(|name| Input::from_bytes(name, text.as_bytes().to_vec()));
    let settings = Settings {
        arm: Some("$FILENAME".to_owned()),
        baseline: Some("a".to_owned()),
        ..quick()
    };
    let comparison = Comparison::read(inputs.into(), settings).expect("a report");
    assert!(!comparison.has_copies());
}

/// Connections of other servers, workers and times may have the same number, and lines without an identity the same values.
#[test]
fn equal_values_of_other_connections_are_no_copies() {
    let text = production(600);
    for (from, to) in [
        ("\"worker\":", "\"worker\":1"),
        ("\"time\":17", "\"time\":18"),
        ("\"conn_id\":", "\"conn_id\":9"),
    ] {
        let other = text.replace(from, to);
        let comparison = read_all(&[("a", &text), ("b", &other)]).expect("a report");
        assert!(!comparison.has_copies(), "{from}");
    }
    let anonymous = |from: u64| -> String {
        let of = |number: u64| {
            line(
                &json!({ "arm": if number.is_multiple_of(3) { "b" } else { "a" }, "ttlb": number % 10 }),
            )
        };
        (from..from + 300).map(of).collect()
    };
    let comparison = read_all(&[("a", &anonymous(0)), ("b", &anonymous(1))]).expect("a report");
    assert!(!comparison.has_copies());
    // The same lines in the same order are a copy.
    let error = read_all(&[("a", &anonymous(0)), ("b", &anonymous(0))]).expect_err("an error");
    assert!(
        error.to_string().starts_with("300 of 600 lines are copies"),
        "{error}"
    );
}

#[test]
fn states_of_the_same_lines_are_an_error() {
    let text = production(600);
    let (half, _) = text.split_at(text.len() / 2);
    let cut = half.rfind('\n').expect("lines") + 1;
    // One part begins within the other.
    let parts = [&text[..cut], &text[text.find('\n').expect("a line") + 1..]];
    let states = parts
        .iter()
        .zip(["a.state", "b.state"])
        .map(|(part, name)| {
            let mut out = Vec::new();
            let input = Input::from_bytes("log", part.as_bytes().to_vec());
            Comparison::partial(vec![input], &quick(), &mut out).expect("a state");
            Input::from_bytes(name, out)
        });
    let settings = Settings {
        is_merge: true,
        ..quick()
    };
    let error = Comparison::read(states.collect(), settings).expect_err("an error");
    assert!(
        error
            .to_string()
            .contains("the first is in a.state and in b.state"),
        "{error}"
    );
}

/// Memory is bounded: of very many lines, a sample is compared.
#[test]
fn copies_among_very_many_lines_are_estimated() {
    use crate::comparison::{copies::CopyFinder, queries::Column};
    use lastbyte_query::Value as Cell;
    let mut finder = CopyFinder::default();
    let mut row = vec![Cell::Null; Column::Parts as usize + 1];
    for file in ["a", "b"] {
        for seed in 0..1_000_000 {
            row[Column::Seed as usize] = Cell::Integer(seed);
            finder.add(file, &row);
        }
        assert!(finder.kept() <= 1 << 18, "{}", finder.kept());
    }
    let copies = finder.finish().expect("copies");
    assert!(copies.is_estimate);
    assert!((980_000..1_020_000).contains(&copies.lines), "{copies:?}");
    assert!(
        copies.sentence().starts_with("about "),
        "{}",
        copies.sentence()
    );
}
