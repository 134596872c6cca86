//! URLs that stand for several, as in curl: `{a,b}` and `[1-9]`, `[001-100]`, `[a-z]`, each range with an optional `:step`.

use core::net::Ipv6Addr;
use std::{collections::BTreeSet, path::PathBuf};

use super::{
    arguments::{Arguments, Output},
    destination::in_folder,
};

/// Maximum number of URLs of a command.
const URLS_MAX: usize = 100_000;

/// Replaces each URL by those that its pattern stands for. Outputs and uploads of the URL apply to all of them.
///
/// # Errors
///
/// Returns an exit code and the error if a pattern is malformed, there are too many URLs, or several would be written to one
/// file.
pub(super) fn expand_urls(arguments: &mut Arguments) -> Result<(), (u8, String)> {
    if arguments.request.globoff {
        return Ok(());
    }
    let (mut urls, mut outputs, mut uploads) = (Vec::new(), Vec::new(), Vec::new());
    for (index, pattern) in arguments.urls.0.iter().enumerate() {
        let all = expand(pattern).map_err(|what| (3, format!("`{pattern}`: {what}")))?;
        if urls.len() + all.len() > URLS_MAX {
            return Err((3, too_many()));
        }
        if let Some(file) = arguments.request.upload_file.get(index) {
            uploads.extend(all.iter().map(|_| file.clone()));
        }
        if let Some(output) = arguments.outputs.0.get(index) {
            outputs.extend(outputs_of(arguments, output, &all)?);
        }
        urls.extend(all.into_iter().map(|one| one.url));
    }
    // Those without a URL are errors, which name their number.
    let given = arguments.urls.0.len();
    outputs.extend(arguments.outputs.0.drain(..).skip(given));
    uploads.extend(arguments.request.upload_file.drain(..).skip(given));
    arguments.urls.0 = urls;
    arguments.outputs.0 = outputs;
    arguments.request.upload_file = uploads;
    Ok(())
}

/// The outputs of the URLs of one pattern.
fn outputs_of(
    arguments: &Arguments,
    output: &Output,
    all: &[Expanded],
) -> Result<Vec<Output>, (u8, String)> {
    let Output::File(path) = output else {
        return Ok(all.iter().map(|_| output.clone()).collect());
    };
    // A name that is not Unicode has no `#1`.
    let named = |one: &Expanded| match path.to_str() {
        Some(template) => one.name(template).into(),
        None => path.clone(),
    };
    let paths: Vec<PathBuf> = all.iter().map(named).collect();
    let distinct: BTreeSet<&PathBuf> = paths.iter().collect();
    // A device, such as /dev/null, takes several bodies.
    let is_device = |path: &PathBuf| {
        let about = in_folder(arguments, path).metadata();
        about.is_ok_and(|about| !about.is_file())
    };
    if distinct.len() < paths.len() && !distinct.into_iter().all(is_device) {
        let what = format!(
            "`-o {}` for {} URLs (expected `#1` in the name, for what replaces the first pattern, or -O)",
            path.display(),
            all.len()
        );
        return Err((2, what));
    }
    Ok(paths.into_iter().map(Output::File).collect())
}

/// One of the URLs that a pattern stands for.
#[derive(Debug, PartialEq, Eq)]
struct Expanded {
    /// The URL.
    url: String,
    /// What replaced each `{…}` and `[…]`, in their order.
    parts: Vec<String>,
}

impl Expanded {
    /// A file name in which `#1` stands for what replaced the first pattern, and so on.
    fn name(&self, template: &str) -> String {
        let mut name = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('#') {
            name.push_str(before);
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let number = after[..digits].parse::<usize>().ok();
            let part = number.and_then(|number| self.parts.get(number.checked_sub(1)?));
            if let Some(part) = part {
                name.push_str(part);
            } else {
                name.push('#');
                name.push_str(&after[..digits]);
            }
            rest = &after[digits..];
        }
        name + rest
    }
}

/// A piece of a pattern.
enum Piece {
    Text(String),
    /// One of these.
    Choice(Vec<String>),
}

