//! When what happened: a waterfall for people, and JSON.

use core::time::Duration;
use std::{collections::BTreeMap, fmt::Write as _};

use lastbyte_client::{Fetch, Handshake, Lookup, Outcome, Report};
use lastbyte_quic::Time;
use serde_json::{Map, Value, json};

use super::exit_code;

/// One time that all was fetched.
pub(super) struct Round {
    pub(super) report: Report,
    pub(super) handshakes: BTreeMap<usize, Handshake>,
}

/// How long the parts of a fetch took. What it did not do itself is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    /// Since the beginning of the round.
    begin: Duration,
    lookup: Option<Duration>,
    connect: Option<Duration>,
    /// Since the request was sent.
    first_byte: Option<Duration>,
    /// Since the head of the response.
    body: Option<Duration>,
    /// All of it.
    total: Duration,
}

fn parts(round: &Round, fetch: &Fetch, outcome: &Outcome) -> Parts {
    let timing = &outcome.timing;
    let since = |from: Option<Time>, to: Option<Time>| Some(to?.since(from?));
    let carried = timing.connect.is_some();
    let lookup = round
        .report
        .lookups
        .iter()
        .find(|lookup| lookup.origin == *fetch.url.origin())
        .filter(|_| carried || timing.request.is_none());
    let begin = lookup.map_or(timing.begin, |lookup| Some(lookup.begin));
    let begin = begin.unwrap_or(round.report.begin);
    Parts {
        begin: begin.since(round.report.begin),
        lookup: lookup.map(|lookup: &Lookup| lookup.end.since(lookup.begin)),
        connect: since(timing.connect, timing.connected),
        first_byte: since(timing.request, timing.head),
        body: since(timing.head, timing.end),
        total: timing.end.unwrap_or(begin).since(begin),
    }
}

/// All fetches of all rounds, as JSON.
pub(super) fn json(fetches: &[Fetch], rounds: &[Round]) -> String {
    let mut rows = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        for (fetch, outcome) in fetches.iter().zip(&round.report.outcomes) {
            let parts = parts(round, fetch, outcome);
            let handshake = outcome
                .connection
                .and_then(|connection| round.handshakes.get(&connection));
            let code = outcome.failure.as_ref().map_or(0, exit_code);
            let row = json!({
                "url": fetch.url.to_string(),
                "round": number,
                "status": outcome.status,
                "exit_code": code,
                "error": outcome.failure.as_ref().map(ToString::to_string),
                "received_bytes": outcome.received,
                "retries": outcome.retries,
                "connection": outcome.connection,
                "remote": handshake.map(|handshake| handshake.remote.to_string()),
                "handshake": handshake.map(kind),
                "early": outcome.is_early,
                "begin_ms": millis(parts.begin),
                "lookup_ms": parts.lookup.map(millis),
                "connect_ms": parts.connect.map(millis),
                "first_byte_ms": parts.first_byte.map(millis),
                "body_ms": parts.body.map(millis),
                "total_ms": millis(parts.total),
            });
            rows.push(row);
        }
    }
    let mut document = Map::new();
    document.insert("fetches".to_owned(), Value::Array(rows));
    if rounds.len() > 1 {
        document.insert("summary".to_owned(), summary_json(fetches, rounds));
    }
    let mut text = format!("{:#}", Value::Object(document));
    text.push('\n');
    text
}

fn kind(handshake: &Handshake) -> &'static str {
    match (handshake.is_resumed, handshake.early_data) {
        (false, _) => "full",
        (true, Some(true)) => "0-rtt",
        (true, _) => "resumed",
    }
}

fn millis(span: Duration) -> f64 {
    // Microseconds are as fine as a loop of an application can tell.
    (span.as_secs_f64() * 1e6).round() / 1e3
}

/// How wide the bars are.
const BAR: usize = 40;

/// All fetches of all rounds, as a waterfall.
pub(super) fn text(fetches: &[Fetch], rounds: &[Round]) -> String {
    let mut text = String::new();
    let ends = rounds.iter().flat_map(|round| {
        let all = fetches.iter().zip(&round.report.outcomes);
        all.map(|(fetch, outcome)| {
            let parts = parts(round, fetch, outcome);
            parts.begin + parts.total
        })
    });
    let longest = ends.max().unwrap_or_default();
    text.push_str(
        "   lookup  connect     TTFB     body    total  (ms)  status     bytes  handshake  \
         l lookup, c connect, w wait, b body\n",
    );
    for round in rounds {
        for (fetch, outcome) in fetches.iter().zip(&round.report.outcomes) {
            line(&mut text, round, fetch, outcome, longest);
        }
    }
    if rounds.len() > 1 {
        summary(&mut text, fetches, rounds);
    }
    text
}

