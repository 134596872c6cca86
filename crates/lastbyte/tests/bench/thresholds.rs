//! Thresholds and exit codes of `lastbyte bench`.

use super::{Place, VERSIONS, stderr, stdout};

/// The sentence has what failed, its value and its limit; each threshold is checked.
#[test]
fn a_failed_threshold_is_exit_code_3_with_both_numbers() {
    let place = Place::new("bench-thresholds");
    let cases: &[(&[&str], &str, &[&str])] = &[
        (
            &["-n", "1000", "-m", "10", "--max-p99", "1us"],
            "/1kB",
            &["P99 ", "(expected at most 0.001 ms: --max-p99)"],
        ),
        (
            &["-n", "20", "--max-p99", "1h"],
            "/1kB",
            &["P99 is unknown: it needs 1000 responses, and there were 20"],
        ),
        (
            &["-n", "20", "--min-rate", "1e8"],
            "/1kB",
            &[" requests/s (expected at least 100000000: --min-rate)"],
        ),
        (
            &["-n", "20", "--max-errors", "0"],
            "/none",
            &["20 requests failed (expected at most 0: --max-errors)"],
        ),
        (
            &["-n", "20", "--max-errors", "50%"],
            "/none",
            &["20 of 20 requests failed, 100.00 % (expected at most 50 %: --max-errors)"],
        ),
        (
            &["-n", "20", "--max-errors", "1", "--min-rate", "1e8"],
            "/none",
            &["--max-errors)", "--min-rate)"],
        ),
    ];
    for (arguments, path, expected) in cases {
        let output = place.bench(arguments, path);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {error}");
        for text in *expected {
            assert!(error.contains(text), "{arguments:?}: {error}");
        }
        let lines = error
            .lines()
            .filter(|line| line.starts_with("error: threshold failed: "));
        let failed = arguments
            .iter()
            .filter(|word| word.starts_with("--m"))
            .count();
        assert_eq!(lines.count(), failed, "{arguments:?}: {error}");
        // The results are printed as well.
        assert!(stdout(&output).contains("requests: "), "{arguments:?}");
    }
    let kept = [
        "-n",
        "1000",
        "-m",
        "10",
        "--max-errors",
        "0",
        "--max-p99",
        "1h",
        "--min-rate",
        "0.001",
    ];
    let output = place.bench(&kept, "/1kB");
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A run of errors only has measured the error page; if they are expected, an option says so.
#[test]
fn a_run_in_which_all_requests_fail_is_no_success() {
    let place = Place::new("bench-all-failed");
    for http in VERSIONS {
        let run = ["--http", http, "-n", "10"];
        let output = place.bench(&run, "/none");
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{http}: {error}");
        let expected = "no successful response: 10 requests failed (10 with 4xx, 0 with 5xx, 0 with 1xx, 0 without a response)";
        assert!(error.contains(expected), "{http}: {error}");
        let output = place.bench(&[&run[..], &["--max-errors", "100%"]].concat(), "/none");
        assert!(output.status.success(), "{http}: {}", stderr(&output));
    }
}
