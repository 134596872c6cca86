//! Conversion of arguments to requests.

mod uploads;

use std::path::Path;

use lastbyte_client::{Fetch, Upload, Url, UrlError};
use lastbyte_http3::Fields;

use self::uploads::{body, file};
use super::arguments::Arguments;

/// Why a request cannot be created: an exit code and the error.
type Refusal = (u8, String);

/// The requests, one for each URL.
pub(super) fn fetches(arguments: &Arguments) -> Result<Vec<Fetch>, Refusal> {
    let it = &arguments.request;
    check(arguments)?;
    let (fields, omitted) = fields(arguments)?;
    let body = body(&it.data.0)?.map(Upload::source);
    let mut all = Vec::new();
    for (index, text) in arguments.urls.iter().enumerate() {
        let upload_file = it.upload_file.get(index);
        let mut url = parse(text)?;
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
        let mut fetch = Fetch::get(url);
        method.clone_into(&mut fetch.method);
        fetch.is_method_fixed = it.method.is_some();
        fetch.fields = fields.clone();
        fetch.omitted.clone_from(&omitted);
        fetch.upload = upload;
        fetch.follows_redirects = it.location;
        fetch.is_decoded = it.compressed;
        fetch.fails_on_error_status = arguments.shown.fail;
        all.push(fetch);
    }
    Ok(all)
}

/// Checks that clap cannot express.
fn check(arguments: &Arguments) -> Result<(), Refusal> {
    let it = &arguments.request;
    let usage = |what: &str| Err((2, what.to_owned()));
    if arguments.shown.head && !it.data.0.is_empty() {
        return usage("-I and -d cannot be combined (write the data into the query of the URL)");
    }
    if let Some(user) = &it.user
        && !user.contains(':')
    {
        return usage("`-u`: no password (expected NAME:PASSWORD; there is no prompt)");
    }
    if it.upload_file.len() > arguments.urls.len() {
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

fn parse(text: &str) -> Result<Url, Refusal> {
    text.parse().map_err(|error| {
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

/// The default fields and the given ones, which take precedence, and the names of those that are not to be sent.
fn fields(arguments: &Arguments) -> Result<(Fields, Vec<String>), Refusal> {
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
    let is_form = !it.data.0.is_empty();
    let agent = concat!("lastbyte/", env!("CARGO_PKG_VERSION"));
    let range = it.range.as_ref().map(|range| format!("bytes={range}"));
    let usual = [
        Some(("user-agent", agent)),
        Some(("accept", "*/*")),
        range.as_deref().map(|range| ("range", range)),
        is_form.then_some(("content-type", "application/x-www-form-urlencoded")),
    ];
    for (name, value) in usual.into_iter().flatten() {
        if lines.iter().all(|(other, _)| other != name) {
            fields.push(name, value);
        }
    }
    let mut omitted = Vec::new();
    for (name, value) in lines {
        match value {
            Some(value) => fields.push(&name, &value),
            None => omitted.push(name),
        }
    }
    Ok((fields, omitted))
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
