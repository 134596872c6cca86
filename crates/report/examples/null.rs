//! How often a page claims a difference that does not exist.
//!
//! Connections of a log are drawn and assigned to four arms at random, so that all arms are the same, and a page is made of
//! them. This is repeated with other seeds. For each list of the page, the program prints the number of pages on which it states
//! a significant difference: nominally 5 %. Below them are the shares of single intervals that do not contain zero, of the
//! percentiles P5 to P95 and of the means, also nominally 5 %; and the pages on which a number or an interval is missing.
//!
//! ```console
//! cargo run --release -p lastbyte-report --example null -- 200 2000 conns.ndjson
//! ```
//!
//! The arguments are the number of pages, the number of connections of each, and logs, each of which has a column. The log of
//! unpaired connections must have a single congestion control. Of paired ones, each path's connections are assigned to the arms
//! in random order, so they may have several. `--incomplete 0.03` makes this share of all connections incomplete, at random.

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
const LISTS: [&str; 6] = [
    "percentiles",
    "overall",
    "beside",
    "parts",
    "harm",
    "subgroups",
];

/// What the pages of a log claim.
#[derive(Default)]
struct Tally {
    pages: u64,
    /// Pages by list, and by value of the list `beside`, and those with any claim.
    claims: BTreeMap<String, u64>,
    /// Claims of less and of more of the list `overall`.
    sides: [u64; 2],
    /// Intervals of a percentile alone, and those that do not contain zero.
    points: [u64; 2],
    /// Intervals of a mean alone, and those that do not contain zero.
    means: [u64; 2],
    /// Pages on which the mean of the percentiles is missing for an arm.
    without_overall: u64,
    /// Pages on which a percentile has an estimate and no simultaneous interval.
    with_gaps: u64,
}

/// Whether an interval does not contain zero. An end that is `null` is unbounded.
fn excludes_zero(interval: &Value) -> bool {
    interval[0].as_f64().is_some_and(|low| low > 0.0)
        || interval[1].as_f64().is_some_and(|high| high < 0.0)
}

impl Tally {
    fn add(&mut self, page: &Value) {
        self.pages += 1;
        let claims = || page["significant"].as_array().into_iter().flatten();
        let mut lists = BTreeSet::new();
        for claim in claims() {
            let list = claim["list"].as_str().unwrap_or_default().to_owned();
            if list == "beside" {
                lists.insert(format!("  {}", claim["what"].as_str().unwrap_or_default()));
            }
            if list == "overall" {
                self.sides[usize::from(claim["change"] == "more")] += 1;
            }
            lists.insert(list);
            lists.insert("any".to_owned());
        }
        for list in lists {
            *self.claims.entry(list).or_insert(0) += 1;
        }
        let arms = page["groups"][0]["arms"].as_array().into_iter().flatten();
        let (mut lacks_overall, mut has_gaps) = (false, false);
        for arm in arms.skip(1) {
            lacks_overall |= arm["overall_change"].is_null();
            let mean = &arm["mean_change"][1];
            if mean.is_array() {
                self.means[0] += 1;
                self.means[1] += u64::from(excludes_zero(mean));
            }
            let curve = arm["changes_estimate_alone_together"].as_array();
            for cell in curve.into_iter().flatten().take(95).skip(4) {
                if cell[1].is_array() {
                    self.points[0] += 1;
                    self.points[1] += u64::from(excludes_zero(&cell[1]));
                }
                has_gaps |= !cell[0].is_null() && cell[2].is_null();
            }
        }
        self.without_overall += u64::from(lacks_overall);
        self.with_gaps += u64::from(has_gaps);
    }
}

/// A page of connections of the log, each path in the arms in random order.
fn page(
    paths: &[&[Value]],
    lines: usize,
    incomplete: f64,
    (log, seed): (u64, u64),
) -> Result<Value, Box<dyn Error>> {
    let mut random = SplitMix64::stream(seed, log);
    let mut left = paths.to_vec();
    let (mut page, mut drawn) = (String::new(), 0);
    while drawn < lines && !left.is_empty() {
        let path = left.swap_remove(random.number() as usize % left.len());
        let mut arms = ARMS.to_vec();
        for row in path {
            let arm = arms.swap_remove(random.number() as usize % arms.len());
            let mut row = row.clone();
            row["arm"] = arm.into();
            if incomplete > 0.0
                && ((random.number() >> 11) as f64) < incomplete * (1u64 << 53) as f64
            {
                row["ttlb"] = Value::Null;
                row["complete"] = false.into();
            }
            writeln!(page, "{row}")?;
        }
        drawn += path.len();
    }
    let settings = Settings {
        seed,
        ..Settings::default()
    };
    let comparison = Comparison::read(vec![Input::from_bytes("log", page.into_bytes())], settings)?;
    Ok(serde_json::from_str(&comparison.json())?)
}

#[expect(clippy::print_stdout, reason = "its result")]
fn row(name: &str, tallies: &[Tally], of: impl Fn(&Tally) -> String) {
    let cells: Vec<String> = tallies.iter().map(of).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

fn share(part: u64, of: u64) -> String {
    if of == 0 {
        return "–".to_owned();
    }
    format!("{:.1} %", 100.0 * part as f64 / of as f64)
}

#[expect(clippy::disallowed_methods, reason = "a program that reads files")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let mut incomplete = 0.0;
    if arguments.first().is_some_and(|one| one == "--incomplete") && arguments.len() > 1 {
        incomplete = arguments.remove(1).parse()?;
        arguments.remove(0);
    }
    let [pages, lines, logs @ ..] = arguments.as_slice() else {
        return Err("expected the number of pages, the number of lines of each, and logs".into());
    };
    let (pages, lines): (u64, usize) = (pages.parse()?, lines.parse()?);
    let mut tallies = Vec::new();
    for (log, stream) in logs.iter().zip(0..) {
        let text = fs::read_to_string(log)?;
        let rows: Vec<Value> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let paths: Vec<&[Value]> = rows.chunk_by(|a, b| a["seed"] == b["seed"]).collect();
        if paths.iter().any(|path| path.len() > ARMS.len()) {
            return Err(format!("{log}: a path has more than four connections").into());
        }
        let mut tally = Tally::default();
        for seed in 1..=pages {
            tally.add(&page(&paths, lines, incomplete, (stream, seed))?);
        }
        tallies.push(tally);
    }
    row("list", &tallies, |tally| format!("{} pages", tally.pages));
    let indented = ["  mean", "  mean packet loss", "  completed transfers"];
    for list in LISTS.into_iter().chain(indented).chain(["any"]) {
        row(list, &tallies, |tally| {
            let wrong = tally.claims.get(list).copied().unwrap_or(0);
            format!("{wrong} ({})", share(wrong, tally.pages))
        });
    }
    row("overall: less, more", &tallies, |tally| {
        let [less, more] = tally.sides;
        format!("{less}, {more}")
    });
    row("single percentiles", &tallies, |tally| {
        share(tally.points[1], tally.points[0])
    });
    row("single means", &tallies, |tally| {
        share(tally.means[1], tally.means[0])
    });
    row("pages without the mean of percentiles", &tallies, |tally| {
        tally.without_overall.to_string()
    });
    row("pages with gaps of the band", &tallies, |tally| {
        tally.with_gaps.to_string()
    });
    Ok(())
}
