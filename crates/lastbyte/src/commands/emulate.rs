//! `lastbyte emulate`: emulates a network path between real clients and a real server.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    process::ExitCode,
    sync::mpsc,
    time::Duration,
};

use clap::Args;
use lastbyte_emulate::{
    DirectionReport, Network, Plan, Relay, Report, Settings, Sharing, StartError, Tunnel,
    TunnelError, packet::NetworkError, running::Running, tunnel,
};
use lastbyte_link::DropReason;
use lastbyte_units as units;
use serde_json::json;

use super::{
    path::{PathArguments, describe, refuse_cross},
    values,
};
use crate::{
    failure::Failure,
    jobs,
    table::Table,
    terminal::{notice, print},
};

const EXAMPLES: &str = "\
Examples, beside a server (`lastbyte serve --self-signed`), each in a terminal:
  # Relay UDP, and so QUIC, over a path of 55 Mb/s and 39 ms.
  lastbyte emulate --network vdsl --listen 127.0.0.1:4443 --to 127.0.0.1:4433
  lastbyte get -k --timing https://127.0.0.1:4443/1MB -o /dev/null
  # Put a custom path, shared by all clients, in front of any server.
  lastbyte emulate --rate 20Mb/s --rtt 80ms --queue 40ms --loss 0.5% \\
    --shared --to quic.example:443
  # Reach any port of this machine, over any protocol, at another address.
  sudo lastbyte emulate --network vdsl --tun
  curl -k https://198.18.0.2:4433/1MB -o /dev/null
  ping 198.18.0.2

The path options are those of `lastbyte sim`. Without --tun, each client \
(address and port) has its own path, which starts with its first datagram; \
with --shared, all clients share one. With --tun, all traffic shares one \
path; with --apart, each connection has its own. Ctrl-C or SIGTERM stops the \
command, which then prints a report. Its last line shows the extra delay \
added by this machine; check it before trusting a measurement.

--tun creates a network device, which requires root or CAP_NET_ADMIN. \
Without these, run server, path and clients in a network namespace: in one \
shell of `unshare -rn`, after `ip link set lo up`.";

/// Emulate a network path, as a UDP relay or a network device.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    after_long_help = EXAMPLES,
    mut_arg("network", |network| network.help("Named network, or a TOML file (docs/network.md)"))
)]
pub(crate) struct Arguments {
    /// Address and UDP port to which clients send; port 0 selects a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4443", value_parser = values::loopback_by_default)]
    listen: SocketAddr,
    /// Address or name, and port, of the server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4433")]
    to: String,
    /// Share one path among all clients instead of one path per client
    #[arg(long, conflicts_with = "apart")]
    shared: bool,
    /// Create a network device with addresses from this network instead of relaying UDP (requires root)
    ///
    /// Packets to the network's second address, of any IP protocol, pass through the path and return to this machine.
    /// Without a value: 198.18.0.0/15.
    #[arg(
        long,
        value_name = "NET/15",
        num_args = 0..=1,
        default_missing_value = "198.18.0.0/15",
        value_parser = network,
        conflicts_with_all = ["listen", "to"],
        help_heading = "Network device"
    )]
    tun: Option<Network>,
    /// Use one path per connection instead of one for all
    #[arg(long, requires = "tun", help_heading = "Network device")]
    apart: bool,
    /// MTU of the device in bytes
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "1500",
        value_parser = values::size::<u16>(1280..=65_535),
        requires = "tun",
        help_heading = "Network device"
    )]
    mtu: u16,
    /// Random seed
    #[arg(long, default_value = "1", value_parser = units::seed)]
    seed: u64,
    /// Remove a client (with --apart, a connection) after this idle time
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = values::time_limit)]
    idle: Duration,
    /// Give each client another port towards the server at this interval, as a NAT that restarts
    ///
    /// Packets to the previous port are lost. A server sees a client that changes its address (RFC 9000 §9.3). With --tun, all clients get one at the same time, for UDP and TCP.
    #[arg(long, value_name = "SPAN", value_parser = units::span)]
    rebind: Option<Duration>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    path: PathArguments,
}

