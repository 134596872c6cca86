//! Regular expressions: Ruby's syntax translated to that of `fancy-regex`, or rejected. `^` and `$` match at
//! lines in Ruby always, `/m` is what others call dotall, `\Z` may stand before a last newline, `\h` is a hex digit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

pub(crate) const IGNORE_CASE: u8 = 1;
pub(crate) const EXTENDED: u8 = 2;
pub(crate) const MULTI_LINE: u8 = 4;

/// Why a pattern cannot be used.
#[derive(Debug)]
pub(crate) enum PatternError {
    /// It is not a pattern, or one that is not supported.
    Invalid(String),
    /// Too much backtracking.
    GaveUp(String),
}

pub(crate) struct Pattern {
    source: String,
    options: u8,
    regex: fancy_regex::Regex,
    names: BTreeMap<String, usize>,
}

/// The result of a match: the text, and the spans of the groups.
pub(crate) struct Match {
    pub(crate) pattern: Rc<Pattern>,
    pub(crate) text: Rc<str>,
    groups: Vec<Option<(usize, usize)>>,
}

impl Pattern {
    pub(crate) fn new(source: &str, options: u8) -> Result<Pattern, String> {
        let translated = translate(source, options)?;
        let regex = fancy_regex::RegexBuilder::new(&translated)
            .backtrack_limit(10_000_000)
            .build()
            .map_err(|reason| format!("{}: /{source}/", shortened(&reason.to_string())))?;
        let names = regex
            .capture_names()
            .enumerate()
            .filter_map(|(at, name)| Some((name?.to_owned(), at)))
            .collect();
        Ok(Pattern {
            source: source.to_owned(),
            options,
            regex,
            names,
        })
    }

    pub(crate) fn compile(source: &str, options: u8) -> Result<Rc<Pattern>, PatternError> {
        Pattern::new(source, options)
            .map(Rc::new)
            .map_err(PatternError::Invalid)
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn options(&self) -> u8 {
        self.options
    }

    /// Groups by name. With names, Ruby does not count the groups without.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut all: Vec<(&usize, &str)> = self
            .names
            .iter()
            .map(|(name, at)| (at, name.as_str()))
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(_, name)| name).collect()
    }

    pub(crate) fn group_named(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Whether it matches from a byte on.
    pub(crate) fn is_match(&self, text: &str, from: usize) -> Result<bool, PatternError> {
        Ok(self.find(text, from)?.is_some())
    }

    /// The span of the first match from a byte on, without groups.
    pub(crate) fn find(
        &self,
        text: &str,
        from: usize,
    ) -> Result<Option<(usize, usize)>, PatternError> {
        if from > text.len() {
            return Ok(None);
        }
        let found = self
            .regex
            .find_from_pos(text, from)
            .map_err(|reason| too_hard(&reason))?;
        Ok(found.map(|it| (it.start(), it.end())))
    }

    pub(crate) fn captures(
        self: &Rc<Self>,
        text: &Rc<str>,
        from: usize,
    ) -> Result<Option<Match>, PatternError> {
        if from > text.len() {
            return Ok(None);
        }
        let found = self
            .regex
            .captures_from_pos(text, from)
            .map_err(|reason| too_hard(&reason))?;
        Ok(found.map(|found| Match {
            pattern: Rc::clone(self),
            text: Rc::clone(text),
            groups: (0..found.len())
                .map(|at| found.get(at).map(|it| (it.start(), it.end())))
                .collect(),
        }))
    }

    fn flags(&self, wanted: u8) -> String {
        [(MULTI_LINE, 'm'), (IGNORE_CASE, 'i'), (EXTENDED, 'x')]
            .iter()
            .filter(|(bit, _)| (self.options & bit != 0) == (wanted == 1))
            .map(|(_, letter)| *letter)
            .collect()
    }

    pub(crate) fn to_s(&self) -> String {
        let off = self.flags(0);
        let off = if off.is_empty() {
            off
        } else {
            format!("-{off}")
        };
        format!("(?{}{off}:{})", self.flags(1), self.with_slashes())
    }

    pub(crate) fn inspect(&self) -> String {
        format!("/{}/{}", self.with_slashes(), self.flags(1))
    }

    /// The source, with each `/` escaped.
    fn with_slashes(&self) -> String {
        let mut text = String::with_capacity(self.source.len());
        let mut escaped = false;
        for c in self.source.chars() {
            if c == '/' && !escaped {
                text.push('\\');
            }
            escaped = c == '\\' && !escaped;
            text.push(c);
        }
        text
    }
}

