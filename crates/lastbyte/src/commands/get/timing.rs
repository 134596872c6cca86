//! The timing report: a waterfall as text, and JSON.

use core::time::Duration;
use std::{collections::BTreeMap, fmt::Write as _};

use lastbyte_client::{Fetch, Handshake, Lookup, Outcome, Report, Version};
use lastbyte_quic::Time;
use serde_json::{Map, Value, json};

use super::exit::exit_code;
use crate::table::Table;

/// One round, in which everything was fetched.
pub(super) struct Round {
    pub(super) report: Report,
    /// The last response of each fetch.
    pub(super) heads: Vec<super::output::LastHead>,
    pub(super) handshakes: BTreeMap<usize, Handshake>,
}

/// The durations of the parts of a fetch; after redirects, those of the last request. `None` for a part that it did not
/// do itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Since the start of the round.
    pub(super) begin: Duration,
    /// All redirects.
    pub(super) redirects: Option<Duration>,
    pub(super) lookup: Option<Duration>,
    /// IPv4 and IPv6 addresses.
    pub(super) a: Option<Duration>,
    pub(super) aaaa: Option<Duration>,
    /// The HTTPS record.
    pub(super) https: Option<Duration>,
    /// Until the handshake was complete.
    pub(super) connect: Option<Duration>,
    /// Of that, TCP alone and TLS alone.
    pub(super) tcp: Option<Duration>,
    pub(super) tls: Option<Duration>,
    /// Since the request was sent.
    pub(super) first_byte: Option<Duration>,
    /// Since the header of the response.
    pub(super) body: Option<Duration>,
    /// The whole fetch.
    pub(super) total: Duration,
}

