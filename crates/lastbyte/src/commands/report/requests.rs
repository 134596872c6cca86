//! The table of an access log's requests by arm.

use core::ops::ControlFlow;
use std::{
    io::{self, BufRead as _, BufReader},
    path::PathBuf,
    process::ExitCode,
};

use lastbyte_query::{Input, Options, Query, Value};
use lastbyte_report::{
    comparison::UNASSIGNED,
    requests::{ArmRequests, Error, Requests, SHARES, Settings},
    statistics::tests_of::Estimate,
};
use serde_json::json;

use super::{Arguments, RATIO_FAILS, Source, inputs, threads};
use crate::{
    failure::Failure,
    files,
    table::Table,
    terminal::{counted, notice, print},
};

/// Whether the first line of a log is of a request, `None` without one, and the open log if it can be read once. Standard input is
/// not consumed.
pub(super) fn is_access_log(
    log: Option<&PathBuf>,
) -> Result<(Option<bool>, Option<Source>), Failure> {
    let Some(log) = log else {
        return Ok((None, None));
    };
    let mut open: Option<Source> = None;
    let inputs = if log.as_os_str() == "-" {
        let mut input = io::stdin().lock();
        let start = input.fill_buf().map_err(Failure::run)?;
        vec![Input::from_bytes("<stdin>", start.to_vec())]
    } else if files::is_read_once(log) {
        let name = log.display().to_string();
        let cannot = |error| Failure::Usage(format!("cannot read `{name}`: {error}"));
        let mut input = BufReader::new(files::open(log).map_err(cannot)?);
        let start = input.fill_buf().map_err(cannot)?.to_vec();
        open = Some(Box::new(input));
        vec![Input::from_bytes(name, start)]
    } else {
        inputs(std::slice::from_ref(log))?
    };
    let options = Options {
        threads: 1,
        ..Options::default()
    };
    let query = Query::compile("_[\"type\"]", &[], options).map_err(Failure::run)?;
    let mut is_request = None;
    // What is wrong with the log is reported when it is read.
    let _ = query.for_each(inputs, |row| {
        is_request = Some(row.first().and_then(Value::as_str) == Some("request"));
        ControlFlow::Break(())
    });
    Ok((is_request, open))
}

/// The kind of all logs, of which the first has this one. Returns an error if they are not of one kind. Only files are looked at, and
/// those without a line are of any.
pub(super) fn check_kind(logs: &[PathBuf], first: Option<bool>) -> Result<bool, Failure> {
    let mut known = first.map(|is_access| (&logs[0], is_access));
    let others = logs.iter().skip(1);
    for log in others.filter(|log| log.as_os_str() != "-" && !files::is_read_once(log)) {
        let Some(is_access) = is_access_log(Some(log))?.0 else {
            continue;
        };
        let (earlier, is_earlier) = *known.get_or_insert((log, is_access));
        if is_access != is_earlier {
            let (one, other) = if is_access {
                (log, earlier)
            } else {
                (earlier, log)
            };
            return Err(Failure::Usage(format!(
                "`{}` is an access log, and `{}` is not (expected logs of one kind)",
                one.display(),
                other.display()
            )));
        }
    }
    Ok(known.is_some_and(|(_, is_access)| is_access))
}

