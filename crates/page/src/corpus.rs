//! The corpus file: pages as NDJSON, one a line.
//!
//! `docs/corpus.schema.json` describes a line. Values that are zero, `false` or absent in a [`Page`] are omitted. Times are whole
//! microseconds.

use core::{fmt::Write as _, time::Duration};

use serde_json::{Map, Value};

use crate::page::{Host, Kind, Page, Party, Priority, Resource, Trigger};

/// The version of the format, in the key `v` of each line.
const VERSION: u64 = 1;
/// The largest number of pages of a corpus.
const PAGES_MAX: usize = 100_000;
/// The longest line, in bytes.
const LINE_MAX: usize = 8 << 20;
/// The longest name of a page or host, in bytes.
const NAME_MAX: usize = 256;
/// The longest delay, wait or work.
const TIME_MAX_US: u64 = 600_000_000;

/// Why a corpus file cannot be read: file, line and reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CorpusError(String);

/// Reads the pages of a corpus, one after the other. Empty lines are skipped. `file` is its name in errors.
///
/// A lazy iterator over the pages. It ends after the first error.
///
/// ```
/// let text = "{\"v\":1,\"name\":\"one\",\"hosts\":[{\"name\":\"www.example\"}],\
///     \"resources\":[{\"host\":0,\"kind\":\"document\",\"body\":9000}]}\n";
/// let pages = lastbyte_page::read_corpus("pages.ndjson", text).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(pages[0].resources[0].body, 9000);
/// # Ok::<(), lastbyte_page::CorpusError>(())
/// ```
pub fn read<'a>(
    file: &'a str,
    text: &'a str,
) -> impl Iterator<Item = Result<Page, CorpusError>> + 'a {
    let mut has_failed = false;
    let mut count = 0;
    let is_har = starts_as_har(text);
    let error = is_har.then(|| {
        Err(CorpusError(format!(
            "{file}: a HAR file (expected a corpus: first `lastbyte compare record {file} --out FILE`)"
        )))
    });
    let text = if is_har { "" } else { text };
    let lines = (1_usize..).zip(text.lines());
    let pages =
        lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map_while(move |(number, line)| {
                if has_failed {
                    return None;
                }
                count += 1;
                let page = if count > PAGES_MAX {
                    Err(format!("too many pages (expected at most {PAGES_MAX})"))
                } else {
                    parse_line(line)
                };
                has_failed = page.is_err();
                Some(page.map_err(|error| CorpusError(format!("{file}:{number}: {error}"))))
            });
    error.into_iter().chain(pages)
}

/// Whether the first key is that of a HAR file.
fn starts_as_har(text: &str) -> bool {
    let rest = text.trim_start_matches('\u{feff}').trim_start();
    let object = rest.strip_prefix('{').map(str::trim_start);
    object.is_some_and(|rest| rest.starts_with("\"log\""))
}

fn parse_line(line: &str) -> Result<Page, String> {
    if line.len() > LINE_MAX {
        return Err(format!(
            "line of {} bytes (expected at most {LINE_MAX})",
            line.len()
        ));
    }
    let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    let page = Fields::new("page", &value)?;
    let version = page.number("v", None, u64::MAX)?;
    if version != VERSION {
        return Err(format!("v: {version} (expected {VERSION})"));
    }
    page.only(&["v", "name", "hosts", "resources"])?;
    let mut hosts = Vec::new();
    for (index, value) in page.list("hosts")?.iter().enumerate() {
        hosts.push(parse_host(&format!("host {index}"), value)?);
    }
    let mut resources = Vec::new();
    for (index, value) in page.list("resources")?.iter().enumerate() {
        resources.push(parse_resource(&format!("resource {index}"), value)?);
    }
    let page = Page {
        name: page.name("name")?,
        hosts,
        resources,
    };
    page.check().map_err(|error| error.to_string())?;
    Ok(page)
}

fn parse_host(what: &str, value: &Value) -> Result<Host, String> {
    let host = Fields::new(what, value)?;
    host.only(&["name", "party", "group", "http3", "rtt"])?;
    let rtt = host.object.get("rtt").map_or(Some(0), Value::as_i64);
    Ok(Host {
        name: host.name("name")?,
        party: match host.object.get("party").map(Value::as_str) {
            None | Some(Some("first")) => Party::First,
            Some(Some("third")) => Party::Third,
            Some(_) => return Err(host.error("party", "`first` or `third`")),
        },
        group: host.number("group", Some(0), u64::from(u16::MAX))? as u16,
        has_http3: host.flag("http3")?,
        rtt_extra_us: rtt
            .and_then(|rtt| i32::try_from(rtt).ok())
            .filter(|rtt| rtt.unsigned_abs() <= 10_000_000)
            .ok_or_else(|| host.error("rtt", "-10000000 to 10000000"))?,
    })
}

