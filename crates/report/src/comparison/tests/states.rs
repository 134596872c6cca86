//! States of parts of a log give the page of the whole log.

use proptest::prelude::*;

use super::*;
use crate::comparison::Metric;

fn state(part: &str, settings: &Settings) -> Vec<u8> {
    let mut out = Vec::new();
    let input = Input::from_bytes("log", part.as_bytes().to_vec());
    Comparison::partial(vec![input], settings, &mut out).expect("a state");
    out
}

fn merge(states: &[&[u8]], settings: Settings) -> Result<Comparison, Error> {
    let inputs = states.iter().enumerate();
    let inputs = inputs.map(|(at, state)| Input::from_bytes(format!("{at}.state"), state.to_vec()));
    Comparison::read(
        inputs.collect(),
        Settings {
            is_merge: true,
            files: Vec::new(),
            ..settings
        },
    )
}

/// The lines of a text in parts of these numbers of lines, the last with what remains.
fn parts<'a>(text: &'a str, lines: &[usize]) -> Vec<&'a str> {
    let mut rest = text;
    let mut parts = Vec::new();
    for count in lines {
        let end = rest
            .match_indices('\n')
            .nth(count.saturating_sub(1))
            .map_or(rest.len(), |(at, _)| at + 1);
        let (part, after) = rest.split_at(if *count == 0 { 0 } else { end });
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

fn named() -> Settings {
    Settings {
        files: vec!["log".to_owned()],
        ..quick()
    }
}

#[test]
fn merged_states_give_the_page_of_the_whole_log() {
    let arms = [("slow-start", 0.0), ("rapid-start", -0.2), ("bbr", 0.1)];
    let apart = log(3, 400, &arms, 0.02);
    // Pairs, some of which are divided between parts.
    let mut paired = String::new();
    for (number, line) in log(4, 300, &[("slow-start", 0.0)], 0.02)
        .lines()
        .enumerate()
    {
        for arm in ["slow-start", "rapid-start"] {
            let line = line.replace("slow-start", arm);
            let ttlb = format!("\"ttlb\":{}", 100 + number * 7919 % 613);
            let line = if arm == "slow-start" {
                line
            } else {
                line.replace("\"ttlb\":null", &ttlb)
            };
            paired += &line;
            paired.push('\n');
        }
    }
    let variants = [
        (&apart, named()),
        (&paired, named()),
        (
            &apart,
            Settings {
                metric: Metric::of("client.ttfb"),
                by: Some("num-ptos".to_owned()),
                ..named()
            },
        ),
        (
            &apart,
            Settings {
                filter: Some("_[\"site\"] != \"europe\"".to_owned()),
                bins: Some(vec![0.0, 5e5, 1e9]),
                min_size: Some(300_000),
                ..named()
            },
        ),
    ];
    for (text, settings) in variants {
        let whole = read(text, settings.clone()).expect("a log");
        for lines in [&[][..], &[1], &[0, 7, 100], &[199, 2, 1, 50]] {
            let states: Vec<Vec<u8>> = parts(text, lines)
                .into_iter()
                .map(|part| state(part, &settings))
                .collect();
            let one_by_one: Vec<&[u8]> = states.iter().map(Vec::as_slice).collect();
            for states in [&one_by_one[..], &[&states.concat()]] {
                let merged = merge(states, settings.clone()).expect("states");
                assert_eq!(merged.html(), whole.html());
                assert_eq!(merged.json(), whole.json());
            }
        }
    }
}

#[test]
fn limits_of_bins_are_those_of_the_whole_log() {
    let text = log(5, 500, &[("a", 0.0), ("b", -0.1)], 0.0);
    for by in [None, Some("client.ttfb".to_owned())] {
        let of_logs = Settings {
            by,
            filter: Some("_[\"site\"] == \"africa\"".to_owned()),
            ..named()
        };
        let count = core::num::NonZeroUsize::new(4).expect("positive");
        let bins = |inputs, settings: &Settings| Comparison::bins(inputs, settings, count);
        let whole = vec![Input::from_bytes("log", text.as_bytes().to_vec())];
        let expected = bins(whole, &of_logs).expect("bins");
        let to_write = Settings {
            bins: Some(Vec::new()),
            ..of_logs.clone()
        };
        let states = parts(&text, &[120])
            .into_iter()
            .map(|part| Input::from_bytes("state", state(part, &to_write)));
        let to_read = Settings {
            is_merge: true,
            ..to_write.clone()
        };
        assert_eq!(bins(states.collect(), &to_read), Ok(expected));
    }
}

fn two_states() -> [Vec<u8>; 2] {
    let text = log(6, 60, &[("a", 0.0), ("b", -0.1)], 0.0);
    let parts = parts(&text, &[30]);
    [state(parts[0], &named()), state(parts[1], &named())]
}

#[test]
fn other_and_damaged_states_are_rejected_by_name() {
    let [first, second] = two_states();
    let refused = |second: &[u8], settings: Settings| {
        let error = merge(&[&first, second], settings).expect_err("an error");
        error.to_string()
    };
    let text = String::from_utf8(second.clone()).expect("UTF-8");
    let not_a_state = "1.state: not a state (expected the output of `lastbyte report --partial`)";
    for other in ["", "{\"arm\":\"a\"}\n", "[1,2]\n", "[]\n", "7\n"] {
        assert_eq!(refused(other.as_bytes(), quick()), not_a_state);
    }
    assert_eq!(
        refused(text.replacen(",3,", ",2,", 1).as_bytes(), quick()),
        "1.state: a state of version 2 (expected 3)"
    );
    let other = Settings {
        site: Some("nil".to_owned()),
        ..quick()
    };
    assert_eq!(
        refused(&second, other),
        "0.state: a state of another report (expected the same --arm-by, --bins, --by, --metric, --min-size, --resumed, --site and --where)"
    );
    // Cut off after any line, without a line, and with two lines exchanged.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let cut_off = "1.state: the state is cut off or was changed";
    for at in 1..lines.len() {
        assert_eq!(refused(lines[..at].concat().as_bytes(), quick()), cut_off);
    }
    for at in 1..lines.len() - 2 {
        let mut fewer = lines.clone();
        let line = fewer.remove(at);
        assert_eq!(refused(fewer.concat().as_bytes(), quick()), cut_off);
        fewer.insert(at + 1, line);
        assert_eq!(refused(fewer.concat().as_bytes(), quick()), cut_off);
    }
    // The first of the states as well.
    let error = merge(&[&first[..first.len() - 20], &second], quick()).expect_err("an error");
    assert!(error.to_string().starts_with("0.state: "), "{error}");
}

#[test]
fn a_log_with_an_error_has_no_state() {
    let input = Input::from_bytes("log", b"{\"arm\":\"a\",\"ttlb\":1}\n{".to_vec());
    let error = Comparison::partial(vec![input], &quick(), &mut Vec::new());
    assert!(matches!(error, Err(Error::Incomplete(_))), "{error:?}");
}

#[test]
fn a_part_of_a_log_is_merged_once() {
    let text = log(6, 60, &[("a", 0.0), ("b", -0.1)], 0.0);
    let [first, second] = two_states();
    let refused = |states: &[&[u8]]| merge(states, named()).expect_err("an error").to_string();
    let again = "its first 20 rows are those of 0.state (expected each part of the log once)";
    assert_eq!(
        refused(&[&first, &second, &first]),
        format!("2.state: {again}")
    );
    // Under another name, and with what was logged since then.
    let other = Settings {
        files: vec!["./log".to_owned()],
        ..named()
    };
    let start = parts(&text, &[30])[0];
    assert_eq!(
        refused(&[&first, &state(start, &other)]),
        format!("1.state: {again}")
    );
    assert_eq!(
        refused(&[&first, &state(&text, &named())]),
        format!("1.state: {again}")
    );
    // Also in the other order.
    assert_eq!(
        refused(&[&state(&text, &named()), &first]),
        format!("1.state: {again}")
    );
    // Parts without rows add nothing.
    let empty = state("", &named());
    merge(&[&empty, &first, &empty, &second], named()).expect("a report");
}

/// Few rows without a seed or a time may be the same by chance.
#[test]
fn few_rows_in_common_are_a_warning_unless_they_have_a_seed_or_a_time() {
    let rest = log(6, 400, &[("a", 0.0), ("b", -0.1)], 0.0);
    for (key, is_error) in [("x", false), ("seed", true), ("time", true)] {
        let rows = line(
            &json!({ "arm": "a", "ttlb": 12, "experiment": "test", key: 1_700_000_000_000_u64 }),
        );
        for rows in [&rows, &rows.repeat(19)] {
            let few = state(rows, &named());
            let many = state(&format!("{rows}{rest}"), &named());
            let first = match rows.lines().count() {
                1 => "its first row is that".to_owned(),
                _ => "its first 19 rows are those".to_owned(),
            };
            let wanted =
                format!("1.state: {first} of 0.state (expected each part of the log once)");
            for states in [[&few[..], &many], [&many, &few]] {
                match merge(&states, named()) {
                    Ok(comparison) => {
                        assert!(!is_error, "{key}");
                        assert_eq!(comparison.repeated(), Some(&*wanted));
                    }
                    Err(error) => {
                        assert!(is_error, "{key}: {error}");
                        assert_eq!(error.to_string(), wanted);
                    }
                }
            }
        }
        // Twenty are no chance.
        let rows = rows.repeat(20);
        let few = state(&rows, &named());
        let many = state(&format!("{rows}{rest}"), &named());
        for states in [[&few[..], &many], [&many, &few]] {
            let error = merge(&states, named()).expect_err("an error").to_string();
            assert!(
                error.starts_with("1.state: its first 20 rows are "),
                "{error}"
            );
        }
    }
    // States that share less than the shorter has are of different parts.
    let [one, other] = ["a", "b"].map(|arm| {
        let last = line(&json!({ "arm": arm, "ttlb": 7 }));
        state(
            &(line(&json!({ "arm": "a", "ttlb": 12 })) + &last),
            &named(),
        )
    });
    let comparison = merge(&[&one, &other], named()).expect("a report");
    assert_eq!(comparison.repeated(), None);
}

/// Of 400 rows and the first 200 of them, 160 are compared.
#[test]
fn the_order_of_a_log_and_its_earlier_copy_does_not_matter() {
    let text = log(6, 400, &[("a", 0.0), ("b", -0.1)], 0.0);
    let [half, whole] = [parts(&text, &[200])[0], &text].map(|text| state(text, &named()));
    for states in [[&half, &whole], [&whole, &half]] {
        let error = merge(&states.map(Vec::as_slice), named()).expect_err("an error");
        assert_eq!(
            error.to_string(),
            "1.state: its first 160 rows are those of 0.state (expected each part of the log once)"
        );
    }
}

#[test]
fn absent_keys_of_a_part_are_reported() {
    let text = log(6, 60, &[("a", 0.0), ("b", -0.1)], 0.0);
    let reported = |settings: Settings| {
        let input = Input::from_bytes("log", text.as_bytes().to_vec());
        let (refused, absent) =
            Comparison::partial(vec![input], &settings, &mut Vec::new()).expect("a state");
        let absent = absent.iter().map(ToString::to_string);
        (
            refused.map(|error| error.to_string()),
            absent.collect::<Vec<_>>(),
        )
    };
    let typo = "no row has `sitee`; did you mean `site`?".to_owned();
    let filter = |filter: &str| Settings {
        filter: Some(filter.to_owned()),
        ..quick()
    };
    assert_eq!(
        reported(filter("_[\"sitee\"] != \"x\"")),
        (None, vec![typo.clone()])
    );
    let (refused, absent) = reported(filter("_[\"sitee\"] == \"x\""));
    assert_eq!(absent, core::slice::from_ref(&typo));
    assert_eq!(
        refused,
        Some(format!("none of the 60 lines is left by --where; {typo}"))
    );
    let by = Settings {
        by: Some("sitee".to_owned()),
        ..quick()
    };
    let none = "none of the 60 lines has a value of `sitee`; did you mean `site`?".to_owned();
    assert_eq!(reported(by), (Some(none), Vec::new()));
    assert_eq!(reported(quick()), (None, Vec::new()));
}

/// The log is one: an expression that fails says which it is, with its keys that no line has, and there is no report of the lines before.
#[test]
fn an_expression_that_raises_is_named_with_its_absent_keys() {
    let text = log(6, 60, &[("a", 0.0), ("b", -0.1)], 0.0);
    let refused = |settings: Settings| match read(&text, settings).expect_err("an error") {
        Error::Expression { setting, reason } => (setting, reason),
        other => panic!("{other}"),
    };
    let (setting, reason) = refused(Settings {
        filter: Some("_[\"sitee\"] > 3".to_owned()),
        site: Some("_[\"site\"] + \"\"".to_owned()),
        ..quick()
    });
    assert_eq!(setting, Some("filter"));
    assert_eq!(
        reason,
        "`_[\"sitee\"] > 3`: undefined method '>' for nil (NoMethodError) at log:1, stage 0: `sitee` is nil; none of the rows read has `sitee`; did you mean `site`?"
    );
    // A key that only some lines lack.
    let (setting, reason) = refused(Settings {
        metric: Metric::of("_[\"anatomy.idle\"] / (_[\"seed\"] - 20)[0] ** \"\""),
        ..quick()
    });
    assert_eq!(setting, Some("metric"));
    assert!(reason.starts_with("`_[\"anatomy.idle\"] / "), "{reason}");
}

/// The columns of the report raise as well: then the log is what is wrong, and the lines before are reported.
#[test]
fn a_line_that_the_report_cannot_use_is_not_an_error_of_the_expressions() {
    let mut text = log(6, 300, &[("a", 0.0), ("b", -0.1)], 0.0);
    text += &line(&json!({ "arm": "a", "ttlb": 5, "site": "x", "client.ttfb": "n/a" }));
    let settings = [
        Settings {
            filter: Some("_[\"ttlb\"] != 7".to_owned()),
            ..quick()
        },
        Settings {
            arm: Some("_[\"arm\"] + \"\"".to_owned()),
            metric: Metric::of("_[\"ttlb\"] || 9"),
            site: Some("$FILENAME[0]".to_owned()),
            ..quick()
        },
    ];
    for settings in settings {
        let comparison = read(&text, settings.clone()).expect("a report");
        let trouble = comparison.trouble().expect("a trouble");
        assert!(trouble.contains("undefined method 'round'"), "{trouble}");
        assert!(trouble.contains("log:301, "), "{trouble}");
        let input = Input::from_bytes("log", text.as_bytes().to_vec());
        let error = Comparison::partial(vec![input], &settings, &mut Vec::new());
        assert!(matches!(error, Err(Error::Incomplete(_))), "{error:?}");
    }
    // An expression that raises on this line is the cause.
    let settings = Settings {
        filter: Some("_[\"client.ttfb\"].nil? || _[\"client.ttfb\"] > 0".to_owned()),
        site: Some("_[\"client.ttfb\"].round".to_owned()),
        ..quick()
    };
    let text = line(&json!({ "arm": "a", "ttlb": 5, "client.ttfb": "n/a" }));
    match read(&text, settings).expect_err("an error") {
        Error::Expression { setting, reason } => {
            assert_eq!(setting, Some("filter"));
            assert!(reason.contains("at log:1, "), "{reason}");
        }
        other => panic!("{other}"),
    }
}

proptest! {
    #[test]
    fn any_changed_state_is_rejected(at in 0..10_000_usize, byte in any::<u8>()) {
        let [first, mut second] = two_states();
        let at = at % second.len();
        prop_assume!(second[at] != byte);
        // Blanks change nothing, nor does the case of the letter of an exponent.
        prop_assume!(!second[at].is_ascii_whitespace() && !byte.is_ascii_whitespace());
        let is_exponent = second[at] == b'e' && at > 0 && second[at - 1].is_ascii_digit();
        prop_assume!(!is_exponent || byte != b'E');
        second[at] = byte;
        prop_assert!(merge(&[&first, &second], quick()).is_err());
    }
}
