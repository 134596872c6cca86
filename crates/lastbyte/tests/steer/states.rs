//! Looks by states of parts of the logs.

use std::fs;

use super::{FIRST, PLAN, Ramp, serving::stderr};

/// Writes lines as a log of this name, and its state.
fn part(ramp: &Ramp, name: &str, lines: &str) -> String {
    fs::write(ramp.folder.join(name), lines).expect("room");
    let output = super::lastbyte(
        &ramp.folder,
        &["steer", "--partial", name, "--plan", "ramp.toml"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let state = format!("{name}.state");
    fs::write(ramp.folder.join(&state), &output.stdout).expect("room");
    state
}

#[test]
fn states_give_the_decisions_of_their_logs() {
    let mut ramp = Ramp::new("steer-states");
    let mut states = Vec::new();
    let mut known = 0;
    let (mut epoch, mut share) = (FIRST, 0.1);
    for hour in 0..40 {
        ramp.hour(epoch, share, 0.85);
        // A log an hour and site; lines of an earlier epoch, of a server that reads the file late.
        let late = ramp.log[known..].lines().next().expect("a line");
        let late = late
            .replace(&format!("-{epoch}"), &format!("-{FIRST}"))
            .replace("\"conn_id\":0,", "\"conn_id\":9999,");
        let lines = format!("{}{late}\n", &ramp.log[known..]);
        ramp.log.truncate(known);
        ramp.log.push_str(&lines);
        ramp.write();
        for site in ["fra", "nrt"] {
            let of_site = lines
                .split_inclusive('\n')
                .filter(|line| line.contains(site));
            let of_site: String = of_site.collect();
            states.push(part(&ramp, &format!("{hour}-{site}"), &of_site));
        }
        known = ramp.log.len();
        let mut by_states = vec!["--merge"];
        by_states.extend(states.iter().map(String::as_str));
        let output = ramp.steer(&by_states);
        assert!(output.status.success(), "{}", stderr(&output));
        let look = ramp.decisions().pop().expect("a look");
        (epoch, share) = (
            look["epoch"].as_u64().expect("one"),
            look["share"].as_f64().expect("one"),
        );
        if look["action"] == "win" {
            break;
        }
    }
    let actions: Vec<_> = ramp
        .decisions()
        .iter()
        .map(|look| look["action"].to_string())
        .collect();
    assert_eq!(
        actions.last().map(String::as_str),
        Some("\"win\""),
        "{actions:?}"
    );
    // All logs, with all lines, give these decisions.
    let verified = ramp.steer(&["log", "--verify"]);
    assert!(
        verified.status.success(),
        "{}{}",
        String::from_utf8_lossy(&verified.stdout),
        stderr(&verified)
    );
}

#[test]
fn what_is_not_a_state_of_the_ramp_leaves_the_shares() {
    let mut ramp = Ramp::new("steer-wrong-states");
    ramp.hour(FIRST, 0.1, 1.0);
    let state = part(&ramp, "first", &ramp.log.clone());
    let text = fs::read_to_string(ramp.folder.join(&state)).expect("a state");
    let (experiment, looks) = (ramp.experiment(), ramp.decisions());
    let write = |text: &str| fs::write(ramp.folder.join("x"), text).expect("room");
    let damaged = "the state was cut off or changed";
    let none = "not a state (expected the output of `lastbyte steer --partial`)";
    for (text, expected) in [
        (&text[..text.len() / 2], damaged),
        (&text[..text.len() - 30], damaged),
        (text.lines().next().expect("a line"), damaged),
        (&*text.replacen("[[", "[[ ", 1), damaged),
        ("", none),
        ("{}\n", none),
        (&*ramp.log, none),
        (
            &*text.replace("\"steer-state\":2", "\"steer-state\":1"),
            "another format: 1 (expected 2)",
        ),
        (
            &*text.replace("\"version\":\"", "\"version\":\"9."),
            "another version",
        ),
    ] {
        write(text);
        ramp.refused(&["--merge", "x"], expected);
    }
    ramp.refused(
        &["--merge", &state, &state],
        "about 50 % of the lines are copies of others",
    );
    ramp.refused(&["--merge", &state, "missing"], "`missing`: No such file");
    ramp.refused(&["--merge"], "<LOG>");
    ramp.refused(&["--merge", &state, "--verify"], "cannot be used with");
    // Another plan.
    fs::write(ramp.folder.join("other.toml"), PLAN.replace("10%", "20%")).expect("room");
    let of_other = super::lastbyte(
        &ramp.folder,
        &["steer", "--partial", "first", "--plan", "other.toml"],
    );
    fs::write(ramp.folder.join("x"), &of_other.stdout).expect("room");
    ramp.refused(&["--merge", "x"], "another plan: ");
    assert_eq!((ramp.experiment(), ramp.decisions()), (experiment, looks));
    // Then a part is missing.
    let second = part(
        &ramp,
        "second",
        &ramp.log.replace("\"conn_id\":", "\"conn_id\":1"),
    );
    let output = ramp.steer(&["--merge", &state, &second]);
    assert!(output.status.success(), "{}", stderr(&output));
    ramp.refused(
        &["--merge", &second],
        "the logs lack lines of `first.state`, which look 1 had (expected all logs since the start, or a file `lost` in the",
    );
}

/// A state that was made before its log was whole: the decision of then does not follow from the whole log.
#[test]
fn a_decision_by_old_states_is_not_compared_with_later_lines() {
    let mut ramp = Ramp::new("steer-old-states");
    ramp.hour(FIRST, 0.1, 0.85);
    ramp.hour(FIRST, 0.1, 0.85);
    let few: Vec<&str> = ramp.log.split_inclusive('\n').take(300).collect();
    // The newest line is there.
    let last = ramp.log.lines().last().expect("a line");
    let state = part(&ramp, "few", &format!("{}{last}\n", few.concat()));
    let output = ramp.steer(&["--merge", &state]);
    assert!(output.status.success(), "{}", stderr(&output));
    let look = ramp.decisions().pop().expect("a look");
    assert_eq!(
        (&look["action"], &look["by-states"]),
        (&"hold".into(), &true.into()),
        "{look}"
    );
    let verified = ramp.steer(&["log", "--verify"]);
    assert!(verified.status.success(), "{}", stderr(&verified));
    let expected = "look 1: 3699 lines not in its states: it cannot be compared";
    assert!(
        stderr(&verified).contains(expected),
        "{}",
        stderr(&verified)
    );
    // Again at once: states are not of the last minute alone.
    let again = ramp.steer(&["--merge", &state]);
    assert!(again.status.success(), "{}", stderr(&again));
}

/// Two servers of one site, of which one writes more than the other's whole log while that is lost.
#[test]
fn a_lost_log_is_named_although_another_of_its_site_grew() {
    for by_states in [false, true] {
        let mut ramp = Ramp::new(&format!("steer-lost-{by_states}"));
        let look = |ramp: &Ramp, logs: &[(&str, &str)]| {
            let mut arguments = if by_states {
                vec!["--merge".to_owned()]
            } else {
                Vec::new()
            };
            for (name, lines) in logs {
                let state = part(ramp, name, lines);
                arguments.push(if by_states { state } else { (*name).to_owned() });
            }
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            ramp.steer(&arguments)
        };
        ramp.hour(FIRST, 0.1, 1.0);
        let first = ramp.log.replace("nrt", "fra");
        let (one, other) = first.split_at(first[..first.len() / 3].rfind('\n').expect("lines") + 1);
        let output = look(&ramp, &[("one", one), ("other", other)]);
        assert!(output.status.success(), "{}", stderr(&output));
        let marks = ramp.decisions()[1]["marks"]
            .as_object()
            .map(serde_json::Map::len);
        assert_eq!(marks, Some(2));
        // Rotated under other names, or together: nothing is missing, and there is no new mark.
        for logs in [&[("one.1", one), ("old", other)][..], &[("all", &first)]] {
            let output = look(&ramp, logs);
            assert!(output.status.success(), "{}", stderr(&output));
            assert!(
                ramp.decisions()
                    .pop()
                    .expect("a look")
                    .get("marks")
                    .is_none()
            );
        }
        ramp.hour(FIRST, 0.1, 1.0);
        let grown = ramp.log.replace("nrt", "fra")[one.len()..].to_owned();
        let looks = ramp.decisions().len();
        let output = look(&ramp, &[("other", &grown)]);
        let name = if by_states { "one.state" } else { "one" };
        let expected = format!(
            "the logs lack lines of `{name}`, which look 1 had (expected all logs since the start, or a file `lost`"
        );
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
        assert_eq!(ramp.decisions().len(), looks, "the shares stay");
        // An operator lets it go on, for this look.
        let note = ramp.folder.join("state/lost");
        fs::write(&note, "the disk of one died\n").expect("room");
        let output = look(&ramp, &[("other", &grown)]);
        assert!(output.status.success(), "{}", stderr(&output));
        let last = ramp.decisions().pop().expect("a look");
        let told = last["lost"].as_str().expect("who");
        assert!(
            told.starts_with("the logs lack lines of `")
                && told.ends_with(": the disk of one died"),
            "{told}"
        );
        assert!(!note.exists());
        let again = look(&ramp, &[("other", &grown)]);
        assert!(again.status.success(), "{}", stderr(&again));
        fs::write(ramp.folder.join("left"), &grown).expect("room");
        let verified = ramp.steer(&["left", "--verify"]);
        assert!(
            verified.status.success(),
            "{}{}",
            String::from_utf8_lossy(&verified.stdout),
            stderr(&verified)
        );
        assert!(
            stderr(&verified).contains("3 looks cannot be compared: lines of them are lost"),
            "{}",
            stderr(&verified)
        );
        let output = look(&ramp, &[("other", "")]);
        assert!(
            stderr(&output).contains("the logs lack lines of `other"),
            "{}",
            stderr(&output)
        );
    }
}
