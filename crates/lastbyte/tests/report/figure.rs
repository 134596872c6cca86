//! `--figure`: files for print, of all commands that simulate or read logs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{check_failure, command_line, folder, lastbyte, log, stderr};

fn run(folder: &Path, line: &str) -> String {
    let output = lastbyte(folder, &command_line(line));
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    stderr(&output)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A page as wide as 3.33 in, and the same in both formats.
fn check_files(pdf: &PathBuf, svg: &PathBuf) {
    let pdf = fs::read(pdf).expect("a PDF");
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.starts_with("%PDF-1.4") && text.contains("/MediaBox [0 0 239.76 "));
    let svg = fs::read_to_string(svg).expect("an SVG");
    assert!(svg.starts_with("<svg ") && svg.contains(" width=\"3.3300in\""));
    assert!(!svg.contains("<text"));
}

#[test]
fn every_command_that_draws_has_figures() {
    let folder = folder("figure-all");
    fs::write(folder.join("a.ndjson"), log(600)).expect("a log");
    run(
        &folder,
        "sim --network lte --size 50kB --arm cubic --qlog qlogs",
    );
    for (command, out, charts) in [
        ("report a.ndjson --resamples 100", "-o", 3),
        ("sim --network lte --size 50kB", "--plot", 1),
        ("plot qlogs", "-o", 1),
        (
            "search cubic --key initial-window=10p,30p --paths 4",
            "-o",
            1,
        ),
    ] {
        let files = "--figure 3.33in --data f.csv";
        let wrote = run(&folder, &format!("{command} {files} {out} f.pdf"));
        assert!(wrote.contains("wrote f.pdf"), "{command}: {wrote}");
        assert_eq!(
            wrote.contains("a directory gets all"),
            charts > 1,
            "{wrote}"
        );
        let first = fs::read(folder.join("f.pdf")).expect("a PDF");
        let data = fs::read_to_string(folder.join("f.csv")).expect("data");
        assert!(
            data.starts_with("chart,panel,series,x,y,x_low,x_high,y_low,y_high\n")
                && data.lines().count() > 2,
            "{command}: {data}"
        );
        run(&folder, &format!("{command} {files} {out} f.pdf"));
        assert_eq!(fs::read(folder.join("f.pdf")).expect("a PDF"), first);
        run(&folder, &format!("{command} {files} {out} f.svg"));
        check_files(&folder.join("f.pdf"), &folder.join("f.svg"));
        run(&folder, &format!("{command} --figure 84.582mm {out} all"));
        let all = names(&folder.join("all"));
        assert_eq!(all.len(), 2 * charts, "{command}: {all:?}");
        for name in all.iter().filter_map(|name| name.strip_suffix(".pdf")) {
            let file = |ending| folder.join("all").join(format!("{name}.{ending}"));
            check_files(&file("pdf"), &file("svg"));
        }
        fs::remove_dir_all(folder.join("all")).expect("a folder");
    }
    for (command, charts) in [
        (
            "compare --pages 2 --network lte",
            &["report", "first-render"][..],
        ),
        (
            "compare loss --size 20kB --loss 0%,1% --arm 2 --arm 3 --runs 2",
            &["20kB"],
        ),
    ] {
        let line = format!("{command} --figure 3.33in --data c.csv --out {}", charts[0]);
        run(&folder, &line);
        for name in charts {
            let file = |ending| folder.join(charts[0]).join(format!("{name}.{ending}"));
            check_files(&file("pdf"), &file("svg"));
        }
        // The earlier files are kept, but for --force.
        check_failure(
            &lastbyte(&folder, &command_line(&line)),
            2,
            "exists (expected a new file",
        );
        run(&folder, &format!("{line} --force"));
    }
}

#[test]
fn a_figure_has_a_file_by_default() {
    let folder = folder("figure-default");
    fs::write(folder.join("a.ndjson"), log(400)).expect("a log");
    run(&folder, "sim --network lte --size 20kB --figure 2in");
    run(&folder, "report a.ndjson --resamples 100 --figure 2in");
    assert_eq!(names(&folder), ["a.ndjson", "figures", "sim.pdf"]);
    assert!(names(&folder.join("figures")).contains(&"ttlb.pdf".to_owned()));
}

#[test]
fn what_is_no_figure_is_an_error_that_says_what_to_write() {
    let folder = folder("figure-errors");
    fs::write(folder.join("a.ndjson"), log(400)).expect("a log");
    for (line, expected) in [
        (
            "sim --figure 3.33",
            "expected a number with one of the units in, mm, cm and pt: `3.33in`",
        ),
        ("sim --figure 0in", "expected 1.5in to 24in"),
        ("sim --figure 400in", "expected 1.5in to 24in"),
        (
            "sim --plot f.pdf",
            "--plot: `f.pdf` is a figure for print (expected --figure WIDTH too, such as --figure 3.33in)",
        ),
        (
            "plot a.ndjson -o f.pdf",
            "--out: `f.pdf` is a figure for print",
        ),
        (
            "report a.ndjson -o f.pdf",
            "--out: `f.pdf` is a figure for print",
        ),
        (
            "sim --figure 3in --plot x.bmp",
            "--plot: `x.bmp` is not a figure (expected a name that ends in .pdf or .svg, or a directory)",
        ),
        (
            "report a.ndjson --figure 3in -o x.html",
            "--out: `x.html` is not a figure",
        ),
        (
            "sim --figure 3in --data f.txt",
            "--data: unknown format `f.txt` (expected a name that ends in .csv)",
        ),
        ("sim --data f.csv", "--figure <WIDTH>"),
        ("search cubic --key beta=0.6 -o f.pdf", "--figure <WIDTH>"),
        (
            "report a.ndjson --svg charts",
            "`--svg` is not an option (expected --figure WIDTH -o DIR",
        ),
        ("report a.ndjson --svg=charts", "`--svg` is not an option"),
        ("report --plan x --figure 3in", "cannot be used with"),
    ] {
        check_failure(&lastbyte(&folder, &command_line(line)), 2, expected);
    }
    for (line, expected) in [
        (
            "sim --figure 3in --plot no/f.pdf",
            "cannot write `no/f.pdf`",
        ),
        (
            "sim --figure 3in --data no/f.csv",
            "cannot write `no/f.csv`",
        ),
        (
            "sim --figure 3in --plot a.ndjson/f",
            "cannot write `a.ndjson/f`",
        ),
    ] {
        check_failure(&lastbyte(&folder, &command_line(line)), 1, expected);
    }
    assert_eq!(names(&folder), ["a.ndjson"], "nothing is written");
}
