use std::fmt::Write as _;

use super::*;

fn settings() -> Settings {
    Settings {
        baseline: None,
        shares: Some(Vec::new()),
        filter: None,
        arm: None,
        metric: "ms".to_owned(),
        looks: 1,
        seed: 1,
        replicates: 300,
        threads: 1,
    }
}

/// A line of an access log.
fn line(
    log: &mut String,
    (arm, connection): (&str, usize),
    ms: f64,
    (status, complete): (u16, bool),
) {
    writeln!(
        log,
        "{{\"type\":\"request\",\"arm\":\"{arm}\",\"ms\":{ms},\"status\":{status},\"complete\":{complete},\
         \"remote\":\"::1\",\"port\":{connection},\"worker\":0,\"conn_id\":{connection},\"http\":\"HTTP/3\"}}"
    )
    .expect("a string");
}

fn read(log: &str, settings: &Settings) -> Result<Requests, Error> {
    Requests::read(
        vec![Input::from_bytes("log", log.as_bytes().to_vec())],
        settings,
    )
}

/// Each connection has one time for all of its requests, so that its requests are no more evidence than one.
fn clustered(connections: usize, requests: usize) -> String {
    let mut random = Random::new(7, 7);
    let mut log = String::new();
    for connection in 0..connections {
        let arm = ["baseline", "new"][connection % 2];
        let ms = 100.0 * (1.0 + random.unit());
        for _ in 0..requests {
            line(&mut log, (arm, connection), ms, (200, true));
        }
    }
    log
}

#[test]
fn repeated_requests_of_a_connection_do_not_narrow_intervals() {
    let widths = [1, 20].map(|requests| {
        let read = read(&clustered(400, requests), &settings()).expect("a comparison");
        assert_eq!(read.arms[1].requests, 200 * requests);
        assert_eq!(read.arms[1].connections, 200);
        let median = read.arms[1].changes[3].expect("a change");
        median.interval.1 - median.interval.0
    });
    let ratio = widths[1] / widths[0];
    assert!((0.8..1.25).contains(&ratio), "{widths:?}");
}

#[test]
fn intervals_contain_no_change_of_equal_arms_and_exclude_it_of_different_ones() {
    let equal = read(&clustered(400, 3), &settings()).expect("a comparison");
    assert!(
        equal.arms[1]
            .changes
            .iter()
            .flatten()
            .all(|one| !one.excludes_zero())
    );
    assert_eq!(equal.arms[1].success_difference, None, "nothing failed");
    let mut log = String::new();
    for connection in 0..400 {
        let (arm, factor) = [("baseline", 1.0), ("new", 0.5)][connection % 2];
        for request in 0..10 {
            let ms = factor * (100.0 + ((connection * 7 + request) % 50) as f64);
            // Of the other arm, every tenth fails in one of three ways.
            let outcome = [(503, true), (200, false), (404, true)][connection / 2 % 3];
            let fails = arm == "new" && request == 0;
            line(
                &mut log,
                (arm, connection),
                ms,
                if fails { outcome } else { (200, true) },
            );
        }
    }
    let read = read(&log, &settings()).expect("a comparison");
    let [base, new] = &read.arms[..] else {
        panic!()
    };
    assert_eq!((base.name.as_str(), base.success), ("baseline", 1.0));
    let median = new.changes[3].expect("a change");
    assert!(
        median.interval.1 < -0.4 && median.interval.0 > -0.6,
        "{median:?}"
    );
    let difference = new.success_difference.expect("a difference");
    // 404 is the client's.
    assert!(
        (difference.value + 0.1 * 2.0 / 3.0).abs() < 0.002,
        "{difference:?}"
    );
    assert!(difference.excludes_zero(), "{difference:?}");
}

#[test]
fn requests_without_arm_are_counted_and_other_arms_are_expressions() {
    let mut log = clustered(100, 1);
    log.push_str(
        "{\"type\":\"request\",\"ms\":1,\"http\":\"HTTP/2\"}\n{\"type\":\"connection\"}\n",
    );
    let read_log = read(&log, &settings()).expect("a comparison");
    assert_eq!((read_log.arms.len(), read_log.left_out), (2, 1));
    let by_version = Settings {
        arm: Some("_[\"http\"]".to_owned()),
        baseline: Some("HTTP/2".to_owned()),
        ..settings()
    };
    let read_log = read(&log, &by_version).expect("a comparison");
    assert_eq!(read_log.arms[0].name, "HTTP/2");
    assert_eq!(read_log.arms[0].changes, [None; SHARES.len()]);
    // One connection has no interval.
    assert_eq!(read_log.arms[1].changes, [None; SHARES.len()]);
    assert!(read_log.ratio_fails());
}

#[test]
fn requests_of_one_arm_without_a_value_are_told() {
    let log = clustered(400, 10);
    let of_slow = |log: &str, without: &str| {
        let lines = log.lines().map(|line| {
            let is_slow = line.contains("\"ms\":18") || line.contains("\"ms\":19");
            if is_slow && line.contains(without) {
                line.replace("\"ms\":1", "\"ms\":null,\"was\":1") + "\n"
            } else {
                line.to_owned() + "\n"
            }
        });
        read(&lines.collect::<String>(), &settings()).expect("a comparison")
    };
    let [new, both] = ["\"new\"", "arm"].map(|without| of_slow(&log, without));
    let lacking: Vec<(&str, bool)> = new
        .without_value
        .iter()
        .map(|(arm, count)| (arm.as_str(), *count > 100))
        .collect();
    assert_eq!((lacking, new.left_out), (vec![("new", true)], 0));
    assert!(new.values_differ);
    assert_eq!(both.without_value.len(), 2);
}