fn parse_resource(what: &str, value: &Value) -> Result<Resource, String> {
    let resource = Fields::new(what, value)?;
    resource.only(&[
        "host",
        "kind",
        "request",
        "response",
        "body",
        "wait",
        "bytes",
        "complete",
        "executed",
        "delay",
        "work",
        "urgency",
        "incremental",
        "blocking",
        "cacheable",
        "hinted",
    ])?;
    let text = resource.object.get("kind").and_then(Value::as_str);
    let kind = Kind::ALL
        .into_iter()
        .find(|kind| Some(kind.name()) == text)
        .ok_or_else(|| resource.error("kind", &Kind::ALL.map(Kind::name).join(", ")))?;
    let index_max = Page::RESOURCES_MAX as u64 - 1;
    let header = u64::from(Page::HEADER_MAX);
    let usual = Resource::new(0, kind, 0);
    Ok(Resource {
        host: resource.number("host", None, index_max)? as u16,
        kind,
        request_header: resource.number("request", Some(u64::from(usual.request_header)), header)?
            as u32,
        response_header: resource.number(
            "response",
            Some(u64::from(usual.response_header)),
            header,
        )? as u32,
        body: resource.number("body", None, Page::BODY_MAX)?,
        wait: resource.time("wait")?,
        trigger: parse_trigger(&resource, index_max)?,
        delay: resource.time("delay")?,
        work: resource.time("work")?,
        is_blocking: resource.flag("blocking")?,
        priority: Priority {
            urgency: resource.number("urgency", Some(u64::from(usual.priority.urgency)), 7)? as u8,
            is_incremental: resource.flag("incremental")?,
        },
        is_cacheable: resource.flag("cacheable")?,
        is_hinted: resource.flag("hinted")?,
    })
}

fn parse_trigger(resource: &Fields<'_>, index_max: u64) -> Result<Option<Trigger>, String> {
    let expected = "at most one of `bytes`, `complete` and `executed`";
    let mut found = ["bytes", "complete", "executed"]
        .into_iter()
        .filter(|key| resource.object.contains_key(*key));
    let Some(key) = found.next() else {
        return Ok(None);
    };
    if let Some(other) = found.next() {
        return Err(resource.error(other, expected));
    }
    if key != "bytes" {
        let of = resource.number(key, None, index_max)? as u16;
        return Ok(Some(if key == "complete" {
            Trigger::Complete { of }
        } else {
            Trigger::Executed { of }
        }));
    }
    match resource.object["bytes"].as_array().map(Vec::as_slice) {
        Some([of, offset]) => of
            .as_u64()
            .filter(|of| *of <= index_max)
            .zip(offset.as_u64())
            .map(|(of, offset)| {
                Some(Trigger::Bytes {
                    of: of as u16,
                    offset,
                })
            }),
        _ => None,
    }
    .ok_or_else(|| {
        resource.error(
            "bytes",
            "a resource and a number of its bytes, as in [0, 1200]",
        )
    })
}

