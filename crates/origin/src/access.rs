//! The access log: one line per request.
//!
//! Owns the content and format of a line. [`log`] writes it; it drops and counts lines that do not fit its
//! queue, and never blocks a worker.
//!
//! A line is written when the response is over: over HTTP/3 when all of it was acknowledged, over HTTP/1.1 and 2 when
//! all of it was passed to the system; or when that will not happen any more, and then `complete` is false.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use lastbyte_http3::Request;
use lastbyte_record::json::Object;

use super::{
    arms::Origin,
    exchange::Notes,
    handler::{Peer, Version},
    log::{self, LogWriter},
    sites::Sites,
};

/// The format of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    #[default]
    Ndjson,
    /// The Common Log Format of NCSA httpd.
    Common,
    /// The Combined Log Format: the same with `referer` and `user-agent`.
    Combined,
}

/// The log of requests.
#[derive(Clone, Debug)]
pub struct AccessLog {
    writer: LogWriter,
    format: Format,
    sites: Sites,
}

/// The connection of a request, as the connection log names it.
#[derive(Clone, Debug, Default)]
pub struct ConnectionRef {
    /// The number of the connection: `conn_id` of its line in the connection log.
    pub conn_id: u64,
    /// The index of its thread.
    pub worker: usize,
    /// Its arm, over QUIC, and the server's configuration.
    pub origin: Origin,
}

/// The content of a line.
#[derive(Clone, Debug)]
pub struct Record {
    /// Since the Unix epoch.
    time: Duration,
    remote: SocketAddr,
    version: Version,
    is_early: bool,
    connection: ConnectionRef,
    method: String,
    authority: String,
    target: String,
    referer: String,
    user_agent: String,
    /// Empty if it is absent or invalid.
    traceparent: String,
    /// The status of the response; 0 until it is known.
    pub status: u16,
    /// The bytes of its body that were sent; so far, until the response ends.
    pub body_len: u64,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// The time since the request arrived.
    pub took: Duration,
    /// Whether the response is complete.
    pub is_complete: bool,
    /// The name of the request's route, if there are routes.
    pub route: Option<&'a str>,
    /// What the handler's task noted, if the request had one.
    pub notes: Option<&'a Notes>,
}

impl AccessLog {
    /// A log in this format.
    #[must_use]
    pub fn new(writer: LogWriter, format: Format) -> Self {
        Self {
            writer,
            format,
            sites: Sites::default(),
        }
    }

    /// The same, with the site of each request on its line of JSON.
    #[must_use]
    pub fn with_sites(self, sites: Sites) -> Self {
        Self { sites, ..self }
    }

    /// Counters of its lines.
    pub fn counts(&self) -> log::LogCounts {
        self.writer.counts()
    }

    /// Records a request that arrived at this time since the Unix epoch.
    pub fn begin(
        request: &Request,
        peer: &Peer,
        connection: ConnectionRef,
        time: Duration,
    ) -> Record {
        let header = |name: &str| {
            let value = request.fields().get(name).unwrap_or_default();
            log::field(&String::from_utf8_lossy(value))
        };
        Record {
            time,
            remote: peer.remote,
            version: peer.version,
            is_early: peer.is_early,
            connection,
            method: log::field(request.method()),
            authority: log::field(request.authority().unwrap_or_default()),
            target: log::field(request.path().unwrap_or_default()),
            referer: header("referer"),
            user_agent: header("user-agent"),
            traceparent: traceparent(request),
            status: 0,
            body_len: 0,
        }
    }

    /// Writes the line.
    pub fn end(&self, record: &Record, ending: Ending<'_>) {
        self.writer.write(match self.format {
            Format::Ndjson => {
                let site = self.sites.of(&record.authority, &record.target);
                record.json(ending, site.map(|site| &**site))
            }
            Format::Common => record.common(),
            Format::Combined => {
                let mut line = record.common();
                let (referer, agent) = (escaped(&record.referer), escaped(&record.user_agent));
                // Writing to a String cannot fail.
                let _ = write!(line, " \"{referer}\" \"{agent}\"");
                line
            }
        });
    }
}