fn shortened(reason: &str) -> String {
    if reason.contains("Target of repeat operator is invalid") {
        return "a repeated anchor or look-around is not supported in a regular expression"
            .to_owned();
    }
    reason
        .lines()
        .last()
        .unwrap_or("invalid pattern")
        .trim()
        .to_owned()
}

fn too_hard(reason: &fancy_regex::Error) -> PatternError {
    PatternError::GaveUp(reason.to_string())
}

impl Match {
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn span(&self, group: usize) -> Option<(usize, usize)> {
        self.groups.get(group).copied().flatten()
    }

    pub(crate) fn group(&self, group: usize) -> Option<&str> {
        let (from, to) = self.span(group)?;
        Some(&self.text[from..to])
    }

    pub(crate) fn name(&self, group: usize) -> Option<&str> {
        self.pattern
            .names
            .iter()
            .find(|(_, at)| **at == group)
            .map(|(name, _)| name.as_str())
    }

    /// The text of a group; `None` if there is no such group, `Some(None)` if it took no part in the match.
    #[expect(clippy::option_option, reason = "a known group may not take part")]
    pub(crate) fn named(&self, name: &str) -> Option<Option<&str>> {
        self.pattern.names.get(name).map(|at| self.group(*at))
    }

    pub(crate) fn pre(&self) -> &str {
        self.span(0).map_or("", |(from, _)| &self.text[..from])
    }

    pub(crate) fn post(&self) -> &str {
        self.span(0).map_or("", |(_, to)| &self.text[to..])
    }

    /// A byte's place in characters.
    pub(crate) fn char_index(&self, byte: usize) -> usize {
        self.text[..byte].chars().count()
    }
}

/// What `Regexp.escape` gives.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{c}' => out.push_str("\\f"),
            '\u{b}' => out.push_str("\\v"),
            '.' | '*' | '?' | '+' | '^' | '$' | '|' | '\\' | '(' | ')' | '[' | ']' | '{' | '}'
            | '-' | ' ' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Ruby's syntax in the crate's.
fn translate(source: &str, options: u8) -> Result<String, String> {
    let mut out = String::with_capacity(source.len() + 8);
    out.push_str("(?m");
    if options & MULTI_LINE != 0 {
        out.push('s');
    }
    if options & IGNORE_CASE != 0 {
        out.push('i');
    }
    if options & EXTENDED != 0 {
        out.push('x');
    }
    out.push(')');
    let named = source.contains("(?<") && has_names(source);
    let chars: Vec<char> = source.chars().collect();
    let mut at = 0;
    let mut class_depth = 0;
    while at < chars.len() {
        let c = chars[at];
        match c {
            '\\' => {
                let next = *chars
                    .get(at + 1)
                    .ok_or_else(|| format!("too short escape sequence: /{source}/"))?;
                at += 2;
                at = escape_sequence(&mut out, &chars, at, next, class_depth > 0)?;
                continue;
            }
            '[' if class_depth > 0 && chars.get(at + 1) == Some(&':') => {
                let end = (at..chars.len())
                    .find(|i| chars[*i] == ']')
                    .unwrap_or(chars.len() - 1);
                let name: String = chars[at..=end].iter().collect();
                out.push_str(
                    posix_class(&name)
                        .ok_or_else(|| format!("invalid POSIX bracket type: /{source}/"))?,
                );
                at = end + 1;
                continue;
            }
            '[' => {
                class_depth += 1;
                out.push('[');
                if chars.get(at + 1) == Some(&'^') {
                    out.push('^');
                    at += 1;
                }
                if chars.get(at + 1) == Some(&']') {
                    out.push_str("\\]");
                    at += 1;
                }
            }
            ']' if class_depth > 0 => {
                class_depth -= 1;
                out.push(']');
            }
            _ if class_depth > 0 => {
                if c == '&' && chars.get(at + 1) == Some(&'&') {
                    out.push_str("&&");
                    at += 1;
                } else if matches!(c, '&' | '~') || c == '-' && chars.get(at + 1) == Some(&'-') {
                    out.push('\\');
                    out.push(c);
                } else {
                    out.push(c);
                }
            }
            '^' if !needs_more(&chars[at + 1..]) => out.push_str("(?:^(?!\\z)|\\A)"),
            '(' if chars.get(at + 1) == Some(&'?') => at = group(&mut out, &chars, at, source)?,
            // Beside named groups, plain parentheses do not capture in Ruby.
            '(' if named => out.push_str("(?:"),
            '{' if !is_repeat(&chars[at..]) => out.push_str("\\{"),
            '}' if !closes_repeat(&chars[..at]) => out.push_str("\\}"),
            _ => out.push(c),
        }
        at += 1;
    }
    Ok(out)
}

