//! Where what arrives goes: bodies to files and the terminal, talk to stderr, events to qlog.

use core::net::SocketAddr;
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, BufWriter, Stdout, Write},
    path::PathBuf,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastbyte_client::{Fetch, Handshake, Listener, Origin, Outcome};
use lastbyte_http3::{Fields, Request, Response};
use lastbyte_quic::{Time, trace::Trace};
use lastbyte_record::qlog::{Dialect, Header, Health, Qlog};
use lastbyte_wire::Side;

use super::{Arguments, Output, output_of};
use crate::{
    failure::Failure,
    files::{cannot_write, create, create_folder},
    jobs::Interrupt,
};

/// Bodies are written in pieces of this size: a packet holds much less.
const BUFFER_LEN: usize = 256 << 10;
/// How many ticks of a tenth of a second pass before the bar appears.
const TICKS_WITHOUT_BAR: u32 = 10;

/// How many bodies go to the terminal.
pub(super) fn to_stdout(arguments: &Arguments) -> usize {
    (0..arguments.urls.len())
        .filter(|fetch| output_of(arguments, *fetch) == Output::Stdout)
        .count()
}

/// Takes what arrives.
pub(super) struct Outputs<'a> {
    arguments: &'a Arguments,
    interrupt: &'a Interrupt,
    round: usize,
    targets: Vec<Target>,
    stdout: BufWriter<Stdout>,
    handshakes: BTreeMap<usize, Handshake>,
    qlogs: Vec<(PathBuf, Health)>,
    /// What went wrong that is not about one fetch.
    failure: Option<Failure>,
    ticks: u32,
    received: u64,
    expected: u64,
    bar: Option<ProgressBar>,
}

/// Where one body goes.
struct Target {
    path: Option<PathBuf>,
    writer: Option<BufWriter<Box<dyn Write>>>,
    /// What comes is of no interest.
    is_discarded: bool,
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
                "{given} times -o or -O for {} addresses; give one for each at most",
                fetches.len()
            )));
        }
        if let Some(folder) = &arguments.qlog {
            create_folder(folder)?;
        }
        let target = |(index, fetch): (usize, &Fetch)| {
            let path = match output_of(arguments, index) {
                Output::Stdout => None,
                Output::File(path) => Some(path),
                Output::RemoteName => {
                    Some(PathBuf::from(fetch.url.file_name().ok_or_else(|| {
                        Failure::Usage(format!(
                            "`{}` does not end in a file's name; say `-o FILE` in place of -O",
                            fetch.url
                        ))
                    })?))
                }
            };
            Ok(Target {
                path,
                writer: None,
                is_discarded: false,
            })
        };
        let targets = fetches.iter().enumerate().map(target);
        Ok(Self {
            arguments,
            interrupt,
            round,
            targets: targets.collect::<Result<_, Failure>>()?,
            stdout: BufWriter::with_capacity(1 << 16, io::stdout()),
            handshakes: BTreeMap::new(),
            qlogs: Vec::new(),
            failure: None,
            ticks: 0,
            received: 0,
            expected: 0,
            bar: None,
        })
    }

    /// Whether all that is not about one fetch went well.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        for (path, health) in &self.qlogs {
            if let Some(error) = health.take_error() {
                return Err(cannot_write(path, &error));
            }
        }
        Ok(())
    }

    /// What the handshakes came to, by the number of the connection.
    pub(super) fn into_handshakes(self) -> BTreeMap<usize, Handshake> {
        self.handshakes
    }

    fn write(&mut self, fetch: usize, bytes: &[u8]) -> io::Result<()> {
        let Some(target) = self.targets.get_mut(fetch) else {
            return Ok(());
        };
        if target.is_discarded {
            return Ok(());
        }
        if let Some(writer) = &mut target.writer {
            return writer.write_all(bytes);
        }
        let Some(path) = &target.path else {
            return self.stdout.write_all(bytes);
        };
        let writer = target.writer.insert(open(path)?);
        writer.write_all(bytes)
    }

    fn write_head(&mut self, fetch: usize, response: &Response) -> io::Result<()> {
        let mut text = format!("HTTP/3 {} \r\n", response.status()).into_bytes();
        for line in response.fields() {
            text.extend_from_slice(line.name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(line.value);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        self.write(fetch, &text)
    }

    fn say(&self, text: &str) {
        if !self.arguments.verbose {
            return;
        }
        let say = || {
            // Nobody can be told that stderr is gone.
            let _ = io::stderr().lock().write_all(text.as_bytes());
        };
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }

    fn say_fields(&self, mark: char, first: &str, fields: &Fields) {
        if !self.arguments.verbose {
            return;
        }
        let mut text = format!("{mark} {first}\n");
        for line in fields {
            let value = String::from_utf8_lossy(line.value);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{mark} {}: {}", line.name, printable(&value));
        }
        text.push(mark);
        text.push('\n');
        self.say(&text);
    }

    fn show_progress(&mut self) {
        self.ticks = self.ticks.saturating_add(1);
        if self.ticks < TICKS_WITHOUT_BAR || self.arguments.silent || self.arguments.verbose {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(None, target);
            let style = "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
            bar
        });
        bar.set_length(self.expected.max(self.received));
        bar.set_position(self.received);
    }
}