impl Record {
    fn json(&self, ending: Ending<'_>, site: Option<&str>) -> String {
        let mut line = String::new();
        let mut object = Object::new(&mut line);
        object
            .text("type", "request")
            .integer(
                "time",
                u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            )
            .text("remote", &self.remote.ip().to_string())
            .integer("port", self.remote.port())
            .text("http", self.version.name())
            .text("method", &self.method)
            .text("authority", &self.authority)
            .text("path", &self.target)
            .integer("status", self.status)
            .integer("bytes", self.body_len)
            .number("ms", ending.took.as_secs_f64() * 1000.0, 3)
            .boolean("early", self.is_early)
            .boolean("complete", ending.is_complete)
            .integer("conn_id", self.connection.conn_id)
            .integer("worker", self.connection.worker as u64);
        if let Some(upstream) = ending.notes.and_then(Notes::upstream) {
            object.number("upstream_ms", upstream.as_secs_f64() * 1000.0, 3);
        }
        let error = ending.notes.and_then(Notes::error);
        let Origin {
            arm,
            experiment,
            config_hash,
        } = &self.connection.origin;
        for (key, value) in [
            ("error", error),
            ("route", ending.route),
            ("experiment", experiment.as_deref()),
            ("arm", arm.as_deref()),
            ("site", site),
            ("config", config_hash.as_deref()),
        ] {
            if let Some(value) = value {
                object.text(key, value);
            }
        }
        for (key, value) in [
            ("referer", &self.referer),
            ("user_agent", &self.user_agent),
            ("traceparent", &self.traceparent),
        ] {
            if !value.is_empty() {
                object.text(key, value);
            }
        }
        drop(object);
        line
    }

    fn common(&self) -> String {
        let bytes = match self.body_len {
            0 => "-".into(),
            bytes => bytes.to_string(),
        };
        format!(
            "{} - - [{}] \"{} {} {}\" {} {bytes}",
            self.remote.ip().to_canonical(),
            common_date(self.time),
            escaped(&self.method),
            escaped(&self.target),
            self.version.name(),
            self.status,
        )
    }
}

/// The `traceparent` of a request (W3C Trace Context), if there is one and it is valid: version, trace, parent and flags. Later
/// versions than 00 may have more behind them.
fn traceparent(request: &Request) -> String {
    let mut values = request.fields().get_all("traceparent");
    let value = values.next().map(<[u8]>::trim_ascii).unwrap_or_default();
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let (known, more) = value.split_at_checked(55).unwrap_or((value, b""));
    let parts: Vec<&[u8]> = known.split(|byte| *byte == b'-').collect();
    let is_id = |id: &[u8]| id.iter().any(|byte| *byte != b'0');
    let is_valid = values.next().is_none()
        && parts.iter().map(|part| part.len()).eq([2, 32, 16, 2])
        && parts.iter().copied().flatten().all(is_hex)
        && matches!(parts.as_slice(), [version, trace, parent, _] if *version != b"ff"
            && (more.is_empty() || *version != b"00" && more.first() == Some(&b'-'))
            && is_id(trace)
            && is_id(parent));
    let text = is_valid.then(|| String::from_utf8_lossy(value));
    text.unwrap_or_default().into_owned()
}

/// `10/Oct/2000:13:55:36 +0000`.
fn common_date(since_epoch: Duration) -> String {
    // `Tue, 10 Oct 2000 13:55:36 GMT`: the same in another order.
    let date = super::representation::validator::http_date(since_epoch);
    let part = |range: std::ops::Range<usize>| date.get(range).unwrap_or_default();
    let (day, month, year) = (part(5..7), part(8..11), part(12..16));
    format!("{day}/{month}/{year}:{} +0000", part(17..25))
}

/// Escapes text from a client, which can end neither its quotes nor the line.
fn escaped(text: &str) -> String {
    if text.is_empty() {
        return "-".into();
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => escaped.extend(['\\', character]),
            character if character.is_control() => {
                let _ = write!(escaped, "\\x{:02X}", u32::from(character));
            }
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
