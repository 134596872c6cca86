//! `lastbyte emulate`: real clients and a real server, with a modelled path between them.

use std::{
    io::Write,
    net::{SocketAddr, ToSocketAddrs},
    process::ExitCode,
    sync::mpsc,
    time::Duration,
};

use clap::Args;
use comfy_table::{CellAlignment, Table};
use lastbyte_emulate::{
    Network, Plan, Relay, Report, Settings, Sharing, StartError, Tunnel, TunnelError, WayReport,
    packet::NetworkError, running::Running, tunnel,
};
use lastbyte_link::DropReason;
use lastbyte_sim::units;
use serde_json::json;

use super::{
    path::{PathArguments, describe},
    values,
};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples, each line in a terminal of its own:
  # UDP, so QUIC: clients send to another port. A path of 55 Mb/s and 39 ms.
  lastbyte serve --self-signed
  lastbyte emulate --network vdsl --listen 127.0.0.1:4443 --to 127.0.0.1:4433
  lastbyte get -k --timing https://127.0.0.1:4443/1MB -o /dev/null
  # A path of your own, shared by all clients, in front of any server.
  lastbyte emulate --rate 20Mb/s --rtt 80ms --queue 40ms --loss 0.5% \\
    --shared --to quic.example:443
  # All protocols: another address, behind which is this very machine.
  sudo lastbyte emulate --network vdsl --tun
  curl -k https://198.18.0.2:4433/1MB -o /dev/null
  ping 198.18.0.2

Paths are described as in `lastbyte sim`. Without --tun, each client (address and port) has a path of its own, which starts with its first packet, or all share one (--shared). With --tun all share one, or each connection has its own (--apart). Round trips, rates and queues are as modelled as long as the machine keeps up; the table at the end says how late packets were, and so whether to believe a measurement. Ctrl-C or SIGTERM ends it, with the table.

--tun makes a network device, which takes root or CAP_NET_ADMIN. Without either, run server, path and clients in a network of their own: in one shell of `unshare -rn`, after `ip link set lo up`.";

/// Puts an emulated path between real clients and a real server: a port for UDP, or an address for everything.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Where clients send to: an address and a UDP port, 0 for any that is free
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4443")]
    listen: SocketAddr,
    /// Where the server is: an address or a name, and a port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4433")]
    to: String,
    /// One path for all clients, in place of one for each
    #[arg(long, conflicts_with = "apart")]
    shared: bool,
    /// In place of a UDP port, make a network device with addresses from this network: what is sent to its second address,
    /// whatever the protocol, comes back to this machine over the path. Without a value: 198.18.0.0/15. Takes root
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
    /// A path of its own for each connection, in place of one for all
    #[arg(long, requires = "tun", help_heading = "Network device")]
    apart: bool,
    /// The longest packet of the device, in bytes
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
    /// Forget a client, or with --apart a connection, after this long without a packet
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = units::span)]
    idle: Duration,
    /// JSON in place of the table at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    path: PathArguments,
}

/// Relays until it is told to stop.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut paths = arguments.path.paths()?;
    let (Some((name, path)), None) = (paths.pop(), paths.pop()) else {
        return Err(Failure::Usage(
            "one path at a time: give one --network, and start another relay for another"
                .to_owned(),
        ));
    };
    let name = format!("{name} ({})", describe(&path).join(", "));
    let (stop, stopped) = mpsc::channel();
    // Without a handler it ends all the same, only without its table.
    let _ = ctrlc::set_handler(move || {
        let _ = stop.send(());
    });
    let mut plan = Plan {
        overhead: path.overhead,
        sharing: Sharing::Apart,
        seed: arguments.seed,
        idle: arguments.idle,
        ..Plan::new(path.down, path.up)
    };
    let report = if let Some(network) = arguments.tun {
        if !arguments.apart {
            plan.sharing = Sharing::Shared;
        }
        let tunnel = Tunnel::start(tunnel::Settings {
            network,
            mtu: arguments.mtu,
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
        say(&format!(
            "{v4}{v6} -> this machine over {name}, through {device}"
        ));
        wait(&stopped, tunnel.running());
        tunnel.stop()
    } else {
        if arguments.shared {
            plan.sharing = Sharing::Shared;
        }
        let to = address(&arguments.to)?;
        let relay = Relay::start(Settings {
            listen: arguments.listen,
            to,
            plan,
        })
        .map_err(|error| match error {
            StartError::Path(_) => Failure::usage(error),
            StartError::Listen(..) | StartError::System(_) => Failure::run(error),
        })?;
        say(&format!("{} -> {to} over {name}", relay.address()));
        wait(&stopped, relay.running());
        relay.stop()
    }
    .map_err(|error| Failure::Run(format!("the path broke down: {error}")))?;
    let text = if arguments.json {
        format!("{:#}\n", json_of(&report))
    } else {
        table(&report)
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .map_err(|error| Failure::stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// Until it is told to stop, or ends by itself.
fn wait(stopped: &mpsc::Receiver<()>, running: &Running) {
    while !running.is_over() && stopped.recv_timeout(LOOK).is_err() {}
}

/// How often to see whether it ended by itself.
const LOOK: Duration = Duration::from_millis(200);

#[expect(clippy::print_stderr, reason = "what it tells people goes to stderr")]
fn say(line: &str) {
    eprintln!("{line}");
}

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let mut found = text
        .to_socket_addrs()
        .map_err(|error| Failure::Usage(format!("`--to {text}`: {error}")))?;
    found
        .next()
        .ok_or_else(|| Failure::Usage(format!("`--to {text}`: it has no address")))
}

/// `198.18.0.0/15`
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
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    let mut header = vec!["", "packets", "bytes", "delivered", "marked", "doubled"];
    header.extend(DropReason::ALL.map(DropReason::name));
    header.push("overflow");
    table.set_header(header);
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
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let late = |share| report.late.quantile(share);
    let device = match (report.missed, report.foreign) {
        (0, 0) => String::new(),
        (missed, foreign) => format!("; {missed} dropped before the path, {foreign} of others"),
    };
    format!(
        "{table}\n{} clients; {} packets refused, {} not sent on, {} too late for their client{device}\n\
         sent on later than the model says: P50 {:.0?}, P90 {:.0?}, P99 {:.0?}, at most {:.0?}\n",
        report.clients,
        report.refused,
        report.unsent,
        report.up.stray + report.down.stray,
        late(0.5),
        late(0.9),
        late(0.99),
        report.late.max(),
    )
}

fn json_of(report: &Report) -> serde_json::Value {
    let way = |way: &WayReport| {
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
    let micros = |span: Duration| span.as_secs_f64() * 1e6;
    json!({
        "clients": report.clients, "refused": report.refused, "unsent": report.unsent,
        "missed": report.missed, "foreign": report.foreign,
        "up": way(&report.up), "down": way(&report.down),
        "late-us": {
            "p50": micros(report.late.quantile(0.5)), "p90": micros(report.late.quantile(0.9)),
            "p99": micros(report.late.quantile(0.99)), "max": micros(report.late.max()),
        },
    })
}