/// What a terminal can be shown of a server's words.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[expect(
    clippy::disallowed_types,
    reason = "the binary is where files are opened"
)]
fn open(path: &std::path::Path) -> io::Result<BufWriter<Box<dyn Write>>> {
    let file = std::fs::File::create(path)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))?;
    Ok(BufWriter::with_capacity(BUFFER_LEN, Box::new(file)))
}

impl Listener for Outputs<'_> {
    fn on_body(&mut self, fetch: usize, bytes: &[u8]) -> io::Result<()> {
        self.received += bytes.len() as u64;
        self.write(fetch, bytes)
    }

    fn on_head(&mut self, fetch: usize, response: &Response) -> io::Result<()> {
        self.say_fields(
            '<',
            &format!("HTTP/3 {}", response.status()),
            response.fields(),
        );
        let length = response.fields().get("content-length");
        let length = length.and_then(|text| core::str::from_utf8(text).ok()?.parse::<u64>().ok());
        self.expected = self.expected.saturating_add(length.unwrap_or(0));
        if self.arguments.fail && response.status() >= 400 {
            if let Some(target) = self.targets.get_mut(fetch) {
                target.is_discarded = true;
            }
            return Ok(());
        }
        if self.arguments.include || self.arguments.head {
            self.write_head(fetch, response)?;
        }
        Ok(())
    }

    fn on_interim(&mut self, fetch: usize, response: &Response) -> io::Result<()> {
        self.say_fields(
            '<',
            &format!("HTTP/3 {}", response.status()),
            response.fields(),
        );
        if self.arguments.include {
            self.write_head(fetch, response)?;
        }
        Ok(())
    }

    fn on_trailers(&mut self, _: usize, fields: &Fields) -> io::Result<()> {
        self.say_fields('<', "(trailers)", fields);
        Ok(())
    }

    fn on_end(&mut self, fetch: usize) -> io::Result<()> {
        // A body of no bytes makes a file, too.
        self.write(fetch, &[])?;
        match self
            .targets
            .get_mut(fetch)
            .and_then(|target| target.writer.take())
        {
            Some(mut writer) => writer.flush(),
            None => self.stdout.flush(),
        }
    }

    fn on_done(&mut self, fetch: usize, outcome: &Outcome) {
        // What has arrived of a body is kept, as far as that is possible: why it ended is said elsewhere.
        if outcome.failure.is_some() {
            if let Some(target) = self.targets.get_mut(fetch)
                && let Some(mut writer) = target.writer.take()
            {
                let _ = writer.flush();
            }
            let _ = self.stdout.flush();
        }
    }

    fn on_request(&mut self, _: usize, connection: usize, request: &Request) {
        if !self.arguments.verbose {
            return;
        }
        self.say(&format!("* Request over connection {connection}\n"));
        let path = request.path().unwrap_or_default();
        let first = format!(
            "{} {path} HTTP/3\n> host: {}",
            request.method(),
            request.authority().unwrap_or_default()
        );
        self.say_fields('>', &first, request.fields());
    }

    fn on_connecting(&mut self, connection: usize, origin: &Origin, remote: SocketAddr) {
        self.say(&format!(
            "* Connection {connection}: to {} ({}), UDP port {}\n",
            origin.host,
            remote.ip(),
            remote.port()
        ));
    }

    fn on_connected(&mut self, connection: usize, handshake: &Handshake) {
        let kind = match (handshake.is_resumed, handshake.early_data) {
            (false, _) => "full handshake",
            (true, None) => "resumed",
            (true, Some(true)) => "resumed, 0-RTT accepted",
            (true, Some(false)) => "resumed, 0-RTT rejected",
        };
        let certificate = if self.arguments.insecure {
            "not verified (-k)"
        } else {
            "verified"
        };
        self.say(&format!(
            "* Connection {connection}: QUIC version {}, TLS 1.3 with {}, HTTP/3, {kind}\n* Certificate: {certificate}\n",
            handshake.version.number().get(),
            handshake.cipher_suite.unwrap_or("an unknown cipher suite"),
        ));
        self.handshakes.insert(connection, handshake.clone());
    }

    fn on_disconnected(&mut self, connection: usize, why: &str) {
        self.say(&format!("* Connection {connection}: {}\n", printable(why)));
    }

    fn trace(&mut self, now: Time, connection: usize) -> Option<Box<dyn Trace>> {
        let folder = self.arguments.qlog.as_ref()?;
        let group = format!("get-{}-{connection}", self.round);
        let path = folder.join(format!("{group}.sqlog"));
        let file = match create(&path) {
            Ok(file) => file,
            Err(failure) => {
                self.failure.get_or_insert(failure);
                return None;
            }
        };
        let header = Header {
            dialect: Dialect::V03,
            title: format!("lastbyte get, connection {connection}"),
            vantage_point: Side::Client,
            group_id: group,
        };
        let (qlog, health) = Qlog::new(&header, now, file);
        self.qlogs.push((path, health));
        Some(Box::new(qlog))
    }

    fn on_tick(&mut self) -> bool {
        self.show_progress();
        if to_stdout(self.arguments) > 0 {
            // Whoever reads along sees what has come. An error is found by the next body.
            let _ = self.stdout.flush();
        }
        !self.interrupt.is_pressed() && self.failure.is_none()
    }
}
