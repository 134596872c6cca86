//! The networks of `lastbyte compare`.

use core::time::Duration;
use std::path::Path;

use lastbyte_scenario::{
    self as scenario,
    network::{LinkText, NAMED, PathText},
};
use lastbyte_units::Rate;

use crate::{commands::path, failure::Failure};

#[cfg(test)]
mod tests;

/// The grid: rates down, round-trip times, and loss.
const RATES: [&str; 3] = ["1mbit", "10mbit", "100mbit"];
const ROUND_TRIPS: [&str; 3] = ["10ms", "100ms", "300ms"];
const LOSSES: [&str; 2] = ["0%", "2%"];
/// What is compared on beside the grid by default.
const DEFAULT: [&str; 6] = ["dsl", "home-wifi", "lte", "5g", "leo", "geo"];

/// The least queue of a cell: 20 full packets. Assumed; less would be a few packets at 1 Mb/s.
const QUEUE_MIN: u64 = 30_000;

/// The networks of --network, with their names.
pub(super) fn networks(names: &[String]) -> Result<Vec<(String, scenario::Path)>, Failure> {
    let mut wanted: Vec<String> = Vec::new();
    if names.is_empty() {
        wanted.extend(DEFAULT.map(str::to_owned));
        wanted.push("grid".to_owned());
    }
    wanted.extend(names.iter().cloned());
    let mut all: Vec<(String, scenario::Path)> = Vec::new();
    for name in &wanted {
        let some = match name.as_str() {
            "grid" => grid()?,
            "named" => {
                let names = NAMED.iter().map(|(name, _)| (*name).to_owned());
                stored(&names.collect::<Vec<_>>())?
            }
            name if name.contains('/') && !Path::new(name).exists() => vec![cell(name)?],
            name if lastbyte_units::rate(name).is_ok() && !Path::new(name).exists() => {
                return Err(Failure::Usage(format!(
                    "--network: `{name}` is a rate without a round-trip time (expected RATE[:UP]/RTT[/LOSS], such as {name}/50ms)"
                )));
            }
            name => stored(&[name.to_owned()])?,
        };
        for (name, path) in some {
            if all.iter().any(|(other, _)| *other == name) {
                return Err(Failure::Usage(format!(
                    "--network: two networks are named `{name}` (expected different names)"
                )));
            }
            all.push((name, path));
        }
    }
    Ok(all)
}

/// Networks with a name or in files.
fn stored(names: &[String]) -> Result<Vec<(String, scenario::Path)>, Failure> {
    path::paths_of(path::network_texts(names, None, None)?)
}

fn grid() -> Result<Vec<(String, scenario::Path)>, Failure> {
    let mut cells = Vec::new();
    for loss in LOSSES {
        for rtt in ROUND_TRIPS {
            for rate in RATES {
                cells.push(cell(&format!("{rate}/{rtt}/{loss}"))?);
            }
        }
    }
    Ok(cells)
}

/// A network as `RATE[:UP]/RTT[/LOSS]`. The queues hold a round trip, at least 50 ms and [`QUEUE_MIN`] bytes; without a rate up it is
/// a fifth of that down, and at least 500 kb/s; loss is by chance, in both directions.
fn cell(text: &str) -> Result<(String, scenario::Path), Failure> {
    let failure = |error: String| {
        Failure::Usage(format!(
            "--network: `{text}`: {error}; a network is a name, a file, or RATE[:UP]/RTT[/LOSS], such as 10mbit:2mbit/100ms/1%"
        ))
    };
    let mut parts = text.split('/');
    let (Some(rates), Some(rtt), loss, None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(failure("not a network".to_owned()));
    };
    let (down, up) = rates
        .split_once(':')
        .map_or((rates, None), |(down, up)| (down, Some(up)));
    let rate_of = |text| lastbyte_units::rate(text).map_err(|error| failure(error.to_string()));
    let down = rate_of(down)?;
    let span = lastbyte_units::span(rtt).map_err(|error| failure(error.to_string()))?;
    let up = match up {
        Some(up) => rate_of(up)?,
        None => Rate::from_bits_per_second((down.bits_per_second() / 5).max(500_000)),
    };
    let queue_span = span.max(Duration::from_millis(50));
    let link = |rate: Rate| LinkText {
        rate: Some(format!("{}bit", rate.bits_per_second())),
        queue: Some(format!("{}B", rate.bytes_in(queue_span).max(QUEUE_MIN))),
        loss: loss.map(str::to_owned),
        ..LinkText::default()
    };
    let path = PathText {
        rtt: Some(rtt.to_owned()),
        overhead: Some(28),
        down: link(down),
        up: link(up),
        ..PathText::default()
    };
    let path = path.path(&mut |file| Err(file.to_owned()));
    Ok((
        text.to_owned(),
        path.map_err(|error| failure(error.to_string()))?,
    ))
}
