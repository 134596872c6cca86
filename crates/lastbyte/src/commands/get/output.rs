//! Output: bodies to files and the terminal, log output to stderr, events to qlog.

mod target;

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write},
    path::PathBuf,
};

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastbyte_client::{
    Fetch, Handshake, Head, Listener, Lookup, Move, Origin, Outcome, Transport, Version,
};
use lastbyte_driver::Clock;
use lastbyte_http3::{Fields, Request};
use lastbyte_quic::{Time, trace::Trace};
use lastbyte_record::qlog::{Header, Health, Qlog};
use lastbyte_wire::Side;

use self::target::Target;
use super::arguments::{Arguments, Output};
use crate::{
    failure::Failure,
    files::{cannot_write, create_beside, create_folder, rename},
    jobs::Interrupt,
    terminal::{notice, printable, wrote},
};

/// Number of ticks, of a tenth of a second each, before the progress bar appears.
const TICKS_WITHOUT_BAR: u32 = 10;

/// Number of bodies written to the terminal.
pub(super) fn to_stdout(arguments: &Arguments) -> usize {
    let given = arguments.outputs.0.iter();
    let files = given.filter(|output| **output != Output::Stdout).count();
    arguments.urls.len().saturating_sub(files)
}

/// The last response of a fetch, for the report at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct LastHead {
    pub(super) status: u16,
    /// The fields.
    pub(super) fields: Fields,
}

/// The listener of the run.
pub(super) struct Outputs<'a> {
    arguments: &'a Arguments,
    interrupt: &'a Interrupt,
    round: usize,
    targets: Vec<Target>,
    /// The fields of the last response of each fetch.
    heads: Vec<LastHead>,
    stdout: Box<dyn Write>,
    handshakes: BTreeMap<usize, Handshake>,
    /// By connection number.
    qlogs: BTreeMap<usize, (PathBuf, Health)>,
    /// Errors that do not concern a single fetch.
    failure: Option<Failure>,
    ticks: u32,
    received: u64,
    expected: u64,
    clock: Clock,
    /// When the first request was sent.
    asked: Option<Time>,
    bar: Option<ProgressBar>,
}

impl<'a> Outputs<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        fetches: &[Fetch],
        interrupt: &'a Interrupt,
        round: usize,
    ) -> Result<Self, Failure> {
        let given = arguments.outputs.0.len();
        if given > fetches.len() {
            return Err(Failure::Usage(format!(
                "{given} -o or -O options for {} URLs (expected at most one per URL)",
                fetches.len()
            )));
        }
        if let Some(folder) = &arguments.shown.qlog {
            create_folder(folder)?;
        }
        let target = |(index, fetch)| Target::new(arguments, index, fetch);
        let targets = fetches.iter().enumerate().map(target);
        Ok(Self {
            arguments,
            interrupt,
            round,
            targets: targets.collect::<Result<_, Failure>>()?,
            heads: vec![LastHead::default(); fetches.len()],
            stdout: Box::new(target::stdout().map_err(|error| Failure::stdout(&error))?),
            handshakes: BTreeMap::new(),
            qlogs: BTreeMap::new(),
            failure: None,
            ticks: 0,
            received: 0,
            expected: 0,
            clock: Clock::new(),
            asked: None,
            bar: None,
        })
    }

    /// Whether there were only errors that concern single fetches.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        for (connection, (path, health)) in &self.qlogs {
            if let Some(error) = health.take_error() {
                return Err(cannot_write(path, &error));
            }
            // An attempt without a handshake, such as that of a lost race of addresses, is not taken for the transfer.
            if !self.handshakes.contains_key(connection)
                && let (Some(folder), Some(stem)) = (path.parent(), path.file_stem())
            {
                let stem = format!("{}-failed", stem.to_string_lossy());
                let (failed, _) = create_beside(folder, &stem, "sqlog")?;
                rename(path, &failed)?;
            } else if !self.arguments.shown.silent {
                wrote(path);
            }
        }
        Ok(())
    }

    /// The handshakes, by connection number.
    pub(super) fn into_handshakes(self) -> BTreeMap<usize, Handshake> {
        self.handshakes
    }

    /// The fields of the last response of each fetch, for the report at the end.
    pub(super) fn take_heads(&mut self) -> Vec<LastHead> {
        core::mem::take(&mut self.heads)
    }

    fn write(&mut self, fetch: usize, bytes: &[u8]) -> io::Result<()> {
        match self.targets.get_mut(fetch) {
            Some(target) => target.write(bytes, &mut self.stdout),
            None => Ok(()),
        }
    }

    /// Writes a header to all its destinations.
    fn take_head(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let line = head.status_line();
        self.print_fields('<', line.trim_end(), head.response.fields());
        if let Some(last) = self.heads.get_mut(fetch) {
            last.status = head.response.status();
            last.fields.clone_from(head.response.fields());
        }
        let shown = &self.arguments.shown;
        let is_refused = shown.fail && head.response.status() >= 400;
        if (shown.include || shown.head) && !is_refused {
            let target = self.targets.get(fetch);
            let is_stdout = target.is_some_and(|target| target.path().is_none());
            let is_for_terminal = is_stdout && io::stdout().is_terminal();
            self.write(fetch, &head_text(head, is_for_terminal))?;
        }
        Ok(())
    }

    fn print_notice(&self, text: &str) {
        if self.arguments.shown.verbose {
            self.warn(text);
        }
    }

    /// Prints a message unconditionally.
    fn warn(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| notice(text)),
            None => notice(text),
        }
    }

    fn print_fields(&self, mark: char, first: &str, fields: &Fields) {
        if !self.arguments.shown.verbose {
            return;
        }
        let mut text = format!("{mark} {first}\n");
        for line in fields {
            let value = String::from_utf8_lossy(line.value);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{mark} {}: {}", line.name, without_controls(&value));
        }
        text.push(mark);
        text.push('\n');
        self.print_notice(&text);
    }

    fn show_progress(&mut self) {
        self.ticks = self.ticks.saturating_add(1);
        let shown = &self.arguments.shown;
        if self.ticks < TICKS_WITHOUT_BAR || shown.silent || shown.verbose {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(None, target);
            let style = "{bar:40} {bytes}/{total_bytes} {msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar
        });
        bar.set_length(self.expected.max(self.received));
        bar.set_position(self.received);
        let asked = self.asked;
        let since = asked.map_or(Duration::ZERO, |asked| self.clock.now().since(asked));
        bar.set_message(pace(self.received, self.expected, since));
    }
}