fn posix_class(name: &str) -> Option<&'static str> {
    Some(match name {
        "[:alpha:]" => "\\p{Alphabetic}",
        "[:digit:]" => "\\p{Nd}",
        "[:alnum:]" => "\\p{Alphabetic}\\p{Nd}",
        "[:upper:]" => "\\p{Uppercase}",
        "[:lower:]" => "\\p{Lowercase}",
        "[:space:]" => "\\s",
        "[:blank:]" => "\\p{Zs}\\t",
        "[:punct:]" => "\\p{P}$+<=>^`|~",
        "[:cntrl:]" => "\\p{Cc}",
        "[:xdigit:]" => "0-9A-Fa-f",
        "[:word:]" => "\\w",
        "[:graph:]" => "[^\\s\\p{Cc}\\p{Cs}\\p{Cn}]",
        "[:print:]" => "[^\\p{Cc}\\p{Cs}\\p{Cn}]",
        "[:^alpha:]" => "\\P{Alphabetic}",
        "[:^digit:]" => "\\P{Nd}",
        "[:^space:]" => "\\S",
        "[:^upper:]" => "\\P{Uppercase}",
        "[:^lower:]" => "\\P{Lowercase}",
        _ => return None,
    })
}

/// Whether the pattern after a `^` cannot match an empty text: then the empty line after a last newline, where Ruby's `^` does
/// not match, makes no difference.
fn needs_more(rest: &[char]) -> bool {
    let (first, after) = match rest {
        ['\\', c, after @ ..] if "dwsDWSh.[]/".contains(*c) => ('a', after),
        ['[', inner @ ..] => match inner.iter().skip(1).position(|c| *c == ']') {
            Some(end) => ('a', &inner[end + 2..]),
            None => return false,
        },
        [first, after @ ..] => (*first, after),
        [] => return false,
    };
    (first.is_alphanumeric() || "/_ <>\"'=:,.".contains(first))
        && !matches!(after.first(), Some('?' | '*' | '{'))
        && !rest.contains(&'|')
}

fn has_names(source: &str) -> bool {
    source
        .match_indices("(?<")
        .any(|(at, _)| !matches!(source.as_bytes().get(at + 3), Some(b'=' | b'!') | None))
}

/// `{3}`, `{1,}`, `{,3}`, `{1,3}`.
fn is_repeat(rest: &[char]) -> bool {
    let Some(end) = rest.iter().position(|c| *c == '}') else {
        return false;
    };
    let inner: String = rest[1..end].iter().collect();
    !inner.is_empty()
        && inner != ","
        && inner.chars().all(|c| c.is_ascii_digit() || c == ',')
        && inner.matches(',').count() <= 1
}

fn closes_repeat(before: &[char]) -> bool {
    let Some(start) = before.iter().rposition(|c| *c == '{') else {
        return false;
    };
    let mut slice = before[start..].to_vec();
    slice.push('}');
    is_repeat(&slice)
}

