use lastbyte_units::SplitMix64;

use super::{super::interval::tests::noisy, *};

/// Rounds on a machine that becomes slower, and whose speed differs from round to round, of servers with this ratio of rates.
fn rounds(seed: u64, count: usize, ratio: f64) -> Rounds {
    let mut random = SplitMix64::new(seed);
    let turn = |rate: f64, failed| Turn {
        rate,
        latency: [Ok(1e9 / rate), Ok(3e9 / rate)],
        done: 2000,
        succeeded: 2000,
        failed,
        retried: 0,
    };
    let done = (0..count).map(|number| {
        let machine = noisy(&mut random, 5000.0, 0.3) / (1.0 + number as f64);
        let turns = [ratio, 1.0].map(|ratio| noisy(&mut random, machine * ratio, 0.02));
        Round {
            first: number % 2,
            turns: [turn(turns[0], 0), turn(turns[1], 3)],
        }
    });
    Rounds {
        planned: count,
        done: done.collect(),
        turn: "1s".to_owned(),
        version: "HTTP/3".to_owned(),
        urls: ["https://a.example/<1>", "https://b.example/"].map(str::to_owned),
        ..Rounds::default()
    }
}

/// Both are as slow as the machine is at the time, so the ratio is known better than either.
#[test]
fn a_ratio_has_an_interval_over_rounds() {
    let text = rounds(1, 8, 1.2).text();
    for (name, expected) in [
        ("requests/s", "1.2"),
        ("latency P50", "0.8"),
        ("latency P99", "0.8"),
    ] {
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .expect("a line");
        assert!(line.ends_with(": significant"), "{text}");
        let ratio = line
            .split_whitespace()
            .find(|word| word.starts_with(expected));
        assert!(ratio.is_some(), "{text}");
    }
    assert!(
        text.contains("failed                   0          24\n"),
        "{text}"
    );
    assert!(
        !text.contains("note:") && !text.contains("warning:"),
        "{text}"
    );
}

/// Of 400 comparisons of a server with itself, at most 5 % have a significant line.
#[test]
fn equal_servers_do_not_differ_significantly() {
    let is_wrong = |seed| {
        let lines = rounds(seed, 6, 1.0).lines();
        let significant = |line: &Line| line.verdict == Some(Verdict::Significant);
        lines.iter().any(significant)
    };
    let found = (0..400).filter(|seed| is_wrong(*seed)).count();
    // 20 are expected; three standard deviations are 13.
    assert!(found <= 33, "{found}");
}

/// A value that one round lacks is no ratio of the others: the round may lack it because a server was slow.
#[test]
fn a_round_without_a_value_is_no_comparison() {
    let mut rounds = rounds(1, 4, 1.0);
    rounds.done[2].turns[1].latency[1] = Err("needs 1000 requests in each turn: 354".to_owned());
    let text = rounds.text();
    let why =
        "note: not compared: latency P99 needs 1000 requests in each turn: 354 (round 3, against)";
    assert!(text.contains(why), "{text}");
    let json = rounds.json();
    assert_eq!(json["ratios"]["latency_p99"], Value::Null);
    assert_eq!(json["rounds"][2]["against"]["p99_us"], Value::Null);
    assert!(json["ratios"]["latency_p50"]["ratio"].is_number());
    rounds.done[0].turns[0].rate = 0.0;
    let text = rounds.text();
    assert!(
        text.contains("not compared: requests/s is 0 (round 1, URL)"),
        "{text}"
    );
}

