//! The page: charts and tables are markup; the script shows one comparison of several, a large chart, and waterfalls.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    PageLoads, Selection, figure,
    verdict::{Pair, Verdict, pairs, show_speedup},
};
use crate::{
    document::{self, Script},
    statistics::tests_of::Estimate,
    svg::{self, escaped, script_safe},
};

const STYLE: &str = include_str!("page.css");
const PROGRAM: &str = include_str!("page.js");

pub(super) fn document(loads: &PageLoads) -> String {
    let mut body = document::header(&loads.title, &loads.subtitle, &loads.warnings);
    let selections = loads.selections();
    chooser(loads, &selections, &mut body);
    let mut large = Vec::new();
    for (index, selection) in selections.iter().enumerate() {
        let all = pairs(loads, *selection);
        let hidden = if index == 0 { "" } else { " hidden" };
        let _ = writeln!(
            body,
            "<div class=\"selection\" data-selection=\"{index}\"{hidden}>"
        );
        charts(loads, *selection, &all, &mut body);
        table(loads, *selection, &all, &mut body);
        losers(loads, &all, &mut body);
        body.push_str("</div>\n");
        large.push(
            all.iter()
                .map(|pairs| {
                    pairs
                        .iter()
                        .map(|pair| json!([pair.page, tenth(pair.baseline), tenth(pair.arm)]))
                        .collect()
                })
                .collect::<Vec<Vec<Value>>>(),
        );
    }
    body.push_str(
        "<section id=\"large\" hidden><h2></h2><div class=\"plot\"></div><p class=\"note\">Click a dot for the waterfalls of its page.</p></section>\n\
         <section id=\"waterfall\" hidden><h2></h2><p class=\"note\">Light: from the request to the first byte; dark: to the last byte.</p>\
         <div class=\"sides\"></div></section>\n",
    );
    parts(loads, &mut body);
    document::facts(&loads.facts, &mut body);
    let pages = loads.pages.iter().map(|page| {
        let resources = page.resources.iter().map(|(kind, host, bytes)| json!([kind, host, bytes]));
        json!({"name": page.name, "hosts": page.hosts, "bytes": page.bytes, "resources": resources.collect::<Vec<_>>()})
    });
    let waterfalls = loads.waterfalls.iter().map(|one| {
        let bars = one.bars.iter().map(|bar| bar.map(|at| at.map(tenth)));
        let key = one.key;
        json!([
            key.page,
            key.network,
            key.arm,
            key.view,
            bars.collect::<Vec<_>>()
        ])
    });
    let chosen = selections
        .iter()
        .map(|one| json!([one.arm, one.view, one.metric.name()]));
    let data = json!({
        "arms": loads.arms,
        "networks": loads.networks,
        "views": loads.views,
        "selections": chosen.collect::<Vec<_>>(),
        "pairs": large,
        "pages": pages.collect::<Vec<_>>(),
        "waterfalls": waterfalls.collect::<Vec<_>>(),
    });
    let data = script_safe(&data.to_string());
    let script = Script {
        data: &data,
        program: PROGRAM,
    };
    document::page(
        &loads.title,
        &[document::STYLE, STYLE],
        &body,
        Some(&script),
    )
}

