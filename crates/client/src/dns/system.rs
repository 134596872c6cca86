//! What the system says of names: which servers it asks (`resolv.conf`), and which names it knows itself (`hosts`).

use core::net::SocketAddr;
use std::net::IpAddr;

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
/// As many as the system's own resolver heeds.
const SERVERS_MAX: usize = 3;
/// Where DNS servers listen.
pub(crate) const PORT: u16 = 53;

/// The system's servers; none where there is no such file.
pub(super) fn servers() -> Vec<SocketAddr> {
    servers_in(&read(RESOLV_CONF))
}

/// Whether the system knows a name without asking.
pub(super) fn is_in_hosts(name: &str) -> bool {
    has_host(&read(HOSTS), name)
}

#[expect(
    clippy::disallowed_methods,
    reason = "what the system says of names is in files"
)]
fn read(path: &str) -> String {
    // Who has none says nothing.
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn servers_in(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    });
    // Addresses of one link have its name behind them, which is not heeded.
    lines
        .filter_map(|word| word.parse::<IpAddr>().ok())
        .map(|address| SocketAddr::new(address, PORT))
        .take(SERVERS_MAX)
        .collect()
}

pub(super) fn has_host(text: &str, name: &str) -> bool {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    lines
        .flat_map(|line| line.split_ascii_whitespace().skip(1))
        .any(|word| word.eq_ignore_ascii_case(name))
}
