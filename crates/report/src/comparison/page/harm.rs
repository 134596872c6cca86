//! The section on harm: what neighbours lose or gain.

use super::{Page, Subject};
use crate::comparison::{
    analysis::Analysis,
    figure::Size,
    format::{self, count, percent, percent_range, points, points_range, signed},
    neighbours::Kind,
    tables::{Table, estimate, judged, known},
    text,
};

impl Page<'_> {
    /// What neighbours lose or gain.
    pub(super) fn harm(&mut self) {
        let analysis = self.analysis;
        let Some(kinds) = &analysis.neighbours else {
            return;
        };
        self.add("<section id=\"harm\"><h2>Harm to neighbours</h2>\n");
        if let [kind] = kinds.as_slice() {
            self.chart(Subject::Neighbour(kind), &[Size::Wide, Size::Narrow]);
        } else {
            let legend = self.legend();
            self.add(&legend);
            self.add("<div class=\"many sizes\">");
            for kind in kinds {
                self.chart(Subject::Neighbour(kind), &[Size::Small]);
            }
            self.add("</div>\n");
        }
        self.list("verdicts", &text::harm(analysis));
        self.add(
            "<p class=\"note\">Each path has a neighbour: another user’s traffic over the same bottleneck. The charts show the distribution, over paths, of \
             the change of what the neighbour gets from the start of the transfer until a horizon that is the same in every arm. Left of zero the \
             neighbour gets less. In sentences and table, the change of the rate is the geometric mean over paths, with each path’s ratio limited \
             to a factor of 16; delay is the mean time that its packets wait in the queue, and loss the share of them that the path dropped. Their \
             intervals are 95 % simultaneous over all neighbours, arms and values (Bonferroni); bands are 95 % at each percentile. A chart is pale if \
             no value differs significantly.</p>\n",
        );
        self.add(&table(analysis, kinds));
        let queries = kinds.iter();
        self.queries(queries.map(|kind| (kind.name.as_str(), kind.query.as_str())));
        self.add("</section>\n");
    }
}

fn table(analysis: &Analysis, kinds: &[Kind]) -> String {
    let columns = [
        "arm",
        "paths",
        "rate, median",
        "change of rate",
        "less by > 5 %",
        "delay, mean",
        "difference",
        "loss, mean",
        "difference",
    ];
    let mut table = Table::new("What neighbours get, by arm", &columns);
    for kind in kinds {
        table.part(&kind.name, columns.len());
        for (arm, one) in analysis.arms.iter().enumerate() {
            let [rate, delay, dropped] = kind.typical[arm];
            let [change, later, more_dropped] = kind.differences[arm];
            let less = estimate(kind.less[arm], format::share, format::share_range);
            let number = |value: Option<f64>, unit: &str, scale: f64| {
                known(value, |value| format!("{:.2}\u{a0}{unit}", value * scale))
            };
            let blank = |text: String| if arm == 0 { String::new() } else { text };
            table.row(
                &one.name,
                Some(arm),
                &[
                    blank(count(kind.counts[arm])),
                    number(rate, "Mb/s", 1e-6),
                    blank(judged(change, true, percent, percent_range)),
                    blank(less),
                    number(delay, "ms", 1.0),
                    blank(judged(later, false, ms, ms_range)),
                    number(dropped, "%", 1.0),
                    blank(judged(more_dropped, false, points, points_range)),
                ],
            );
        }
    }
    table.finish()
}

fn ms(value: f64) -> String {
    format!("{}\u{a0}ms", signed(value, 2))
}

fn ms_range((low, high): (f64, f64)) -> String {
    format!("{} to\u{a0}{}", signed(low, 2), signed(high, 2))
}
