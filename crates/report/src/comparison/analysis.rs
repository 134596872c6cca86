//! From counts to changes, intervals and tests: all results of the page, as values.

use std::collections::BTreeMap;

use super::{
    balance::{self, BalanceTest, Stratified},
    copies::Copies,
    error::Error,
    format::count,
    gather::{Block, Cell, Histogram, Tally, Unpaired, merged},
    neighbours, notable,
    parts::Parts,
    paths::Paths,
    power::Power,
    queries::{self, Dialect, QueryBuilder, Subgroup, chart_shares},
    rules::LeftOut,
    settings::{BASELINES, Settings},
};
use crate::statistics::{
    Counts, Z_95,
    bootstrap::{BaselineComparison, Interval, Measure, Member, Overall, Pairs, Resampled},
    tests_of::{self, Estimate, MeanPair, RankTest},
};

/// The percentiles of the tables. The one at index 0 of [`Group::curves`] is P1.
pub(super) const TABLE: [(usize, &str); 6] = [
    (25, "P25"),
    (50, "P50"),
    (75, "P75"),
    (90, "P90"),
    (95, "P95"),
    (99, "P99"),
];
/// A subgroup with fewer connections than this in an arm is reported as small.
pub(super) const SMALL: u64 = 200;
/// The page shows the share of the mean that this many of the largest values have.
pub(super) const LARGEST: u64 = 5;
/// The page warns if it is larger.
pub(super) const LARGEST_ALARM: f64 = 0.25;
/// A few values always are much of the mean of fewer.
pub(super) const LARGEST_OF: u64 = 100;

/// All results of the page.
#[derive(Debug)]
pub(super) struct Analysis {
    pub(super) settings: Settings,
    pub(super) dialect: Dialect,
    pub(super) experiment: Option<String>,
    /// The baseline first.
    pub(super) arms: Vec<Arm>,
    pub(super) is_paired: bool,
    pub(super) pairs: usize,
    /// The change of each path, if connections are paired.
    pub(super) paths: Option<Paths>,
    /// Connections to look at, of paired connections that can be run again.
    pub(super) notable: Option<notable::NotableLists>,
    /// How many connections an experiment needs, if the settings ask for it.
    pub(super) power: Option<Power>,
    /// What neighbours lose or gain, if lines have them and are paired.
    pub(super) neighbours: Option<Vec<neighbours::Kind>>,
    /// Where the time goes, if lines have it.
    pub(super) parts: Option<Parts>,
    /// All; then bins; then sites.
    pub(super) groups: Vec<Group>,
    /// Tests of the numbers of connections, all of them first; none if connections are paired.
    pub(super) balance: Vec<BalanceTest>,
    /// The overall change by arm, pooled and by site, if there are sites and connections are not paired.
    pub(super) stratified: Vec<Option<Stratified>>,
    /// Why connections are not paired although several arms have the same seeds.
    pub(super) unpaired: Option<String>,
    /// Paths of paired connections that lack an arm.
    pub(super) incomplete_paths: usize,
    pub(super) loss: Vec<LossGroup>,
    pub(super) measures: Vec<MeasureTable>,
    /// Lines of production logs that are left out.
    pub(super) left_out: LeftOut,
    pub(super) without_arm: u64,
    pub(super) without_value: BTreeMap<String, u64>,
    /// Lines with a time of a transfer that is not complete.
    pub(super) contradictions: u64,
    /// Lines with more lost packets than sent ones, or fewer than none.
    pub(super) impossible_losses: u64,
    pub(super) copies: Option<Copies>,
    /// Connections of sizes outside of all bins.
    pub(super) outside_bins: u64,
    pub(super) trouble: Option<String>,
    pub(super) counts_query: String,
}

impl Analysis {
    /// Whether the numbers of connections cannot be by chance, so that arms are not comparable.
    pub(super) fn ratio_fails(&self) -> bool {
        self.balance
            .iter()
            .any(|test| test.adjusted < balance::ALARM)
    }
}

/// An arm.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    pub(super) name: String,
    pub(super) share: f64,
}

