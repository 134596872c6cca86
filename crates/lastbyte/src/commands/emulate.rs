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
use lastbyte_emulate::{Plan, Relay, Report, Settings, Sharing, StartError, WayReport};
use lastbyte_link::DropReason;
use lastbyte_sim::units;
use serde_json::json;

use super::path::PathArguments;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  # A server; a path of 55 Mb/s and 39 ms before it; a client that goes over that path.
  lastbyte serve --self-signed --listen 127.0.0.1:4433
  lastbyte emulate --network vdsl --listen 127.0.0.1:4443 --to 127.0.0.1:4433
  lastbyte get -k --timing https://127.0.0.1:4443/1m -o /dev/null
  # A path of your own, which all clients share, in front of anybody's server.
  lastbyte emulate --rate 20mbit --rtt 80ms --queue 40ms --loss 0.5% --shared --to quic.example:443

Each client, by its address, has a path of its own that begins when it first sends; or all share one (--shared). Paths are
those of `lastbyte sim`: see there for what can be said of them. Round trips, rates and queues are as modelled as long as
the machine keeps up; how late datagrams were is in the table at the end, and tells whether to believe a measurement.
QUIC and whatever else runs over UDP passes; TCP does not. Ctrl-C or SIGTERM ends it, with the table.";

/// Relays UDP between real clients and a real server, over an emulated path.
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
    #[arg(long)]
    shared: bool,
    /// Where all chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// After how long without a datagram a client is forgotten
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
    let to = address(&arguments.to)?;
    let (stop, stopped) = mpsc::channel();
    // Without a handler it ends all the same, only without its table.
    let _ = ctrlc::set_handler(move || {
        let _ = stop.send(());
    });
    let relay = Relay::start(Settings {
        listen: arguments.listen,
        to,
        plan: Plan {
            overhead: path.overhead,
            sharing: if arguments.shared {
                Sharing::Shared
            } else {
                Sharing::Apart
            },
            seed: arguments.seed,
            idle: arguments.idle,
            ..Plan::new(path.down, path.up)
        },
    })
    .map_err(|error| match error {
        StartError::Path(_) => Failure::usage(error),
        StartError::Listen(..) | StartError::System(_) => Failure::run(error),
    })?;
    say(&format!("{} -> {to} over {name}", relay.address()));
    while !relay.is_over() && stopped.recv_timeout(LOOK).is_err() {}
    let report = relay
        .stop()
        .map_err(|error| Failure::Run(format!("the relay broke down: {error}")))?;
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

/// How often to see whether the relay ended by itself.
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
    format!(
        "{table}\n{} clients; {} datagrams refused, {} not sent on, {} too late for their client\n\
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
        "up": way(&report.up), "down": way(&report.down),
        "late-us": {
            "p50": micros(report.late.quantile(0.5)), "p90": micros(report.late.quantile(0.9)),
            "p99": micros(report.late.quantile(0.99)), "max": micros(report.late.max()),
        },
    })
}
