//! `--plot`: the page of a run.

use std::fs;

use super::{Place, VERSIONS, refused, stderr, stdout};
use crate::serving::free_port;

#[test]
fn a_run_has_a_page() {
    let place = Place::new("bench-plot");
    for http in VERSIONS {
        let file = format!("{http}.html");
        let load = [
            "--http", http, "-n", "2000", "-c", "4", "--rate", "20000", "--plot", &file,
        ];
        let output = place.bench(&load, "/1kB");
        assert!(output.status.success(), "{}", stderr(&output));
        // The results are printed as well.
        assert!(stdout(&output).contains("2000 succeeded"));
        let page = fs::read_to_string(place.folder.join(&file)).expect("a page");
        assert!(page.starts_with("<!doctype html>"));
        assert_eq!(page.matches("<svg ").count(), 6);
        for text in [
            ">P99<",
            ">responses<",
            ">service time<",
            ">latency<",
            "/1kB",
            "closed",
        ] {
            assert_eq!(page.contains(text), text != "closed", "{http}: {text}");
        }
    }
}

/// A run with few responses in each interval has a median over several, no P99, and says why.
#[test]
fn a_sparse_run_has_a_median_over_time() {
    let place = Place::new("bench-plot-sparse");
    let load = [
        "-n",
        "60",
        "--rate",
        "100",
        "--plot",
        "sparse.html",
        "-H",
        "cookie: hidden=1",
    ];
    let output = place.bench(&load, "/1kB");
    assert!(output.status.success(), "{}", stderr(&output));
    let note = "note: P75";
    assert!(!stdout(&output).contains(note), "{}", stdout(&output));
    let why = "P90 needs 100, P99 1000, P99.9 10000, P99.99 100000 responses (there were 60)";
    assert!(
        stdout(&output).contains(&format!("note: {why}")),
        "{}",
        stdout(&output)
    );
    let page = fs::read_to_string(place.folder.join("sparse.html")).expect("a page");
    let (_, chart) = page.split_once("Latency over time</h2>").expect("a chart");
    let (chart, _) = chart.split_once("</section>").expect("its end");
    assert!(
        chart.contains(">P50<") && chart.contains(">maximum<"),
        "{chart}"
    );
    assert!(!chart.contains(">P99<"), "{chart}");
    assert!(page.contains(why));
    assert!(page.contains("needs 1000 responses (there were 60)"));
    assert!(page.contains("lastbyte bench --cacert a.pem -n 60") && !page.contains("hidden"));
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let place = Place::new("bench-plot-errors");
    fs::write(place.folder.join("log.html"), "{}").expect("a file");
    let url = format!("https://localhost:{}/", free_port());
    for (file, code, expected) in [
        (
            "a.png",
            2,
            "unknown format `a.png` (expected a name that ends in .html)",
        ),
        ("no/a.html", 1, "cannot write `no/a.html`"),
        ("log.html", 2, "exists and is not an HTML page"),
    ] {
        let (found, error) = refused(&place.folder, &["--plot", file], &url);
        assert_eq!(found, code, "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