/// The keys of an object, with its name for errors.
struct Fields<'a> {
    what: &'a str,
    object: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    fn new(what: &'a str, value: &'a Value) -> Result<Self, String> {
        let object = value
            .as_object()
            .ok_or_else(|| format!("{what}: {} (expected an object)", shown(value)))?;
        Ok(Self { what, object })
    }

    fn error(&self, key: &str, expected: &str) -> String {
        match self.object.get(key) {
            Some(value) => format!(
                "{}: {key}: {} (expected {expected})",
                self.what,
                shown(value)
            ),
            None => format!("{}: no `{key}` (expected {expected})", self.what),
        }
    }

    fn only(&self, known: &[&str]) -> Result<(), String> {
        match self
            .object
            .keys()
            .find(|key| !known.contains(&key.as_str()))
        {
            Some(key) => Err(format!(
                "{}: unknown key `{}` (expected {})",
                self.what,
                cut(key),
                known.join(", ")
            )),
            None => Ok(()),
        }
    }

    fn list(&self, key: &str) -> Result<&'a [Value], String> {
        self.object
            .get(key)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .ok_or_else(|| self.error(key, "a list"))
    }

    fn name(&self, key: &str) -> Result<String, String> {
        self.object
            .get(key)
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty() && name.len() <= NAME_MAX)
            .map(str::to_owned)
            .ok_or_else(|| self.error(key, &format!("1 to {NAME_MAX} bytes of text")))
    }

    fn number(&self, key: &str, default: Option<u64>, max: u64) -> Result<u64, String> {
        match (self.object.get(key), default) {
            (None, Some(default)) => Ok(default),
            (value, _) => value
                .and_then(Value::as_u64)
                .filter(|number| *number <= max)
                .ok_or_else(|| match max {
                    u64::MAX => self.error(key, "a number"),
                    _ => self.error(key, &format!("0 to {max}")),
                }),
        }
    }

    fn time(&self, key: &str) -> Result<Duration, String> {
        self.number(key, Some(0), TIME_MAX_US)
            .map(Duration::from_micros)
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        self.object
            .get(key)
            .map_or(Some(false), Value::as_bool)
            .ok_or_else(|| self.error(key, "true or false"))
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        value => cut(&value.to_string()).to_owned(),
    }
}

/// The beginning of `text`, short enough for an error.
fn cut(text: &str) -> &str {
    match text.char_indices().nth(40) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Writes `page` as a line of a corpus, with its newline. Times are rounded down to microseconds.
pub fn write(page: &Page) -> String {
    let mut line = format!(
        "{{\"v\":{VERSION},\"name\":{},\"hosts\":[",
        Value::from(page.name.as_str())
    );
    for (index, host) in page.hosts.iter().enumerate() {
        let separator = if index == 0 { "" } else { "," };
        let name = Value::from(host.name.as_str());
        let _ = write!(line, "{separator}{{\"name\":{name}");
        if host.party == Party::Third {
            line.push_str(",\"party\":\"third\"");
        }
        put(&mut line, "group", u64::from(host.group), 0);
        put_flag(&mut line, "http3", host.has_http3);
        if host.rtt_extra_us != 0 {
            let _ = write!(line, ",\"rtt\":{}", host.rtt_extra_us);
        }
        line.push('}');
    }
    line.push_str("],\"resources\":[");
    for (index, resource) in page.resources.iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        write_resource(&mut line, resource);
    }
    line.push_str("]}\n");
    line
}

fn write_resource(line: &mut String, resource: &Resource) {
    let usual = Resource::new(0, resource.kind, 0);
    let _ = write!(
        line,
        "{{\"host\":{},\"kind\":\"{}\",\"body\":{}",
        resource.host,
        resource.kind.name(),
        resource.body
    );
    let (request, response) = (resource.request_header, resource.response_header);
    put(line, "request", request.into(), usual.request_header.into());
    put(
        line,
        "response",
        response.into(),
        usual.response_header.into(),
    );
    put(line, "wait", micros(resource.wait), 0);
    let _ = match resource.trigger {
        None => Ok(()),
        Some(Trigger::Bytes { of, offset }) => write!(line, ",\"bytes\":[{of},{offset}]"),
        Some(Trigger::Complete { of }) => write!(line, ",\"complete\":{of}"),
        Some(Trigger::Executed { of }) => write!(line, ",\"executed\":{of}"),
    };
    put(line, "delay", micros(resource.delay), 0);
    put(line, "work", micros(resource.work), 0);
    let urgency = resource.priority.urgency;
    put(
        line,
        "urgency",
        urgency.into(),
        usual.priority.urgency.into(),
    );
    put_flag(line, "incremental", resource.priority.is_incremental);
    put_flag(line, "blocking", resource.is_blocking);
    put_flag(line, "cacheable", resource.is_cacheable);
    put_flag(line, "hinted", resource.is_hinted);
    line.push('}');
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn put(line: &mut String, key: &str, value: u64, default: u64) {
    if value != default {
        let _ = write!(line, ",\"{key}\":{value}");
    }
}

fn put_flag(line: &mut String, key: &str, is_set: bool) {
    if is_set {
        let _ = write!(line, ",\"{key}\":true");
    }
}

#[cfg(test)]
mod tests;
