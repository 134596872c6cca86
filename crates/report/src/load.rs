//! A run of a load generator: latency and rate over time, and latency by percentile; and two servers in turn.
//!
//! One self-contained page without a script, light and dark. Each chart is drawn twice, for screens and for phones.
//!
//! | file | owns |
//! |---|---|
//! | `load/data.rs` | the data of a run, and of two servers |
//! | `load/figure.rs` | the charts |

use core::fmt::Write as _;

mod data;
mod figure;

pub use self::data::{Distribution, Interval, Run, Step, Tile, Versus};
use crate::{
    document,
    figure::{Figure, Size},
    svg::{self, escaped},
};

#[cfg(test)]
mod tests;

/// The style of the headline and the command.
pub(crate) const STYLE: &str = include_str!("load/page.css");

/// The tiles, and the command that made the page.
pub(crate) fn headline(tiles: &[Tile], command: &str, body: &mut String) {
    if !tiles.is_empty() {
        body.push_str("<div class=\"tiles\">\n");
        for tile in tiles {
            let [name, value, note] = [&tile.name, &tile.value, &tile.note].map(|it| escaped(it));
            let _ = writeln!(
                body,
                "<div><span>{name}</span><strong>{value}</strong><small>{note}</small></div>"
            );
        }
        body.push_str("</div>\n");
    }
    if !command.is_empty() {
        let _ = writeln!(body, "<pre class=\"command\">{}</pre>", escaped(command));
    }
}

/// A chart for screens and for phones.
pub(crate) fn chart(title: &str, figure: Option<&Figure>, body: &mut String) {
    let _ = writeln!(body, "<section><h2>{title}</h2>");
    match figure {
        Some(figure) => {
            for (size, class) in [(Size::Wide, "wide"), (Size::Narrow, "narrow")] {
                let drawn = svg::inline(&figure.screen(size));
                let _ = writeln!(body, "<div class=\"plot {class}\">{drawn}</div>");
            }
        }
        None => body.push_str("<p>no data</p>\n"),
    }
    body.push_str("</section>\n");
}

pub(crate) fn notes(notes: &[String], body: &mut String) {
    for note in notes {
        let _ = writeln!(body, "<p class=\"note\">{}</p>", document::with_code(note));
    }
}

impl Versus {
    /// The chart for print.
    pub fn figures(&self) -> Vec<Figure> {
        figure::ratios(&self.ratios).into_iter().collect()
    }

    /// The page.
    pub fn html(&self) -> String {
        let mut body = document::header(&self.title, &self.subtitle, &self.warnings);
        headline(&self.tiles, &self.command, &mut body);
        notes(&self.notes, &mut body);
        chart(
            "Ratio by round",
            figure::ratios(&self.ratios).as_ref(),
            &mut body,
        );
        document::table(&self.header, &self.rows, &mut body);
        document::page(&self.title, &[document::STYLE, STYLE], &body, None)
    }
}

impl Run {
    /// Without values that cannot be drawn.
    fn cleaned(&self) -> Self {
        let mut run = self.clone();
        if !(run.width_ms.is_finite() && run.width_ms > 0.0) {
            run.width_ms = 1.0;
        }
        let (count, width) = (run.intervals.len() as f64, run.width_ms);
        if !(run.end_ms > (count - 1.0) * width && run.end_ms <= count * width) {
            run.end_ms = count * width;
        }
        let is_time = |ms: &f64| ms.is_finite() && *ms >= 0.0;
        for interval in &mut run.intervals {
            interval.max_ms = interval.max_ms.filter(is_time);
        }
        let count = run.intervals.len();
        for steps in [&mut run.p50, &mut run.p99] {
            steps.retain(|step| is_time(&step.ms) && step.intervals.end <= count);
        }
        for distribution in &mut run.distributions {
            let points = &mut distribution.points;
            points.retain(|(share, ms)| (0.0..=1.0).contains(share) && is_time(ms));
        }
        run
    }

    /// The page.
    pub fn html(&self) -> String {
        self.cleaned().page()
    }

    /// A time in ms, as the page writes it.
    pub fn time(ms: f64) -> String {
        figure::time(ms)
    }

    /// The charts for print.
    pub fn figures(&self) -> Vec<Figure> {
        let run = self.cleaned();
        figure::ALL
            .iter()
            .filter_map(|(_, draw)| draw(&run))
            .collect()
    }

    fn page(&self) -> String {
        let mut body = document::header(&self.title, &self.subtitle, &self.warnings);
        headline(&self.tiles, &self.command, &mut body);
        for (title, draw) in figure::ALL {
            chart(title, draw(self).as_ref(), &mut body);
        }
        self.table(&mut body);
        notes(&self.notes, &mut body);
        document::facts(&self.facts, &mut body);
        document::page(&self.title, &[document::STYLE, STYLE], &body, None)
    }

    /// The percentiles as a table.
    fn table(&self, body: &mut String) {
        const SHARES: [(&str, f64); 6] = [
            ("P50", 0.5),
            ("P75", 0.75),
            ("P90", 0.9),
            ("P99", 0.99),
            ("P99.9", 0.999),
            ("P99.99", 0.9999),
        ];
        body.push_str("<div class=\"scroll\"><table><thead><tr><th></th>");
        for (name, _) in SHARES {
            let _ = write!(body, "<th>{name}</th>");
        }
        body.push_str("</tr></thead><tbody>\n");
        for distribution in &self.distributions {
            let _ = write!(body, "<tr><th>{}</th>", escaped(&distribution.name));
            for (_, share) in SHARES {
                let point = distribution.points.iter().find(|(at, _)| *at >= share);
                let cell = point.map_or_else(|| "–".to_owned(), |(_, ms)| figure::time(*ms));
                let _ = write!(body, "<td>{cell}</td>");
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div>\n");
    }
}
