//! Conversion of arguments to requests.

mod uploads;

use core::time::Duration;
use std::path::Path;

use lastbyte_client::{Fetch, Follow, Retry, Upload, Url, UrlError};
use lastbyte_http3::Fields;

use self::uploads::{body, file};
use super::arguments::{Arguments, Datum};

/// Why a request cannot be created: an exit code and the error.
type Refusal = (u8, String);

/// The requests, one for each URL.
pub(super) fn fetches(arguments: &Arguments) -> Result<Vec<Fetch>, Refusal> {
    let it = &arguments.request;
    check(arguments)?;
    let mut body = body(&it.data.0)?;
    let query = if it.get { body.take() } else { None };
    let query = query.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let fields = fields(arguments)?;
    let body = body.map(Upload::source);
    let retry = retry(arguments);
    let mut all = Vec::new();
    for (index, text) in arguments.urls.0.iter().enumerate() {
        let upload_file = it.upload_file.get(index);
        let mut url = parse(text, it.path_as_is)?;
        if let Some(query) = &query {
            let more = url.with_query(query);
            url = more.map_err(|error| (3, format!("`{query}`: {error}")))?;
        }
        if let Some(credentials) = &it.user {
            url = url.with_credentials(credentials);
        }
        let mut upload = body.clone();
        if let Some(path) = upload_file {
            url = with_name(url, path)?;
            upload = Some(file(path)?);
        }
        let method = match (&it.method, &upload_file, &upload) {
            (Some(method), ..) => method,
            _ if arguments.shown.head => "HEAD",
            (_, Some(_), _) => "PUT",
            (_, _, Some(_)) => "POST",
            _ => "GET",
        };
        let follow = (it.location || it.location_trusted).then(|| Follow {
            max: u32::try_from(it.max_redirs).ok(),
            shares_credentials: it.location_trusted,
        });
        let mut fetch = Fetch::get(url);
        method.clone_into(&mut fetch.method);
        fetch.is_method_fixed = it.method.is_some();
        fetch.fields = fields.clone();
        fetch.upload = upload;
        fetch.follow = follow;
        fetch.is_decoded = it.compressed;
        fetch.fails_on_error_status = arguments.shown.fail;
        fetch.size_max = it.max_filesize.filter(|max| *max > 0);
        fetch.retry = retry;
        all.push(fetch);
    }
    Ok(all)
}

fn retry(arguments: &Arguments) -> Option<Retry> {
    let it = &arguments.connection;
    let some = |span: Duration| (!span.is_zero()).then_some(span);
    (it.retry > 0).then(|| Retry {
        max: it.retry,
        delay: some(it.retry_delay),
        max_time: some(it.retry_max_time),
        refused: it.retry_connrefused,
        all: it.retry_all_errors,
    })
}

/// Checks that clap cannot express.
fn check(arguments: &Arguments) -> Result<(), Refusal> {
    let it = &arguments.request;
    let usage = |what: &str| Err((2, what.to_owned()));
    if arguments.shown.head && !it.data.0.is_empty() && !it.get {
        return usage("-I and -d cannot be combined (expected -G to send the data in the URL)");
    }
    if let Some(user) = &it.user
        && !user.contains(':')
    {
        return usage("`-u`: no password (expected NAME:PASSWORD; there is no prompt)");
    }
    if let Some(file) = it.cookie.iter().find(|text| !text.contains('=')) {
        return usage(&format!(
            "`-b {file}`: cookie files are not supported: use curl (expected NAME=VALUE)"
        ));
    }
    if it.upload_file.len() > arguments.urls.0.len() {
        return usage("more -T options than URLs (expected at most one per URL)");
    }
    if let Some(range) = &it.range {
        let is_range = range
            .chars()
            .all(|c| c.is_ascii_digit() || "-,".contains(c));
        if !is_range || !range.contains('-') {
            return Err((
                2,
                format!("invalid range `-r {range}` (expected 0-499, 500- or -500)"),
            ));
        }
    }
    Ok(())
}

fn parse(text: &str, is_as_is: bool) -> Result<Url, Refusal> {
    let parsed = if is_as_is {
        Url::with_dot_segments(text)
    } else {
        text.parse()
    };
    parsed.map_err(|error| {
        let code = if matches!(error, UrlError::Scheme(_)) {
            1
        } else {
            3
        };
        (code, format!("`{text}`: {error}"))
    })
}

/// A URL that ends in `/` gets the file's name appended.
fn with_name(url: Url, path: &str) -> Result<Url, Refusal> {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| url.file_name().is_none() && *name != "-") else {
        return Ok(url);
    };
    let joined = url.join(&uploads::escaped(name));
    joined.map_err(|error| (3, format!("`{url}` with the name `{name}`: {error}")))
}

/// The media type of `--json`.
const JSON: &str = "application/json";

/// The default fields and the given ones, which take precedence.
fn fields(arguments: &Arguments) -> Result<Fields, Refusal> {
    let it = &arguments.request;
    let mut lines: Vec<(String, Option<String>)> = Vec::new();
    for text in &it.header {
        match text.strip_prefix('@') {
            None => lines.push(field(text)?),
            Some(path) => {
                let text = uploads::read(path)?;
                let text = String::from_utf8_lossy(&text).into_owned();
                for line in text.lines().filter(|line| !line.trim().is_empty()) {
                    lines.push(field(line)?);
                }
            }
        }
    }
    let mut fields = Fields::new();
    let is_form = !it.data.0.is_empty() && !it.get;
    let is_json = it
        .data
        .0
        .iter()
        .any(|datum| matches!(datum, Datum::Json(_)));
    let agent = concat!("lastbyte/", env!("CARGO_PKG_VERSION"));
    let cookie = (!it.cookie.is_empty()).then(|| it.cookie.join("; "));
    let range = it.range.as_ref().map(|range| format!("bytes={range}"));
    let usual = [
        Some(("user-agent", it.user_agent.as_deref().unwrap_or(agent))),
        Some(("accept", if is_json { JSON } else { "*/*" })),
        it.referer.as_deref().map(|referer| ("referer", referer)),
        cookie.as_deref().map(|cookie| ("cookie", cookie)),
        range.as_deref().map(|range| ("range", range)),
        if is_json {
            Some(("content-type", JSON))
        } else {
            is_form.then_some(("content-type", "application/x-www-form-urlencoded"))
        },
    ];
    for (name, value) in usual.into_iter().flatten() {
        // As with curl, a field with an empty name is not sent.
        if lines.iter().all(|(other, _)| other != name) && !value.is_empty() {
            fields.push(name, value);
        }
    }
    for (name, value) in &lines {
        if let Some(value) = value {
            fields.push(name, value);
        }
    }
    Ok(fields)
}

/// Parses a header field in curl's form: its name in lower case, and its value; `None` if the field is not to be sent.
pub(in crate::commands) fn field(text: &str) -> Result<(String, Option<String>), Refusal> {
    let (name, value) = text
        .split_once(':')
        .or_else(|| {
            // As with curl, a field without a value.
            text.strip_suffix(';').map(|name| (name, " "))
        })
        .ok_or_else(|| {
            (
                2,
                format!("invalid header `-H {text}` (expected `name: value`)"),
            )
        })?;
    let is_left_out = value.is_empty();
    let value = (!is_left_out).then(|| value.trim().to_owned());
    Ok((name.trim().to_ascii_lowercase(), value))
}
