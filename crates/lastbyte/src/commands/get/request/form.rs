//! `-F`: the parts of a form (RFC 7578), in curl's syntax.

use std::{fmt::Write as _, path::Path, sync::Arc};

use lastbyte_client::Upload;
use lastbyte_quic::stream::{Source, SourceError};

use super::{Refusal, uploads};
use crate::commands::get::arguments::Datum;

/// A form, and its `content-type`; `None` if no form is given.
pub(super) fn form(data: &[Datum]) -> Result<Option<(String, Upload)>, Refusal> {
    if !data.iter().any(Datum::is_part) {
        return Ok(None);
    }
    if !data.iter().all(Datum::is_part) {
        let what = "-F and -d cannot be combined";
        return Err((2, what.to_owned()));
    }
    let boundary = boundary()?;
    let mut joined = Joined::default();
    for datum in data {
        let part = match datum {
            Datum::FormString(text) => Part::literal(text)?,
            Datum::Form(text) => Part::read(text)?,
            _ => continue,
        };
        joined.push(part.head(&boundary).into_bytes());
        match part.content {
            Content::Text(bytes) => joined.push(bytes),
            Content::Source(source) => joined.push_source(source),
        }
        joined.push(b"\r\n".to_vec());
    }
    joined.push(format!("--{boundary}--\r\n").into_bytes());
    let kind = format!("multipart/form-data; boundary={boundary}");
    Ok(Some((kind, Upload::source(joined))))
}

/// A multipart boundary in curl's format: random, so that it occurs in no part.
fn boundary() -> Result<String, Refusal> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| (26, format!("cannot get random bytes: {error}")))?;
    Ok(format!(
        "------------------------{:016x}",
        u64::from_be_bytes(bytes)
    ))
}

struct Part {
    name: String,
    file_name: Option<String>,
    kind: Option<String>,
    content: Content,
}

enum Content {
    Text(Vec<u8>),
    Source(Arc<dyn Source + Sync>),
}

impl Part {
    /// `NAME=TEXT`, whatever the text starts with.
    fn literal(text: &str) -> Result<Self, Refusal> {
        let (name, content) = split(text)?;
        Ok(Self {
            name: name.to_owned(),
            file_name: None,
            kind: None,
            content: Content::Text(content.as_bytes().to_vec()),
        })
    }

    /// `NAME=TEXT`, `NAME=@FILE` to send a file, `NAME=<FILE` for its content; each with `;type=` and `;filename=`.
    fn read(text: &str) -> Result<Self, Refusal> {
        let (name, rest) = split(text)?;
        let (mark, rest) = match rest.chars().next() {
            Some(mark @ ('@' | '<')) => (Some(mark), &rest[1..]),
            _ => (None, rest),
        };
        let (value, mut rest) = word(rest);
        let mut part = Self {
            name: name.to_owned(),
            file_name: None,
            kind: None,
            content: Content::Text(Vec::new()),
        };
        while let Some(more) = rest.strip_prefix(';') {
            let (key, after) = more
                .trim_start()
                .split_once('=')
                .ok_or_else(|| (2, format!("`-F {text}`: write ;type=… or ;filename=…")))?;
            let (value, next) = word(after);
            rest = next;
            match key.trim() {
                // Parameters of a type follow it.
                "type" => {
                    let mut kind = value;
                    while let Some(more) = rest.strip_prefix(';')
                        && !more.trim_start().starts_with("filename=")
                    {
                        let (parameter, next) = word(more);
                        let _ = write!(kind, ";{parameter}");
                        rest = next;
                    }
                    part.kind = Some(kind);
                }
                "filename" => part.file_name = Some(value),
                other => {
                    return Err((
                        2,
                        format!(
                            "`-F {text}`: unknown attribute `{other}` (expected `type` or `filename`)"
                        ),
                    ));
                }
            }
        }
        part.content = match mark {
            None => Content::Text(value.into_bytes()),
            Some('<') => Content::Text(uploads::read(&value)?),
            Some(_) => {
                part.set_file(&value);
                if value == "-" {
                    Content::Text(uploads::read("-")?)
                } else {
                    match uploads::file(&value)? {
                        Upload::Source(source) => Content::Source(source),
                        // The length of a pipe is unknown.
                        Upload::Stream(_) => Content::Text(uploads::read(&value)?),
                    }
                }
            }
        };
        Ok(part)
    }

