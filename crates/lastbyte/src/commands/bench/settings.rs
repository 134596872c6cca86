//! From options to the settings of a run, and the file of requests.

use core::time::Duration;
use std::{io::Read as _, path::Path, sync::Arc};

use lastbyte_client::{Settings as ClientSettings, Versions};
use lastbyte_emulate::PathModel;
use lastbyte_http3::Fields;
use lastbyte_load::{Amount, Arrivals, Network, Request, Settings, Version};
use lastbyte_quic::connection::Config;
use lastbyte_scenario::{self as scenario, Experiment, Population};

use super::arguments::{Arguments, ArrivalProcess, Http};
use crate::{
    commands::{get, path, serve::descriptors, values::Aead},
    failure::Failure,
    files,
};

#[cfg(test)]
mod tests;

/// The most URLs in a file of requests.
const REQUESTS_MAX: usize = 100_000;
/// The highest weight of a URL.
const WEIGHT_MAX: u32 = 1000;

/// The settings, without a connection log.
pub(super) fn settings(arguments: &Arguments) -> Result<Settings, Failure> {
    let load = &arguments.load;
    let version = match arguments.connection.http {
        Http::One => Version::Http1,
        Http::Two => Version::Http2,
        Http::Three => Version::Http3,
    };
    if let Some(streams) = load.streams.filter(|streams| streams.get() > 1)
        && version == Version::Http1
    {
        return Err(Failure::Usage(format!(
            "HTTP/1.1 has one request at a time: `-m {streams}` (expected `-m 1`; add connections with `-c`)"
        )));
    }
    let mut requests: Vec<Request> = arguments
        .urls
        .iter()
        .map(|url| Request {
            url: url.clone(),
            weight: 1,
        })
        .collect();
    if let Some(path) = &arguments.request.input_file {
        requests.extend(requests_of(path)?);
    }
    let amount = match load.duration {
        None => Amount::Requests(load.requests.get() as u64),
        Some(measured) => Amount::Time {
            warm_up: load.warm_up_time.unwrap_or_default(),
            measured,
        },
    };
    let arrivals = match (load.rate, load.arrivals) {
        (None, _) => Arrivals::Closed,
        (Some(rate), ArrivalProcess::Constant) => Arrivals::Constant { rate },
        (Some(rate), ArrivalProcess::Poisson) => Arrivals::Poisson { rate },
    };
    let body = match &arguments.request.data {
        None => None,
        Some(path) => Some(Arc::from(files::read(path).map_err(Failure::usage)?)),
    };
    let connections = load.connections.get();
    let network = network(arguments)?;
    if network.is_some() {
        check_descriptors(connections, descriptors::raise())?;
    }
    let it = &arguments.connection;
    Ok(Settings {
        network,
        connection_log: None,
        client: client(arguments)?,
        version,
        requests,
        fields: fields(&arguments.request.header)?,
        body,
        amount,
        arrivals,
        connections,
        connect_rate: load.connect_rate,
        streams: match (load.streams, load.rate) {
            (Some(streams), _) => streams.get(),
            (None, Some(rate)) if version != Version::Http1 && it.mix.is_none() => {
                streams_for(rate, connections)
            }
            (None, _) => 1,
        },
        threads: load.jobs,
        timeout: arguments.request.timeout,
        mix: it.mix,
        migrate: it.migrate,
        migrate_to: it.migrate_to.clone(),
        seed: load.seed,
    })
}

/// The most streams per connection that an open loop has by default: servers permit about as many (RFC 9113 §6.5.2).
const STREAMS_MAX: f64 = 100.0;
/// Responses that have to arrive within this time for the rate to be kept are worth a note.
const TIGHT: f64 = 0.1;

/// As many streams per connection as responses that take a second need.
fn streams_for(rate: f64, connections: usize) -> usize {
    (rate / connections as f64).ceil().clamp(1.0, STREAMS_MAX) as usize
}

/// A note on a rate that the streams carry only if the server is fast: by Little's law, the requests in progress are the rate
/// times the mean time of a response.
pub(super) fn note_of_rate(settings: &Settings) -> Option<String> {
    let rate = settings.arrivals.rate()?;
    let streams = settings.connections * settings.streams;
    let seconds = streams as f64 / rate;
    let option = match (settings.version, settings.mix) {
        (Version::Http1, _) | (_, Some(_)) => "-c",
        _ => "-c or -m",
    };
    let millis = seconds * 1e3;
    (seconds < TIGHT).then(|| {
        format!(
            "with at most {streams} in progress, {rate} requests/s need responses within {millis:.3} ms on average; otherwise requests wait \
             (raise {option})"
        )
    })
}

