//! Settings of the kernel's TCP, on which HTTP/1.1 and 2 run.

use std::io::ErrorKind;

use lastbyte_server::{Server, server::StartError};

use super::Arguments;
use crate::{failure::Failure, files, terminal::notice};

#[cfg(test)]
mod tests;

/// Warns of settings with which HTTP/1.1 and 2 are slower than they need be.
pub(super) fn warn(arguments: &Arguments) {
    let versions = arguments.versions();
    if !versions.http1 && !versions.http2 {
        return;
    }
    for warning in warnings(arguments.tcp_congestion.as_deref(), value) {
        notice(format!("warning: {warning}"));
    }
}

/// The value of `net.ipv4.NAME`, if the system has it.
fn value(name: &str) -> Option<String> {
    let text = files::read_text(format!("/proc/sys/net/ipv4/{name}").as_ref()).ok()?;
    Some(text.trim().to_owned())
}

fn warnings(chosen: Option<&str>, value: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut warnings = Vec::new();
    let of_system = value("tcp_congestion_control").unwrap_or_default();
    if chosen.is_none() && of_system == "reno" {
        warnings.push(
            "net.ipv4.tcp_congestion_control is reno, which is slow to use fast paths again after a loss (expected cubic or bbr, here or by --tcp-congestion)"
                .to_owned(),
        );
    }
    // BBR has no slow start after an idle time.
    let is_bbr = chosen.unwrap_or(&of_system).starts_with("bbr");
    if !is_bbr && value("tcp_slow_start_after_idle").as_deref() == Some("1") {
        warnings.push(
            "net.ipv4.tcp_slow_start_after_idle is 1: HTTP/1.1 and 2 are slower after each pause of a connection (expected 0)"
                .to_owned(),
        );
    }
    warnings
}

/// Returns an error if the kernel cannot use the congestion control, with those that it can.
pub(super) fn check(arguments: &Arguments) -> Result<(), Failure> {
    let name = arguments.tcp_congestion.as_deref();
    let check = |name| Server::check_tcp_congestion(arguments.listen, name);
    let Err(StartError::TcpCongestion(name, error)) = name.map_or(Ok(()), check) else {
        return Ok(());
    };
    let (what, list) = match error.kind() {
        ErrorKind::NotFound => ("is not in the kernel".to_owned(), "available"),
        ErrorKind::PermissionDenied => ("is not permitted to this user".to_owned(), "allowed"),
        _ => (format!("cannot be set: {error}"), "available"),
    };
    let names = value(&format!("tcp_{list}_congestion_control"));
    let expected = names.map(|names| format!(" (expected one of {})", names.replace(' ', ", ")));
    let expected = expected.unwrap_or_default();
    Err(Failure::Usage(format!(
        "--tcp-congestion: `{name}` {what}{expected}"
    )))
}