#[test]
fn an_interrupted_run_says_how_many_rounds_it_has() {
    for (count, notes) in [(0, 1), (1, 1), (3, 0)] {
        let mut rounds = rounds(1, count, 1.0);
        (rounds.planned, rounds.is_interrupted) = (10, true);
        let text = rounds.text();
        let expected = format!("warning: interrupted after {count} of 10 rounds");
        assert!(text.contains(&expected), "{text}");
        assert_eq!(text.matches("no interval").count(), notes, "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        let page = rounds.page().html();
        assert!(page.contains(&format!("interrupted after {count} of 10 rounds")));
    }
}

#[test]
fn the_page_shows_the_ratios_and_each_round() {
    let page = rounds(1, 4, 1.2).page().html();
    assert!(page.contains("https://a.example/&lt;1&gt;"), "escaped");
    assert_eq!(page.matches("<svg ").count(), 2);
    // Ratios as tiles, and two turns in each round.
    for text in [
        "requests/s ratio",
        "latency P50 ratio",
        "latency P99 ratio",
        "failed requests",
        "0 : 12",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page.matches("<tr><th>").count(), 1 + 8, "with the header");
}

#[test]
fn missing_responses_are_slower_than_all_others() {
    let mut latency = Histogram::default();
    (1..=1000).for_each(|value| latency.record(value));
    assert_eq!(percentile(&latency, 0, 0.5), Ok(500.0));
    assert_eq!(percentile(&latency, 0, 0.99), Ok(990.0));
    assert_eq!(percentile(&latency, 1000, 0.5), Ok(1000.0));
    assert!(percentile(&latency, 1001, 0.5).is_err_and(|why| why.contains("1001 of 2001")));
    assert!(percentile(&Histogram::default(), 0, 0.5).is_err_and(|why| why.contains("needs 20")));
    assert!(percentile(&Histogram::default(), 100, 0.5).is_err());
}

/// One round in which a server did not respond, or answered with errors, is left out by name. The others are compared.
#[test]
fn a_round_that_failed_is_left_out_and_named() {
    for (done, failed, why) in [
        (0, 0, "against had no response"),
        (2000, 1900, "against: 1900 of 2000 requests failed"),
    ] {
        let mut rounds = rounds(1, 6, 1.2);
        let turn = &mut rounds.done[3].turns[1];
        (turn.done, turn.succeeded, turn.failed) = (done, done - failed, failed);
        turn.rate = done as f64;
        let text = rounds.text();
        let warning = format!("warning: round 4 is not compared: {why}\n");
        assert!(text.starts_with(&warning), "{text}");
        assert!(
            text.contains(": significant\n") && !text.contains("not compared: requests/s"),
            "{text}"
        );
        let json = rounds.json();
        assert_eq!(json["rounds"][3]["failure"], *why);
        assert_eq!(json["rounds"][2]["failure"], Value::Null);
        let ratio = json["ratios"]["requests_per_second"]["ratio"].as_f64();
        assert!(
            ratio.is_some_and(|ratio| (1.1..1.3).contains(&ratio)),
            "{json:#}"
        );
        assert!(rounds.page().html().contains("round 4 is not compared"));
    }
}

/// A server that answers most requests with errors is fast without a merit.
#[test]
fn servers_that_mostly_fail_have_no_ratios() {
    let mut rounds = rounds(1, 6, 1.2);
    for round in &mut rounds.done[..3] {
        round.turns[0].failed = 1999;
        round.turns[0].succeeded = 1;
    }
    let text = rounds.text();
    assert!(
        text.starts_with("warning: round 1 is not compared: URL: 1999 of 2000 requests failed\n"),
        "{text}"
    );
    assert!(
        text.contains("warning: 3 of 6 rounds failed, so there are no ratios\n"),
        "{text}"
    );
    assert!(!text.contains("significant"), "{text}");
    assert_eq!(rounds.json()["ratios"]["requests_per_second"], Value::Null);
}

/// Two ratios that are alike by chance would have a narrow interval.
#[test]
fn two_rounds_have_no_interval() {
    let rounds = rounds(1, 2, 1.2);
    let text = rounds.text();
    assert!(!text.contains("significant"), "{text}");
    assert!(
        text.contains("note: 2 rounds: no interval (expected 3 or more)\n"),
        "{text}"
    );
    assert_eq!(rounds.json()["ratios"]["latency_p50"]["low"], Value::Null);
}