/// A header as HTTP/1.1 sends it; for a terminal, with [`printable`] values.
fn head_text(head: &Head<'_>, is_for_terminal: bool) -> Vec<u8> {
    let value = |value: &[u8]| {
        if is_for_terminal {
            printable(&String::from_utf8_lossy(value)).into_bytes()
        } else {
            value.to_vec()
        }
    };
    let mut text = value(head.status_line().as_bytes());
    for line in head.response.fields() {
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(line.name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend(value(line.value));
    }
    text.extend_from_slice(b"\r\n\r\n");
    text
}

/// The average rate since the request, and the remaining time at that rate.
fn pace(received: u64, expected: u64, since: Duration) -> String {
    let seconds = since.as_secs_f64();
    if received == 0 || seconds <= 0.0 {
        return String::new();
    }
    let rate = received as f64 / seconds;
    let pace = format!("{}/s", HumanBytes(rate as u64));
    match expected.checked_sub(received) {
        Some(left) => format!("{pace} {:.0}s", left as f64 / rate),
        None => pace,
    }
}

/// The result of a name lookup, as text; omits what was not queried.
fn resolved(lookup: &Lookup) -> String {
    let host = &lookup.origin.host;
    let mut text = String::new();
    if lookup.a.is_some() || lookup.aaaa.is_some() {
        let found: Vec<String> = lookup
            .addresses
            .iter()
            .map(|at| at.ip().to_string())
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "* Host {host}: {}", found.join(", "));
    }
    let Some(https) = &lookup.https else {
        return text;
    };
    match &https.found {
        Err(why) => {
            let _ = writeln!(text, "* HTTPS record of {host}: {}", without_controls(why));
        }
        Ok(found) if found.is_empty() => {
            let _ = writeln!(text, "* HTTPS record of {host}: none");
        }
        Ok(found) => {
            for service in found {
                let _ = writeln!(
                    text,
                    "* HTTPS record of {host}: {} at {}:{}",
                    without_controls(&service.alpn.join(", ")),
                    without_controls(service.target.as_ref().unwrap_or(host)),
                    service.port.unwrap_or(lookup.origin.port)
                );
            }
        }
    }
    text
}