/// All connections, or those of a size or a site.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) subgroup: Subgroup,
    pub(super) title: String,
    /// Times to last byte in microseconds, by arm.
    pub(super) times: Vec<Counts>,
    /// Change by arm, at the percentiles 1 to 99.
    pub(super) curves: Vec<Vec<Interval>>,
    /// The mean of the changes at P5 to P95, by arm, in intervals that are simultaneous over all arms; the baseline has none.
    pub(super) overall: Vec<Option<Overall>>,
    /// Change of the mean, by arm, with its own 95 % interval; the baseline has none.
    pub(super) means: Vec<Option<Estimate>>,
    /// The same, in intervals that are simultaneous with [`LossGroup::together`] and the shares of completed transfers.
    pub(super) means_together: Vec<Option<Estimate>>,
    /// Test of whether the arm's times tend to be less than the baseline's.
    pub(super) ranks: Vec<Option<RankTest>>,
    /// Its p, corrected for the number of tests in its list.
    pub(super) adjusted: Vec<Option<f64>>,
    pub(super) curve_query: String,
    pub(super) times_query: String,
}

impl Group {
    /// Whether the arm or the baseline has too few connections to show small differences.
    pub(super) fn is_small(&self, arm: usize) -> bool {
        self.times[arm].total().min(self.times[0].total()) < SMALL
    }

    /// Whether the arm differs by the test of the subgroup, corrected for the number of tests.
    pub(super) fn differs(&self, arm: usize) -> bool {
        self.adjusted[arm].is_some_and(|p| p < 0.05)
    }
}

/// Shares of packets lost.
#[derive(Clone, Debug)]
pub(super) struct LossGroup {
    pub(super) title: String,
    /// Hundredths of a percent, by arm.
    pub(super) loss: Vec<Counts>,
    /// Difference of the mean to the baseline's, in hundredths of a percentage point, with its own 95 % interval.
    pub(super) differences: Vec<Option<Estimate>>,
    /// The same, in intervals that are simultaneous with [`Group::means_together`].
    pub(super) together: Vec<Option<Estimate>>,
    /// Of P50, P90 and P99, likewise.
    pub(super) percentiles: Vec<Vec<Interval>>,
    pub(super) query: String,
}

/// A measure beside TTLB and loss.
#[derive(Clone, Debug)]
pub(super) struct MeasureTable {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) note: &'static str,
    pub(super) values: Vec<Counts>,
    /// Difference of the mean to the baseline's.
    pub(super) differences: Vec<Option<Estimate>>,
    /// Connections by arm, of which the share with a value is shown.
    pub(super) share_of: Option<Vec<u64>>,
    pub(super) query: String,
}

/// The half width of intervals that are simultaneous over mean, packet loss and completion of all arms but the baseline.
pub(super) fn beside_z(arms: usize, looks: u32) -> f64 {
    tests_of::simultaneous(3 * arms.saturating_sub(1) * looks as usize)
}

