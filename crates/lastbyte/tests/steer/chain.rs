//! The sums of the decisions: whatever is edited, removed, added or moved is named, also in files whose sums were computed again.

use std::{fmt::Write as _, fs, path::Path};

use aws_lc_rs::digest::{SHA256, digest};

use super::{FIRST, Ramp, serving};

/// Where the sum of a line begins.
const SUM: &str = ",\"sum\":\"";

/// The lines of looks, each with the sum that follows from the line before it. A part of a line stays.
fn chained(text: &str) -> String {
    let mut before = String::new();
    let lines = text.split_inclusive('\n').map(|line| {
        if !line.ends_with('\n') {
            return line.to_owned();
        }
        let (look, _) = line.rsplit_once(SUM).unwrap_or_default();
        let digest = digest(&SHA256, format!("{before}{look}}}").as_bytes());
        before.clear();
        for byte in digest.as_ref() {
            let _ = write!(before, "{byte:02x}");
        }
        format!("{look}{SUM}{before}\"}}\n")
    });
    lines.collect()
}

fn sums(text: &str) -> Vec<&str> {
    let sums = text.lines().filter_map(|line| line.rsplit_once(SUM));
    sums.map(|(_, sum)| sum.trim_end_matches("\"}")).collect()
}

/// Changes the decisions of a directory, with their sums and that of the experiment file, unless they are no chain.
pub(super) fn edit(state: &Path, edit: impl FnOnce(&str) -> String) {
    let read = |name: &str| fs::read_to_string(state.join(name));
    let Ok(before) = read("decisions.ndjson") else {
        return;
    };
    if chained(&before) != before {
        return;
    }
    let after = chained(&edit(&before));
    fs::write(state.join("decisions.ndjson"), &after).expect("room");
    if let Ok(mut experiment) = read("experiment.toml") {
        for (before, after) in sums(&before).into_iter().zip(sums(&after)) {
            experiment = experiment.replace(before, after);
        }
        fs::write(state.join("experiment.toml"), experiment).expect("room");
    }
}

/// Where the keys and the values of a line of JSON are, but for objects and arrays.
fn tokens(line: &str) -> Vec<std::ops::Range<usize>> {
    let (bytes, mut tokens, mut at) = (line.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        at += 1;
        if bytes[start] == b'"' {
            while bytes[at] != b'"' {
                at += 1 + usize::from(bytes[at] == b'\\');
            }
            at += 1;
        } else if !b"{}[],:".contains(&bytes[start]) {
            while !b"{}[],:".contains(&bytes[at]) {
                at += 1;
            }
        } else {
            continue;
        }
        tokens.push(start..at);
    }
    tokens
}

/// Another value in place of one, of the same type where that is not `null`.
fn changed(token: &str, is_large: bool) -> String {
    let rest = &token[..token.len() - 1];
    match token {
        "null" => "0.125".to_owned(),
        "true" => "false".to_owned(),
        text if text.starts_with('"') => format!("{rest}x\""),
        _ if is_large => u64::MAX.to_string(),
        // The last digit, which may be behind a point.
        number if number.ends_with('7') => format!("{rest}6"),
        _ => format!("{rest}7"),
    }
}

/// A ramp with looks by logs and by states, one without lines that were lost, a step, and a stop. Its log has all lines that are left.
fn varied(name: &str) -> Ramp {
    let mut ramp = Ramp::new(name);
    ramp.hour(FIRST, 0.1, 0.85);
    let left = ramp.log.split_off(ramp.log.find('\n').expect("lines") + 1);
    let lost = ramp.log.replace("\"fra\"", "\"gru\"");
    fs::write(ramp.folder.join("lost"), lost).expect("room");
    ramp.log = left;
    ramp.write();
    let steer = |ramp: &Ramp, arguments: &[&str]| {
        let output = ramp.steer(arguments);
        assert!(output.status.success(), "{}", serving::stderr(&output));
    };
    steer(&ramp, &["log", "lost"]);
    fs::write(ramp.folder.join("state/lost"), "a disk died").expect("room");
    ramp.hour(FIRST, 0.1, 0.85);
    steer(&ramp, &["log"]);
    ramp.hour(FIRST + 1, 0.5, 0.85);
    let partial = ["steer", "--partial", "log", "--plan", "ramp.toml"];
    let state = serving::lastbyte(&ramp.folder, &partial);
    fs::write(ramp.folder.join("log.state"), state.stdout).expect("room");
    steer(&ramp, &["--merge", "log.state"]);
    fs::write(ramp.folder.join("state/stop"), "enough").expect("room");
    steer(&ramp, &[]);
    fs::remove_file(ramp.folder.join("state/stop")).expect("it is there");
    let actions = ramp.decisions();
    let actions: Vec<_> = actions.iter().map(|look| look["action"].as_str()).collect();
    let expected = ["start", "hold", "ramp", "hold", "stopped"];
    assert_eq!(actions, expected.map(Some));
    ramp
}