pub(super) fn run(arguments: &Arguments, logs: Vec<Input>) -> Result<ExitCode, Failure> {
    // All of them, so that none is ignored.
    let Arguments {
        logs: _,
        out,
        baseline,
        shares,
        filter,
        arm,
        site,
        metric,
        by,
        bins,
        min_size,
        resumed,
        looks,
        power,
        seed,
        resamples,
        plan: _,
        title,
        partial,
        merge: _,
        jobs,
        json,
        figure,
    } = arguments;
    let unused = [
        ("--figure", figure.is_given()),
        ("--out", out.as_os_str() != "report.html"),
        ("--partial", *partial),
        ("--site", site.is_some()),
        ("--by", by.is_some()),
        ("--bins", bins.is_some()),
        ("--min-size", min_size.is_some()),
        ("--resumed", *resumed),
        ("--power", power.is_some()),
        ("--title", title.is_some()),
    ];
    if let Some((option, _)) = unused.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::Usage(format!(
            "{option} is for connection logs, and this is an access log"
        )));
    }
    let settings = Settings {
        baseline: baseline.clone(),
        shares: super::shares(shares)?,
        filter: filter.clone(),
        arm: arm.clone(),
        metric: metric.clone().unwrap_or_else(|| "ms".to_owned()),
        looks: *looks,
        seed: *seed,
        replicates: *resamples as usize,
        threads: threads(*jobs),
    };
    let read = Requests::read(logs, &settings);
    let requests = read.map_err(|error| match error {
        Error::Unreadable(_) | Error::Empty(..) | Error::Time(_) => Failure::run(error),
        _ => Failure::usage(error),
    })?;
    if let [only] = &requests.arms[..] {
        return Err(Failure::Run(format!(
            "all requests are of the arm `{}`, so there is nothing to compare it with (expected two arms or more)",
            only.name
        )));
    }
    say_what_is_left_out(&requests, &settings);
    if *json {
        print(format!("{}\n", json_of(&requests, &settings)))?;
    } else {
        print(table(&requests, &settings.metric))?;
    }
    match &requests.trouble {
        Some(trouble) => Err(Failure::Run(format!(
            "not all of the log could be read, and the table is of what could: {trouble}"
        ))),
        None if requests.ratio_fails() => Ok(ExitCode::from(RATIO_FAILS)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Prints what is left out, and why the results may not be of the arms.
fn say_what_is_left_out(requests: &Requests, settings: &Settings) {
    let mut warnings = Vec::new();
    let mut notes = Vec::new();
    if settings.shares.is_none() {
        warnings.push(UNASSIGNED.to_owned());
    }
    if requests.ratio_fails() {
        warnings.push(
            "the numbers of connections by arm cannot be by chance (sample ratio): find the cause before you use these results".to_owned(),
        );
    }
    if !requests.without_value.is_empty() {
        let of_arms = requests.without_value.iter();
        let of_arms: Vec<String> = of_arms
            .map(|(arm, count)| format!("{count} of {arm}"))
            .collect();
        let (metric, of_arms) = (&settings.metric, of_arms.join(", "));
        let sentence = format!("requests without a value of `{metric}` are left out: {of_arms}");
        if requests.values_differ {
            let why = "which is not by chance: a difference may come from those that are left";
            warnings.push(format!("{sentence}, {why}"));
        } else {
            notes.push(sentence);
        }
    }
    if requests.left_out > 0 {
        let left_out = counted(requests.left_out, "request");
        notes.push(format!("left out: {left_out} without an arm"));
    }
    notes.extend(requests.absent.iter().map(ToString::to_string));
    for warning in warnings {
        notice(format!("warning: {warning}"));
    }
    for note in notes {
        notice(format!("note: {note}"));
    }
}

/// A value with about four digits.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

const ABSENT: &str = "–";

/// The estimate and its interval, both a hundred times as large, as two cells.
fn cells(estimate: Option<Estimate>, unit: &str) -> [String; 2] {
    let Some(Estimate {
        value,
        interval: (low, high),
    }) = estimate
    else {
        return [ABSENT.to_owned(), String::new()];
    };
    [
        format!("{:+.2} {unit}", value * 100.0),
        format!("{:+.2} to {:+.2}", low * 100.0, high * 100.0),
    ]
}

fn table(requests: &Requests, metric: &str) -> String {
    let mut text = String::new();
    let [base, others @ ..] = &requests.arms[..] else {
        return text;
    };
    let value = |arm: &ArmRequests, share: usize| {
        arm.percentiles[share].map_or_else(|| ABSENT.to_owned(), number)
    };
    let success = |arm: &ArmRequests| format!("{:.3} %", arm.success * 100.0);
    for arm in others {
        let mut table = Table::new(["", &base.name, &arm.name, "change", "95 % interval"]);
        let mut row = |name: String, of: &dyn Fn(&ArmRequests) -> String, change: [String; 2]| {
            let [change, interval] = change;
            table.row([name, of(base), of(arm), change, interval]);
        };
        let none = || [String::new(), String::new()];
        row(
            "connections".into(),
            &|arm| arm.connections.to_string(),
            none(),
        );
        row("requests".into(), &|arm| arm.requests.to_string(), none());
        let difference = cells(arm.success_difference, "points");
        row("success".into(), &success, difference);
        for (place, share) in SHARES.iter().enumerate() {
            let name = format!("{metric} p{}", (share * 100.0).round());
            row(
                name,
                &|arm| value(arm, place),
                cells(arm.changes[place], "%"),
            );
        }
        text.push_str(&table.text());
        text.push_str("\n\n");
    }
    text.push_str(
        "Percentiles are of successful requests: complete, with a status below 500.\n\
         Intervals hold at once (95 %), from resamples of connections.\n",
    );
    text
}

fn json_of(requests: &Requests, settings: &Settings) -> serde_json::Value {
    let estimate = |estimate: &Option<Estimate>| {
        estimate
            .map(|one| json!({"estimate": one.value, "interval": [one.interval.0, one.interval.1]}))
    };
    let arms = requests.arms.iter().map(|arm| {
        json!({
            "arm": arm.name,
            "connections": arm.connections,
            "requests": arm.requests,
            "success": arm.success,
            "success_difference": estimate(&arm.success_difference),
            "percentiles": arm.percentiles,
            "changes": arm.changes.iter().map(estimate).collect::<Vec<_>>(),
        })
    });
    json!({
        "metric": settings.metric,
        "shares": SHARES,
        "resamples": requests.replicates,
        "sample_ratio_p": requests.ratio_p,
        "left_out": requests.left_out,
        "without_value": requests.without_value,
        "arms": arms.collect::<Vec<_>>(),
    })
}
