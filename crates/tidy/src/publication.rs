//! What is published: crates, and pages of documentation.

use std::{collections::BTreeSet, path::Path};

use crate::{
    rules::assert_none,
    tree::{crates, exists, files, read},
};

/// Crates for the tests of this repository only.
const NOT_PUBLISHED: [&str; 2] = ["testkit", "tidy"];

fn published() -> impl Iterator<Item = String> {
    let all = crates().into_iter();
    all.filter(|name| !NOT_PUBLISHED.contains(&name.as_str()))
}

#[test]
fn published_crates_have_what_a_registry_shows() {
    let workspace = read("Cargo.toml").text;
    let mut wrong = Vec::new();
    for name in published() {
        let manifest = read(&format!("crates/{name}/Cargo.toml")).text;
        for key in [
            "description",
            "readme",
            "license",
            "keywords",
            "categories",
            "rust-version",
        ] {
            let is_given = manifest.lines().any(|line| {
                line.starts_with(&format!("{key} = ")) || line == format!("{key}.workspace = true")
            });
            if !is_given {
                wrong.push(format!("crates/{name}/Cargo.toml has no `{key}`"));
            }
        }
        let versioned = format!("lastbyte-{name} = {{ version = ");
        if name != "lastbyte" && !workspace.contains(&versioned) {
            wrong.push(format!("Cargo.toml: lastbyte-{name} has no version"));
        }
    }
    assert_none("a crate cannot be published without it", &wrong);
    for name in NOT_PUBLISHED {
        let manifest = read(&format!("crates/{name}/Cargo.toml")).text;
        assert!(manifest.contains("\npublish = false\n"), "{name}");
    }
}

/// A package contains the files below its crate, and nothing else of the repository. Tests and doctests are not part of a build.
#[test]
fn published_crates_include_only_files_of_their_own() {
    let mut wrong = Vec::new();
    for name in published() {
        for file in files(&format!("crates/{name}/src"), &[".rs"]) {
            if file.path.ends_with("tests.rs") || file.path.contains("/tests/") {
                continue;
            }
            let depth = file.path.matches('/').count() - 2;
            let mut is_doctest = false;
            for (number, line) in file.lines() {
                let includes = ["include_str!(\"", "include_bytes!(\""];
                let path = includes.iter().find_map(|call| line.split_once(call));
                let ups = path.map_or(0, |(_, path)| path.matches("../").count());
                if ups > depth && !is_doctest {
                    wrong.push(format!("{}:{number}", file.path));
                }
                is_doctest = line.trim() == "#[cfg(doctest)]";
            }
        }
    }
    assert_none("move or link the file into the crate", &wrong);
}

#[test]
fn the_changelog_has_the_version() {
    let workspace = read("Cargo.toml").text;
    let (_, rest) = workspace.split_once("\nversion = \"").expect("a version");
    let version = rest.split('"').next().expect("a version");
    let changelog = read("CHANGELOG.md").text;
    assert!(
        changelog.contains(&format!("\n## {version}\n")),
        "{version}"
    );
}

/// systemd gives up after five quick crashes by default, and does not bound memory.
#[test]
fn units_of_services_start_again_and_bound_their_memory() {
    let units = files("packaging", &[".service"]);
    let documents = files("docs", &[".md"]);
    let units = units.into_iter().map(|file| (file.path, file.text));
    let snippets = documents.iter().flat_map(|file| {
        let blocks = file.text.split("```ini\n").skip(1);
        let blocks = blocks.map(|block| block.split("```").next().unwrap_or_default());
        let units = blocks.filter(|block| block.contains("[Service]\n"));
        units.map(|block| (file.path.clone(), block.to_owned()))
    });
    let units: Vec<(String, String)> = units.chain(snippets).collect();
    assert!(units.len() > 1);
    let mut wrong = Vec::new();
    for (path, unit) in &units {
        let (head, service) = unit.split_once("[Service]\n").expect("a service");
        for (section, key) in [
            (head, "StartLimitIntervalSec=0"),
            (service, "Restart="),
            (service, "RestartSec="),
            (service, "MemoryHigh="),
            (service, "MemoryMax="),
        ] {
            if !section.lines().any(|line| line.starts_with(key)) {
                wrong.push(format!("{path}: {key}"));
            }
        }
    }
    assert_none("add the setting to the unit", &wrong);
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = read("docs/SUMMARY.md").text;
    let listed = links(&summary).into_iter().map(|(_, target)| target);
    let listed: Vec<String> = listed.collect();
    let distinct: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(
        listed.len(),
        distinct.len(),
        "a page is listed twice: {listed:?}"
    );
    let pages = files("docs", &[".md"]).into_iter().filter_map(|file| {
        let name = file.path.strip_prefix("docs/")?;
        (name != "SUMMARY.md").then(|| name.to_owned())
    });
    let pages: BTreeSet<String> = pages.collect();
    let listed: BTreeSet<String> = listed.into_iter().collect();
    assert_eq!(pages, listed, "add the page to docs/SUMMARY.md");
}

/// The links of a document, with their lines: what is in `](…)`, outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code || line.starts_with("    ") {
            continue;
        }
        // Every other piece is between backticks; a link's text may be there, its target is not.
        let plain: String = line.split('`').step_by(2).collect();
        for (_, rest) in plain
            .match_indices("](")
            .map(|(at, _)| plain.split_at(at + 2))
        {
            let target = rest.split(')').next().unwrap_or_default();
            found.push((index + 1, target.to_owned()));
        }
    }
    found
}

/// The anchors of a document's headings, as on GitHub and in mdBook.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let mut distinct = anchor.clone();
        let mut count = 0;
        while anchors.contains(&distinct) {
            count += 1;
            distinct = format!("{anchor}-{count}");
        }
        anchors.insert(distinct);
    }
    anchors
}

/// The path of a link's target, relative to the root.
fn resolved(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut documents = Vec::new();
    for folder in ["docs", "crates", "bench", "tests"] {
        documents.extend(files(folder, &[".md"]));
    }
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ] {
        documents.push(read(name));
    }
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in &documents {
        for (number, target) in links(&document.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if path.is_empty() {
                document.path.clone()
            } else {
                resolved(&document.path, path)
            };
            let is_found = exists(&path)
                && (anchor.is_empty()
                    || Path::new(&path)
                        .extension()
                        .is_none_or(|ending| ending != "md")
                    || anchors(&read(&path).text).contains(anchor));
            if !is_found {
                wrong.push(format!("{}:{number}: {target}", document.path));
            }
        }
    }
    assert!(count > 200, "{count}");
    assert_none("no such file or heading", &wrong);
}

#[test]
fn links_and_anchors_of_a_document() {
    let text = "# A `b` c, d\n[x](y.md#z) `[no](no)` and [`c`](d)\n```\n# code\n[no](no)\n```\n## A b: c d\n    [no](no)\n";
    let targets: Vec<String> = links(text).into_iter().map(|(_, target)| target).collect();
    assert_eq!(targets, ["y.md#z", "d"]);
    assert_eq!(
        anchors(text),
        BTreeSet::from(["a-b-c-d", "a-b-c-d-1"].map(str::to_owned))
    );
    assert_eq!(resolved("docs/a.md", "../b/./c.md"), "b/c.md");
}