pub(super) fn analysis(tally: Tally, mut settings: Settings) -> Result<Analysis, Error> {
    let looks = settings.looks.max(1);
    settings.looks = looks;
    // As many resamples are beyond the simultaneous band as there would be of 400 for one look.
    settings.replicates = settings
        .replicates
        .max(400 * looks as usize * usize::from(looks > 1));
    let order = order(&tally, &settings)?;
    let arms = arms(&tally, &settings, &order)?;
    let has_size_rule = tally.left_out.lines().1 > 0;
    let queries = QueryBuilder::new(
        &settings,
        tally.dialect,
        &arms[0].name,
        has_size_rule,
        tally.contradictions > 0,
    );
    let mut groups = Vec::new();
    let mut all = group(&tally, &order, &queries, Subgroup::All, &settings);
    if all.times[0].finished() == 0 {
        return Err(Error::NothingEnded(arms[0].name.clone()));
    }
    adjust(core::slice::from_mut(&mut all), looks);
    groups.push(all);
    let bins = (0..queries::bins(&settings).len())
        .map(Subgroup::Bin)
        .collect();
    let mut sites: Vec<&String> = tally.sites.iter().filter(|site| !site.is_empty()).collect();
    sites.sort();
    let sites = sites.into_iter().cloned().map(Subgroup::Site).collect();
    let lists: [Vec<Subgroup>; 2] = [bins, sites];
    let mut subgroups = Vec::new();
    for list in lists {
        let list = list
            .into_iter()
            .map(|one| group(&tally, &order, &queries, one, &settings));
        subgroups.extend(list.filter(|group| group.times.iter().any(|counts| counts.total() > 0)));
    }
    adjust(&mut subgroups, looks);
    groups.extend(subgroups);
    let paths = tally.blocks.as_ref().map(|blocks| {
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let pairs = pairs(blocks.iter().map(|block| &block.members[..]), &order);
        Paths::new(&pairs, &names, &queries, looks)
    });
    let power = settings.power.map(|_| {
        let blocks = tally.blocks.as_ref();
        let pairs =
            blocks.map(|blocks| pairs(blocks.iter().map(|block| &block.members[..]), &order));
        let replicates = affordable(settings.replicates, pairs.as_ref());
        Power::new(&groups[0].times, pairs.as_ref(), replicates, settings.seed)
    });
    let blocks = tally.blocks.as_ref();
    let notable = blocks
        .filter(|_| settings.replay.is_some() && settings.metric.is_ttlb())
        .map(|blocks| notable::NotableLists::new(blocks, &order));
    let loss = losses(&tally, &order, &queries, &settings);
    let measures = measures(&tally, &order, &queries);
    let counts_query = queries.counts(&Subgroup::All);
    let shares: Vec<f64> = arms.iter().map(|arm| arm.share).collect();
    let (balance, stratified) =
        balance::analysis(&tally, &order, &shares, &groups[0].times, &settings);
    let incomplete_paths = blocks.map_or(0, |blocks| incomplete(blocks, &order));
    let outside = tally.cells.iter().filter(|((.., bin), _)| bin.is_none());
    let outside = outside.map(|(_, cell)| cell.ttlb.values().sum::<u64>() + cell.unfinished);
    Ok(Analysis {
        dialect: tally.dialect,
        is_paired: tally.blocks.is_some(),
        neighbours: neighbours::kinds(&tally.neighbours, &order, &queries, looks),
        pairs: tally.blocks.as_ref().map_or(0, Vec::len),
        balance,
        stratified,
        incomplete_paths,
        unpaired: tally.unpaired.as_ref().map(|why| unpaired(why, &tally)),
        parts: Parts::new(
            &tally.parts,
            &order,
            tally.blocks.is_some(),
            looks,
            queries.parts(),
        )
        .filter(|_| settings.metric.is_ttlb()),
        paths,
        notable,
        power,
        outside_bins: outside.sum(),
        left_out: tally.left_out,
        without_arm: tally.without_arm,
        without_value: tally.without_value,
        contradictions: tally.contradictions,
        impossible_losses: tally.impossible_losses,
        copies: tally.copies,
        experiment: tally.experiment,
        trouble: tally.trouble,
        loss,
        measures,
        counts_query,
        groups,
        arms,
        settings,
    })
}

/// Why connections are not paired, without a full stop.
fn unpaired(why: &Unpaired, tally: &Tally) -> String {
    let site = |site: usize| match tally.sites[site].as_str() {
        "" => "none",
        name => name,
    };
    match why {
        Unpaired::NoSeed => "some lines have no seed".to_owned(),
        Unpaired::Twice { arm, seed } => {
            let arm = &tally.arms[*arm];
            format!("{arm} has several lines with the seed {seed}")
        }
        Unpaired::Sites { seed, sites } => {
            let [one, other] = sites.map(site);
            format!(
                "those with the seed {seed} are in different groups, {one} and {other}: --by or --site is not of the path"
            )
        }
        Unpaired::Alone { seeds, of } => format!(
            "{} of {} seeds, more than 5\u{a0}%, are in one arm only",
            count(*seeds as u64),
            count(*of as u64)
        ),
    }
}