/// Runs until it is interrupted, then prints the report.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut paths = arguments.path.paths()?;
    let (Some((name, path)), None) = (paths.pop(), paths.pop()) else {
        return Err(Failure::Usage(
            "more than one path (expected one --network; start another `lastbyte emulate` for a second path)"
                .to_owned(),
        ));
    };
    refuse_cross(&name, &path)?;
    if arguments
        .rebind
        .is_some_and(|interval| interval < REBIND_MIN)
    {
        return Err(Failure::Usage(format!(
            "--rebind: too short (expected at least {} ms)",
            REBIND_MIN.as_millis()
        )));
    }
    let name = format!("{name} ({})", describe(&path).join(", "));
    let (stop, stopped) = mpsc::channel();
    // Without a handler, a signal still ends the process, but without a report.
    jobs::on_signal(move || {
        let _ = stop.send(());
    });
    let mut plan = Plan {
        overhead: path.overhead,
        sharing: Sharing::Apart,
        seed: arguments.seed,
        idle: arguments.idle,
        ..Plan::new(path.down, path.up)
    };
    let warning = format!(
        "warning: packets of new clients are dropped: there are {}, or no file descriptor is left; those idle for {} are removed \
         (reported once)",
        plan.clients_max,
        units::show_span(arguments.idle)
    );
    let report = if let Some(network) = arguments.tun {
        if !arguments.apart {
            plan.sharing = Sharing::Shared;
        }
        let tunnel = Tunnel::start(tunnel::Settings {
            network,
            mtu: arguments.mtu,
            rebind: arguments.rebind,
            ..tunnel::Settings::new(plan)
        })
        .map_err(|error| match error {
            TunnelError::Path(_) => Failure::usage(error),
            _ => Failure::run(error),
        })?;
        let (v4, v6) = network.server();
        let v6 = if tunnel.has_v6() {
            format!(" and {v6}")
        } else {
            String::new()
        };
        let device = tunnel.name();
        notice(format!(
            "{v4}{v6} -> this machine over {name}, through {device}"
        ));
        wait(&stopped, tunnel.running(), &warning);
        tunnel.stop()
    } else {
        if arguments.shared {
            plan.sharing = Sharing::Shared;
        }
        let to = address(&arguments.to)?;
        if values::reaches(to, arguments.listen) {
            return Err(Failure::Usage(format!(
                "--to: `{}`: the address of --listen (expected another one)",
                arguments.to
            )));
        }
        let relay = Relay::start(Settings {
            listen: arguments.listen,
            to,
            plan,
            rebind: arguments.rebind,
        })
        .map_err(|error| match error {
            StartError::Path(_) => Failure::usage(error),
            StartError::Listen(..) | StartError::System(_) => Failure::run(error),
        })?;
        notice(format!("{} -> {to} over {name}", relay.address()));
        wait(&stopped, relay.running(), &warning);
        relay.stop()
    }
    .map_err(|error| Failure::Run(format!("path emulation failed: {error}")))?;
    let text = if arguments.json {
        format!("{:#}\n", json_of(&report))
    } else {
        table(&report)
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for a signal, or for the end of the thread. Prints the warning once if clients are refused.
fn wait(stopped: &mpsc::Receiver<()>, running: &Running, warning: &str) {
    let mut has_warned = false;
    while !running.is_over() && stopped.recv_timeout(CHECK_INTERVAL).is_err() {
        if !has_warned && running.refused() > 0 {
            has_warned = true;
            notice(warning);
        }
    }
}

/// The shortest interval between ports of a client: each opens a socket.
const REBIND_MIN: Duration = Duration::from_millis(10);
/// The interval at which the thread is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let mut found = text
        .to_socket_addrs()
        .map_err(|error| Failure::Usage(format!("--to: `{text}`: {error} (expected HOST:PORT)")))?;
    found
        .next()
        .ok_or_else(|| Failure::Usage(format!("--to: `{text}`: the name has no address")))
}

/// Parses a network such as `198.18.0.0/15`.
fn network(text: &str) -> Result<Network, String> {
    let first = text
        .strip_suffix("/15")
        .and_then(|first| first.parse().ok())
        .ok_or(NetworkError);
    first
        .and_then(Network::new)
        .map_err(|error| error.to_string())
}

fn table(report: &Report) -> String {
    let mut header = vec!["", "packets", "bytes", "delivered", "marked", "duplicated"];
    header.extend(DropReason::ALL.map(DropReason::name));
    header.push("overflow");
    let mut table = Table::new(header);
    for (name, way) in [("up", &report.up), ("down", &report.down)] {
        let mut row = vec![
            name.to_owned(),
            way.sent.packets.to_string(),
            way.sent.bytes.to_string(),
            way.delivered.packets.to_string(),
            way.marked.packets.to_string(),
            way.duplicated.packets.to_string(),
        ];
        row.extend(way.dropped.iter().map(|count| count.packets.to_string()));
        row.push(way.overflowed.to_string());
        table.row(row);
    }
    let late = |share| report.late.quantile(share);
    let device = match (report.missed, report.foreign) {
        (0, 0) => String::new(),
        (missed, foreign) => format!("; {missed} dropped before the path, {foreign} unrelated"),
    };
    let delay = match report.late.count() {
        0 => "no packets".to_owned(),
        _ => format!(
            "P50 {:.0?}, P90 {:.0?}, P99 {:.0?}, max {:.0?}",
            late(0.5),
            late(0.9),
            late(0.99),
            report.late.max(),
        ),
    };
    format!(
        "{}\n{} clients; {} packets refused, {} not sent, {} for removed clients{device}\n\
         extra delay added by this machine: {delay}\n",
        table.text(),
        report.clients,
        report.refused,
        report.unsent,
        report.up.stray + report.down.stray,
    )
}

fn json_of(report: &Report) -> serde_json::Value {
    let way = |way: &DirectionReport| {
        let dropped: serde_json::Map<String, serde_json::Value> = DropReason::ALL
            .iter()
            .zip(&way.dropped)
            .map(|(reason, count)| (reason.name().to_owned(), count.packets.into()))
            .collect();
        json!({
            "packets": way.sent.packets, "bytes": way.sent.bytes, "delivered": way.delivered.packets,
            "marked": way.marked.packets, "duplicated": way.duplicated.packets, "dropped": dropped,
            "overflowed": way.overflowed, "stray": way.stray,
        })
    };
    let has_packets = report.late.count() > 0;
    let late = |span: Duration| has_packets.then(|| micros(span));
    json!({
        "clients": report.clients, "refused": report.refused, "unsent": report.unsent,
        "missed": report.missed, "foreign": report.foreign,
        "up": way(&report.up), "down": way(&report.down),
        "late_us": {
            "p50": late(report.late.quantile(0.5)), "p90": late(report.late.quantile(0.9)),
            "p99": late(report.late.quantile(0.99)), "max": late(report.late.max()),
        },
    })
}

/// Microseconds, with the nanoseconds as decimal places.
fn micros(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_json_have_three_decimal_places() {
        for (nanos, text) in [
            (1_310_719, "1310.719"),
            (1_048_575, "1048.575"),
            (16_777_215, "16777.215"),
            (7, "0.007"),
        ] {
            assert_eq!(json!(micros(Duration::from_nanos(nanos))).to_string(), text);
        }
    }
}
