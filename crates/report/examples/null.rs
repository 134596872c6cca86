//! How often a page claims a difference that does not exist.
//!
//! Connections of a log are drawn and assigned to four arms at random, so that all arms are the same, and a page is made of
//! them. This is repeated with other seeds. For each list of the page, the program prints the number of pages on which it states
//! a significant difference: nominally 5 %.
//!
//! ```console
//! cargo run --release -p lastbyte-report --example null -- conns.ndjson 200 2000
//! ```
//!
//! The arguments are a log, the number of pages, and the number of connections of each. The log of unpaired connections must have
//! a single congestion control. Of paired ones, each path's connections are assigned to the arms in random order, so they may
//! have several.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    error::Error,
    fmt::Write,
    fs,
};

use lastbyte_query::Input;
use lastbyte_report::comparison::{Comparison, Settings};
use lastbyte_units::SplitMix64;
use serde_json::Value;

const ARMS: [&str; 4] = ["baseline", "a", "b", "c"];

#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that reads a file and prints"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [log, pages, lines] = arguments.as_slice() else {
        return Err("expected a log, the number of pages, and the number of lines of each".into());
    };
    let (pages, lines): (u64, usize) = (pages.parse()?, lines.parse()?);
    let text = fs::read_to_string(log)?;
    let rows: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let mut wrong: BTreeMap<String, u64> = BTreeMap::new();
    let paths: Vec<&[Value]> = rows.chunk_by(|a, b| a["seed"] == b["seed"]).collect();
    if paths.iter().any(|path| path.len() > ARMS.len()) {
        return Err("a path has more than four connections".into());
    }
    for seed in 1..=pages {
        let mut random = SplitMix64::new(seed);
        let mut left = paths.clone();
        let (mut page, mut drawn) = (String::new(), 0);
        while drawn < lines && !left.is_empty() {
            let path = left.swap_remove(random.number() as usize % left.len());
            let mut arms = ARMS.to_vec();
            for row in path {
                let arm = arms.swap_remove(random.number() as usize % arms.len());
                let mut row = row.clone();
                row["arm"] = arm.into();
                writeln!(page, "{row}")?;
            }
            drawn += path.len();
        }
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        let comparison =
            Comparison::read(vec![Input::from_bytes("log", page.into_bytes())], settings)?;
        let results: Value = serde_json::from_str(&comparison.json())?;
        let claims = results["significant"].as_array().into_iter().flatten();
        let lists: BTreeSet<String> = claims
            .map(|claim| claim["list"].as_str().unwrap_or_default().to_owned())
            .collect();
        for list in lists {
            *wrong.entry(list).or_insert(0) += 1;
        }
    }
    for list in [
        "percentiles",
        "overall",
        "beside",
        "parts",
        "harm",
        "subgroups",
    ] {
        let count = wrong.get(list).copied().unwrap_or(0);
        println!("{list}: {count} of {pages} pages");
    }
    Ok(())
}