fn escape_sequence(
    out: &mut String,
    chars: &[char],
    mut at: usize,
    next: char,
    in_class: bool,
) -> Result<usize, String> {
    match next {
        'h' => out.push_str(if in_class { "0-9a-fA-F" } else { "[0-9a-fA-F]" }),
        'H' => out.push_str("[^0-9a-fA-F]"),
        'R' => out.push_str("(?>\\r\\n|[\\n\\x0b\\x0c\\r\\u{85}\\u{2028}\\u{2029}])"),
        'A' => out.push_str("\\A"),
        'z' => out.push_str("\\z"),
        'Z' => out.push_str("(?=\\n?\\z)"),
        // These are ASCII only in Ruby; `[[:alpha:]]` and `\\p{…}` are not.
        'd' => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
        'D' => out.push_str("[^0-9]"),
        's' => out.push_str(if in_class {
            " \\t\\r\\n\\x0b\\x0c"
        } else {
            "[ \\t\\r\\n\\x0b\\x0c]"
        }),
        'S' => out.push_str("[^ \\t\\r\\n\\x0b\\x0c]"),
        'w' => out.push_str(if in_class {
            "0-9A-Za-z_"
        } else {
            "[0-9A-Za-z_]"
        }),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'e' => out.push_str("\\x1b"),
        'G' | 'K' | 'X' | 'g' => {
            return Err(format!("\\{next} is not supported in a regular expression"));
        }
        'u' if chars.get(at) != Some(&'{') => {
            let digits: String = chars.iter().skip(at).take(4).collect();
            out.push_str("\\x{");
            out.push_str(&digits);
            out.push('}');
            at += 4;
        }
        'u' => {
            let end = (at..chars.len()).find(|i| chars[*i] == '}');
            let end = end.ok_or("invalid Unicode list")?;
            let codes: String = chars[at + 1..end].iter().collect();
            for code in codes.split_whitespace() {
                let known = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
                if known.is_none() {
                    return Err("invalid Unicode range".to_owned());
                }
                let _ = write!(out, "\\x{{{code}}}");
            }
            return Ok(end + 1);
        }
        'p' | 'P' => {
            let end = (at..chars.len())
                .find(|i| chars[*i] == '}')
                .ok_or("invalid character property name {p}")?;
            let name: String = chars[(at + 1).min(end)..end].iter().collect();
            let (negated, bare) = name
                .strip_prefix('^')
                .map_or((false, name.as_str()), |bare| (true, bare));
            let negated = negated != (next == 'P');
            let bare = bare.to_ascii_lowercase();
            // Sets that have no name of their own.
            let set = match bare.as_str() {
                "alnum" => "\\p{Alphabetic}\\p{Nd}",
                "word" => "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}",
                "blank" => "\\p{Zs}\\t",
                "xdigit" => "0-9A-Fa-f",
                _ => "",
            };
            let known = match bare.as_str() {
                "alpha" => "Alphabetic",
                "digit" => "Nd",
                "upper" => "Uppercase",
                "lower" => "Lowercase",
                "space" => "White_Space",
                "punct" => "P",
                "cntrl" => "Cc",
                _ => name.trim_start_matches('^'),
            };
            let _ = match (set, negated) {
                ("", false) => write!(out, "\\p{{{known}}}"),
                ("", true) => write!(out, "\\P{{{known}}}"),
                (set, false) => write!(out, "[{set}]"),
                (set, true) => write!(out, "[^{set}]"),
            };
            at = end + 1;
        }
        'k' => out.push_str("\\k"),
        '0' => out.push_str("\\x00"),
        c if c.is_ascii_alphanumeric() => {
            out.push('\\');
            out.push(c);
        }
        ' ' => out.push_str("\\x20"),
        '\n' => out.push_str("\\n"),
        c if c.is_ascii_punctuation()
            && !matches!(
                c,
                '<' | '>' | '\'' | '"' | '`' | '!' | '%' | ',' | ':' | ';' | '=' | '@' | '_' | '/'
            ) =>
        {
            out.push('\\');
            out.push(c);
        }
        c => out.push(c),
    }
    Ok(at)
}

/// `(?…`: the position of its last character.
fn group(out: &mut String, chars: &[char], at: usize, source: &str) -> Result<usize, String> {
    let third = chars.get(at + 2).copied().unwrap_or(' ');
    match third {
        ':' | '=' | '!' | '>' => {
            out.push_str("(?");
            out.push(third);
            Ok(at + 2)
        }
        '#' => {
            let end = (at..chars.len())
                .find(|i| chars[*i] == ')')
                .ok_or("end pattern in group")?;
            Ok(end)
        }
        '<' if matches!(chars.get(at + 3), Some('=' | '!')) => {
            out.push_str("(?<");
            out.push(chars[at + 3]);
            Ok(at + 3)
        }
        '<' => {
            out.push_str("(?<");
            Ok(at + 2)
        }
        // Options: Ruby's m is s elsewhere, and lines are always on.
        'm' | 'i' | 'x' | '-' => {
            let end = (at..chars.len())
                .find(|i| matches!(chars[*i], ')' | ':'))
                .ok_or_else(|| format!("undefined group option: /{source}/"))?;
            out.push_str("(?");
            for letter in &chars[at + 2..end] {
                out.push(if *letter == 'm' { 's' } else { *letter });
            }
            out.push(chars[end]);
            Ok(end)
        }
        other => Err(format!(
            "(?{other} is not supported in a regular expression: /{source}/"
        )),
    }
}
