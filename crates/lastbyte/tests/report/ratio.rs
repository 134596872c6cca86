//! Warnings come before the results, and there are no verdicts on arms that are out of balance.

use std::fmt::Write as _;

use super::*;

/// A production log of 1000 connections, of which the new arm has this many. It is 20 % faster.
fn log_of(new: u64) -> String {
    let mut text = String::new();
    for number in 0..1000 {
        let is_new = number % 10 < new / 100;
        let (arm, factor) = if is_new { ("new", 8) } else { ("baseline", 10) };
        let ttlb = (100 + number * 7919 % 200) * factor;
        let _ = writeln!(
            text,
            "{{\"time\":1773026516280,\"arm\":\"{arm}\",\"experiment\":\"x\",\"site\":\"a\",\"content_length\":300000,\"ttlb\":{ttlb}}}"
        );
    }
    text
}

const WARNING: &str = "warning: The numbers of connections do not match the shares of the arms (p < 0.0001): baseline has 600 of 1 000 (expected 500).";

#[test]
fn a_failed_sample_ratio_is_a_warning_first_and_exit_code_3() {
    let folder = folder("report-ratio");
    fs::write(folder.join("even.ndjson"), log_of(500)).expect("a log");
    fs::write(folder.join("uneven.ndjson"), log_of(400)).expect("a log");
    let even = lastbyte(&folder, &["report", "even.ndjson"]);
    assert_eq!(even.status.code(), Some(0));
    assert_eq!(stderr(&even), "wrote report.html\n");
    assert!(stdout(&even).contains("new is faster than baseline at P5–P95"));
    for more in [&[][..], &["--json"]] {
        let uneven = lastbyte(&folder, &[&["report", "uneven.ndjson"], more].concat());
        assert_eq!(uneven.status.code(), Some(3), "{more:?}");
        assert!(stderr(&uneven).starts_with(WARNING), "{}", stderr(&uneven));
        let printed = stdout(&uneven);
        assert!(
            printed.contains("new: no verdict, because the sample ratio fails")
                && !printed.contains("new is faster"),
            "{printed}"
        );
    }
    // The shares that were intended.
    let intended = lastbyte(
        &folder,
        &["report", "uneven.ndjson", "--shares", "baseline=6,new=4"],
    );
    assert_eq!(intended.status.code(), Some(0), "{}", stderr(&intended));
}

#[test]
fn arms_that_were_not_assigned_at_random_are_compared_with_a_warning() {
    let folder = folder("report-ratio-none");
    fs::write(folder.join("uneven.ndjson"), log_of(400)).expect("a log");
    let of = |shares| lastbyte(&folder, &["report", "uneven.ndjson", "--shares", shares]);
    let observed = of("none");
    assert_eq!(observed.status.code(), Some(0), "{}", stderr(&observed));
    assert!(
        stderr(&observed).starts_with(
            "warning: Connections were not assigned to arms at random (--shares none)"
        ),
        "{}",
        stderr(&observed)
    );
    let both = of("none,new=4");
    assert_eq!(both.status.code(), Some(2));
    assert!(
        stderr(&both).contains("expected none alone, or ARM=N,…"),
        "{}",
        stderr(&both)
    );
}

/// On a terminal, the warning is yellow and above the table, and what would be a verdict is dim.
#[test]
fn warnings_on_a_terminal_are_yellow_and_above_the_table() {
    let folder = folder("report-ratio-terminal");
    fs::write(folder.join("a.ndjson"), log_of(400)).expect("a log");
    let line = format!("{} report a.ndjson", env!("CARGO_BIN_EXE_lastbyte"));
    let print = |no_color: bool| {
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .current_dir(&folder)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(std::process::Stdio::null());
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let output = command.output().ok()?;
        assert_eq!(output.status.code(), Some(3));
        Some(stdout(&output))
    };
    let (Some(text), Some(plain)) = (print(false), print(true)) else {
        return lastbyte_testkit::skip("no `script`");
    };
    assert!(text.starts_with(&format!("\u{1b}[33m{WARNING}")), "{text}");
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("no {part} in {text}"))
    };
    assert!(at("warning: ") < at("complete") && at("complete") < at("\u{1b}[2mnew: no verdict"));
    assert!(
        !plain.contains('\u{1b}') && plain.starts_with(WARNING),
        "{plain}"
    );
}

/// `ab` prints what its page warns of.
#[test]
fn notes_of_an_experiment_are_on_stderr() {
    let folder = folder("report-ab-notes");
    let output = lastbyte(
        &folder,
        &["ab", "--connections", "48", "--seed", "5", "--json"],
    );
    assert_eq!(output.status.code(), Some(0));
    let text = stderr(&output);
    let start = "note: Fewer than 200 connections are of ";
    let note = text.lines().find(|line| line.starts_with(start));
    let note = note.unwrap_or_else(|| panic!("{text}"));
    assert!(
        note.contains("rapid-start") && note.ends_with(": too few to show small differences."),
        "{text}"
    );
    serde_json::from_slice::<Value>(&output.stdout).expect("JSON alone");
}

#[test]
fn looks_are_printed_and_correct_the_intervals() {
    let folder = folder("report-looks");
    fs::write(folder.join("a.ndjson"), log_of(500)).expect("a log");
    let one = lastbyte(&folder, &["report", "a.ndjson"]);
    assert!(
        stdout(&one).contains(
            "Intervals hold for one look, at a number of connections that was chosen before.\n"
        ),
        "{}",
        stdout(&one)
    );
    let five = lastbyte(&folder, &["report", "a.ndjson", "--looks", "5"]);
    assert!(stdout(&five).contains("corrected for 5 planned looks (Bonferroni)"));
    for bad in ["0", "101", "x"] {
        let output = lastbyte(&folder, &["report", "a.ndjson", "--looks", bad]);
        assert_eq!(output.status.code(), Some(2), "{bad}");
    }
}

#[test]
fn an_arm_that_filter_rules_empty_is_named_with_its_option() {
    let folder = folder("report-resumed");
    let line = include_str!("../../../record/src/connection_log/sample-line.json").trim();
    let rapid = line.replace("\"num-rapid-start\":0", "\"num-rapid-start\":1");
    let jump = line
        .replace("\"jumpstart.cwnd\":0", "\"jumpstart.cwnd\":88320")
        .replace("\"jumpstart.prev-rate\":0", "\"jumpstart.prev-rate\":5");
    assert!(rapid != line && jump.contains("prev-rate\":5"));
    let text = [line, &rapid, &jump].map(|line| numbered(line, 20));
    fs::write(folder.join("a.ndjson"), text.concat()).expect("a log");
    let output = lastbyte(&folder, &["report", "a.ndjson"]);
    let printed = stderr(&output);
    assert!(
        printed.starts_with("warning: All 20 lines of the arm jumpstart are left out by the rules for production logs: --resumed includes 20 of them.\n")
            && printed.contains("note: 20 lines are left out because `jumpstart.prev-rate` is not 0"),
        "{printed}"
    );
    let output = lastbyte(&folder, &["report", "a.ndjson", "--resumed"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("jumpstart"), "{}", stdout(&output));
    assert!(!stderr(&output).contains("left out"), "{}", stderr(&output));
}
