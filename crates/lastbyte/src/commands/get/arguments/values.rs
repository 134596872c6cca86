//! Parsers of values. Errors name the expected form.

use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use lastbyte_client::{ConnectTo, Override, Url};
use lastbyte_units as units;

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
