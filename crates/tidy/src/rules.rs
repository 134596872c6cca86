//! The lints.

use crate::{
    circles::circles,
    tree::{File, count_files, crates, files, read},
};

/// The workspace crates on which each crate may depend, as drawn in ARCHITECTURE.md.
const MAY_USE: &[(&str, &str)] = &[
    ("units", ""),
    ("congestion", "units"),
    ("wire", ""),
    ("link", "units"),
    ("page", "units"),
    ("json", ""),
    ("query", "json units"),
    ("udp", "units"),
    ("tidy", ""),
    ("quic", "wire congestion units"),
    ("http3", "quic wire"),
    ("record", "quic congestion wire"),
    ("scenario", "congestion link units wire"),
    ("engine", "quic congestion"),
    ("origin", "engine http3 quic record congestion wire"),
    (
        "sim",
        "scenario origin engine quic http3 link record page congestion wire units",
    ),
    ("driver", "engine quic http3 udp congestion wire"),
    (
        "server",
        "origin driver http3 quic record congestion udp wire units",
    ),
    ("client", "driver http3 quic record congestion udp wire"),
    (
        "load",
        "client driver emulate http3 link quic record udp units wire",
    ),
    ("emulate", "link udp units"),
    ("balancer", "quic udp units wire"),
    ("report", "json query record units"),
    ("replay", "json record units"),
    ("steer", "report scenario units"),
    ("testkit", ""),
    ("lastbyte", ANY),
];

const ANY: &str = "page balancer units congestion wire link json query udp quic http3 record replay report steer scenario sim engine origin driver \
    server client emulate load";

/// Crates without the standard library, which therefore cannot access clocks, sockets, files or the environment.
const WITHOUT_STD: &[&str] = &["congestion", "wire", "link"];

/// Crates that may contain `unsafe`. Each use needs a reason and a safe equivalent to test against.
const MAY_BE_UNSAFE: &[&str] = &["udp", "json", "testkit"];

const LINES_MAX: usize = 1000;

fn rust() -> Vec<File> {
    let mut all = files("crates", &[".rs"]);
    all.extend(files("fuzz", &[".rs"]));
    assert!(all.len() > 10, "the tree was not found");
    all
}

/// The lines that violate a lint, as `path:line: text`.
fn violations(files: &[File], violates: impl Fn(&str) -> bool) -> Vec<String> {
    files
        .iter()
        .flat_map(|file| {
            file.lines()
                .filter(|(_, line)| violates(line))
                .map(|(number, line)| format!("{}:{number}: {}", file.path, line.trim()))
        })
        .collect()
}

pub(crate) fn assert_none(remedy: &str, violations: &[String]) {
    assert!(
        violations.is_empty(),
        "{remedy}:\n{}",
        violations.join("\n")
    );
}

fn library(name: &str) -> File {
    read(&format!("crates/{name}/src/lib.rs"))
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = rust()
        .iter()
        .filter(|file| file.text.lines().count() > LINES_MAX)
        .map(|file| file.path.clone())
        .collect();
    assert_none("split these into modules, each with a header", &long);
}

#[test]
fn every_source_file_has_a_header() {
    let headerless: Vec<String> = rust()
        .iter()
        .filter(|file| {
            !file.text.starts_with("//!")
                && !file.path.ends_with("tests.rs")
                && !file.path.contains("/tests/")
        })
        .map(|file| file.path.clone())
        .collect();
    assert_none(
        "start these with a `//!` header: what the file is responsible for, and which sections it implements",
        &headerless,
    );
}

#[test]
fn no_to_do_marks_remain() {
    // Concatenated here, so that this file does not violate its own lint.
    let marks = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|halves| halves.concat());
    assert_none(
        "finish these, or file an issue",
        &violations(&rust(), |line| {
            marks.iter().any(|mark| line.contains(mark.as_str()))
        }),
    );
}

#[test]
fn no_test_is_ignored_and_no_lint_allowed() {
    let marks =
        [["#[ig", "nore"], ["#[al", "low("], ["#![al", "low("]].map(|halves| halves.concat());
    assert_none(
        "run the test, or `expect` the lint with a reason",
        &violations(&rust(), |line| {
            marks.iter().any(|mark| line.contains(mark.as_str()))
        }),
    );
}