/// The URLs that `pattern` stands for; the last part changes fastest.
///
/// # Errors
///
/// The pattern is malformed, or stands for more than [`URLS_MAX`] URLs.
fn expand(pattern: &str) -> Result<Vec<Expanded>, String> {
    let pieces = parse(pattern)?;
    let mut all = vec![Expanded {
        url: String::new(),
        parts: Vec::new(),
    }];
    for piece in &pieces {
        match piece {
            Piece::Text(text) => all.iter_mut().for_each(|one| one.url.push_str(text)),
            Piece::Choice(choices) => {
                if all.len().saturating_mul(choices.len()) > URLS_MAX {
                    return Err(too_many());
                }
                let longer = |one: &Expanded, choice: &String| Expanded {
                    url: format!("{}{choice}", one.url),
                    parts: one.parts.iter().chain([choice]).cloned().collect(),
                };
                let product = all
                    .iter()
                    .flat_map(|one| choices.iter().map(move |choice| longer(one, choice)));
                all = product.collect();
            }
        }
    }
    Ok(all)
}

/// The error for more than [`URLS_MAX`] URLs.
fn too_many() -> String {
    format!("more than {URLS_MAX} URLs (expected fewer; split the range over several runs)")
}

fn parse(pattern: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let choices = match first {
            '{' => set(&rest[1..]),
            '[' if address_len(rest).is_none() => range(&rest[1..]),
            '}' | ']' => Err(format!("`{first}` without its opening bracket")),
            _ => {
                let len = address_len(rest).unwrap_or_else(|| {
                    let is_escaped = first == '\\' && rest[1..].starts_with(['{', '}', '[', ']']);
                    if is_escaped {
                        rest = &rest[1..];
                        1
                    } else {
                        first.len_utf8()
                    }
                });
                text.push_str(&rest[..len]);
                rest = &rest[len..];
                continue;
            }
        };
        let (choices, len) = choices.map_err(|what| {
            let at = pattern.len() - rest.len() + 1;
            format!("{what}, at character {at} (with -g, brackets and braces are part of the URL)")
        })?;
        if !text.is_empty() {
            pieces.push(Piece::Text(core::mem::take(&mut text)));
        }
        pieces.push(Piece::Choice(choices));
        rest = &rest[1 + len..];
    }
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

/// The length of the IPv6 address in brackets with which `text` starts, or of an empty pair of brackets.
fn address_len(text: &str) -> Option<usize> {
    let (inside, _) = text.strip_prefix('[')?.split_once(']')?;
    let address = inside.split('%').next().unwrap_or_default();
    let is_address = inside.is_empty() || address.parse::<Ipv6Addr>().is_ok();
    is_address.then_some(inside.len() + 2)
}

/// The parts of `a,b,c}`, and the length with the brace.
fn set(text: &str) -> Result<(Vec<String>, usize), String> {
    let mut choices = vec![String::new()];
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '}' if at == 0 => return Err("`{}` has no parts".to_owned()),
            '}' => return Ok((choices, at + 1)),
            ',' => choices.push(String::new()),
            '{' | '[' | ']' => return Err(format!("`{character}` between braces")),
            character => {
                let is_escape = character == '\\'
                    && text[at + 1..].starts_with(['{', '}', '[', ']', ',', '\\']);
                let character = if is_escape {
                    characters.next().map_or(character, |(_, next)| next)
                } else {
                    character
                };
                if let Some(last) = choices.last_mut() {
                    last.push(character);
                }
            }
        }
    }
    Err("`{` without `}`".to_owned())
}

