//! The header of a trace: whose view it is, and how its times are written.

use lastbyte_json::Value;

use super::event::number;

/// How times are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Times {
    /// Since a reference: the start, a boot, or a date.
    #[default]
    Absolute,
    /// Since the event before.
    Delta,
}

/// The header of a trace. Its fields may be behind the events.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Header {
    /// Whose view it is: `client`, `server`, or `network`.
    end: Option<String>,
    /// The endpoint whose packets count as sent, if the view is that of the network.
    flow: Option<String>,
    /// The ID of the connection, unless events have it.
    pub(super) group: Option<String>,
    times: Times,
    /// Times are in microseconds.
    has_micros: bool,
    /// The places of time, type, data and group of an event that is an array.
    columns: Option<[Option<usize>; 4]>,
    /// What cannot be read.
    refused: Option<String>,
}

impl Header {
    /// Why the trace cannot be read, if so.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Whether the endpoint that sends is the client; `None` if the file does not say.
    pub(super) fn is_client(&self) -> Option<bool> {
        let end = match self.end.as_deref() {
            Some("network") => self.flow.as_deref(),
            end => end,
        };
        match end {
            Some("client") => Some(true),
            Some("server") => Some(false),
            _ => None,
        }
    }

    /// Whose view it is, as a word for a note; empty if unknown.
    pub(super) fn view(&self) -> &'static str {
        match (self.end.as_deref(), self.is_client()) {
            (Some("network"), Some(true)) => "client, seen from the network",
            (Some("network"), Some(false)) => "server, seen from the network",
            (Some("network"), None) => "seen from the network",
            (_, Some(true)) => "client",
            (_, Some(false)) => "server",
            (_, None) => "",
        }
    }

    /// Milliseconds in a unit of the file.
    pub(super) const fn unit_ms(&self) -> f64 {
        if self.has_micros { 0.001 } else { 1.0 }
    }

    /// All fields of a trace but its events.
    pub(super) fn read(&mut self, trace: &Value) {
        for (key, value) in trace.as_object().unwrap_or_default() {
            self.read_field(key, value);
        }
    }

    /// Whether a field of a trace is one of the header.
    pub(super) fn owns(key: &str) -> bool {
        [
            "common_fields",
            "configuration",
            "event_fields",
            "vantage_point",
        ]
        .contains(&key)
    }

    pub(super) fn read_field(&mut self, key: &str, value: &Value) {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        match key {
            "vantage_point" => {
                let kind = text("type").or_else(|| value.as_str());
                self.end = kind.map(str::to_ascii_lowercase);
                self.flow = text("flow").map(str::to_ascii_lowercase);
            }
            "common_fields" | "configuration" => {
                let group = text("group_id").or_else(|| text("ODCID"));
                self.group = group.map(str::to_owned).or_else(|| self.group.take());
                match text("time_units") {
                    None => {}
                    Some("us") => self.has_micros = true,
                    Some("ms") => self.has_micros = false,
                    Some(other) => self.refuse("time_units", other, "`ms` or `us`"),
                }
                if let Some(format) = text("time_format") {
                    match times(format) {
                        Some(times) => self.times = times,
                        None => self.refuse("time_format", format, TIMES),
                    }
                }
            }
            "event_fields" => {
                let names: Vec<String> = value
                    .columns()
                    .iter()
                    .map(|name| name.as_str().unwrap_or_default().to_ascii_lowercase())
                    .collect();
                let place = |wanted: &[&str]| {
                    names
                        .iter()
                        .position(|name| wanted.contains(&name.as_str()))
                };
                if names.iter().any(|name| name == "delta_time") {
                    self.times = Times::Delta;
                }
                self.columns = Some([
                    place(&["relative_time", "time", "delta_time"]),
                    place(&["event", "event_type", "type", "name"]),
                    place(&["data"]),
                    place(&["group_id"]),
                ]);
            }
            _ => {}
        }
    }

    fn refuse(&mut self, key: &str, value: &str, expected: &str) {
        let reason = format!("{key}: `{value}` (expected {expected})");
        self.refused.get_or_insert(reason);
    }

    /// Time, name, data and group of an event.
    pub(super) fn fields<'a>(&self, event: &'a Value) -> Fields<'a> {
        if let Some(fields) = event.as_array() {
            // Without names of columns, a category or a trigger may be between them.
            let columns = self.columns.unwrap_or([Some(0), Some(2), Some(3), None]);
            let field = |column: usize| columns[column].and_then(|place| fields.get(place));
            return Fields {
                time: field(0).and_then(number).map(|time| (time, self.times)),
                name: field(1).and_then(Value::as_str),
                data: field(2),
                group: field(3).and_then(Value::as_str),
            };
        }
        let times = event.get("time_format").and_then(Value::as_str);
        let times = times.and_then(self::times).unwrap_or(self.times);
        let time = event.get("time").or_else(|| event.get("relative_time"));
        let delta = event.get("delta_time");
        let name = ["name", "event", "type"];
        Fields {
            time: time
                .and_then(number)
                .map(|time| (time, times))
                .or_else(|| Some((delta.and_then(number)?, Times::Delta))),
            name: name
                .iter()
                .find_map(|key| event.get(key))
                .and_then(Value::as_str),
            data: event.get("data"),
            group: event.get("group_id").and_then(Value::as_str),
        }
    }
}

/// The fields of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    time: Option<(f64, Times)>,
    pub(super) name: Option<&'a str>,
    pub(super) data: Option<&'a Value>,
    pub(super) group: Option<&'a str>,
}

const TIMES: &str =
    "`absolute`, `relative`, `delta`, `relative_to_epoch` or `relative_to_previous_event`";

fn times(format: &str) -> Option<Times> {
    Some(match format.to_ascii_lowercase().as_str() {
        "absolute" | "relative" | "relative_to_epoch" => Times::Absolute,
        "delta" | "relative_to_previous_event" => Times::Delta,
        _ => return None,
    })
}

/// The clock of a connection. Time 0 is that of its first event: clocks of files start at a connection, a boot, or a date.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// The first time and the newest one, in ms of the file.
    first: Option<f64>,
    newest: f64,
    /// The time of the event before.
    before: f64,
    /// Events earlier than one before them, and the longest such span in ms.
    pub(super) late: (u64, f64),
}

impl Clock {
    /// Milliseconds since the first event.
    pub(super) fn now(&self) -> f64 {
        self.first.map_or(0.0, |first| self.newest - first)
    }

    /// An event has this time. Returns whether it has one.
    pub(super) fn tick(&mut self, fields: &Fields<'_>, unit_ms: f64) -> bool {
        let Some((time, times)) = fields.time else {
            return false;
        };
        let ms = time * unit_ms;
        let ms = match times {
            Times::Delta => self.before + ms,
            Times::Absolute => ms,
        };
        self.before = ms;
        if self.first.is_none() {
            (self.first, self.newest) = (Some(ms), ms);
        } else if ms < self.newest {
            self.late = (self.late.0 + 1, self.late.1.max(self.newest - ms));
        } else {
            self.newest = ms;
        }
        true
    }
}