#[test]
fn no_line_ends_in_blanks() {
    let mut all = rust();
    all.extend(files(".", &[".md", ".toml"]));
    assert_none(
        "remove trailing blanks",
        &violations(&all, |line| line.ends_with([' ', '\t'])),
    );
}

#[test]
fn unsafe_is_forbidden_except_where_listed() {
    let missing: Vec<String> = crates()
        .iter()
        .filter(|name| !MAY_BE_UNSAFE.contains(&name.as_str()) && name.as_str() != "lastbyte")
        .map(|name| library(name))
        .filter(|file| !file.text.contains("#![forbid(unsafe_code)]"))
        .map(|file| file.path)
        .collect();
    assert_none("add `#![forbid(unsafe_code)]`", &missing);
}

/// Blocks, functions, traits and implementations, each counted.
const UNSAFE: [&str; 5] = ["{", "fn ", "trait ", "impl ", "extern "];

#[test]
fn every_use_of_unsafe_is_in_the_inventory() {
    let marks = UNSAFE.map(|what| ["unsafe ", what].concat());
    let count = |line: &str| -> usize { marks.iter().map(|mark| line.matches(mark).count()).sum() };
    let mut found: Vec<(String, usize)> = rust()
        .iter()
        .filter(|file| !file.path.starts_with("crates/tidy/"))
        .map(|file| {
            let code = file.lines().map(|(_, line)| line.trim_start());
            let uses = code.filter(|line| !line.starts_with("//")).map(count).sum();
            (file.path.clone(), uses)
        })
        .filter(|(_, uses)| *uses > 0)
        .collect();
    let document = read("docs/security.md").text;
    let section = document.split("## Unsafe code").nth(1).expect("a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut listed: Vec<(String, usize)> = section
        .lines()
        .filter_map(|line| {
            let (path, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
            let (uses, _) = rest.split_once(" |")?;
            Some((path.to_owned(), uses.parse().ok()?))
        })
        .collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed, "keep the table of docs/security.md true");
}

#[test]
fn every_fuzz_target_is_listed_and_its_corpus_replayed() {
    let manifest = read("fuzz/Cargo.toml").text;
    let tests = files("crates", &[".rs"]);
    let mut wrong = Vec::new();
    let targets = files("fuzz/fuzz_targets", &[".rs"]);
    assert!(targets.len() >= 15, "only {} targets", targets.len());
    for target in &targets {
        let name = target.path.rsplit('/').next().unwrap_or_default();
        let name = name.trim_end_matches(".rs");
        if !manifest.contains(&format!(
            "name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\""
        )) {
            wrong.push(format!("{name} has no [[bin]] in fuzz/Cargo.toml"));
        }
        let call = format!("replay_corpus(\"{name}\"");
        let is_replayed = |file: &File| file.text.contains(&call);
        if !tests.iter().any(is_replayed) {
            wrong.push(format!("no test replays fuzz/corpus/{name}"));
        }
        if count_files(&format!("fuzz/corpus/{name}")) == 0 {
            wrong.push(format!("fuzz/corpus/{name} is empty"));
        }
    }
    assert_none("see CONTRIBUTING.md, \"Fuzzing\"", &wrong);
    // All targets, without a list that one could be missing from.
    assert!(read(".ci/run").text.contains("cargo fuzz list | xargs -P"));
}

#[test]
fn tests_are_skipped_in_one_place() {
    let mark = ["\"skip", "ped: "].concat();
    let others: Vec<File> = rust()
        .into_iter()
        .filter(|file| {
            file.path != "crates/testkit/src/lib.rs" && file.path != "crates/testkit/src/alone.rs"
        })
        .collect();
    assert_none(
        "call `lastbyte_testkit::skip`, which fails with `CI` set",
        &violations(&others, |line| line.contains(&mark)),
    );
}

#[test]
fn pure_crates_have_no_standard_library() {
    for name in WITHOUT_STD
        .iter()
        .filter(|name| crates().contains(&(**name).to_owned()))
    {
        let library = library(name);
        assert!(
            library.text.contains("#![cfg_attr(not(test), no_std)]"),
            "{} must be `no_std` outside of its tests",
            library.path
        );
        let sources = files(&format!("crates/{name}/src"), &[".rs"]);
        let code: Vec<File> = sources
            .into_iter()
            .filter(|file| !file.path.ends_with("tests.rs") && !file.path.contains("/tests/"))
            .collect();
        assert_none(
            "use `core` or `alloc`",
            &violations(&code, |line| line.contains("extern crate std")),
        );
    }
}

#[test]
fn crates_depend_only_on_listed_crates() {
    let mut wrong = Vec::new();
    for name in crates() {
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("crates/{name} is not in the table of this test"));
            continue;
        };
        for used in used_by(&name) {
            if allowed.split_whitespace().all(|one| one != used) {
                wrong.push(format!("crates/{name}/Cargo.toml uses {used}"));
            }
        }
    }
    assert_none("see the dependency diagram in ARCHITECTURE.md", &wrong);
}

