//! The system's configuration of name resolution: its DNS servers (`resolv.conf`) and its static names (`hosts`).

use core::net::SocketAddr;
use std::net::IpAddr;

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
/// The most DNS servers that are used; the same limit as in glibc.
const SERVERS_MAX: usize = 3;
/// The port of DNS servers.
pub(crate) const PORT: u16 = 53;

/// The system's DNS servers; empty if there is no such file.
pub(super) fn servers() -> Vec<SocketAddr> {
    servers_in(&read(RESOLV_CONF))
}

/// Whether a name is in the `hosts` file.
pub(super) fn is_in_hosts(name: &str) -> bool {
    has_host(&read(HOSTS), name)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the system's configuration is in files"
)]
fn read(path: &str) -> String {
    // A missing file is the same as an empty one.
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn servers_in(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    });
    // Link-local addresses with a zone are not supported and do not parse.
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