fn tenth(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

/// A list of arms, and one of metrics and views, each if there are several. A value is a number of places in the list of comparisons.
fn chooser(loads: &PageLoads, selections: &[Selection], body: &mut String) {
    let arms = loads.arms.len().saturating_sub(1).max(1);
    let of_an_arm = selections.len() / arms;
    let baseline = loads.arms.first().map_or("", String::as_str);
    let list = |label: &str, names: Vec<(usize, String)>, body: &mut String| {
        if names.len() < 2 {
            return;
        }
        let _ = write!(body, "<label>{} <select>", escaped(label));
        for (value, name) in names {
            let _ = write!(
                body,
                "<option value=\"{value}\">{}</option>",
                escaped(&name)
            );
        }
        body.push_str("</select></label>\n");
    };
    body.push_str("<form class=\"choose\" autocomplete=\"off\">\n");
    let names = loads.arms.iter().skip(1).enumerate();
    let names = names.map(|(place, name)| (place * of_an_arm, name.clone()));
    list(&format!("{baseline} compared with"), names.collect(), body);
    let measures = selections.iter().take(of_an_arm).enumerate();
    let measures = measures.map(|(place, one)| (place, measure_name(loads, *one)));
    list("Measure", measures.collect(), body);
    body.push_str("</form>\n");
}

fn measure_name(loads: &PageLoads, one: Selection) -> String {
    let view = loads.views.get(one.view).map_or("", String::as_str);
    format!("{}, {view} view", one.metric.name())
}

fn selection_name(loads: &PageLoads, one: Selection) -> String {
    let arm = |index: usize| loads.arms.get(index).map_or("", String::as_str);
    let measure = measure_name(loads, one);
    format!("{} against {}: {measure}", arm(one.arm), arm(0))
}

fn charts(loads: &PageLoads, selection: Selection, all: &[Vec<Pair>], body: &mut String) {
    let arm = |index: usize| escaped(loads.arms.get(index).map_or("", String::as_str));
    let layout = figure::Layout::of(all.len());
    let _ = writeln!(
        body,
        "<section><h2>{}</h2>\n<p class=\"note\">Each dot is a page: its time over {} on the horizontal axis, over {} on the vertical axis, both on the \
         same logarithmic scale. Pages below the dashed line are faster over {} (<span class=\"faster\">●</span>), others are not (<span class=\"slower\">●</span>). A page that was not complete is at the upper or right edge. Click a network to choose pages in its chart.</p>\n<div class=\"charts\" style=\"--least:{}px\">",
        escaped(&selection_name(loads, selection)),
        arm(0),
        arm(selection.arm),
        arm(selection.arm),
        // The width of a phone is less than that of a large chart.
        layout.width.min(340.0),
    );
    for (network, pairs) in all.iter().enumerate() {
        let drawn = svg::inline(&figure::chart(loads, selection, network, pairs, layout));
        let _ = writeln!(
            body,
            "<button type=\"button\" data-network=\"{network}\">{drawn}</button>"
        );
    }
    body.push_str("</div></section>\n");
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn cell(estimate: Option<Estimate>, show: impl Fn(f64) -> String) -> String {
    estimate.map_or_else(
        || "–".to_owned(),
        |one| {
            let (low, high) = one.interval;
            format!(
                "{} <small>{} to {}</small>",
                show(one.value),
                show(low),
                show(high)
            )
        },
    )
}

fn factor(value: f64) -> String {
    match show_speedup(Some(value)) {
        word if word == "–" || word == "never" => word,
        text => text + "×",
    }
}

/// The mean speedup, with the number of pages that it is of.
fn mean(verdict: &Verdict) -> String {
    match (verdict.pages - verdict.complete, verdict.speedup) {
        (0, speedup) => cell(speedup, factor),
        (_, None) => format!("– <small>{} complete pages</small>", verdict.complete),
        (_, speedup) => format!(
            "{} <small>of {} of {} pages</small>",
            cell(speedup, factor),
            verdict.complete,
            verdict.pages
        ),
    }
}

/// One row per network.
fn table(loads: &PageLoads, selection: Selection, all: &[Vec<Pair>], body: &mut String) {
    let arm = |index: usize| escaped(loads.arms.get(index).map_or("", String::as_str));
    let _ = write!(
        body,
        "<section><h2>By network</h2><p class=\"note\">Speedup: time of the baseline divided by time of the arm; above 1, the arm is faster. \
         Intervals (95 %) show how far another sample of such pages would move the figure. Everything but the arm is the same \
         in both loads of a page. A load that is not complete counts as infinitely long, but in the mean, which is of the pages that are complete over both.</p>\n<div class=\"scroll\"><table><thead><tr><th>network</th><th>pages</th><th>not complete: {}</th><th>{}</th><th>faster</th>\
         <th>geometric mean speedup</th><th>median</th><th>P5</th><th>P95</th><th>slower by &gt; 5 %</th>\
         </tr></thead><tbody>\n",
        arm(0),
        arm(selection.arm),
    );
    for (network, pairs) in all.iter().enumerate() {
        let verdict = Verdict::of(pairs);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let _ = writeln!(
            body,
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&loads.networks[network]),
            verdict.pages,
            verdict.incomplete.0,
            verdict.incomplete.1,
            cell(verdict.faster, percent),
            mean(&verdict),
            or_dash(verdict.median.map(factor)),
            or_dash(verdict.p5.map(factor)),
            or_dash(verdict.p95.map(factor)),
            or_dash(verdict.losers.map(percent)),
        );
    }
    body.push_str("</tbody></table></div></section>\n");
}

/// The result of a page over all networks.
#[derive(Clone, Copy, Default)]
struct PageResult {
    networks: u32,
    slower: u32,
    /// Networks on which it is complete over the baseline only.
    lost: u32,
    /// Networks on which it is complete over both, and the sum of the logarithms of its speedups there.
    complete: u32,
    sum: f64,
}

impl PageResult {
    fn speedup(&self) -> Option<f64> {
        (self.complete > 0).then(|| libm::exp(self.sum / f64::from(self.complete)))
    }
}

/// The pages that lose most.
fn losers(loads: &PageLoads, all: &[Vec<Pair>], body: &mut String) {
    const SHOWN: usize = 8;
    let mut of_pages: BTreeMap<usize, PageResult> = BTreeMap::new();
    for pair in all.iter().flatten() {
        let one = of_pages.entry(pair.page).or_default();
        let speedup = pair.speedup();
        one.networks += 1;
        one.slower += u32::from(speedup < 1.0);
        one.lost += u32::from(speedup == 0.0);
        let log = libm::log(speedup);
        if log.is_finite() {
            one.complete += 1;
            one.sum += log;
        }
    }
    let total = of_pages.len();
    let ever = of_pages.values().filter(|page| page.slower > 0).count();
    let loses = |page: &PageResult| page.lost > 0 || page.speedup().is_some_and(|it| it < 1.0);
    let mut pages: Vec<(usize, PageResult)> = of_pages
        .into_iter()
        .filter(|(_, page)| loses(page))
        .collect();
    let rank = |page: &PageResult| page.speedup().unwrap_or(0.0);
    pages.sort_by(|(_, one), (_, other)| {
        let by_lost = other.lost.cmp(&one.lost);
        by_lost.then(rank(one).total_cmp(&rank(other)))
    });
    let _ = writeln!(
        body,
        "<section><h2>Pages that lose</h2><p class=\"note\">{ever} of {total} pages are slower on at least one network. {} pages are slower in the \
         geometric mean over the networks on which they are complete over both, or not complete over the arm where they are over the baseline.{}</p>",
        pages.len(),
        match pages.len() {
            0 => "",
            1..=SHOWN => " They are:",
            _ => " Those that lose most:",
        }
    );
    if pages.is_empty() {
        body.push_str("</section>\n");
        return;
    }
    body.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>page</th><th>speedup</th><th>slower on</th><th>not complete on</th>\
         <th>hosts</th><th>requests</th><th>bytes</th></tr></thead><tbody>\n",
    );
    for (page, one) in pages.into_iter().take(SHOWN) {
        let facts = &loads.pages[page];
        let _ = writeln!(
            body,
            "<tr><th>{}</th><td>{}</td><td>{} of {} networks</td><td>{}</td><td>{}</td><td>{}</td><td>{} kB</td></tr>",
            escaped(&facts.name),
            one.speedup().map_or_else(|| "–".to_owned(), factor),
            one.slower,
            one.networks,
            one.lost,
            facts.hosts,
            facts.resources.len(),
            // As the program of the page rounds.
            facts.bytes.saturating_add(500) / 1000
        );
    }
    body.push_str("</tbody></table></div></section>\n");
}