/// The workspace crates in the `[dependencies]` of a crate. Development dependencies do not count.
fn used_by(name: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{name}/Cargo.toml"));
    let mut in_dependencies = false;
    let mut used = Vec::new();
    for line in manifest.text.lines() {
        if line.starts_with('[') {
            in_dependencies = line == "[dependencies]";
        } else if in_dependencies && let Some(rest) = line.strip_prefix("lastbyte-") {
            used.push(
                rest.split(['.', ' ', '='])
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
    used
}

#[test]
fn every_crate_is_mentioned_in_the_architecture() {
    let text = read("ARCHITECTURE.md").text;
    for name in crates() {
        assert!(
            text.contains(&format!("`{name}`")),
            "ARCHITECTURE.md does not mention `{name}`"
        );
    }
}

/// Crates in which documentation still begins with pronouns. The list only becomes shorter.
const WITH_PRONOUNS: [&str; 17] = [
    "congestion",
    "driver",
    "engine",
    "http3",
    "json",
    "link",
    "load",
    "origin",
    "page",
    "query",
    "quic",
    "record",
    "report",
    "scenario",
    "server",
    "sim",
    "units",
];

/// The first sentence of an item's documentation has a noun as its subject: an index of items shows it without the item before.
#[test]
fn documentation_begins_with_a_noun() {
    let mut wrong = Vec::new();
    for name in crates()
        .iter()
        .filter(|name| !WITH_PRONOUNS.contains(&name.as_str()))
    {
        for file in files(&format!("crates/{name}/src"), &[".rs"]) {
            let mut was_documentation = false;
            for (number, line) in file.text.lines().enumerate() {
                let text = line.trim_start().strip_prefix("/// ");
                let word = text.and_then(|text| text.split([' ', ',', ':', '.']).next());
                let is_pronoun =
                    word.is_some_and(|word| ["It", "Its", "They", "Those"].contains(&word));
                if is_pronoun && !was_documentation {
                    wrong.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
                }
                was_documentation = line.trim_start().starts_with("///");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn contributing_and_ci_run_the_same_test_command() {
    let command = "cargo test --workspace";
    assert!(read("CONTRIBUTING.md").text.contains(command));
    assert!(read(".ci/run").text.contains(command));
}

#[test]
fn every_algorithm_is_in_the_document_on_congestion_control() {
    let document = read("docs/congestion.md").text;
    let presets = read("crates/congestion/src/spec/preset.rs").text;
    let mut found = 0;
    for line in presets.lines() {
        if let Some(name) = line.trim().strip_prefix("name: \"") {
            let name = name.trim_end_matches("\",");
            assert!(
                document.contains(&format!("`{name}`")),
                "docs/congestion.md does not mention `{name}`"
            );
            found += 1;
        }
    }
    assert!(found >= 9, "only {found} presets found");
}

/// The circles between modules that exist. Most are a module whose methods are spread over files below it (`client`, `connection`,
/// `endpoint`, `bbr`, `vm`), or types that contain each other (`value::env` and `value::proc`); in the others, one type is used both
/// ways. The list may only shrink.
const CIRCLES: &str = "\
client: client client::servers client::tcp
congestion: bbr bbr::control bbr::loss bbr::probe_bandwidth bbr::probe_rtt bbr::recovery
congestion: config spec spec::key spec::preset spec::value window window::episode window::idle window::proportional
congestion: controller sampler
http3: connection connection::control connection::critical connection::receiving connection::request_stream connection::shared connection::shutdown connection::stalls connection::unidirectional
json: scan::kernel scan::kernel::scalar
lastbyte: commands::ab commands::ab::connections
lastbyte: commands::get::request commands::get::request::uploads
origin: application application::served
origin: exchange exchange::channel handler
query: lower lower::stages lower::survey
query: methods::array methods::array::combine methods::array::order methods::class methods::enumerable methods::enumerator methods::hash methods::object methods::range methods::string::search methods::table
query: reducers::groups reducers::scope
query: run run::deferred run::pipeline
query: value value::compare value::enumerator value::env value::exception value::inspect value::number value::proc value::table
query: vm vm::block
quic: connection connection::event connection::handshake connection::paths connection::peer_parameters connection::start connection::transmit
quic: crypto::plain::config crypto::plain::handshake
quic: crypto::tickets crypto::tickets::keys
quic: crypto::tickets::testing crypto::tls::testing
quic: endpoint endpoint::accept endpoint::route endpoint::slot
record: connection_log::keys connection_log::schema connection_log::tcp
server: proxy proxy::body proxy::pool proxy::threads
";

#[test]
fn modules_do_not_use_each_other_in_circles() {
    let mut found = Vec::new();
    for name in crates() {
        for circle in circles(&name) {
            found.push(format!("{name}: {}", circle.join(" ")));
        }
    }
    let listed: Vec<&str> = CIRCLES.lines().collect();
    assert_eq!(
        found, listed,
        "move what both modules use below them; a circle that is gone leaves the list"
    );
}

#[test]
fn every_crate_has_a_readme_and_a_front_page_example() {
    // The binary and the tools for tests have nothing to show.
    const WITHOUT_EXAMPLE: [&str; 2] = ["lastbyte", "tidy"];
    let mut wrong = Vec::new();
    for name in crates() {
        if files(&format!("crates/{name}"), &["README.md"]).is_empty() {
            wrong.push(format!("crates/{name} has no README.md"));
        }
        let header = library(&name);
        let mut header = header
            .lines()
            .filter(|(_, line)| line.starts_with("//! ```"));
        if header.next().is_none() && !WITHOUT_EXAMPLE.contains(&name.as_str()) {
            wrong.push(format!(
                "crates/{name}/src/lib.rs begins without an example"
            ));
        }
    }
    assert_none("write what the crate is, and how to use it", &wrong);
}

/// What a measurement holds for is above its table: commit, machine, and the client that made the load.
#[test]
fn every_table_of_measurements_names_commit_machine_and_load() {
    let is_provenance = |line: &&str| {
        let (what, load) = line.split_once("; load: ").unwrap_or_default();
        let commit = what.strip_prefix("*Lastbyte ").unwrap_or_default();
        let (commit, machine) = commit.split_once(", ").unwrap_or_default();
        let is_commit = commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit());
        is_commit && machine.contains(", ") && load.ends_with(".*")
    };
    for document in ["docs/performance.md"] {
        let text = read(document).text;
        let lines: Vec<&str> = text.lines().collect();
        let tables = (1..lines.len()).filter(|at| lines[*at].starts_with("|---"));
        let mut count = 0;
        for head in tables.map(|at| at - 1) {
            let above = lines[..head].iter().rev();
            let mut near = above.take_while(|line| !line.starts_with(['|', '#']));
            assert!(
                near.any(is_provenance),
                "{document}:{}: a table without `*Lastbyte COMMIT, machine, date; load: client.*` above it",
                head + 1
            );
            count += 1;
        }
        assert!(count >= 7, "{document}: only {count} tables found");
    }
}
