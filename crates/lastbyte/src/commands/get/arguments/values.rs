//! Parsers of values. Errors name the expected form.

use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use lastbyte_client::{ConnectTo, Override, Url};
use lastbyte_units as units;

use super::Pins;
use crate::commands::credentials::pin;

/// Parses a time span; without a unit, the number is in seconds, as in curl.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    units::span(text).map_err(|_| {
        "expected seconds, such as `5` or `0.5`, or a span of time with its unit, such as `500ms`"
            .to_owned()
    })
}

pub(super) fn resolve(text: &str) -> Result<Override, String> {
    let wrong = || {
        format!(
            "invalid address override `{text}` (expected HOST:PORT:ADDRESS, such as example.com:443:127.0.0.1)"
        )
    };
    // In curl, `+` lets the entry expire after a minute; here no entry lasts as long.
    let text = text.strip_prefix('+').unwrap_or(text);
    // Skips the colons of an IPv6 address.
    let host_end = if text.starts_with('[') {
        text.find(']').ok_or_else(wrong)?
    } else {
        0
    };
    let mut colons = text[host_end..].match_indices(':');
    let colon = host_end + colons.nth(1).ok_or_else(wrong)?.0;
    let (host_and_port, addresses) = (&text[..colon], &text[colon + 1..]);
    // curl's wildcard for all hosts; the letter replaces it until the port is parsed.
    let is_any = host_and_port.starts_with("*:");
    let url: Url = host_and_port
        .replace('*', "x")
        .parse()
        .map_err(|error| format!("{}: {error}", wrong()))?;
    let addresses = addresses
        .split(',')
        .map(|address| address.trim_matches(['[', ']']).parse::<IpAddr>())
        .collect::<Result<Vec<IpAddr>, _>>()
        .map_err(|_| wrong())?;
    let (host, port) = (url.origin().host.clone(), url.origin().port);
    Ok(Override {
        host: if is_any { "*".to_owned() } else { host },
        port,
        addresses,
    })
}

/// Parses parts separated by colons; IPv6 addresses are in brackets.
pub(in crate::commands) fn connect_to(text: &str) -> Result<ConnectTo, String> {
    let wrong = || {
        format!(
            "invalid redirection `{text}` (expected HOST1:PORT1:HOST2:PORT2, such as a.example:443:b.example:8443)"
        )
    };
    let mut parts: Vec<String> = vec![String::new()];
    let mut is_bracketed = false;
    for character in text.chars() {
        match character {
            '[' => is_bracketed = true,
            ']' => is_bracketed = false,
            ':' if !is_bracketed => parts.push(String::new()),
            character => {
                let last = parts.last_mut().ok_or_else(wrong)?;
                last.push(character.to_ascii_lowercase());
            }
        }
    }
    let [host, port, to_host, to_port] = &parts[..] else {
        return Err(wrong());
    };
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let number = |text: &String| some(text).map(|text| text.parse().map_err(|_| wrong()));
    Ok(ConnectTo {
        host: some(host),
        port: number(port).transpose()?,
        to_host: some(to_host),
        to_port: number(to_port).transpose()?,
    })
}

/// Parses the address of a DNS server; the default port is 53.
pub(super) fn dns_server(text: &str) -> Result<SocketAddr, String> {
    let address = text.trim_matches(['[', ']']).parse::<IpAddr>();
    let found = address.map(|address| SocketAddr::new(address, 53));
    found.or_else(|_| text.parse()).map_err(|_| {
        format!("invalid address `{text}` of a DNS server (expected 192.0.2.1, 192.0.2.1:53 or [2001:db8::1]:53)")
    })
}

/// Parses a size in bytes as curl does: `k`, `M` and `G` are powers of 1024. With a `B`, they are those of
/// [`lastbyte_units`].
pub(super) fn size(text: &str) -> Result<u64, String> {
    let scale = match text.bytes().last() {
        Some(b'k' | b'K') => 1 << 10,
        Some(b'm' | b'M') => 1 << 20,
        Some(b'g' | b'G') => 1 << 30,
        _ => return units::bytes(text).map_err(|error| error.to_string()),
    };
    let number = units::count(&text[..text.len() - 1]).ok();
    number
        .and_then(|number| number.checked_mul(scale))
        .ok_or_else(|| {
            "expected a size, such as `1000`, `64k` (1024 each, as in curl) or `64kB`".to_owned()
        })
}

pub(super) fn redirects(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(number) if (-1..=i64::from(u32::MAX)).contains(&number) => Ok(number),
        _ => Err(format!(
            "invalid limit `{text}` (expected a number of redirects, or -1 for no limit)"
        )),
    }
}

pub(super) fn pinned(text: &str) -> Result<Pins, String> {
    let pins = text
        .split(';')
        .map(|text| match text.strip_prefix("sha256//") {
            Some(text) => pin(text),
            None => Err(format!(
                "invalid pin `{text}` (expected sha256//BASE64; key files are not supported)"
            )),
        });
    pins.collect::<Result<_, _>>().map(Pins)
}