pub(super) fn parts(round: &Round, outcome: &Outcome) -> Parts {
    let timing = &outcome.timing;
    let since = |from: Option<Time>, to: Option<Time>| Some(to?.since(from?));
    let begin = timing.start.unwrap_or(round.report.start);
    let asked = |of: fn(&Lookup) -> Option<Time>| {
        let lookup = round.report.lookups.iter();
        let mut lookup = lookup.filter(|lookup| Some(lookup.start) == timing.lookup);
        let lookup = lookup.find(|lookup| lookup.end == timing.resolved)?;
        Some(of(lookup)?.since(lookup.start))
    };
    Parts {
        begin: begin.since(round.report.start),
        redirects: since(timing.start, timing.redirected),
        lookup: since(timing.lookup, timing.resolved),
        a: asked(|lookup| Some(lookup.a.as_ref()?.at)),
        aaaa: asked(|lookup| Some(lookup.aaaa.as_ref()?.at)),
        https: asked(|lookup| Some(lookup.https.as_ref()?.at)),
        connect: since(timing.connect, timing.connected),
        tcp: since(timing.connect, timing.transport),
        tls: since(timing.transport, timing.connected).filter(|tls| !tls.is_zero()),
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
            let parts = parts(round, outcome);
            let handshake = outcome
                .connection
                .and_then(|connection| round.handshakes.get(&connection));
            let code = outcome.failure.as_ref().map_or(0, exit_code);
            let row = json!({
                "url": fetch.url.to_string(),
                "url_effective": outcome.url.as_ref().unwrap_or(&fetch.url).to_string(),
                "redirects": outcome.redirects,
                "http_version": outcome.version.map(Version::number),
                "round": number,
                "status": outcome.status,
                "exit_code": code,
                "error": outcome.failure.as_ref().map(ToString::to_string),
                "received_bytes": outcome.received,
                "sent_bytes": outcome.sent,
                "retries": outcome.retries,
                "connection": outcome.connection,
                "remote": handshake.map(|handshake| handshake.remote.to_string()),
                "handshake": handshake.map(kind),
                "early": outcome.is_early,
                "start_ms": millis(parts.begin),
                "redirect_ms": parts.redirects.map(millis),
                "lookup_ms": parts.lookup.map(millis),
                "lookup_a_ms": parts.a.map(millis),
                "lookup_aaaa_ms": parts.aaaa.map(millis),
                "lookup_https_ms": parts.https.map(millis),
                "connect_ms": parts.connect.map(millis),
                "tcp_ms": parts.tcp.map(millis),
                "tls_ms": parts.tls.map(millis),
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
        document.insert("summary".to_owned(), summary_json(rounds));
    }
    let mut text = format!("{:#}", Value::Object(document));
    text.push('\n');
    text
}

fn kind(handshake: &Handshake) -> &'static str {
    match (handshake.is_resumed, handshake.early_data) {
        (false, _) => "full",
        (true, Some(true)) => "0rtt",
        (true, _) => "resumed",
    }
}

fn millis(span: Duration) -> f64 {
    // Microseconds are as precise as an event loop can measure.
    (span.as_secs_f64() * 1e6).round() / 1e3
}

/// The width of the bars.
const BAR: usize = 40;

/// All fetches of all rounds, as a waterfall.
pub(super) fn text(fetches: &[Fetch], rounds: &[Round]) -> String {
    let mut text = String::new();
    let ends = rounds.iter().flat_map(|round| {
        let all = round.report.outcomes.iter();
        all.map(|outcome| {
            let parts = parts(round, outcome);
            parts.begin + parts.total
        })
    });
    let longest = ends.max().unwrap_or_default();
    let mut table = Table::with_text([
        "lookup",
        "HTTPS",
        "connect",
        "TLS",
        "TTFB",
        "body",
        "total ms",
        "status",
        "HTTP",
        "bytes",
        "handshake",
        "",
        "",
    ])
    .without_names();
    for round in rounds {
        for (fetch, outcome) in fetches.iter().zip(&round.report.outcomes) {
            table.row(cells(round, fetch, outcome, longest));
        }
    }
    text.push_str(&table.text());
    text.push_str("\nr redirects, l lookup, c connect, t TLS, w wait, b body\n");
    if rounds.len() > 1 {
        summary(&mut text, rounds);
    }
    text
}

fn cells(round: &Round, fetch: &Fetch, outcome: &Outcome, longest: Duration) -> Vec<String> {
    let parts = parts(round, outcome);
    let spans = [
        parts.lookup,
        parts.https,
        parts.connect,
        parts.tls,
        parts.first_byte,
        parts.body,
        Some(parts.total),
    ];
    let spans = spans.map(|span| figure(span.map(millis)));
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
    let others = [
        status,
        outcome
            .version
            .map_or("-", |version| version.number())
            .to_owned(),
        outcome.received.to_string(),
        handshake.to_owned(),
        format!("|{}|", bar(&parts, outcome, longest)),
        fetch.url.to_string(),
    ];
    spans.into_iter().chain(others).collect()
}

/// A time in ms.
fn figure(millis: Option<f64>) -> String {
    millis.map_or_else(|| "-".to_owned(), |millis| format!("{millis:.3}"))
}

/// One letter for each part of the time.
fn bar(parts: &Parts, outcome: &Outcome, longest: Duration) -> String {
    let place = |at: Duration| {
        let share = at.as_secs_f64() / longest.as_secs_f64().max(1e-9);
        ((share * BAR as f64).round() as usize).min(BAR)
    };
    let mut cells = vec![' '; BAR];
    let end = parts.begin + parts.total;
    let body_begin = end.saturating_sub(parts.body.unwrap_or_default());
    let wait_begin = body_begin.saturating_sub(parts.first_byte.unwrap_or_default());
    let redirects_end = parts.begin + parts.redirects.unwrap_or_default();
    let lookup_end = redirects_end + parts.lookup.unwrap_or_default();
    let connect_end = lookup_end.max(wait_begin.saturating_sub(parts.connect.unwrap_or_default()))
        + parts.connect.unwrap_or_default();
    let spans = [
        ('w', wait_begin, body_begin),
        ('b', body_begin, end),
        ('r', parts.begin, redirects_end),
        ('l', redirects_end, lookup_end),
        ('c', lookup_end, connect_end),
        (
            't',
            connect_end.saturating_sub(parts.tls.unwrap_or_default()),
            connect_end,
        ),
    ];
    for (letter, from, to) in spans {
        // With 0-RTT, waiting starts during the handshake, which is shown.
        let is_hidden = letter == 'c' && (outcome.is_early || parts.connect.is_none());
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

/// The statistics of all rounds, by name. Of lookups, those that were made.
fn columns(rounds: &[Round]) -> Vec<(&'static str, Vec<f64>)> {
    let mut connect = Vec::new();
    let mut first_byte = Vec::new();
    let mut total = Vec::new();
    for round in rounds {
        for outcome in &round.report.outcomes {
            if outcome.failure.is_some() {
                continue;
            }
            let parts = parts(round, outcome);
            connect.extend(parts.connect.map(millis));
            first_byte.extend(parts.first_byte.map(millis));
            total.push(millis(parts.total));
        }
    }
    let lookups = |of: fn(&Lookup) -> Option<Time>| {
        let all = rounds.iter().flat_map(|round| &round.report.lookups);
        all.filter_map(|lookup| Some(millis(of(lookup)?.since(lookup.start))))
            .collect::<Vec<f64>>()
    };
    let mut columns = vec![
        ("A", lookups(|lookup| Some(lookup.a.as_ref()?.at))),
        ("AAAA", lookups(|lookup| Some(lookup.aaaa.as_ref()?.at))),
        ("HTTPS", lookups(|lookup| Some(lookup.https.as_ref()?.at))),
    ];
    columns.retain(|(_, figures)| !figures.is_empty());
    columns.extend([("connect", connect), ("TTFB", first_byte), ("total", total)]);
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

fn summary(text: &mut String, rounds: &[Round]) {
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
    let mut table = Table::new(["", "min", "median", "P90", "max ms"]);
    for (name, figures) in columns(rounds) {
        let of = |share| figure(quantile(&figures, share));
        table.row([name.to_owned(), of(0.0), of(0.5), of(0.9), of(1.0)]);
    }
    text.push_str(&table.text());
    text.push('\n');
}

fn summary_json(rounds: &[Round]) -> Value {
    let mut summary = Map::new();
    for (name, figures) in columns(rounds) {
        let of = |share| quantile(&figures, share);
        let value = json!({
            "min_ms": of(0.0), "median_ms": of(0.5), "p90_ms": of(0.9), "max_ms": of(1.0),
        });
        summary.insert(name.to_ascii_lowercase(), value);
    }
    summary.insert("handshakes".to_owned(), json!(handshakes(rounds)));
    Value::Object(summary)
}