fn line(text: &mut String, round: &Round, fetch: &Fetch, outcome: &Outcome, longest: Duration) {
    let parts = parts(round, fetch, outcome);
    for span in [parts.lookup, parts.connect, parts.first_byte, parts.body] {
        match span {
            // Writing to a String cannot fail.
            Some(span) => {
                let _ = write!(text, "{:9.3}", millis(span));
            }
            None => text.push_str("        -"),
        }
    }
    let handshake = outcome
        .connection
        .and_then(|connection| round.handshakes.get(&connection));
    let handshake = match (handshake, parts.connect) {
        (None, _) => "none",
        (Some(_), None) => "shared",
        (Some(handshake), Some(_)) => kind(handshake),
    };
    let status = match (outcome.status, &outcome.failure) {
        (Some(status), None) => status.to_string(),
        _ => "failed".to_owned(),
    };
    let _ = writeln!(
        text,
        "{:9.3}        {status:>6} {:9}  {handshake:<9}  |{}| {}",
        millis(parts.total),
        outcome.received,
        bar(&parts, outcome, longest),
        fetch.url
    );
}

/// One letter for each part of the time that was spent on the same thing.
fn bar(parts: &Parts, outcome: &Outcome, longest: Duration) -> String {
    let place = |at: Duration| {
        let share = at.as_secs_f64() / longest.as_secs_f64().max(1e-9);
        ((share * BAR as f64).round() as usize).min(BAR)
    };
    let mut cells = vec![' '; BAR];
    let end = parts.begin + parts.total;
    let body_begin = end.saturating_sub(parts.body.unwrap_or_default());
    let wait_begin = body_begin.saturating_sub(parts.first_byte.unwrap_or_default());
    let lookup_end = parts.begin + parts.lookup.unwrap_or_default();
    let spans = [
        ('w', wait_begin, body_begin),
        ('b', body_begin, end),
        ('l', parts.begin, lookup_end),
        (
            'c',
            lookup_end,
            lookup_end + parts.connect.unwrap_or_default(),
        ),
    ];
    for (letter, from, to) in spans {
        // With 0-RTT, waiting begins while the connection is made: that is shown.
        let is_hidden = letter == 'c' && outcome.is_early;
        if from < to && !is_hidden {
            let (from, to) = (place(from), place(to));
            let to = to.max(from + 1).min(BAR);
            if let Some(cells) = cells.get_mut(from..to) {
                cells.fill(letter);
            }
        }
    }
    cells.into_iter().collect()
}

/// The figures of all rounds, by name.
fn columns(fetches: &[Fetch], rounds: &[Round]) -> [(&'static str, Vec<f64>); 3] {
    let mut connect = Vec::new();
    let mut first_byte = Vec::new();
    let mut total = Vec::new();
    for round in rounds {
        for (fetch, outcome) in fetches.iter().zip(&round.report.outcomes) {
            if outcome.failure.is_some() {
                continue;
            }
            let parts = parts(round, fetch, outcome);
            connect.extend(parts.connect.map(millis));
            first_byte.extend(parts.first_byte.map(millis));
            total.push(millis(parts.total));
        }
    }
    let mut columns = [("connect", connect), ("TTFB", first_byte), ("total", total)];
    for (_, figures) in &mut columns {
        figures.sort_by(f64::total_cmp);
    }
    columns
}

fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

fn handshakes(rounds: &[Round]) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    for handshake in rounds.iter().flat_map(|round| round.handshakes.values()) {
        *kinds.entry(kind(handshake)).or_default() += 1;
    }
    kinds
}

fn summary(text: &mut String, fetches: &[Fetch], rounds: &[Round]) {
    let outcomes = rounds.iter().flat_map(|round| &round.report.outcomes);
    let failed = outcomes.clone().filter(|outcome| outcome.failure.is_some());
    let kinds: Vec<String> = handshakes(rounds)
        .into_iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let _ = writeln!(
        text,
        "\n{} fetches in {} rounds, {} failed; handshakes: {}",
        outcomes.clone().count(),
        rounds.len(),
        failed.count(),
        kinds.join(", ")
    );
    text.push_str("              min   median      P90      max  (ms)\n");
    for (name, figures) in columns(fetches, rounds) {
        let _ = write!(text, "{name:<9}");
        for share in [0.0, 0.5, 0.9, 1.0] {
            match quantile(&figures, share) {
                Some(figure) => {
                    let _ = write!(text, "{figure:9.3}");
                }
                None => text.push_str("        -"),
            }
        }
        text.push('\n');
    }
}

fn summary_json(fetches: &[Fetch], rounds: &[Round]) -> Value {
    let mut summary = Map::new();
    for (name, figures) in columns(fetches, rounds) {
        let of = |share| quantile(&figures, share);
        let value = json!({
            "min_ms": of(0.0), "median_ms": of(0.5), "p90_ms": of(0.9), "max_ms": of(1.0),
        });
        summary.insert(name.to_ascii_lowercase(), value);
    }
    summary.insert("handshakes".to_owned(), json!(handshakes(rounds)));
    Value::Object(summary)
}
