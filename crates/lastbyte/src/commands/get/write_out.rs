//! `--write-out`: prints variables of each fetch, with curl's names.

use std::{io, path::Path};

use lastbyte_client::{Fetch, Outcome};
use serde_json::{Map, Value};

use super::{
    arguments::Arguments,
    exit::result,
    timing::{Round, parts},
};
use crate::{
    failure::Failure,
    files,
    terminal::{print_data, shown},
};

/// A parsed format.
#[derive(Debug)]
pub(super) struct WriteOut(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(&'static str),
    /// A field of the response.
    Header(String),
}

/// curl's variables, without those that control the output.
const VARIABLES: [&str; 22] = [
    "content_type",
    "errormsg",
    "exitcode",
    "http_code",
    "http_version",
    "json",
    "num_connects",
    "num_redirects",
    "redirect_url",
    "remote_ip",
    "remote_port",
    "response_code",
    "size_download",
    "size_upload",
    "speed_download",
    "time_appconnect",
    "time_connect",
    "time_namelookup",
    "time_redirect",
    "time_starttransfer",
    "time_total",
    "url_effective",
];

impl WriteOut {
    /// # Errors
    ///
    /// Returns [`Failure::Usage`] if the format's file cannot be read, or contains an unknown variable.
    pub(super) fn new(arguments: &Arguments) -> Result<Option<Self>, Failure> {
        let Some(said) = &arguments.shown.write_out else {
            return Ok(None);
        };
        let format = match said.strip_prefix('@') {
            None => said.clone(),
            Some("-") => io::read_to_string(io::stdin())
                .map_err(|error| Failure::Usage(format!("cannot read standard input: {error}")))?,
            Some(path) => files::read_text(Path::new(path)).map_err(Failure::Usage)?,
        };
        parse(&format).map(|pieces| Some(Self(pieces)))
    }

    /// Prints it for all fetches of a round.
    ///
    /// # Errors
    ///
    /// Returns the error of writing.
    pub(super) fn print(&self, fetches: &[Fetch], round: &Round) -> Result<(), Failure> {
        for (index, outcome) in round.report.outcomes.iter().enumerate() {
            let Some(fetch) = fetches.get(index) else {
                continue;
            };
            let data = FetchData {
                fetch,
                outcome,
                round,
                index,
            };
            let mut out = String::new();
            for piece in &self.0 {
                // The format may contain sequences for a terminal, but not what servers send.
                match piece {
                    Piece::Text(text) => out.push_str(text),
                    Piece::Variable(name) => {
                        out.push_str(&shown(&text(&data.value(name), name), &io::stdout()));
                    }
                    Piece::Header(name) => out.push_str(&shown(&data.field(name), &io::stdout())),
                }
            }
            print_data(out)?;
        }
        Ok(())
    }
}

fn parse(format: &str) -> Result<Vec<Piece>, Failure> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let (taken, len) = match (c, after.chars().next()) {
            ('\\', Some('n')) => ('\n', 2),
            ('\\', Some('r')) => ('\r', 2),
            ('\\', Some('t')) => ('\t', 2),
            ('%', Some('%')) => ('%', 2),
            ('%', Some('{')) if after.contains('}') => {
                let name = after[1..].split('}').next().unwrap_or_default();
                if !text.is_empty() {
                    pieces.push(Piece::Text(core::mem::take(&mut text)));
                }
                pieces.push(variable(name)?);
                rest = &after[name.len() + 2..];
                continue;
            }
            ('%', Some('h')) if after.starts_with("header{") && after.contains('}') => {
                let name = after["header{".len()..]
                    .split('}')
                    .next()
                    .unwrap_or_default();
                if !text.is_empty() {
                    pieces.push(Piece::Text(core::mem::take(&mut text)));
                }
                pieces.push(Piece::Header(name.to_ascii_lowercase()));
                rest = &after["header{".len() + name.len() + 1..];
                continue;
            }
            _ => (c, c.len_utf8()),
        };
        text.push(taken);
        rest = &rest[len..];
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn variable(name: &str) -> Result<Piece, Failure> {
    let known = VARIABLES.iter().find(|known| **known == name);
    known.map(|name| Piece::Variable(name)).ok_or_else(|| {
        Failure::Usage(format!(
            "`--write-out`: unknown variable `%{{{name}}}` (expected {} or %header{{NAME}})",
            VARIABLES.join(", ")
        ))
    })
}

/// In curl's format: seconds with six decimals, the status with three digits.
fn text(value: &Value, name: &str) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if name.starts_with("time_") => {
            format!("{:.6}", number.as_f64().unwrap_or_default())
        }
        Value::Number(number) if name.ends_with("_code") => {
            format!("{:03}", number.as_u64().unwrap_or_default())
        }
        value => value.to_string(),
    }
}

