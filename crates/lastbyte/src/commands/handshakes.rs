//! `lastbyte handshakes`: what a connection to a server costs until the first byte of a response, by transport and kind of handshake.
//!
//! Each row is a request with HEAD on a connection of its own, over the client of `get`: three transports, with a new session, a
//! resumed one, and 0-RTT. The round trip is the shortest time in which a TCP connection was established.

use std::{io, num::NonZeroUsize, process::ExitCode, time::Duration};

use clap::Args;
use lastbyte_client::{
    ConnectTo, Fetch, Handshake, Listener, Memory, Outcome, Scheme, Settings, Url, UrlError,
    Versions, run as fetch_all,
};
use lastbyte_congestion::Registry;
use lastbyte_driver::Clock;
use lastbyte_quic::{Time, connection::Config};
use serde_json::{Value, json};

use super::{credentials::Authorities, get, values};
use crate::{failure::Failure, jobs::Interrupt, table::Table, terminal::print};

const EXAMPLES: &str = "\
Examples:
  lastbyte handshakes https://example.com/
  # The median of nine connections of each kind.
  lastbyte handshakes --repeat 9 https://example.com/
  # A server of this machine, whose certificate no authority signed.
  lastbyte handshakes -k https://localhost:4433/1k

Reference: docs/handshakes.md.";

/// Measure what each kind of handshake with a server costs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL for HEAD requests over TLS 1.2, TLS 1.3 and QUIC
    #[arg(value_name = "URL", value_parser = url)]
    url: Url,
    #[command(flatten)]
    authorities: Authorities,
    /// Connect to HOST2:PORT2 in place of HOST1:PORT1; repeatable
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2", value_parser = get::connect_to)]
    connect_to: Vec<ConnectTo>,
    /// Connections of each kind, of which the medians are printed
    #[arg(long, value_name = "N", default_value = "3", value_parser = values::positive(1000))]
    repeat: NonZeroUsize,
    /// Print JSON (docs/handshakes.md)
    #[arg(long)]
    json: bool,
}

fn url(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|error: UrlError| error.to_string())?;
    if url.origin().scheme != Scheme::Https {
        return Err("expected an https URL".to_owned());
    }
    Ok(url)
}

/// Servers send tickets a round trip after the handshake.
const TICKET_WAIT: Duration = Duration::from_secs(1);
/// Limits of a connection, and of a response.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tls12,
    Tls13,
    Quic,
}

impl Transport {
    const ALL: [Self; 3] = [Self::Tls12, Self::Tls13, Self::Quic];

    const fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "TCP, TLS 1.2",
            Self::Tls13 => "TCP, TLS 1.3",
            Self::Quic => "QUIC",
        }
    }

    /// Why there is no 0-RTT over it, whatever the server does.
    const fn lacks_early(self) -> Option<&'static str> {
        match self {
            Self::Tls12 => Some("TLS 1.2 has no 0-RTT"),
            Self::Tls13 => Some("this client sends no 0-RTT over TCP"),
            Self::Quic => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    New,
    Resumed,
    Early,
}

impl Kind {
    const ALL: [Self; 3] = [Self::New, Self::Resumed, Self::Early];

    const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Resumed => "resumed",
            Self::Early => "0-RTT",
        }
    }
}

/// The times of a connection, from its first packet.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Until TCP was established.
    tcp: Option<Duration>,
    /// Until the handshake was complete.
    connected: Duration,
    /// Until the header of the response.
    first_byte: Duration,
}

