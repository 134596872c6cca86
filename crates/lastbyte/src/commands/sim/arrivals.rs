//! Flow-completion times of transfers that arrive at random, in place of single transfers.

use core::fmt::Write as _;
use std::process::ExitCode;

use lastbyte_record::json::Object;
use lastbyte_sim::{
    outcome::ArrivalsOutcome,
    row::{CompletionTimes, write_arrivals},
};
use lastbyte_units as units;

use super::{Arguments, Job, described, interrupted};
use crate::{
    failure::Failure,
    jobs::{Interrupt, run_all},
    table::Table,
    terminal::{notice, print},
};

/// Simulates the arrivals of each arm, and prints their times by size.
pub(super) fn run<'a>(
    arguments: &Arguments,
    jobs: &'a [Job],
    interrupt: &Interrupt,
) -> Result<ExitCode, Failure> {
    let jobs: Vec<&Job> = jobs.iter().collect();
    let run = |job: &&'a Job| {
        let outcome = job.run(interrupt, &mut ())?;
        // Behind those of the path and of --cross.
        Ok((
            *job,
            outcome.arrivals.into_iter().last().unwrap_or_default(),
        ))
    };
    let results = run_all(&jobs, arguments.jobs, interrupt, run).into_iter();
    let results = results.filter(|result| !matches!(result, Err(Failure::Interrupted)));
    let results: Vec<(&Job, ArrivalsOutcome)> = results.collect::<Result<_, Failure>>()?;
    print(if arguments.json {
        json(&results)
    } else {
        tables(&results)
    })?;
    if results.len() < jobs.len() {
        return Ok(interrupted());
    }
    let sum = |of: &dyn Fn(&ArrivalsOutcome) -> u64| -> u64 {
        results.iter().map(|(_, arrivals)| of(arrivals)).sum()
    };
    let are_none = |(_, arrivals): &&(&Job, ArrivalsOutcome)| arrivals.completions.is_empty();
    for (job, arrivals) in results.iter().filter(are_none) {
        let label = &job.label;
        let what = match arrivals.open + arrivals.refused {
            0 => "began",
            _ => "was completed",
        };
        notice(format!(
            "warning: {}, {}: no transfer {what}",
            label.network, label.arm
        ));
    }
    let (open, refused) = (sum(&|one| one.open), sum(&|one| one.refused));
    if open + refused > 0 {
        notice(format!(
            "warning: {open} transfers did not complete within the --time-limit, and {refused} were refused, since 1000 were open"
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn json(results: &[(&Job, ArrivalsOutcome)]) -> String {
    let mut text = "[".to_owned();
    for (index, (job, arrivals)) in results.iter().enumerate() {
        text.push_str(if index == 0 { "\n " } else { ",\n " });
        let mut object = Object::new(&mut text);
        object
            .text("arm", &job.label.arm)
            .text("network", &job.label.network)
            .integer("seed", job.label.seed);
        write_arrivals(arrivals, &mut object);
    }
    text.push_str("\n]\n");
    text
}

/// A table for each network, with the transfers of all seeds of an arm together.
fn tables(results: &[(&Job, ArrivalsOutcome)]) -> String {
    let mut text = String::new();
    let mut has_few = false;
    let networks = results.chunk_by(|(one, _), (next, _)| one.label.network == next.label.network);
    for network in networks {
        let Some((first, _)) = network.first() else {
            continue;
        };
        // The last word is that of the arm's own transfers.
        let mut words = described(&first.scenario);
        words.pop();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}: {}, arrivals for {}",
            first.label.network,
            words.join(", "),
            units::show_span(first.scenario.horizon)
        );
        let head = [
            "arm",
            "size",
            "transfers",
            "mean ms",
            "p50 ms",
            "p99 ms",
            "slowdown",
            "p99 slowdown",
        ];
        let mut table = Table::new(head.map(str::to_owned).to_vec());
        for arm in network.chunk_by(|(one, _), (next, _)| one.label.arm == next.label.arm) {
            let completions = arm.iter().flat_map(|(_, arrivals)| &arrivals.completions);
            let all = ArrivalsOutcome {
                completions: completions.copied().collect(),
                ..ArrivalsOutcome::default()
            };
            for class in CompletionTimes::by_size(&all) {
                let name = arm.first().map(|(job, _)| job.label.arm.clone());
                has_few |= class.p99.is_none();
                let times = [Some(class.mean), Some(class.p50), class.p99];
                let start = [
                    name.unwrap_or_default(),
                    class.name(),
                    class.count.to_string(),
                ];
                let times = times.map(|it| it.map(|it| format!("{:.1}", it.as_secs_f64() * 1e3)));
                let slowdowns = [Some(class.slowdown_mean), class.slowdown_p99];
                let slowdowns = slowdowns.map(|it| it.map(|it| format!("{it:.2}")));
                let numbers = times.into_iter().chain(slowdowns);
                let numbers = numbers.map(|it| it.unwrap_or_else(|| "–".to_owned()));
                table.row(start.into_iter().chain(numbers));
            }
        }
        text.push_str(&table.text());
        text.push('\n');
    }
    text.push_str("Times: from the client's first datagram until all data has arrived. Slowdown: in relation to the empty path.\n");
    if has_few {
        text.push_str("–: a P99 needs 100 transfers.\n");
    }
    text
}