/// The indices of the arms in the tally: the baseline first, the others by name.
fn order(tally: &Tally, settings: &Settings) -> Result<Vec<usize>, Error> {
    let unknown = |wanted: &str| Error::UnknownArm {
        wanted: wanted.to_owned(),
        arms: tally.arms.clone(),
        left_out: tally.left_out.hint(),
    };
    let find = |name: &str| tally.arms.iter().position(|arm| arm == name);
    let baseline = match &settings.baseline {
        Some(name) => find(name).ok_or_else(|| unknown(name))?,
        None => BASELINES.into_iter().find_map(find).unwrap_or(0),
    };
    if let [only] = tally.arms.as_slice() {
        return Err(Error::OneArm {
            arm: only.clone(),
            left_out: tally.left_out.hint().or_else(|| {
                let trouble = tally.trouble.as_ref()?;
                Some(format!("the log could not be read to its end: {trouble}"))
            }),
        });
    }
    let mut others: Vec<usize> = (0..tally.arms.len())
        .filter(|arm| *arm != baseline)
        .collect();
    others.sort_by(|a, b| tally.arms[*a].cmp(&tally.arms[*b]));
    others.insert(0, baseline);
    Ok(others)
}

fn arms(tally: &Tally, settings: &Settings, order: &[usize]) -> Result<Vec<Arm>, Error> {
    let shares = settings.shares.as_deref().unwrap_or_default();
    for (name, share) in shares {
        if !(share.is_finite() && *share >= 0.0) {
            return Err(Error::Share(name.clone()));
        }
        if !settings.may_lack_arms && !tally.arms.contains(name) {
            return Err(Error::UnknownArm {
                wanted: name.clone(),
                arms: tally.arms.clone(),
                left_out: tally.left_out.hint(),
            });
        }
    }
    let share_of = |name: &str| {
        shares
            .iter()
            .find(|(arm, _)| arm == name)
            .map_or(1.0, |(_, share)| *share)
    };
    let arms = order.iter().map(|arm| {
        let name = tally.arms[*arm].clone();
        Arm {
            share: share_of(&name),
            name,
        }
    });
    Ok(arms.collect())
}

fn group(
    tally: &Tally,
    order: &[usize],
    queries: &QueryBuilder<'_>,
    subgroup: Subgroup,
    settings: &Settings,
) -> Group {
    let is_in = |site: usize, bin: Option<usize>| match &subgroup {
        Subgroup::All => true,
        Subgroup::Bin(wanted) => bin == Some(*wanted),
        Subgroup::Site(name) => tally.sites[site] == *name,
    };
    let times: Vec<Counts> = order
        .iter()
        .map(|arm| {
            let cells = tally.cells.iter();
            let cells = cells.filter(|((of, site, bin), _)| of == arm && is_in(*site, *bin));
            merged(cells.map(|(_, cell)| cell))
        })
        .collect();
    let pairs = tally.blocks.as_ref().map(|blocks| {
        let blocks = blocks.iter().filter(|block| is_in(block.site, block.bin));
        pairs(blocks.map(|block| &block.members[..]), order)
    });
    let shares = chart_shares();
    let borrowed: Vec<&Counts> = times.iter().collect();
    let replicates = match subgroup {
        Subgroup::All => settings.replicates,
        _ => settings.replicates.div_ceil(2),
    };
    let comparison = BaselineComparison {
        groups: &borrowed,
        baseline: 0,
        shares: &shares,
        measure: Measure::Change,
        looks: settings.looks,
    };
    let resampled = resampled(&comparison, pairs.as_ref(), replicates, settings.seed);
    let curves = comparison.intervals(&resampled);
    let overall = comparison.overall(&resampled);
    let others = || (0..order.len()).map(|arm| (arm > 0).then_some(arm));
    let mean_pairs: Vec<Option<MeanPair>> = others()
        .map(|arm| match &pairs {
            Some(pairs) => MeanPair::paired(pairs.of(arm?, 0)),
            None => MeanPair::apart(&times[arm?], &times[0]),
        })
        .collect();
    let means = |z: f64| {
        let pairs = mean_pairs.iter();
        pairs.map(|pair| Some((*pair)?.change(z))).collect()
    };
    Group {
        title: match &subgroup {
            Subgroup::All => "All connections".to_owned(),
            Subgroup::Bin(bin) => queries::bins(settings)[*bin].title.clone(),
            Subgroup::Site(site) => site.clone(),
        },
        means: means(Z_95),
        means_together: means(beside_z(order.len(), settings.looks)),
        ranks: others()
            .map(|arm| match &pairs {
                Some(pairs) => tests_of::wilcoxon(pairs.of(arm?, 0)),
                None => tests_of::mann_whitney(&times[arm?], &times[0]),
            })
            .collect(),
        adjusted: vec![None; order.len()],
        curve_query: queries.curve(&subgroup),
        times_query: queries.times(&subgroup),
        subgroup,
        times,
        curves,
        overall,
    }
}