    /// Sent as a file: with its name and type.
    fn set_file(&mut self, path: &str) {
        let own = Path::new(path).file_name().and_then(|name| name.to_str());
        let name = self.file_name.take();
        self.file_name = name.or_else(|| own.map(str::to_owned));
        if self.kind.is_none() {
            let by_name = self.file_name.as_deref().and_then(kind_of);
            let kind = by_name.or_else(|| kind_of(path));
            self.kind = Some(kind.unwrap_or("application/octet-stream").to_owned());
        }
    }

    fn head(&self, boundary: &str) -> String {
        let mut head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            quoted(&self.name)
        );
        if let Some(name) = &self.file_name {
            // Writing to a String cannot fail.
            let _ = write!(head, "; filename=\"{}\"", quoted(name));
        }
        head.push_str("\r\n");
        if let Some(kind) = &self.kind {
            let _ = write!(head, "Content-Type: {kind}\r\n");
        }
        head.push_str("\r\n");
        head
    }
}

fn split(text: &str) -> Result<(&str, &str), Refusal> {
    let wrong = || {
        (
            2,
            format!("invalid form part `-F {text}` (expected NAME=CONTENT)"),
        )
    };
    text.split_once('=').ok_or_else(wrong)
}

/// Splits at the next `;` outside of quotes.
fn word(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return (text[..end].trim_end().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let rest = &quoted[at + 1..];
                return (value, &rest[rest.find(';').unwrap_or(rest.len())..]);
            }
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                Some((_, other)) => value.extend(['\\', other]),
                None => value.push('\\'),
            },
            character => value.push(character),
        }
    }
    // The quote was part of the text.
    let end = text.find(';').unwrap_or(text.len());
    (text[..end].to_owned(), &text[end..])
}

/// As browsers escape names (HTML, "multipart form data").
fn quoted(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The content type for a file name, if it is one that curl knows.
fn kind_of(name: &str) -> Option<&'static str> {
    const KINDS: [(&str, &str); 10] = [
        (".gif", "image/gif"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".png", "image/png"),
        (".svg", "image/svg+xml"),
        (".txt", "text/plain"),
        (".htm", "text/html"),
        (".html", "text/html"),
        (".pdf", "application/pdf"),
        (".xml", "application/xml"),
    ];
    let name = name.to_ascii_lowercase();
    let found = KINDS.iter().find(|(end, _)| name.ends_with(end));
    found.map(|(_, kind)| *kind)
}

/// Concatenated sources.
#[derive(Default)]
struct Joined {
    /// Each with its offset.
    parts: Vec<(u64, Arc<dyn Source + Sync>)>,
    len: u64,
}

impl Joined {
    fn push(&mut self, bytes: Vec<u8>) {
        self.push_source(Arc::new(bytes));
    }

    fn push_source(&mut self, source: Arc<dyn Source + Sync>) {
        let len = source.len();
        self.parts.push((self.len, source));
        self.len += len;
    }
}

impl Source for Joined {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let first = self.parts.partition_point(|(begin, _)| *begin <= offset);
        let (mut offset, mut buffer) = (offset, buffer);
        for (begin, source) in &self.parts[first.saturating_sub(1)..] {
            let within = offset - begin;
            let len = source.len().saturating_sub(within).min(buffer.len() as u64);
            let (now, rest) = buffer.split_at_mut(len as usize);
            if !now.is_empty() {
                source.read_at(within, now)?;
            }
            offset += len;
            buffer = rest;
            if buffer.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_semicolons_outside_quotes() {
        for (text, value, rest) in [
            ("a b ;type=x", "a b", ";type=x"),
            ("\"a;b\\\"c\\\\d\\e\" ;type=x", "a;b\"c\\d\\e", ";type=x"),
            ("\"a;b", "\"a", ";b"),
            ("", "", ""),
        ] {
            assert_eq!(word(text), (value.to_owned(), rest), "{text}");
        }
    }

    #[test]
    fn joined_sources_are_readable_as_one_at_any_offset() {
        let whole: Vec<u8> = (0..100).collect();
        let mut joined = Joined::default();
        for range in [0..1, 1..1, 1..40, 40..99, 99..100] {
            joined.push(whole[range].to_vec());
        }
        for from in 0..100 {
            for to in from..=100 {
                let mut read = vec![0; to - from];
                assert!(joined.read_at(from as u64, &mut read).is_ok());
                assert_eq!(read, whole[from..to], "{from}..{to}");
            }
        }
    }
}
