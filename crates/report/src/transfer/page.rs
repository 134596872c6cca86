//! The page: its markup, data, style sheet and script.
//!
//! The page loads nothing, and its policy forbids it. Titles and labels are escaped in the markup and in the data, so that they
//! cannot end the element that contains them.

use core::fmt::Write;

use crate::{
    document::{Script, page},
    scale::Unit,
    svg::{self, escaped},
};

use super::{
    Arm, Picture, clean, figure, pack,
    panel::{self, Kind, Row, Series},
    play, thin,
};

const STYLE: &str = include_str!("page.css");
const PROGRAM: &str = concat!(include_str!("page.js"), include_str!("play.js"));

/// The page of a picture, clean or not.
pub(super) fn document(picture: &Picture) -> String {
    let picture = clean::cleaned(picture);
    let title = escaped(&picture.title);
    let subtitle = escaped(&picture.subtitle);
    let results = results(&picture);
    let results: Vec<String> = results
        .iter()
        .map(|text| format!("<p class=\"summary\">{}</p>", escaped(text)))
        .collect();
    let results = results.concat();
    let figure = svg::document(&figure::scene(&picture));
    let data = data(&picture);
    let body = format!(
        r#"<header>
<div><h1>{title}</h1>{results}<p>{subtitle}</p></div>
<div class="tools" role="toolbar" aria-label="View"></div>
</header>
<main id="rows" tabindex="0" aria-label="Panels over time. Arrow keys move the cursor, plus and minus zoom, shift and arrows pan, 0 resets."></main>
<p class="help" hidden>Wheel, pinch or drag to zoom into time. Shift-drag to pan. Double-click to reset the zoom. Click a name in a legend to hide it. Keys: ← → move the cursor, + − zoom, shift ← → pan, 0 resets.</p>
<section id="play" aria-label="Play" tabindex="0" hidden></section>
<div id="tip" role="status"></div>
<noscript>
{figure}</noscript>
"#
    );
    let script = Script {
        data: &format!("\n{data}\n"),
        program: PROGRAM,
    };
    page(&picture.title, &[STYLE], &body, Some(&script))
}

/// The result of each arm, and where its time went.
fn results(picture: &Picture) -> Vec<String> {
    let with_name = picture.arms.len() > 1;
    let results = picture.arms.iter().filter_map(|arm| {
        let texts = [arm.note.as_str(), arm.summary.as_str()];
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let text = texts.join(". ");
        let named = || format!("{}: {text}.", arm.label);
        let alone = || format!("{text}.");
        (!text.is_empty()).then(|| if with_name { named() } else { alone() })
    });
    results.collect()
}

/// The data of the script, as JSON.
fn data(picture: &Picture) -> String {
    let rows = panel::rows(picture);
    let end = picture.arms.iter().map(clean::end).fold(0.0, f64::max);
    let guides = &picture.guides;
    let rows_json = list(
        rows.iter()
            .map(|(row, series)| row_json(picture, row, series)),
    );
    // As the page reads it.
    let all = if end > 0.0 {
        (end * 1e6).round() / 1e6 * 1.02
    } else {
        1.0
    };
    let arms = list(
        picture
            .arms
            .iter()
            .map(|arm| arm_json(picture, arm, &rows, all)),
    );
    let rate = guides.rate.map_or("null".to_owned(), number);
    format!(
        "{{\"end\":{},\"rate\":{rate},\"since\":{},\n\"rows\":{rows_json},\n\"arms\":{arms}}}",
        number(end),
        string(&picture.since())
    )
}

fn row_json(picture: &Picture, row: &Row, series: &[&Series]) -> String {
    let (lo, hi) = panel::extent(picture, row, series);
    let level = panel::level(row, &picture.guides).map_or("null".to_owned(), |(value, label)| {
        format!("[{},{}]", number(value), string(&label))
    });
    let series = list(series.iter().map(|series| {
        let kind = match series.kind {
            Kind::Dots => "dots",
            Kind::Steps => "steps",
            Kind::Dashed => "dashed",
            Kind::Area => "area",
            Kind::Crosses => "crosses",
        };
        format!(
            "{{\"key\":{},\"label\":{},\"kind\":\"{kind}\",\"overlaid\":{}}}",
            string(series.key),
            string(series.label),
            series.overlaid
        )
    }));
    let unit = match row.unit {
        Unit::Bytes => "B",
        Unit::BitsPerSecond => "b/s",
        Unit::Milliseconds => "ms",
        Unit::Percent => "%",
        Unit::PerSecond => "/s",
        Unit::Number => "",
    };
    format!(
        "{{\"key\":{},\"title\":{},\"unit\":\"{unit}\",\"height\":{},\"extent\":[{},{}],\"level\":{level},\"series\":{series}}}",
        string(row.key),
        string(row.title),
        row.height,
        number(lo),
        number(hi)
    )
}

fn arm_json(picture: &Picture, arm: &Arm, rows: &[(&Row, Vec<&Series>)], end: f64) -> String {
    let mut series_json = Vec::new();
    for (row, series) in rows {
        for series in series {
            let points = (series.of)(arm);
            // Crosses are counted.
            let thinned = (series.kind != Kind::Crosses).then(|| thin::spans(points, end));
            let points = thinned.as_ref().unwrap_or(points);
            if !points.is_empty() {
                let grain = pack::grain(row.unit);
                series_json.push(format!(
                    "{}:[{},{grain},\"{}\"]",
                    string(series.key),
                    points.len(),
                    pack::packed(points, grain)
                ));
            }
        }
    }
    let periods = |periods: &[(f64, f64)]| {
        let periods = periods.iter();
        list(periods.map(|(from, to)| format!("[{},{}]", number(*from), number(*to))))
    };
    let (recovery, blocked) = (periods(&arm.recovery), periods(&arm.blocked));
    let events = list(
        arm.events
            .iter()
            .map(|(ms, name)| format!("[{},{}]", number(*ms), string(name))),
    );
    let phases = list(
        arm.phases
            .iter()
            .map(|(ms, name)| format!("[{},{}]", number(*ms), string(name))),
    );
    let packets = if arm.packets.is_empty() {
        "null".to_owned()
    } else {
        play::json(arm)
    };
    let slope = panel::slope(arm, &picture.guides).map_or("null".to_owned(), |(from, slope)| {
        format!("[{},{}]", number(from.ms), number(slope))
    });
    format!(
        "{{\"label\":{},\"note\":{},\"end\":{},\"ended\":{},\"slope\":{slope},\"recovery\":{recovery},\"blocked\":{blocked},\"events\":{events},\"phases\":{phases},\"packets\":{packets},\n\"series\":{{{}}}}}",
        string(&arm.label),
        string(&arm.note),
        number(clean::end(arm)),
        arm.ended.map_or("null".to_owned(), number),
        series_json.join(",\n")
    )
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    format!("[{}]", items.join(","))
}

/// A finite number, to a millionth.
fn number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{}", if rounded.is_finite() { rounded } else { value })
}

/// A JSON string that cannot end a `script` element.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' | '\u{7f}' => {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