/// The values of one fetch.
struct FetchData<'a> {
    fetch: &'a Fetch,
    outcome: &'a Outcome,
    round: &'a Round,
    index: usize,
}

impl FetchData<'_> {
    fn octets(&self, name: &str) -> &[u8] {
        let head = self.round.heads.get(self.index);
        head.and_then(|head| head.fields.get(name))
            .unwrap_or_default()
    }

    fn field(&self, name: &str) -> String {
        String::from_utf8_lossy(self.octets(name)).into_owned()
    }

    /// Since the fetch started; an event that did not occur counts as 0, as with curl.
    fn seconds(&self, name: &str) -> f64 {
        let timing = &self.outcome.timing;
        let until = match name {
            "time_namelookup" => timing.resolved,
            "time_connect" => timing.transport.or(timing.connected),
            "time_appconnect" => timing.connected,
            "time_redirect" => timing.redirected,
            "time_starttransfer" => timing.head,
            _ => timing.end,
        };
        let span = until.zip(timing.start);
        span.map_or(0.0, |(until, begin)| until.since(begin).as_secs_f64())
    }

    fn speed(&self, bytes: u64) -> f64 {
        let total = parts(self.round, self.outcome).total.as_secs_f64();
        (bytes as f64 / total.max(1e-6)).round()
    }

    fn value(&self, name: &str) -> Value {
        let (outcome, fetch) = (self.outcome, self.fetch);
        let handshake = outcome
            .connection
            .and_then(|connection| self.round.handshakes.get(&connection));
        let url = outcome.url.as_ref().unwrap_or(&fetch.url);
        let head = self.round.heads.get(self.index);
        match name {
            "content_type" => match self.field("content-type") {
                text if text.is_empty() => Value::Null,
                text => text.into(),
            },
            "errormsg" => match result(outcome) {
                (0, _) => Value::Null,
                (_, why) => why.into(),
            },
            "exitcode" => result(outcome).0.into(),
            "http_code" | "response_code" => {
                // After a redirect whose target does not answer, that of the redirect, as with curl.
                let redirect = head.filter(|_| outcome.redirects > 0);
                let status = outcome.status.or(redirect.map(|head| head.status));
                status.unwrap_or(0).into()
            }
            "http_version" => outcome.version.map_or("0", |it| it.number()).into(),
            "json" => {
                let names = VARIABLES.iter();
                let names = names.filter(|name| **name != "json");
                let all: Map<String, Value> = names
                    .map(|name| ((*name).to_owned(), self.value(name)))
                    .collect();
                all.into()
            }
            "num_connects" => u8::from(outcome.timing.connect.is_some()).into(),
            "num_redirects" => outcome.redirects.into(),
            "redirect_url" => match outcome.status {
                Some(301 | 302 | 303 | 307 | 308) => {
                    let led = url.join_field(self.octets("location"));
                    led.map_or(Value::Null, |led| led.to_string().into())
                }
                _ => Value::Null,
            },
            "remote_ip" => handshake.map_or(Value::Null, |it| it.remote.ip().to_string().into()),
            "remote_port" => handshake.map_or(0, |it| it.remote.port()).into(),
            "size_download" => outcome.received.into(),
            "size_upload" => outcome.sent.into(),
            "speed_download" => self.speed(outcome.received).into(),
            "url_effective" => url.to_string().into(),
            _ => self.seconds(name).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_parsed_like_in_curl() {
        let text = |text: &str| Piece::Text(text.to_owned());
        for (format, expected) in [
            ("", vec![]),
            ("a\\n\\t%%\\x", vec![text("a\n\t%\\x")]),
            (
                "%{http_code} é%{url_effective}",
                vec![
                    Piece::Variable("http_code"),
                    text(" é"),
                    Piece::Variable("url_effective"),
                ],
            ),
            (
                "%header{Server}!",
                vec![Piece::Header("server".to_owned()), text("!")],
            ),
            ("100% %{open", vec![text("100% %{open")]),
        ] {
            assert_eq!(parse(format).expect("a format"), expected, "{format}");
        }
        assert!(matches!(parse("%{no_such}"), Err(Failure::Usage(_))));
    }
}
