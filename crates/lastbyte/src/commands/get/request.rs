//! From arguments to requests.

#![expect(
    clippy::disallowed_types,
    reason = "the binary is where files are opened"
)]

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_client::{Fetch, Upload, Url, UrlError};
use lastbyte_http3::{Code, Fields};
use lastbyte_quic::stream::{Source, SourceError};

use super::Arguments;
use crate::files;

/// Why there is nothing to ask: an exit code, and what to say.
type Refusal = (u8, String);

/// The requests, one for each address.
pub(super) fn fetches(arguments: &Arguments) -> Result<Vec<Fetch>, Refusal> {
    let upload = upload(arguments)?;
    let method = match (&arguments.request, &arguments.upload_file, &upload) {
        (Some(method), ..) => method,
        _ if arguments.head => "HEAD",
        (_, Some(_), _) => "PUT",
        (_, _, Some(_)) => "POST",
        _ => "GET",
    };
    let fields = fields(arguments)?;
    let parse = |text: &String| {
        let mut url: Url = text.parse().map_err(|error| {
            let code = if matches!(error, UrlError::Scheme(_)) {
                1
            } else {
                3
            };
            (code, format!("`{text}`: {error}"))
        })?;
        if let Some(path) = &arguments.upload_file
            && url.file_name().is_none()
            && let Some(name) = path.file_name().and_then(|name| name.to_str())
        {
            let with_name = format!("{url}{}", escaped(name));
            url = with_name
                .parse()
                .map_err(|error| (3, format!("`{with_name}`: {error}")))?;
        }
        Ok(Fetch {
            url,
            method: method.to_owned(),
            fields: fields.clone(),
            upload: upload.clone(),
        })
    };
    arguments.urls.iter().map(parse).collect()
}

/// A file's name as part of a path.
fn escaped(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// What is always said, and what was asked for. The latter takes the place of the former.
fn fields(arguments: &Arguments) -> Result<Fields, Refusal> {
    let mut lines: Vec<(String, Option<String>)> = Vec::new();
    for text in &arguments.header {
        let (name, value) = text
            .split_once(':')
            .or_else(|| {
                // As with curl, a field without a value.
                text.strip_suffix(';').map(|name| (name, " "))
            })
            .ok_or_else(|| (2, format!("`-H {text}` is not of the form `name: value`")))?;
        let is_left_out = value.is_empty();
        let value = (!is_left_out).then(|| value.trim().to_owned());
        lines.push((name.trim().to_ascii_lowercase(), value));
    }
    let mut fields = Fields::new();
    let is_form = !arguments.data.is_empty() || !arguments.data_binary.is_empty();
    let agent = concat!("lastbyte/", env!("CARGO_PKG_VERSION"));
    let usual = [
        Some(("user-agent", agent)),
        Some(("accept", "*/*")),
        is_form.then_some(("content-type", "application/x-www-form-urlencoded")),
    ];
    for (name, value) in usual.into_iter().flatten() {
        if lines.iter().all(|(other, _)| other != name) {
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

fn upload(arguments: &Arguments) -> Result<Option<Upload>, Refusal> {
    if let Some(path) = &arguments.upload_file {
        return Ok(Some(Arc::new(FileSource::open(path)?)));
    }
    let plain = arguments.data.iter().map(|text| (text, true));
    let binary = arguments.data_binary.iter().map(|text| (text, false));
    let mut body: Option<Vec<u8>> = None;
    for (text, is_text) in plain.chain(binary) {
        let bytes = match text.strip_prefix('@') {
            None => text.clone().into_bytes(),
            Some(path) => {
                let mut bytes = files::read(Path::new(path)).map_err(|what| (26, what))?;
                if is_text {
                    bytes.retain(|byte| !b"\r\n\0".contains(byte));
                }
                bytes
            }
        };
        match &mut body {
            None => body = Some(bytes),
            Some(body) => {
                body.push(b'&');
                body.extend(bytes);
            }
        }
    }
    Ok(body.map(|body| Arc::new(body) as Upload))
}

/// A file that is sent.
struct FileSource {
    file: Mutex<File>,
    len: u64,
}

impl FileSource {
    fn open(path: &Path) -> Result<Self, Refusal> {
        let wrong = |error: &dyn std::fmt::Display| {
            (26, format!("cannot read `{}`: {error}", path.display()))
        };
        let file = File::open(path).map_err(|error| wrong(&error))?;
        let about = file.metadata().map_err(|error| wrong(&error))?;
        if !about.is_file() {
            return Err(wrong(&"only files whose length is known can be sent"));
        }
        Ok(Self {
            file: Mutex::new(file),
            len: about.len(),
        })
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(buffer))
            .map_err(|_| SourceError {
                code: Code::REQUEST_CANCELLED.into(),
            })
    }
}
