//! The results of the page as JSON.

use serde_json::{Value, json};

use crate::{
    comparison::{
        analysis::{Analysis, LARGEST},
        format,
        neighbours::Kind,
        notable::{Notable, NotableLists},
        parts::{BANDS, Parts},
        paths::Paths,
        queries::{PARTS, chart_shares},
        text, warnings,
    },
    statistics::{bootstrap::Interval, tests_of::Estimate},
};

/// The results, for other programs.
pub(in crate::comparison) fn json(analysis: &Analysis) -> String {
    let interval = |cell: &Interval| json!([cell.estimate, cell.alone, cell.together]);
    let ms = |micros: Option<u64>| micros.map(in_milliseconds);
    let groups = analysis.groups.iter().map(|group| {
        let key = |name: &str| {
            let is_ttlb = analysis.settings.metric.is_ttlb();
            format!("{name}{}", if is_ttlb { "_ms" } else { "" })
        };
        let arms = analysis.arms.iter().enumerate().map(|(arm, one)| {
            let curve = (arm > 0).then(|| group.curves[arm].iter().map(interval).collect::<Vec<_>>());
            json!({
                "arm": one.name,
                "connections": group.times[arm].total(),
                "ended": group.times[arm].finished(),
                (key("mean")): group.times[arm].mean().map(|value| value / 1000.0),
                (key("percentiles")): chart_shares().iter().map(|share| ms(group.times[arm].percentile(*share))).collect::<Vec<_>>(),
                "overall_change": group.overall[arm].map(|one| json!([one.estimate.value, one.estimate.interval])),
                "overall_to_percentile": group.overall[arm].map(|one| (one.to * 100.0).round()),
                "largest_five_share": group.times[arm].share_of_largest(LARGEST),
                "mean_change": group.means[arm].map(|mean| json!([mean.value, mean.interval])),
                "changes_estimate_alone_together": curve,
                "p": group.ranks[arm].map(|rank| rank.p),
                "p_holm": group.adjusted[arm],
                "share_faster": group.ranks[arm].map(|rank| rank.share_less),
            })
        });
        json!({
            "title": group.title,
            "arms": arms.collect::<Vec<_>>(),
            "query_changes": group.curve_query,
            "query_times": group.times_query,
        })
    });
    let loss = analysis.loss.iter().map(|group| {
        let arms = analysis.arms.iter().enumerate().map(|(arm, one)| {
            let at = |share: f64| group.loss[arm].percentile(share).map(|value| value as f64 / 100.0);
            json!({
                "arm": one.name,
                "mean": group.loss[arm].mean().map(|mean| mean / 100.0),
                "p50_p90_p99": [at(0.5), at(0.9), at(0.99)],
                "mean_difference": format::hundredths(group.differences[arm]).map(|one| json!([one.value, one.interval])),
            })
        });
        json!({ "title": group.title, "arms": arms.collect::<Vec<_>>(), "query": group.query })
    });
    let claims = text::claims(analysis).into_iter().map(|claim| {
        json!({ "list": claim.list, "arm": claim.arm, "what": claim.what, "change": if claim.is_less { "less" } else { "more" } })
    });
    let value = json!({
        "experiment": analysis.experiment,
        "baseline": analysis.arms[0].name,
        "metric": analysis.settings.metric.name,
        "unit": analysis.settings.metric.unit,
        "paired": analysis.is_paired,
        "seed": analysis.settings.seed,
        "sample_ratio": sample_ratio(analysis),
        "incomplete_paths": analysis.is_paired.then_some(analysis.incomplete_paths),
        "looks": analysis.settings.looks,
        "stratified": stratified(analysis),
        "warnings": warnings::warnings(analysis),
        "notes": warnings::notes(analysis),
        "verdicts": text::verdicts(analysis),
        "beside": text::beside(analysis),
        "subgroups": text::subgroups(analysis),
        "paths": text::paths(analysis),
        "parts": text::parts(analysis),
        "parts_of_times": analysis.parts.as_ref().map(|parts| parts_of_times(analysis, parts)),
        "power": analysis.settings.power.map(|_| text::power(analysis)),
        "connections_needed": connections_needed(analysis),
        "notable": analysis.notable.as_ref().map(|lists| notable(analysis, lists)),
        "harm": text::harm(analysis),
        "neighbours": analysis.neighbours.as_deref().map(|kinds| neighbours(analysis, kinds)),
        "significant": claims.collect::<Vec<_>>(),
        "changes_of_paths": analysis.paths.as_ref().map(|paths| changes_of_paths(analysis, paths)),
        "groups": groups.collect::<Vec<_>>(),
        "loss_percent": loss.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

/// The tests of the numbers of connections, for other programs.
fn sample_ratio(analysis: &Analysis) -> Value {
    let Some(all) = analysis.balance.first() else {
        return Value::Null;
    };
    let tests = analysis.balance.iter().map(|test| {
        json!({
            "by": test.by.name(),
            "strata": test.strata,
            "chi_squared": test.statistic,
            "degrees_of_freedom": test.degrees,
            "p": test.p,
            "p_holm": test.adjusted,
            "left_out": test.left_out,
            "farthest": {
                "stratum": test.farthest.stratum,
                "arm": analysis.arms[test.farthest.arm].name,
                "connections": test.farthest.count,
                "expected": test.farthest.expected,
            },
        })
    });
    json!({
        "chi_squared": all.statistic,
        "p": all.p,
        "fails": analysis.ratio_fails(),
        "tests": tests.collect::<Vec<_>>(),
    })
}

/// The overall change pooled and by site, for other programs; `null` if there is none.
fn stratified(analysis: &Analysis) -> Value {
    let arms = analysis.arms.iter().zip(&analysis.stratified);
    let arms: Vec<Value> = arms
        .filter_map(|(arm, one)| {
            let one = one.as_ref()?;
            Some(json!({
                "arm": arm.name,
                "pooled": [one.pooled.value, one.pooled.interval],
                "stratified": [one.by_site.value, one.by_site.interval],
                "sites": one.sites,
                "left_out": one.left_out.iter().sum::<u64>(),
                "disagree": one.disagree(),
            }))
        })
        .collect();
    if arms.is_empty() {
        Value::Null
    } else {
        Value::Array(arms)
    }
}

/// The change of each path, for other programs: by arm, as shares.
fn changes_of_paths(analysis: &Analysis, paths: &Paths) -> Value {
    let share = |value: Option<Estimate>| value.map(|one| json!([one.value, one.interval]));
    let arms = analysis.arms.iter().enumerate().skip(1).map(|(arm, one)| {
        let curve = paths.curves[arm].iter();
        json!({
            "arm": one.name,
            "paths": paths.counts[arm],
            "share_slower_by_5_percent": share(paths.slower[arm]),
            "share_faster_by_5_percent": share(paths.faster[arm]),
            "changes_estimate_alone": curve.map(|cell| json!([cell.estimate, cell.alone])).collect::<Vec<_>>(),
            "query": paths.queries[arm],
        })
    });
    Value::Array(arms.collect())
}

/// The parts of times, for other programs: by arm, in milliseconds.
fn parts_of_times(analysis: &Analysis, parts: &Parts) -> Value {
    let by_name = |values: Vec<Value>| -> Value {
        let names = PARTS.iter().map(|(_, name)| (*name).to_owned());
        names.zip(values).collect::<serde_json::Map<_, _>>().into()
    };
    let arms = analysis.arms.iter().enumerate().map(|(arm, one)| {
        let bands = BANDS.iter().zip(&parts.means).map(|((_, _, band), arms)| {
            let times = arms[arm].iter().enumerate();
            let times = times
                .map(|(part, time)| json!(parts.is_known(part).then_some(time)))
                .collect();
            ((*band).to_owned(), by_name(times))
        });
        let differences = parts.differences[arm].iter();
        let differences = differences.map(|one| json!(one.map(|one| (one.value, one.interval))));
        json!({
            "arm": one.name,
            "transfers": parts.counts[arm],
            "mean_ms": bands.collect::<serde_json::Map<_, _>>(),
            "difference_ms": (arm > 0).then(|| by_name(differences.collect())),
        })
    });
    json!({ "arms": arms.collect::<Vec<_>>(), "note": parts.note(), "query": parts.query })
}

/// Connections to look at, for other programs.
fn notable(analysis: &Analysis, lists: &NotableLists) -> Value {
    let list = |list: &[Notable]| -> Value {
        let rows = list.iter().map(|one| {
            let times = analysis.arms.iter().zip(&one.times);
            let times =
                times.map(|(arm, time)| (arm.name.clone(), json!(time.map(in_milliseconds))));
            json!({
                "seed": one.seed,
                "arm": analysis.arms[one.arm].name,
                "ttlb_ms": times.collect::<serde_json::Map<_, _>>(),
                "change": one.change,
            })
        });
        rows.collect()
    };
    json!({ "slowest": list(&lists.slowest), "slower": list(&lists.slower), "faster": list(&lists.faster) })
}

/// The numbers of connections that detect a change, for other programs: by arm.
fn connections_needed(analysis: &Analysis) -> Value {
    let Some((power, change)) = analysis.power.as_ref().zip(analysis.settings.power) else {
        return Value::Null;
    };
    let arms = analysis.arms.iter().enumerate().skip(1).map(|(arm, one)| {
        let needed = power.needed(arm, change, analysis.settings.looks);
        json!({
            "arm": one.name,
            "change": change,
            "median_paired": needed.median_paired,
            "median_unpaired": needed.median_unpaired,
            "mean_paired": needed.mean_paired,
            "mean_unpaired": needed.mean_unpaired,
        })
    });
    Value::Array(arms.collect())
}

/// What neighbours get, for other programs: by kind and arm.
fn neighbours(analysis: &Analysis, kinds: &[Kind]) -> Value {
    let estimate = |value: Option<Estimate>| value.map(|one| json!([one.value, one.interval]));
    let kinds = kinds.iter().map(|kind| {
        let arms = analysis.arms.iter().enumerate().map(|(arm, one)| {
            let [rate, delay, dropped] = kind.typical[arm];
            let [change, later, more_dropped] = kind.differences[arm];
            let curve = kind.curves[arm].iter();
            json!({
                "arm": one.name,
                "paths": kind.counts[arm],
                "median_rate_bps": rate,
                "mean_delay_ms": delay,
                "mean_loss_percent": dropped,
                "rate_change": estimate(change),
                "delay_difference_ms": estimate(later),
                "loss_difference_points": estimate(more_dropped),
                "share_less_by_5_percent": estimate(kind.less[arm]),
                "changes_estimate_alone": curve.map(|cell| json!([cell.estimate, cell.alone])).collect::<Vec<_>>(),
            })
        });
        json!({ "neighbour": kind.name, "arms": arms.collect::<Vec<_>>(), "query": kind.query })
    });
    Value::Array(kinds.collect())
}

/// Milliseconds, with a fraction only if there is one.
pub(super) fn in_milliseconds(micros: u64) -> Value {
    if micros.is_multiple_of(1000) {
        json!(micros / 1000)
    } else {
        json!(micros as f64 / 1000.0)
    }
}
