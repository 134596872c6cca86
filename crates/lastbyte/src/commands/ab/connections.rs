//! The connections of an experiment: simulated on all cores, and their lines written in order.

use core::time::Duration;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, PoisonError},
};

use lastbyte_link::DropReason;
use lastbyte_record::{
    connection_log::{self, Drops, Header},
    packed::PackedLines,
};
use lastbyte_scenario::{
    CrossFact, Direction, Scenario,
    experiment::{Experiment, Plan},
    neighbour::Observation,
};
use lastbyte_sim::{FlowOutcome, NeighbourCounter, NeighbourOutcome, Outcome, simulate};

use super::Arguments;
use crate::{
    failure::Failure,
    files,
    jobs::{Interrupt, progress_bar, run_with_bar},
};

/// Simulates, and writes the log in the order of the connections. Returns their number.
pub(super) fn simulate_all(
    arguments: &Arguments,
    experiment: &Experiment,
    total: u64,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<u64, Failure> {
    let out = PackedLines::new(files::create(log)?, arguments.log_compress);
    let arms = experiment.arms.len() as u64;
    let lines = Mutex::new(Lines {
        log,
        out,
        together: if arguments.unpaired { 1 } else { arms },
        total,
        waiting: BTreeMap::new(),
        written: 0,
        failure: None,
    });
    let lock = || lines.lock().unwrap_or_else(PoisonError::into_inner);
    let bar = progress_bar(usize::try_from(total).unwrap_or(usize::MAX));
    // No core waits for another before the end: connections complete before their turn are stored.
    let indices: Vec<u64> = (0..total).collect();
    run_with_bar(&indices, arguments.jobs, interrupt, &bar, |index| {
        if lock().failure.is_none() {
            let line = line(experiment, *index, !arguments.unpaired);
            lock().take(*index, line);
        }
    });
    bar.finish_and_clear();
    let lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    lines.finish()
}

/// Lines that come in any order, and are written in that of their connections.
struct Lines<'a> {
    log: &'a Path,
    out: PackedLines<files::Output>,
    /// The lines that are written together or not at all: pairs, when a run is interrupted.
    together: u64,
    total: u64,
    /// Connections complete before earlier ones: up to the number simulated during the slowest one.
    waiting: BTreeMap<u64, String>,
    written: u64,
    failure: Option<Failure>,
}

impl Lines<'_> {
    fn take(&mut self, index: u64, line: Result<String, Failure>) {
        match line {
            Ok(line) => {
                self.waiting.insert(index, line);
            }
            Err(failure) => {
                self.failure.get_or_insert(failure);
            }
        }
        while self.failure.is_none() && self.has_next() {
            let to = (self.written + self.together).min(self.total);
            while self.written < to
                && let Some(line) = self.waiting.remove(&self.written)
            {
                if let Err(error) = self.out.line(&line) {
                    self.failure = Some(files::cannot_write(self.log, &error));
                    return;
                }
                self.written += 1;
            }
        }
    }

    /// Whether all of the next that are written together are there.
    fn has_next(&self) -> bool {
        let to = (self.written + self.together).min(self.total);
        self.written < to && (self.written..to).all(|index| self.waiting.contains_key(&index))
    }

    /// Writes the rest. Returns the number of lines.
    fn finish(mut self) -> Result<u64, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.out
            .seal()
            .map_err(|error| files::cannot_write(self.log, &error))?;
        Ok(self.written)
    }
}

/// Simulates a connection. Returns its line, with its end.
pub(in crate::commands) fn line(
    experiment: &Experiment,
    index: u64,
    paired: bool,
) -> Result<String, Failure> {
    let plan = experiment.connection(index, paired);
    let mut neighbour = NeighbourCounter::new(1, plan.draw.neighbour.as_ref());
    let scenario = experiment.scenario(&plan);
    let header = header(&scenario, index);
    let outcome = simulate(&scenario, &mut neighbour).map_err(|error| {
        Failure::Run(format!(
            "connection {index}, of seed {}: {error}",
            plan.seed
        ))
    })?;
    let mut text = String::new();
    let Some(server) = outcome.flows.first().and_then(|flow| flow.server.as_ref()) else {
        // The client's first datagrams were all lost: there is no server's view.
        let facts = facts(experiment, &plan, None, neighbour.outcome());
        connection_log::write_without_statistics(&mut text, &header, &facts);
        text.push('\n');
        return Ok(text);
    };
    let ttlb = server.requested_at.zip(server.acked_at);
    let ttlb = ttlb.map(|(asked, acked)| whole_ms(acked.since(asked)));
    let header = Header {
        time_ms: outcome.ended_at.as_nanos() / 1_000_000,
        ttlb_ms: ttlb,
        ..header
    };
    connection_log::write(
        &mut text,
        &header,
        &server.snapshot,
        &facts(experiment, &plan, Some(&outcome), neighbour.outcome()),
    );
    text.push('\n');
    Ok(text)
}

