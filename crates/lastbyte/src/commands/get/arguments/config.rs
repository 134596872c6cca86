//! `-K`: arguments from a file, as curl reads them.

use std::{ffi::OsString, path::Path};

use crate::files;

/// Why the command line is invalid: an exit code and a message.
type Refusal = (u8, String);

/// Maximum nesting of files.
const DEPTH_MAX: usize = 8;

/// The arguments of a command line, with `-K` replaced by the content of its file, if it is one of `get`.
pub(crate) fn expanded(
    words: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>, Refusal> {
    let mut words = words.into_iter().peekable();
    let program = words.next();
    if words.peek().is_none_or(|command| command != "get") {
        return Ok(program.into_iter().chain(words).collect());
    }
    let rest = expand(words, 0)?;
    Ok(program.into_iter().chain(rest).collect())
}

fn expand(
    mut words: impl Iterator<Item = OsString>,
    depth: usize,
) -> Result<Vec<OsString>, Refusal> {
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            all.push(word);
            all.extend(words);
            break;
        }
        let path = if text == "-K" || text == "--config" {
            match words.next() {
                Some(path) => path,
                None => return Err((2, "`-K` requires a file, or `-`".to_owned())),
            }
        } else if let Some(path) = text.strip_prefix("--config=") {
            path.into()
        } else if let Some(path) = text.strip_prefix("-K") {
            path.into()
        } else {
            all.push(word);
            continue;
        };
        if depth >= DEPTH_MAX {
            return Err((
                2,
                format!(
                    "files of -K include each other more than {DEPTH_MAX} levels deep: `{}`",
                    path.display()
                ),
            ));
        }
        let more = read(Path::new(&path))?;
        all.extend(expand(more.into_iter().map(OsString::from), depth + 1)?);
    }
    Ok(all)
}

fn read(path: &Path) -> Result<Vec<String>, Refusal> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
            .map_err(|error| format!("cannot read standard input: {error}"))
    } else {
        files::read_text(path)
    };
    let text = text.map_err(|what| (26, what))?;
    Ok(text.lines().flat_map(line).collect())
}

/// `name value`, `name = value`, `name: value`, `-o value`, `--name`; values with blanks are quoted.
fn line(line: &str) -> Vec<String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Vec::new();
    }
    let end = line.find(|c: char| c.is_whitespace() || c == '=' || c == ':');
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
    let value = value(rest);
    let is_short = name.starts_with('-') && !name.starts_with("--");
    match (is_short, value) {
        (true, None) => vec![name.to_owned()],
        (true, Some(value)) => vec![name.to_owned(), value],
        (false, None) => vec![format!("--{}", name.trim_start_matches('-'))],
        (false, Some(value)) => vec![format!("--{}={value}", name.trim_start_matches('-'))],
    }
}

fn value(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        // After a blank, a comment or nothing.
        return text
            .split_whitespace()
            .next()
            .filter(|word| !word.starts_with('#'))
            .map(str::to_owned);
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some('v') => value.push('\u{b}'),
                Some(other) => value.push(other),
                None => {}
            },
            character => value.push(character),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{expanded, line};

    #[test]
    fn lines_are_parsed_like_in_curl() {
        for (text, expected) in [
            (
                "url = \"https://a.example/\"",
                &["--url=https://a.example/"][..],
            ),
            (
                "  --url https://a.example/ # there",
                &["--url=https://a.example/"],
            ),
            (
                "user-agent: \"a \\\"b\\\"\\tc\"",
                &["--user-agent=a \"b\"\tc"],
            ),
            ("-o \"a b\"", &["-o", "a b"]),
            ("silent", &["--silent"]),
            ("-s # quiet", &["-s"]),
            ("header = \"x: -y\"", &["--header=x: -y"]),
            ("# remark", &[]),
            ("", &[]),
        ] {
            assert_eq!(line(text), expected, "{text}");
        }
    }

    #[test]
    fn arguments_after_a_double_dash_are_not_options() {
        for words in [
            ["x", "get", "-s", "--", "-K"],
            ["x", "query", "-K", "y", "-K"],
        ] {
            let words = words.map(Into::into);
            assert_eq!(expanded(words.clone()).expect("no files"), words);
        }
        for last in ["-K", "-K/nonexistent", "--config=/nonexistent"] {
            assert!(
                expanded(["x", "get", last].map(Into::into)).is_err(),
                "{last}"
            );
        }
    }
}