/// Percentiles of resamples: of pairs if there are any, else of each arm separately.
fn resampled(
    comparison: &BaselineComparison<'_>,
    pairs: Option<&Pairs>,
    replicates: usize,
    seed: u64,
) -> Resampled {
    match pairs {
        Some(pairs) => comparison.paired(pairs, affordable(replicates, Some(pairs)), seed),
        None => comparison.apart(replicates, seed),
    }
}

/// Pairs are drawn one by one, so very many pairs are resampled less often.
fn affordable(replicates: usize, pairs: Option<&Pairs>) -> usize {
    let values = pairs.map_or(0, |pairs| pairs.len() * pairs.arms());
    replicates.min((500_000_000 / values.max(1)).max(200))
}

/// The members of each block as pairs, in the order of the arms.
fn pairs<'a>(blocks: impl Iterator<Item = &'a [Member]>, order: &[usize]) -> Pairs {
    let mut pairs = Pairs::new(order.len());
    let mut members = vec![Member::Absent; order.len()];
    for block in blocks {
        for (member, arm) in members.iter_mut().zip(order) {
            *member = block.get(*arm).copied().unwrap_or_default();
        }
        pairs.push(&members);
    }
    pairs
}

/// The number of blocks that lack an arm.
fn incomplete(blocks: &[Block], order: &[usize]) -> usize {
    let lacks = |block: &&Block| {
        let mut members = order.iter().map(|arm| block.members.get(*arm).copied());
        members.any(|member| member.unwrap_or_default() == Member::Absent)
    };
    blocks.iter().filter(lacks).count()
}

/// Corrects the p of a list of groups for the number of tests (Holm) and of looks (Bonferroni).
fn adjust(groups: &mut [Group], looks: u32) {
    let mut places = Vec::new();
    let mut p = Vec::new();
    for (place, group) in groups.iter().enumerate() {
        for (arm, rank) in group.ranks.iter().enumerate() {
            if let Some(rank) = rank {
                places.push((place, arm));
                p.push(rank.p);
            }
        }
    }
    for ((place, arm), adjusted) in places.into_iter().zip(tests_of::holm(&p)) {
        groups[place].adjusted[arm] = Some((adjusted * f64::from(looks)).min(1.0));
    }
}

