//! The section on the numbers of connections: tests of their balance, and the estimates stratified by site.

use super::Page;
use crate::comparison::{
    balance::{ALARM, LOOK},
    format, tables, text, warnings,
};

impl Page<'_> {
    pub(super) fn ratio(&mut self) {
        let analysis = self.analysis;
        self.add("<section id=\"ratio\"><h2>Sample ratio check</h2>\n");
        self.add(&tables::ratio(analysis));
        if analysis.is_paired {
            self.paragraph(&match analysis.incomplete_paths {
                0 => {
                    "Each path is in every arm, so the numbers cannot be out of balance.".to_owned()
                }
                some => format!(
                    "{} of {} paths lack an arm; all others are in every arm.",
                    format::count(some as u64),
                    format::count(analysis.pairs as u64)
                ),
            });
        } else if analysis.settings.shares.is_none() {
            self.paragraph(warnings::UNASSIGNED);
        } else {
            self.add(&tables::balance(analysis));
            let least = analysis.balance.iter().map(|test| test.adjusted);
            let least = least.fold(1.0, f64::min);
            self.paragraph(if least < ALARM {
                "Too uneven for chance alone; check first how connections are assigned to arms and logged."
            } else if least < LOOK {
                "Rare by chance; look at how connections are assigned to arms and logged. Below 0.001 there are no verdicts."
            } else {
                "Consistent with chance. Below 0.01 there is a warning, and below 0.001 there are no verdicts."
            });
            self.add(
                "<p class=\"note\">The first test compares all connections with the intended shares, the others compare the shares of the arms between \
                 sites, sizes and hours (chi-squared tests of homogeneity; those with few connections are merged). p is corrected for all \
                 tests of this table (Holm). Assignment by client address (--sticky) keeps the connections of a client together, which \
                 these tests do not know.</p>\n",
            );
            if analysis.settings.shares == Some(Vec::new()) {
                self.paragraph(
                    "No shares were given, so equal shares are assumed; set them with --shares.",
                );
            }
        }
        let stratified = text::stratified(analysis);
        if !stratified.is_empty() {
            self.add("<h3>Stratified by site</h3>\n");
            self.list("plain", &stratified);
            self.add(
                "<p class=\"note\">The change of the geometric mean of completed transfers: pooled over all connections, and as the mean of the changes \
                 within sites on the logarithmic scale, each weighted with the site’s share of the connections in all arms. If arms are \
                 assigned at random, both estimate the same. Intervals are normal, 95 % simultaneous over arms (Bonferroni).</p>\n",
            );
        }
        self.query(&analysis.counts_query);
        self.add("</section>\n");
    }
}
