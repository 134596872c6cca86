//! Sections for further work: connections to look at, and the required number of connections.

use core::fmt::Write;

use super::Page;
use crate::{
    comparison::{
        analysis::Analysis,
        format::{self, percent},
        notable::Notable,
        tables::{Table, named},
        text,
    },
    svg::lines,
};

impl Page<'_> {
    /// Connections to look at.
    pub(super) fn notable(&mut self) {
        let analysis = self.analysis;
        let settings = &analysis.settings;
        let Some((lists, replay)) = analysis.notable.as_ref().zip(settings.replay.as_ref()) else {
            return;
        };
        self.add("<section id=\"notable\"><h2>Connections to look at</h2>\n");
        for (title, list) in [
            ("Slowest transfers", &lists.slowest),
            ("Made slower most", &lists.slower),
            ("Made faster most", &lists.faster),
        ] {
            if list.is_empty() {
                continue;
            }
            self.add(&table(analysis, title, list));
            let commands: Vec<String> = list
                .iter()
                .map(|one| format!("{replay} --replay {0} --plot {0}.html", one.seed))
                .collect();
            let _ = writeln!(
                self.body,
                "<details class=\"query\"><summary>Commands</summary><div><button type=\"button\" hidden>Copy</button>\
                 <pre tabindex=\"0\"><code>{}</code></pre></div></details>",
                lines(&commands)
            );
        }
        self.add(
            "<p class=\"note\">Times are TTLBs of the path in each arm. A path is at most once in a list. The commands simulate a connection again in every \
             arm, with the same result, and draw it.</p></section>\n",
        );
    }

    /// How many connections an experiment needs.
    pub(super) fn power(&mut self) {
        let sentences = text::power(self.analysis);
        if sentences.is_empty() {
            return;
        }
        self.add("<section id=\"power\"><h2>Connections needed</h2>\n");
        self.list("verdicts", &sentences);
        self.add(
            "<p class=\"note\">Numbers are of all arms together, for a two-sided test of this value alone at 5 % for all arms (Bonferroni). They follow from the \
             standard errors in this log, which fall with the square root of the number of connections. Assumed: further connections are like \
             these, arms have equal shares, and the variance does not depend on the change. The lists above test more values at once, so they need \
             more connections.</p></section>\n",
        );
    }
}

/// Seed, and the time in each arm.
fn table(analysis: &Analysis, caption: &str, list: &[Notable]) -> String {
    let mut columns = vec!["seed", "arm", "change"];
    columns.extend(analysis.arms.iter().map(|arm| arm.name.as_str()));
    let mut table = Table::new(caption, &columns);
    for one in list {
        let mut cells = vec![
            named(&analysis.arms[one.arm].name, Some(one.arm)),
            one.change.map_or_else(String::new, percent),
        ];
        let times = one.times.iter();
        cells.extend(times.map(|time| match time {
            Some(micros) => format::value(Some(*micros), "ms"),
            None => "never".to_owned(),
        }));
        let seed = one.seed.to_string();
        table.row(&seed, None, &cells);
    }
    table.finish()
}