/// The values of `1-9]`, `001-100:10]` or `a-z]`, and the length with the bracket.
fn range(text: &str) -> Result<(Vec<String>, usize), String> {
    let (inside, _) = text.split_once(']').ok_or("`[` without `]`")?;
    let wrong =
        || format!("invalid range `[{inside}]` (expected `[1-9]`, `[a-z]` or `[0-100:10]`)");
    let (bounds, step) = match inside.split_once(':') {
        None => (inside, 1),
        Some((bounds, step)) => (bounds, step.parse::<u64>().map_err(|_| wrong())?),
    };
    let (from, to) = bounds.split_once('-').ok_or_else(wrong)?;
    let letter = |text: &str| match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(u64::from(*letter)),
        _ => None,
    };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_number)
    };
    let (low, high, is_letter) = match (letter(from), letter(to)) {
        (Some(low), Some(high)) => (low, high, true),
        _ => (
            number(from).ok_or_else(wrong)?,
            number(to).ok_or_else(wrong)?,
            false,
        ),
    };
    // As in curl, a step must not leave the range.
    let is_one = low == high && step == 1;
    if step == 0 || low > high || (!is_one && step > high - low) {
        return Err(wrong());
    }
    if (high - low) / step >= URLS_MAX as u64 {
        return Err(too_many());
    }
    let width = if from.starts_with('0') { from.len() } else { 0 };
    let values = (0..=(high - low) / step).map(|index| {
        let value = low + index * step;
        match u8::try_from(value) {
            Ok(letter) if is_letter => char::from(letter).to_string(),
            _ => format!("{value:0width$}"),
        }
    });
    Ok((values.collect(), inside.len() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(pattern: &str) -> Vec<String> {
        let all = expand(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        all.into_iter().map(|one| one.url).collect()
    }

    #[test]
    fn patterns_stand_for_several_urls() {
        for (pattern, expected) in [
            ("h/a", &["h/a"][..]),
            ("h/{a,b}", &["h/a", "h/b"]),
            ("h/{a,}x", &["h/ax", "h/x"]),
            ("h/[8-10]", &["h/8", "h/9", "h/10"]),
            ("h/[08-10]", &["h/08", "h/09", "h/10"]),
            ("h/[0-10:5].x", &["h/0.x", "h/5.x", "h/10.x"]),
            ("h/[a-e:2]", &["h/a", "h/c", "h/e"]),
            ("h/[3-3]", &["h/3"]),
            ("{a,b}[1-2]", &["a1", "a2", "b1", "b2"]),
            (
                "http://[::1]:80/[1-2]",
                &["http://[::1]:80/1", "http://[::1]:80/2"],
            ),
            ("http://[fe80::1%25eth0]/", &["http://[fe80::1%25eth0]/"]),
            ("h/?a[]=1", &["h/?a[]=1"]),
            ("h/\\{a,b\\}", &["h/{a,b}"]),
            ("h/{a\\,b,c}", &["h/a,b", "h/c"]),
            ("h/ü{ä,b}", &["h/üä", "h/üb"]),
        ] {
            assert_eq!(urls(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn malformed_patterns_are_refused_with_their_place() {
        for (pattern, expected) in [
            ("h/{a,b", "`{` without `}`, at character 3"),
            ("h/a}", "`}` without its opening bracket, at character 4"),
            ("h/a]", "`]` without its opening bracket"),
            ("h/{}", "`{}` has no parts"),
            ("h/{a,{b}}", "`{` between braces"),
            ("h/[1", "`[` without `]`"),
            ("h/[1-]", "invalid range `[1-]`"),
            ("h/[9-1]", "invalid range"),
            ("h/[1-9:0]", "invalid range"),
            ("h/[1-9:9]", "invalid range"),
            ("h/[a-9]", "invalid range"),
            ("h/[+1-3]", "invalid range"),
            ("h/[1-99999999999999999999]", "invalid range"),
        ] {
            let error = expand(pattern).expect_err(pattern);
            assert!(error.starts_with(expected), "{pattern}: {error}");
            assert!(error.contains("-g"), "{pattern}: {error}");
        }
    }

    #[test]
    fn the_number_of_urls_is_bounded() {
        assert_eq!(urls("[1-100000]").len(), URLS_MAX);
        for pattern in [
            "[1-100001]",
            "[0-18446744073709551615]",
            "[1-1000][1-101]",
            "[1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9][1-9]",
        ] {
            let error = expand(pattern).expect_err(pattern);
            assert!(error.contains("more than 100000 URLs"), "{error}");
        }
    }

    #[test]
    fn file_names_take_the_parts() {
        let all = expand("{a,b}/[1-2]").expect("a pattern");
        let names: Vec<String> = all.iter().map(|one| one.name("#2_#1.#3#x#")).collect();
        assert_eq!(names, ["1_a.#3#x#", "2_a.#3#x#", "1_b.#3#x#", "2_b.#3#x#"]);
        let plain = expand("a").expect("a pattern");
        assert_eq!(plain[0].name("#1"), "#1");
    }

    #[test]
    fn any_pattern_ends() {
        use std::fmt::Write as _;
        // A generator without state beyond a number: every text of brackets, commas and letters up to six characters.
        const LETTERS: [char; 8] = ['{', '}', '[', ']', ',', '-', '1', '\\'];
        for number in 0..8_usize.pow(6) {
            let mut text = String::new();
            let mut rest = number;
            while rest > 0 {
                let _ = write!(text, "{}", LETTERS[rest % 8]);
                rest /= 8;
            }
            if let Ok(all) = expand(&text) {
                assert!(!all.is_empty(), "{text}");
            }
        }
    }
}