/// Whether the decisions are verified, and what is printed otherwise.
fn verified(ramp: &Ramp) -> Result<(), String> {
    let arguments = ["steer", "log", "--plan", "ramp.toml", "--state", "state"];
    let output = serving::lastbyte(&ramp.folder, &[&arguments[..], &["--verify"]].concat());
    let printed = serving::stdout(&output) + &serving::stderr(&output);
    match output.status.code() {
        Some(0) => Ok(()),
        code => {
            assert_eq!(code, Some(1), "{printed}");
            Err(printed)
        }
    }
}

/// Writes these lines as decisions, and checks that the one with this number is named.
fn names(ramp: &Ramp, lines: &[String], number: usize) {
    let path = ramp.folder.join("state/decisions.ndjson");
    fs::write(path, lines.concat()).expect("room");
    let printed = verified(ramp).expect_err("an edit");
    let name = format!("`state/decisions.ndjson`, line {number}: ");
    assert!(printed.contains(&name), "{}{printed}", lines.concat());
}

fn lines(ramp: &Ramp) -> Vec<String> {
    let text = fs::read_to_string(ramp.folder.join("state/decisions.ndjson")).expect("decisions");
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn an_edit_of_any_value_of_any_decision_is_named() {
    let ramp = varied("steer-edits");
    verified(&ramp).expect("as it was written");
    let good = lines(&ramp);
    let (mut keys, mut edits) = (std::collections::BTreeSet::new(), 0);
    for (place, line) in good.iter().enumerate() {
        for token in tokens(line.trim_end()) {
            let (before, rest) = line.split_at(token.start);
            let (text, after) = rest.split_at(token.len());
            if after.starts_with(':') {
                keys.insert(text.trim_matches('"').to_owned());
                continue;
            }
            let mut edited = good.clone();
            edits += 1;
            edited[place] = format!("{before}{}{after}", changed(text, edits % 8 == 0));
            names(&ramp, &edited, place + 1);
        }
    }
    assert!(edits > 40 * good.len(), "{edits} edits");
    for key in [
        "until",
        "at",
        "plan",
        "configs",
        "lost",
        "by-states",
        "marks",
        "setup",
        "sum",
    ] {
        assert!(keys.contains(key), "{key} is edited: {keys:?}");
    }
}

#[test]
fn a_decision_that_is_removed_added_or_moved_is_named() {
    let ramp = varied("steer-moves");
    let good = lines(&ramp);
    let forged = good[2].replace("\"share\":0.5", "\"share\":0.1");
    for place in 0..good.len() {
        let mut inserted = good.clone();
        inserted.insert(place, forged.clone());
        names(&ramp, &inserted, place + 1);
        let mut blank = good.clone();
        blank[place].insert(0, '\n');
        names(&ramp, &blank, place + 1);
        let mut spaced = good.clone();
        spaced[place] = spaced[place].replace('\n', "\r\n");
        names(&ramp, &spaced, place + 1);
        let mut repeated = good.clone();
        repeated.insert(place, good[place].clone());
        names(&ramp, &repeated, place + 2);
        if place + 1 < good.len() {
            let mut removed = good.clone();
            removed.remove(place);
            names(&ramp, &removed, place + 1);
            let mut moved = good.clone();
            moved.swap(place, place + 1);
            names(&ramp, &moved, place + 1);
            // With a sum of its own, which the next line does not follow.
            let mut summed = good.clone();
            summed[place] = summed[place].replacen("\"at\":1", "\"at\":2", 1);
            let whole = chained(&summed.concat());
            summed[place] = whole
                .split_inclusive('\n')
                .nth(place)
                .expect("it")
                .to_owned();
            names(&ramp, &summed, place + 2);
        }
    }
    // The last one is what the experiment file follows.
    let path = ramp.folder.join("state/decisions.ndjson");
    for decisions in [&good[..4], &good[..1], &[]] {
        fs::write(&path, decisions.concat()).expect("room");
        let printed = verified(&ramp).expect_err("less");
        let expected = "`state/experiment.toml` is of epoch ";
        assert!(printed.contains(expected), "{printed}");
    }
}

/// All sums computed again: it is a chain, and not the one of the experiment file.
#[test]
fn a_forged_chain_is_not_that_of_the_experiment_file() {
    let mut ramp = Ramp::new("steer-forged");
    ramp.hour(FIRST, 0.1, 0.85);
    ramp.look();
    ramp.hour(FIRST, 0.1, 0.85);
    assert_eq!(ramp.look()["action"], "ramp");
    ramp.steer(&["log"]);
    let (good, experiment) = (lines(&ramp).concat(), ramp.experiment());
    verified(&ramp).expect("as it was written");
    let path = ramp.folder.join("state/decisions.ndjson");
    for (from, to) in [
        ("\"rule\":\"60 of", "\"by-states\":true,\"rule\":\"61 of"),
        ("\"at\":1", "\"at\":2"),
        ("first stage", "a stage"),
    ] {
        assert!(good.contains(from), "{good}");
        fs::write(&path, chained(&good.replacen(from, to, 1))).expect("room");
        let printed = verified(&ramp).expect_err("a forged one");
        let expected = "`state/experiment.toml` is of epoch 1599996601, and no decision";
        assert!(printed.contains(expected), "{printed}");
        let look = ["steer", "log", "--plan", "ramp.toml", "--state", "state"];
        serving::check_failure(&serving::lastbyte(&ramp.folder, &look), 1, expected);
        assert_eq!(ramp.experiment(), experiment, "the shares stay");
    }
}

/// Decisions that were edited, or are of a version without sums: no share grows, nothing is drawn, and an operator can end the ramp.
#[test]
fn what_is_no_chain_grows_no_share_and_is_not_drawn() {
    for (number, (from, to)) in [
        ("\"share\":0.1,", "\"share\":0.5,"),
        ("\"until\":", "\"until\":1"),
        (SUM, ",\"summary\":\""),
    ]
    .into_iter()
    .enumerate()
    {
        let mut ramp = Ramp::new(&format!("steer-no-chain-{number}"));
        ramp.hour(FIRST, 0.1, 0.85);
        ramp.look();
        let mut edited = lines(&ramp);
        let place = edited.len() - 1;
        edited[place] = edited[place].replacen(from, to, 1);
        let path = ramp.folder.join("state/decisions.ndjson");
        fs::write(&path, edited.concat()).expect("room");
        let expected = "`state/decisions.ndjson`, line 2: its `sum` is not that of its text";
        let published = ramp.experiment();
        ramp.hour(FIRST, 0.1, 0.85);
        ramp.refused(&["log"], expected);
        assert_eq!(lines(&ramp), edited);
        assert_eq!(ramp.experiment(), published);
        let drawn = ["report", "--plan", "state", "-o", "ramp.html"];
        let drawn = serving::lastbyte(&ramp.folder, &drawn);
        serving::check_failure(&drawn, 1, expected);
        assert!(!ramp.folder.join("ramp.html").exists());
        fs::write(ramp.folder.join("state/stop"), "enough").expect("room");
        let stopped = ramp.steer(&[]);
        assert!(stopped.status.success(), "{}", serving::stderr(&stopped));
        assert_eq!(ramp.decisions()[2]["action"], "stopped");
        ramp.has_no_arm();
    }
}