/// The model paths of the connections, if any.
fn network(arguments: &Arguments) -> Result<Option<Network>, Failure> {
    let it = &arguments.connection;
    let seed = arguments.load.seed;
    let model = |path: scenario::Path, start| PathModel {
        down: path.down,
        up: path.up,
        overhead: path.overhead,
        start,
        seed,
    };
    if let Some(file) = &it.population {
        let mut experiment = Experiment::four_arms();
        if file != "default" {
            let text = files::read_text(Path::new(file)).map_err(Failure::Usage)?;
            experiment.population = Population::parse(&text)
                .map_err(|error| Failure::Usage(format!("`{file}`: {error}")))?;
        }
        experiment.seed = seed;
        let draws = (0..arguments.load.connections.get() as u64)
            .map(|connection| experiment.connection(connection, false).draw);
        return Ok(Some(Network {
            name: format!("population {}", experiment.population.name()),
            paths: draws.map(|draw| model(draw.path, draw.start)).collect(),
        }));
    }
    if it.network.is_empty() {
        return Ok(None);
    }
    let mut names = Vec::new();
    let mut paths = Vec::new();
    for name in &it.network {
        let (name, path) = path::network(name)?;
        names.push(name);
        paths.push(model(path, Duration::ZERO));
    }
    Ok(Some(Network {
        name: names.join(", "),
        paths,
    }))
}

/// Each connection over a model path has a socket.
fn check_descriptors(connections: usize, limit: Option<u64>) -> Result<(), Failure> {
    let needed = (connections as u64).saturating_add(descriptors::RESERVED);
    match limit {
        Some(limit) if limit < needed => Err(Failure::Usage(format!(
            "{connections} connections over model paths need {needed} file descriptors (the limit is {limit}; raise it with `ulimit -Hn`, or lower -c)"
        ))),
        _ => Ok(()),
    }
}

/// TLS, QUIC and addresses.
fn client(arguments: &Arguments) -> Result<ClientSettings, Failure> {
    let it = &arguments.connection;
    let spec = "cubic".parse().map_err(Failure::usage)?;
    let mut settings = ClientSettings::new(Config::new(spec));
    settings.versions = match it.http {
        Http::One => Versions::Http11,
        Http::Two => Versions::Http2Only,
        Http::Three => Versions::Http3,
    };
    it.credentials
        .apply(&mut settings)
        .map_err(Failure::usage)?;
    settings.connect_to.clone_from(&it.connect_to);
    settings.connect_timeout = it.connect_timeout;
    settings.aead = Aead::Auto.choose().provider;
    Ok(settings)
}

/// The usual header fields, replaced by the given ones of the same name.
fn fields(given: &[String]) -> Result<Fields, Failure> {
    let mut lines = Vec::new();
    for text in given {
        lines.push(get::field(text).map_err(|(_, what)| Failure::Usage(what))?);
    }
    let mut fields = Fields::new();
    let agent = concat!("lastbyte/", env!("CARGO_PKG_VERSION"));
    for (name, value) in [("user-agent", agent), ("accept", "*/*")] {
        if lines.iter().all(|(other, _)| other != name) {
            fields.push(name, value);
        }
    }
    for (name, value) in &lines {
        if let Some(value) = value {
            fields.push(name, value);
        }
    }
    Ok(fields)
}

fn requests_of(path: &Path) -> Result<Vec<Request>, Failure> {
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
        text
    } else {
        files::read_text(path).map_err(Failure::usage)?
    };
    parse(&text).map_err(|(line, what)| {
        Failure::Usage(format!("`{}`, line {line}: {what}", path.display()))
    })
}

/// Parses lines of a URL and, after a blank, its weight. Empty lines and lines that start with `#` are skipped. Errors have
/// the number of the line.
fn parse(text: &str) -> Result<Vec<Request>, (usize, String)> {
    let mut requests = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut words = line.split_whitespace();
        let Some(url) = words.next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        let wrong = |what: String| (number, what);
        let weight = words.next().map_or(Ok(1), |word| {
            let weight = word.parse::<u32>().ok();
            let weight = weight.filter(|weight| (1..=WEIGHT_MAX).contains(weight));
            let expected = format!("expected a whole number from 1 to {WEIGHT_MAX}");
            weight.ok_or_else(|| wrong(format!("invalid weight `{word}` ({expected})")))
        })?;
        if let Some(word) = words.next() {
            let what = format!("unexpected `{word}` (expected a URL and a weight)");
            return Err(wrong(what));
        }
        if requests.len() == REQUESTS_MAX {
            return Err(wrong(format!(
                "too many URLs (expected at most {REQUESTS_MAX})"
            )));
        }
        requests.push(Request {
            url: url.parse().map_err(|error| wrong(format!("{error}")))?,
            weight,
        });
    }
    if requests.is_empty() {
        return Err((1, "no URL (expected one per line)".to_owned()));
    }
    Ok(requests)
}