fn losses(
    tally: &Tally,
    order: &[usize],
    queries: &QueryBuilder<'_>,
    settings: &Settings,
) -> Vec<LossGroup> {
    let mut sites: Vec<usize> = (0..tally.sites.len())
        .filter(|site| !tally.sites[*site].is_empty())
        .collect();
    sites.sort_by(|a, b| tally.sites[*a].cmp(&tally.sites[*b]));
    let places = core::iter::once(None).chain(sites.into_iter().map(Some));
    let groups = places.map(|place| {
        let loss: Vec<Counts> = order
            .iter()
            .map(|arm| {
                let histograms = tally.loss.iter();
                let histograms = histograms.filter(|((of, site), _)| {
                    of == arm && place.is_none_or(|place| place == *site)
                });
                let cells: Vec<Cell> = histograms
                    .map(|(_, histogram)| Cell {
                        ttlb: histogram.clone(),
                        unfinished: 0,
                    })
                    .collect();
                merged(cells.iter())
            })
            .collect();
        let shares = [0.5, 0.9, 0.99];
        let borrowed: Vec<&Counts> = loss.iter().collect();
        let pairs = tally.blocks.as_ref().map(|blocks| {
            let blocks = blocks
                .iter()
                .filter(|block| place.is_none_or(|place| place == block.site));
            pairs(blocks.map(|block| &block.losses[..]), order)
        });
        let comparison = BaselineComparison {
            groups: &borrowed,
            baseline: 0,
            shares: &shares,
            measure: Measure::Difference,
            looks: 1,
        };
        let replicates = settings.replicates.div_ceil(2);
        let resampled = resampled(&comparison, pairs.as_ref(), replicates, settings.seed);
        let percentiles = comparison.intervals(&resampled);
        let subgroup = place.map_or(Subgroup::All, |site| {
            Subgroup::Site(tally.sites[site].clone())
        });
        let differences = |z: f64| -> Vec<Option<Estimate>> {
            let all = match &pairs {
                Some(pairs) => (0..order.len())
                    .map(|arm| {
                        let arm = (arm > 0).then_some(arm)?;
                        tests_of::mean_difference_paired(pairs.of(arm, 0), z)
                    })
                    .collect(),
                None => differences(&loss, z),
            };
            // If no connection has a loss, that of others is not known to be equal.
            let has_loss =
                |one: &Estimate| one.interval.0 < one.interval.1 || one.value.abs() > 0.0;
            all.into_iter().map(|one| one.filter(has_loss)).collect()
        };
        LossGroup {
            title: place.map_or_else(
                || "All connections".to_owned(),
                |site| tally.sites[site].clone(),
            ),
            differences: differences(Z_95),
            together: differences(beside_z(order.len(), settings.looks)),
            percentiles,
            query: queries.loss(&subgroup),
            loss,
        }
    });
    groups
        .filter(|group| group.loss.iter().any(|counts| counts.total() > 0))
        .collect()
}

fn differences(values: &[Counts], z: f64) -> Vec<Option<Estimate>> {
    let differences = values.iter().enumerate().map(|(arm, counts)| {
        if arm == 0 {
            None
        } else {
            tests_of::mean_difference(counts, &values[0], z)
        }
    });
    differences.collect()
}

fn measures(tally: &Tally, order: &[usize], queries: &QueryBuilder<'_>) -> Vec<MeasureTable> {
    let known: Vec<u64> = order
        .iter()
        .map(|arm| tally.measures[*arm].episodes.values().sum())
        .collect();
    let table =
        |title, unit, note, of: fn(&super::gather::Measures) -> &Histogram, share_of, query| {
            let values: Vec<Counts> = order
                .iter()
                .map(|arm| Counts::new(of(&tally.measures[*arm]), 0))
                .collect();
            MeasureTable {
                title,
                unit,
                note,
                differences: differences(&values, Z_95),
                values,
                share_of,
                query,
            }
        };
    let tables = [
        table(
            "Handshake",
            "ms",
            match tally.dialect {
                Dialect::Named => "at the client, from its first datagram",
                Dialect::H2o => "until confirmed, at the server",
            },
            |one| &one.handshake,
            None,
            queries.handshake(),
        ),
        table(
            "Time to first byte",
            "ms",
            "at the client, from its first datagram",
            |one| &one.ttfb,
            None,
            queries.ttfb(),
        ),
        table(
            "Loss episodes",
            "",
            "reductions of the window, per connection",
            |one| &one.episodes,
            None,
            queries.episodes(),
        ),
        table(
            "Window at the exit from startup",
            "kB",
            "of connections that left startup, with their share",
            |one| &one.exits_kb,
            Some(known),
            queries.exits(),
        ),
        table(
            "Probe timeouts",
            "",
            "per connection",
            |one| &one.probe_timeouts,
            None,
            queries.probe_timeouts(),
        ),
    ];
    tables
        .into_iter()
        .filter(|table| table.values.iter().any(|counts| counts.total() > 0))
        .collect()
}