/// Times of resources by kind and party, one column per arm.
fn parts(loads: &PageLoads, body: &mut String) {
    if loads.parts.is_empty() {
        return;
    }
    for (view, name) in loads.views.iter().enumerate() {
        let _ = write!(
            body,
            "<section><h2>Resources, {} view</h2><p class=\"note\">Mean time from the request to the first and to the last byte, over the complete \
             responses of all pages and networks.</p>\n<div class=\"scroll\"><table><thead><tr><th>kind, party</th><th>responses</th>",
            escaped(name)
        );
        for arm in &loads.arms {
            let arm = escaped(arm);
            let _ = write!(body, "<th>{arm}: first byte</th><th>{arm}: last byte</th>");
        }
        body.push_str("</tr></thead><tbody>\n");
        let mut rows: Vec<&(String, String)> = loads.parts.iter().map(|one| &one.part).collect();
        rows.sort();
        rows.dedup();
        for row in rows {
            let of_arm = |arm: usize| {
                let mut all = loads.parts.iter();
                all.find(|one| one.part == *row && one.view == view && one.arm == arm)
            };
            let responses = of_arm(0).map_or(0, |one| one.responses);
            let _ = write!(
                body,
                "<tr><th>{}, {}</th><td>{responses}</td>",
                escaped(&row.0),
                escaped(&row.1)
            );
            for arm in 0..loads.arms.len() {
                let one = of_arm(arm).filter(|one| one.responses > 0);
                for sum in [
                    one.map(|one| one.first_byte_ms),
                    one.map(|one| one.last_byte_ms),
                ] {
                    let mean = sum.zip(one).map(|(sum, one)| sum / one.responses as f64);
                    let text = mean.map_or_else(|| "–".to_owned(), figure::time);
                    let _ = write!(body, "<td>{text}</td>");
                }
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div></section>\n");
    }
}