/// Text of a server for a line of a message: without control characters, line breaks included.
fn without_controls(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

impl Listener for Outputs<'_> {
    fn on_body(&mut self, fetch: usize, bytes: &[u8]) -> io::Result<()> {
        self.received += bytes.len() as u64;
        self.write(fetch, bytes)
    }

    fn on_head(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let length = head.text("content-length");
        let length = length.and_then(|text| text.parse::<u64>().ok());
        self.expected = self.expected.saturating_add(length.unwrap_or(0));
        self.take_head(fetch, head)
    }

    fn on_interim(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        self.take_head(fetch, head)
    }

    fn on_trailers(&mut self, _: usize, fields: &Fields) -> io::Result<()> {
        self.print_fields('<', "(trailers)", fields);
        Ok(())
    }

    fn on_end(&mut self, fetch: usize) -> io::Result<()> {
        // An empty body creates a file, too.
        self.write(fetch, &[])?;
        if let Some(target) = self.targets.get_mut(fetch) {
            target.finish()?;
        }
        self.stdout.flush()
    }

    fn on_done(&mut self, fetch: usize, outcome: &Outcome) {
        // The received part of a body is kept, as far as possible: its error is reported elsewhere.
        if outcome.failure.is_some() {
            if let Some(target) = self.targets.get_mut(fetch) {
                let _ = target.finish();
            }
            let _ = self.stdout.flush();
        }
    }

    fn on_request(&mut self, _: usize, connection: usize, version: Version, request: &Request) {
        self.asked.get_or_insert_with(|| self.clock.now());
        if !self.arguments.shown.verbose {
            return;
        }
        self.print_notice(&format!("* Request over connection {connection}\n"));
        let path = request.path().unwrap_or_default();
        let first = format!(
            "{} {path} {version}\n> host: {}",
            request.method(),
            request.authority().unwrap_or_default()
        );
        self.print_fields('>', &first, request.fields());
    }

    fn on_resolved(&mut self, lookup: &Lookup) {
        self.print_notice(&resolved(lookup));
    }

    fn on_quic_connecting(&mut self, connection: usize, origin: &Origin, remote: SocketAddr) {
        self.print_notice(&format!(
            "* Connection {connection}: to {} ({}), UDP port {}\n",
            origin.host,
            remote.ip(),
            remote.port()
        ));
    }

    fn on_tcp_connecting(&mut self, connection: usize, origin: &Origin, addresses: &[SocketAddr]) {
        let ips: Vec<String> = addresses.iter().map(|at| at.ip().to_string()).collect();
        let port = addresses.first().map_or(origin.port, SocketAddr::port);
        self.print_notice(&format!(
            "* Connection {connection}: to {} ({}), TCP port {port}\n",
            origin.host,
            ips.join(", "),
        ));
    }

    fn on_connected(&mut self, connection: usize, handshake: &Handshake) {
        let kind = match (handshake.is_resumed, handshake.early_data) {
            (false, _) => "full handshake",
            (true, None) => "resumed",
            (true, Some(true)) => "resumed, 0-RTT accepted",
            (true, Some(false)) => "resumed, 0-RTT rejected",
        };
        let carrier = match handshake.transport {
            Transport::Quic(version) => format!("QUIC version {}", version.number().get()),
            Transport::Tcp => format!("TCP to {}", handshake.remote),
        };
        let version = handshake.version;
        let Some(tls) = handshake.tls else {
            self.print_notice(&format!(
                "* Connection {connection}: {carrier}, clear text, {version}\n"
            ));
            self.handshakes.insert(connection, handshake.clone());
            return;
        };
        let certificate = if self.arguments.connection.credentials.authorities.insecure {
            "not verified (-k)"
        } else {
            "verified"
        };
        let suite = handshake.cipher_suite.unwrap_or("an unknown cipher suite");
        self.print_notice(&format!(
            "* Connection {connection}: {carrier}, {tls} with {suite}, {version}, {kind}\n* Certificate: {certificate}\n"
        ));
        self.handshakes.insert(connection, handshake.clone());
    }

    fn on_disconnected(&mut self, connection: usize, why: &str) {
        self.print_notice(&format!(
            "* Connection {connection}: {}\n",
            without_controls(why)
        ));
    }

    fn on_move(&mut self, connection: usize, step: &Move) {
        let what = match step {
            Move::Started(to) => format!("the network changed; trying local address {to}"),
            Move::Done(to) => format!("moved to local address {to}"),
            Move::Failed(to, why) => format!("not moved to local address {to}: {why}"),
        };
        self.print_notice(&format!("* Connection {connection}: {what}\n"));
    }

    fn trace(&mut self, now: Time, connection: usize) -> Option<Box<dyn Trace>> {
        let folder = self.arguments.shown.qlog.as_ref()?;
        let group = format!("get-{}-{connection}", self.round);
        let (path, file) = match create_beside(folder, &group, "sqlog") {
            Ok(created) => created,
            Err(failure) => {
                self.failure.get_or_insert(failure);
                return None;
            }
        };
        let header = Header {
            title: format!("lastbyte get, connection {connection}"),
            vantage_point: Side::Client,
            group_id: group,
        };
        let (qlog, health) = Qlog::new(&header, now, file);
        self.qlogs.insert(connection, (path, health));
        Some(Box::new(qlog))
    }

    fn on_tick(&mut self) -> bool {
        self.show_progress();
        if to_stdout(self.arguments) > 0 {
            // Makes received data visible to readers of the file. The next write reports an error.
            let _ = self.stdout.flush();
        }
        !self.interrupt.is_pressed() && self.failure.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bar that appears late does not treat earlier bytes as if they had arrived at once.
    #[test]
    fn speed_counts_from_the_request() {
        let seconds = Duration::from_secs;
        // 1 Mb/s, as on an emulated path.
        assert_eq!(pace(125_000, 400_000, seconds(1)), "122.07 KiB/s 2s");
        assert_eq!(pace(375_000, 400_000, seconds(3)), "122.07 KiB/s 0s");
        assert_eq!(pace(0, 400_000, seconds(3)), "");
        assert_eq!(pace(5, 400_000, Duration::ZERO), "");
        // No length was announced.
        assert_eq!(pace(1 << 20, 0, seconds(1)), "1.00 MiB/s");
    }
}
