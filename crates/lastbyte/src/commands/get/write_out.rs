//! `--write-out`: prints variables of each fetch, with curl's names.

use std::{
    io::{self, Write},
    path::Path,
};

use lastbyte_client::{Fetch, Outcome};
use serde_json::{Map, Value};

use super::{
    arguments::Arguments,
    exit::{exit_code, result},
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
    /// Further output goes to stdout or stderr.
    Stdout,
    Stderr,
    /// Further output is only for fetches that failed.
    OnError,
}

/// curl's variables, without those that control the output.
const VARIABLES: [&str; 35] = [
    "content_type",
    "errormsg",
    "exitcode",
    "filename_effective",
    "header_json",
    "http_code",
    "http_connect",
    "http_version",
    "json",
    "method",
    "num_connects",
    "num_headers",
    "num_redirects",
    "num_retries",
    "redirect_url",
    "referer",
    "remote_ip",
    "remote_port",
    "response_code",
    "scheme",
    "size_download",
    "size_header",
    "size_upload",
    "speed_download",
    "speed_upload",
    "ssl_verify_result",
    "time_appconnect",
    "time_connect",
    "time_namelookup",
    "time_pretransfer",
    "time_redirect",
    "time_starttransfer",
    "time_total",
    "url",
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
    pub(super) fn print(
        &self,
        arguments: &Arguments,
        fetches: &[Fetch],
        round: &Round,
    ) -> Result<(), Failure> {
        for (index, outcome) in round.report.outcomes.iter().enumerate() {
            let Some(fetch) = fetches.get(index) else {
                continue;
            };
            let data = FetchData {
                arguments,
                fetch,
                outcome,
                round,
                index,
            };
            let (mut stdout, mut stderr) = (String::new(), String::new());
            let mut to_stderr = false;
            for piece in &self.0 {
                let out = if to_stderr { &mut stderr } else { &mut stdout };
                // The format may contain sequences for a terminal, but not what servers send.
                let mut push = |value: &str| {
                    out.push_str(&if to_stderr {
                        shown(value, &io::stderr())
                    } else {
                        shown(value, &io::stdout())
                    });
                };
                match piece {
                    Piece::Text(text) => out.push_str(text),
                    Piece::Variable(name) => push(&text(&data.value(name), name)),
                    Piece::Header(name) => push(&data.field(name)),
                    Piece::Stdout => to_stderr = false,
                    Piece::Stderr => to_stderr = true,
                    Piece::OnError if outcome.failure.is_none() => break,
                    Piece::OnError => {}
                }
            }
            // There is no way to report that stderr is closed.
            let _ = io::stderr().write_all(stderr.as_bytes());
            print_data(stdout)?;
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
    match name {
        "stdout" => return Ok(Piece::Stdout),
        "stderr" => return Ok(Piece::Stderr),
        "onerror" => return Ok(Piece::OnError),
        _ => {}
    }
    let known = VARIABLES.iter().find(|known| **known == name);
    known.map(|name| Piece::Variable(name)).ok_or_else(|| {
        Failure::Usage(format!(
            "`--write-out`: unknown variable `%{{{name}}}` (expected {}, stderr, stdout, onerror or %header{{NAME}})",
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
        Value::Number(number) if name.ends_with("_code") || name == "http_connect" => {
            format!("{:03}", number.as_u64().unwrap_or_default())
        }
        Value::Object(_) if name == "header_json" => format!("{value:#}"),
        value => value.to_string(),
    }
}

/// The values of one fetch.
struct FetchData<'a> {
    arguments: &'a Arguments,
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
            "time_pretransfer" => timing.request,
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
        let head = self.round.heads.get(self.index);
        let handshake = outcome
            .connection
            .and_then(|connection| self.round.handshakes.get(&connection));
        let url = outcome.url.as_ref().unwrap_or(&fetch.url);
        match name {
            "content_type" => match self.field("content-type") {
                text if text.is_empty() => Value::Null,
                text => text.into(),
            },
            "errormsg" => match result(self.arguments, outcome) {
                (0, _) => Value::Null,
                (_, why) => why.into(),
            },
            "exitcode" => match &outcome.failure {
                Some(failure) => exit_code(failure).into(),
                None => result(self.arguments, outcome).0.into(),
            },
            "filename_effective" => {
                let path = head.and_then(|head| head.path.as_ref());
                path.map_or(Value::Null, |path| path.display().to_string().into())
            }
            "header_json" => self.fields(),
            "http_code" | "response_code" => {
                // After a redirect whose target does not answer, that of the redirect, as with curl.
                let redirect = head.filter(|_| outcome.redirects > 0);
                let status = outcome.status.or(redirect.map(|head| head.status));
                status.unwrap_or(0).into()
            }
            "http_version" => outcome.version.map_or("0", |it| it.number()).into(),
            "json" => {
                let names = VARIABLES.iter();
                let names = names.filter(|name| !matches!(**name, "json" | "header_json"));
                let all: Map<String, Value> = names
                    .map(|name| ((*name).to_owned(), self.value(name)))
                    .collect();
                all.into()
            }
            "method" => fetch.method.clone().into(),
            "num_connects" => u8::from(outcome.timing.connect.is_some()).into(),
            "num_headers" => head.map_or(0, |head| head.fields.len()).into(),
            "num_redirects" => outcome.redirects.into(),
            "num_retries" => outcome.retries.into(),
            "redirect_url" => match outcome.status {
                Some(301 | 302 | 303 | 307 | 308) => {
                    let led = url.join_field(self.octets("location"));
                    led.map_or(Value::Null, |led| led.to_string().into())
                }
                _ => Value::Null,
            },
            "referer" => {
                let referer = self.arguments.request.referer.clone();
                referer.map_or(Value::Null, Value::String)
            }
            "remote_ip" => handshake.map_or(Value::Null, |it| it.remote.ip().to_string().into()),
            "remote_port" => handshake.map_or(0, |it| it.remote.port()).into(),
            "scheme" => url.origin().scheme.name().to_ascii_uppercase().into(),
            "size_download" => outcome.received.into(),
            "size_header" => head.map_or(0, |head| head.heads_len).into(),
            "size_upload" => outcome.sent.into(),
            "speed_download" => self.speed(outcome.received).into(),
            "speed_upload" => self.speed(outcome.sent).into(),
            "http_connect" => {
                let status = handshake.and_then(|handshake| handshake.tunnel_status);
                status.unwrap_or(0).into()
            }
            // Without a trusted certificate there is no response.
            "ssl_verify_result" => 0.into(),
            "url" => {
                let said = self.arguments.urls.0.get(self.index);
                said.map_or(Value::Null, |said| said.clone().into())
            }
            "url_effective" => url.to_string().into(),
            _ => self.seconds(name).into(),
        }
    }

    fn fields(&self) -> Value {
        let mut all: Map<String, Value> = Map::new();
        let head = self.round.heads.get(self.index);
        for line in head.into_iter().flat_map(|head| &head.fields) {
            let value = String::from_utf8_lossy(line.value).into_owned();
            let values = all
                .entry(line.name)
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(values) = values {
                values.push(value.into());
            }
        }
        all.into()
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
                "%{http_code} é%{url}",
                vec![
                    Piece::Variable("http_code"),
                    text(" é"),
                    Piece::Variable("url"),
                ],
            ),
            (
                "%{stderr}%{onerror}%header{Server}!",
                vec![
                    Piece::Stderr,
                    Piece::OnError,
                    Piece::Header("server".to_owned()),
                    text("!"),
                ],
            ),
            ("100% %{open", vec![text("100% %{open")]),
        ] {
            assert_eq!(parse(format).expect("a format"), expected, "{format}");
        }
        assert!(matches!(parse("%{no_such}"), Err(Failure::Usage(_))));
    }
}