/// The logged values known before the simulation: the bytes are those of all objects.
fn header(scenario: &Scenario, index: u64) -> Header {
    let flow = scenario.flows.first();
    let objects = flow.into_iter().flat_map(|flow| &flow.requests);
    let method = match flow.map(|flow| flow.direction) {
        Some(Direction::Up) => "POST",
        _ => "GET",
    };
    Header {
        time_ms: 0,
        conn_id: index,
        method: method.to_owned(),
        content_length: objects.map(|object| object.size).sum(),
        ttlb_ms: None,
    }
}

fn facts(
    experiment: &Experiment,
    plan: &Plan,
    outcome: Option<&Outcome>,
    neighbour: Option<NeighbourOutcome>,
) -> connection_log::Experiment {
    let facts = &plan.draw.facts;
    let flow = outcome.and_then(|outcome| outcome.flows.first());
    let response = flow.and_then(|flow| flow.responses.first());
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    connection_log::Experiment {
        experiment: Some(experiment.name.clone()),
        arm: experiment.arms.get(plan.arm).map(|arm| arm.name.clone()),
        site: Some(plan.draw.site.clone()),
        worker: None,
        config: None,
        class: Some(plan.draw.class.clone()),
        seed: Some(plan.seed),
        client_ttlb_ms: flow.and_then(FlowOutcome::last_byte).map(ms),
        client_ttfb_ms: response.and_then(|response| response.first_byte).map(ms),
        client_handshake_ms: flow.and_then(|flow| flow.handshake).map(ms),
        link_rate_bps: Some(facts.long_term_rate().bits_per_second()),
        link_rtt_ms: Some(ms(facts.rtt)),
        link_queue_ms: Some(ms(facts.queue)),
        link_loss: Some(facts.random_loss),
        link_cross: Some(match facts.cross {
            CrossFact::None => "none",
            CrossFact::Bulk(_) => "flow",
            CrossFact::Bursts { .. } => "bursts",
        }),
        drops: flow.map(drops),
        neighbour: plan
            .draw
            .neighbour
            .as_ref()
            .zip(neighbour)
            .map(|(observation, outcome)| beside(observation, outcome)),
    }
}

/// The outcome of the neighbour.
fn beside(observation: &Observation, outcome: NeighbourOutcome) -> connection_log::Neighbour {
    let span = observation.span();
    connection_log::Neighbour {
        kind: observation.name.clone(),
        horizon_ms: span.as_secs_f64() * 1e3,
        rate_bps: (outcome.delivered_bytes as f64 * 8.0 / span.as_secs_f64()) as u64,
        delay_ms: outcome.delay().map(|span| span.as_secs_f64() * 1e3),
        loss: outcome.loss(),
    }
}

/// Packets of a flow that the path dropped, by reason.
fn drops(flow: &FlowOutcome) -> Drops {
    let exit = flow.server.as_ref();
    let exit = exit.and_then(|server| server.congestion.statistics.startup_exited_at);
    let mut drops = Drops::default();
    for drop in &flow.drops {
        let count = match drop.reason {
            DropReason::QueueFull if exit.is_none_or(|exit| drop.at <= exit) => {
                &mut drops.queue_in_startup
            }
            DropReason::QueueFull => &mut drops.queue_later,
            DropReason::CoDel | DropReason::Aqm => &mut drops.codel,
            DropReason::Policer => &mut drops.policer,
            // No path of a population has a black hole.
            DropReason::Loss | DropReason::BlackHole => &mut drops.chance,
        };
        *count += 1;
    }
    drops
}

fn whole_ms(span: Duration) -> u64 {
    u64::try_from((span.as_nanos() + 500_000) / 1_000_000).unwrap_or(u64::MAX)
}