#[test]
fn logs_that_cannot_be_compared_are_errors() {
    let log = clustered(10, 1);
    let failed = |log: &str, settings: &Settings| read(log, settings).expect_err("no comparison");
    assert_eq!(failed("", &settings()), Error::Empty(0, Vec::new()));
    let without_arm = "{\"type\":\"request\",\"ms\":1}\n";
    let nothing = failed(without_arm, &settings());
    assert!(matches!(nothing, Error::Empty(1, _)), "{nothing:?}");
    let unknown = Settings {
        baseline: Some("old".to_owned()),
        ..settings()
    };
    assert!(matches!(failed(&log, &unknown), Error::UnknownArm(..)));
    let invalid = Settings {
        filter: Some("a b c".to_owned()),
        ..settings()
    };
    assert!(matches!(failed(&log, &invalid), Error::Expression(_)));
    let stages = Settings {
        arm: Some("count()".to_owned()),
        ..settings()
    };
    assert!(matches!(failed(&log, &stages), Error::Expression(_)));
    let many = clustered(200, 1);
    let by_connection = Settings {
        arm: Some("_[\"conn_id\"]".to_owned()),
        ..settings()
    };
    assert_eq!(failed(&many, &by_connection), Error::TooManyArms);
    assert!(matches!(
        failed("{\"type\":", &settings()),
        Error::Unreadable(_)
    ));
}

#[test]
fn a_key_that_no_line_has_is_named() {
    let log = clustered(10, 1);
    let text = |settings: &Settings| match read(&log, settings) {
        Ok(read) => read.absent.iter().map(ToString::to_string).collect(),
        Err(error) => error.to_string(),
    };
    for (metric, filter, expected) in [
        ("mss", None, "no row has `mss`; did you mean `ms`?"),
        (
            "ms",
            Some("_[\"statu\"] == 200"),
            "no row has `statu`; did you mean `status`?",
        ),
        (
            "ms",
            Some("_[\"statu\"] != 200"),
            "no row has `statu`; did you mean `status`?",
        ),
        ("ms", Some("_[\"status\"] == 200"), ""),
    ] {
        let settings = Settings {
            metric: metric.to_owned(),
            filter: filter.map(str::to_owned),
            ..settings()
        };
        let text: String = text(&settings);
        assert!(text.ends_with(expected), "{metric} {filter:?}: {text}");
        assert_eq!(text.is_empty(), expected.is_empty(), "{text}");
    }
}

#[test]
fn a_time_that_cannot_be_one_is_an_error() {
    for wrong in ["-5", "\"x\"", "true"] {
        let mut log = clustered(10, 1);
        writeln!(
            log,
            "{{\"type\":\"request\",\"arm\":\"new\",\"ms\":{wrong}}}"
        )
        .expect("a string");
        let error = read(&log, &settings()).expect_err("no comparison");
        assert_eq!(error, Error::Time(wrong.to_owned()));
    }
}

#[test]
fn requests_of_several_experiments_are_not_pooled() {
    let log = clustered(100, 1);
    let of = |name: &str| log.replace("\"arm\"", &format!("\"experiment\":\"{name}\",\"arm\""));
    assert!(read(&of("one"), &settings()).is_ok());
    let by_version = Settings {
        arm: Some("_[\"arm\"]".to_owned()),
        ..settings()
    };
    for (other, is_mixed_by_version) in [(of("two"), true), (log.clone(), false)] {
        let mixed = of("one") + &other;
        let error = read(&mixed, &settings()).expect_err("no comparison");
        assert!(matches!(error, Error::SeveralExperiments(_)), "{error}");
        // Lines over TCP have no experiment.
        let by_version = read(&mixed, &by_version);
        assert_eq!(by_version.is_err(), is_mixed_by_version);
    }
}

#[test]
fn a_log_that_is_given_twice_is_an_error() {
    let mut log = String::new();
    for (at, text) in clustered(4000, 2).lines().enumerate() {
        // The two requests of a connection are alike, as those of a load generator may be.
        let time = format!("{{\"time\":{},", at / 2 * 10);
        log += &text.replacen('{', &time, 1);
        log.push('\n');
    }
    assert!(read(&log, &settings()).is_ok());
    let twice = log.clone() + &log;
    let error = read(&twice, &settings()).expect_err("no comparison");
    assert!(matches!(error, Error::Copies(40..60)), "{error}");
    let many = &log[..log.len() / 20];
    let many = &many[..many.rfind('\n').map_or(0, |at| at + 1)];
    assert!(matches!(
        read(&(log.clone() + many), &settings()),
        Err(Error::Copies(_))
    ));
}

#[test]
fn intervals_of_several_looks_are_wider() {
    let log = clustered(400, 1);
    let width = |looks| {
        let read = read(
            &log,
            &Settings {
                looks,
                ..settings()
            },
        )
        .expect("a comparison");
        let (low, high) = read.arms[1].changes[3].expect("a change").interval;
        high - low
    };
    assert!(width(10) > 1.1 * width(1));
}

#[test]
fn the_same_seed_gives_the_same_intervals() {
    let log = clustered(100, 4);
    let text = || format!("{:?}", read(&log, &settings()));
    assert_eq!(text(), text());
}