/// A transport and a kind of handshake, and its times; or why there are none.
struct Row {
    transport: Transport,
    kind: Kind,
    found: Result<Vec<Times>, String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let mut rows = Vec::new();
    let interrupt = Interrupt::listen();
    for transport in Transport::ALL {
        rows.extend(measure(arguments, registry, transport, &interrupt)?);
        if interrupt.is_pressed() {
            return Err(Failure::Interrupted);
        }
    }
    let all = rows.iter().filter_map(|row| row.found.as_ref().ok());
    let rtt = all.flatten().filter_map(|times| times.tcp).min();
    print(if arguments.json {
        json_of(&rows, rtt)
    } else {
        text_of(&rows, rtt)
    })?;
    let has_any = rows.iter().any(|row| row.found.is_ok());
    Ok(if has_any {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The rows of a transport. A kind that fails is not tried again.
fn measure(
    arguments: &Arguments,
    registry: &Registry,
    transport: Transport,
    interrupt: &Interrupt,
) -> Result<[Row; 3], Failure> {
    let mut rows = Kind::ALL.map(|kind| Row {
        transport,
        kind,
        found: Ok(Vec::new()),
    });
    for _ in 0..arguments.repeat.get() {
        // Sessions of earlier rounds are forgotten.
        let memory = Memory::default();
        for at in 0..rows.len() {
            let has_no_session = rows[0].found.is_err();
            let Row { kind, found, .. } = &mut rows[at];
            let (kind, Ok(all)) = (*kind, &mut *found) else {
                continue;
            };
            let asked = match (kind, transport.lacks_early()) {
                (Kind::Early, Some(why)) => Err(why.to_owned()),
                (Kind::Resumed | Kind::Early, _) if has_no_session => {
                    Err("no session to resume".to_owned())
                }
                _ => ask(arguments, registry, (transport, kind), &memory, interrupt)?,
            };
            match asked {
                Ok(times) => all.push(times),
                Err(why) => *found = Err(why),
            }
        }
    }
    Ok(rows)
}

/// The times of one connection, or why it has none of this kind.
fn ask(
    arguments: &Arguments,
    registry: &Registry,
    (transport, kind): (Transport, Kind),
    memory: &Memory,
    interrupt: &Interrupt,
) -> Result<Result<Times, String>, Failure> {
    let congestion = registry.parse("cubic").map_err(Failure::usage)?;
    let mut settings = Settings::new(Config::new(congestion));
    let authorities = &arguments.authorities;
    authorities.apply(&mut settings).map_err(Failure::Usage)?;
    settings.connect_to.clone_from(&arguments.connect_to);
    settings.versions = match transport {
        Transport::Quic => Versions::Http3,
        Transport::Tls12 | Transport::Tls13 => Versions::Http2,
    };
    settings.tls13 = transport != Transport::Tls12;
    settings.early_data = kind == Kind::Early;
    settings.ticket_wait = TICKET_WAIT;
    settings.connect_timeout = LIMIT;
    settings.time_limit = Some(LIMIT * 2);
    settings.retries = 0;
    let mut fetch = Fetch::get(arguments.url.clone());
    "HEAD".clone_into(&mut fetch.method);
    let mut heard = Heard {
        handshake: None,
        interrupt,
    };
    let clock = Clock::new();
    let report = fetch_all(&settings, memory, clock, vec![fetch], &mut heard);
    let report = report.map_err(|error| Failure::Usage(error.to_string()))?;
    let outcome = report.outcomes.into_iter().next().unwrap_or_default();
    Ok(times(&outcome, heard.handshake.as_ref(), (transport, kind)))
}

fn times(
    outcome: &Outcome,
    handshake: Option<&Handshake>,
    (transport, kind): (Transport, Kind),
) -> Result<Times, String> {
    if let Some(failure) = &outcome.failure {
        return Err(failure.to_string());
    }
    let handshake = handshake.ok_or("no handshake")?;
    let version = handshake.tls.unwrap_or_default();
    if transport == Transport::Tls13 && version != "TLS 1.3" {
        return Err(format!("the server chose {version}"));
    }
    match (kind, handshake.is_resumed, handshake.early_data) {
        (Kind::Resumed, false, _) => return Err("the server resumed no session".to_owned()),
        (Kind::Early, _, None) => return Err("the server offered no 0-RTT".to_owned()),
        (Kind::Early, ..) if !outcome.is_early => {
            return Err("the server rejected 0-RTT".to_owned());
        }
        _ => {}
    }
    let timing = &outcome.timing;
    let since = |to: Option<Time>| Some(to?.since(timing.connect?));
    let times = since(timing.connected).zip(since(timing.head));
    let (connected, first_byte) = times.ok_or("no times")?;
    Ok(Times {
        tcp: since(timing.transport),
        connected,
        first_byte,
    })
}

struct Heard<'a> {
    handshake: Option<Handshake>,
    interrupt: &'a Interrupt,
}

impl Listener for Heard<'_> {
    fn on_body(&mut self, _fetch: usize, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn on_connected(&mut self, _connection: usize, handshake: &Handshake) {
        self.handshake = Some(handshake.clone());
    }

    fn on_tick(&mut self) -> bool {
        !self.interrupt.is_pressed()
    }
}

/// The median of a time.
fn median(all: &[Times], of: fn(&Times) -> Duration) -> Option<Duration> {
    let mut spans: Vec<Duration> = all.iter().map(of).collect();
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied()
}

fn millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}

/// Times of a row: the end of the handshake and the first byte.
type Medians = [Option<Duration>; 2];

fn medians(row: &Row) -> Medians {
    let all = row.found.as_deref().unwrap_or_default();
    [
        median(all, |times| times.connected),
        median(all, |times| times.first_byte),
    ]
}

/// A time in round trips.
fn trips(span: Option<Duration>, rtt: Option<Duration>) -> Option<f64> {
    let trips = span?.as_secs_f64() / rtt?.as_secs_f64();
    trips.is_finite().then_some(trips)
}

fn text_of(rows: &[Row], rtt: Option<Duration>) -> String {
    let header = ["", "", "handshake ms", "RTT", "TTFB ms", "RTT", ""];
    let mut table = Table::with_text(header);
    let figure = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    for row in rows {
        let [connected, first_byte] = medians(row);
        table.row([
            row.transport.name().to_owned(),
            row.kind.name().to_owned(),
            figure(connected.map(millis), 3),
            figure(trips(connected, rtt), 1),
            figure(first_byte.map(millis), 3),
            figure(trips(first_byte, rtt), 1),
            row.found.as_ref().err().cloned().unwrap_or_default(),
        ]);
    }
    let rtt = rtt.map_or_else(
        || "no round-trip time: no connection over TCP succeeded".to_owned(),
        |rtt| format!("RTT {:.3} ms: the fastest TCP handshake", millis(rtt)),
    );
    format!("{}\n\n{rtt}\n", table.text())
}

fn json_of(rows: &[Row], rtt: Option<Duration>) -> String {
    let rows = rows.iter().map(|row| {
        let [connected, first_byte] = medians(row);
        json!({
            "transport": row.transport.name(),
            "kind": row.kind.name(),
            "handshake_ms": connected.map(millis),
            "handshake_rtts": trips(connected, rtt),
            "first_byte_ms": first_byte.map(millis),
            "first_byte_rtts": trips(first_byte, rtt),
            "error": row.found.as_ref().err(),
        })
    });
    let rows: Vec<Value> = rows.collect();
    let document = json!({ "rtt_ms": rtt.map(millis), "rows": rows });
    format!("{document:#}\n")
}
