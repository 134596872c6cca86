//! Upper, lower and title case, and full case folding, with Ruby's options.

use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error};
use crate::value::inspect::to_s;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Option {
    None,
    Ascii,
    Turkic,
    Fold,
}

/// `:ascii`, `:turkic`, `:lithuanian` (which changes nothing), and `:fold` for `downcase`.
fn option(method: M, args: &[Value]) -> Eval<Option> {
    let named = |value: &Value| match value {
        Value::Symbol(_) => to_s(value),
        _ => String::new(),
    };
    let invalid = || Err(argument_error("invalid option"));
    if args.len() > 2 {
        return Err(argument_error("too many options"));
    }
    let Some(first) = args.first() else {
        return Ok(Option::None);
    };
    let second = args.get(1).map(named);
    match (named(first).as_str(), second.as_deref()) {
        ("ascii" | "fold", Some(_)) => Err(argument_error("too many options")),
        ("ascii", None) => Ok(Option::Ascii),
        ("fold", None) if method == M::Downcase => Ok(Option::Fold),
        ("fold", None) => Err(argument_error("option :fold only allowed for downcasing")),
        ("turkic", None | Some("lithuanian")) | ("lithuanian", Some("turkic")) => {
            Ok(Option::Turkic)
        }
        ("lithuanian", None) => Ok(Option::None),
        ("turkic" | "lithuanian", Some(_)) => Err(argument_error("invalid second option")),
        _ => invalid(),
    }
}

/// `upcase`, `downcase`, `capitalize` and `swapcase`.
pub(super) fn call(s: &str, method: M, args: &[Value]) -> Eval<String> {
    let option = option(method, args)?;
    if option == Option::Ascii {
        return Ok(ascii(s, method));
    }
    let mut out = String::with_capacity(s.len());
    match method {
        M::Upcase => s.chars().for_each(|c| upper(&mut out, c, option)),
        M::Downcase => s.chars().for_each(|c| lower(&mut out, c, option)),
        M::Capitalize => {
            let mut chars = s.chars();
            if let Some(first) = chars.next() {
                title(&mut out, first, option);
            }
            chars.for_each(|c| lower(&mut out, c, option));
        }
        _ => s.chars().for_each(|c| swapped(&mut out, c, option)),
    }
    Ok(out)
}

fn ascii(s: &str, method: M) -> String {
    match method {
        M::Upcase => s.to_ascii_uppercase(),
        M::Downcase => s.to_ascii_lowercase(),
        M::Capitalize => {
            let mut text = s.to_ascii_lowercase();
            if let Some(first) = text.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            text
        }
        _ => s
            .chars()
            .map(|c| match c {
                'a'..='z' => c.to_ascii_uppercase(),
                _ => c.to_ascii_lowercase(),
            })
            .collect(),
    }
}

fn upper(out: &mut String, c: char, option: Option) {
    match (c, option) {
        ('i', Option::Turkic) => out.push('İ'),
        _ => out.extend(c.to_uppercase()),
    }
}

/// A character at a time: Ruby does not know the final sigma.
fn lower(out: &mut String, c: char, option: Option) {
    match (c, option) {
        (_, Option::Fold) => folded(out, c),
        ('I', Option::Turkic) => out.push('ı'),
        ('İ', Option::Turkic) => out.push('i'),
        _ => out.extend(c.to_lowercase()),
    }
}

fn title(out: &mut String, c: char, option: Option) {
    match c {
        'i' if option == Option::Turkic => out.push('İ'),
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        // Georgian sentences begin with small letters.
        'ა'..='ჿ' => out.push(c),
        'Ა'..='Ჿ' => out.extend(c.to_lowercase()),
        // Greek letters with an iota below keep it there; some have one character for both.
        'ᾀ'..='ᾯ' => out.push(char::from_u32(c as u32 | 8).unwrap_or(c)),
        'ᾳ' | 'ᾼ' => out.push('ᾼ'),
        'ῃ' | 'ῌ' => out.push('ῌ'),
        'ῳ' | 'ῼ' => out.push('ῼ'),
        '\u{1f00}'..='\u{1fff}' => {
            out.extend(
                c.to_uppercase()
                    .map(|c| if c == 'Ι' { '\u{345}' } else { c }),
            );
        }
        // The character before it is not a letter.
        'ŉ' => out.push_str("ʼN"),
        _ => {
            let mut all = c.to_uppercase();
            out.extend(all.next());
            all.for_each(|c| lower(out, c, option));
        }
    }
}

fn swapped(out: &mut String, c: char, option: Option) {
    match c {
        // Title case: the first part of two is large.
        'ǅ' => out.push_str("dŽ"),
        'ǈ' => out.push_str("lJ"),
        'ǋ' => out.push_str("nJ"),
        'ǲ' => out.push_str("dZ"),
        'ᾈ'..='ᾏ' | 'ᾘ'..='ᾟ' | 'ᾨ'..='ᾯ' | 'ᾼ' | 'ῌ' | 'ῼ' => {
            let mut all = c.to_uppercase();
            if let Some(first) = all.next() {
                lower(out, first, option);
            }
            out.extend(all);
        }
        _ if c.to_lowercase().ne([c]) => lower(out, c, option),
        _ => upper(out, c, option),
    }
}

/// Full case folding, as in Unicode's `CaseFolding.txt` (statuses C and F).
pub(crate) fn fold(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    s.chars().for_each(|c| folded(&mut out, c));
    out
}

fn folded(out: &mut String, c: char) {
    match c {
        _ if c.is_ascii() => out.push(c.to_ascii_lowercase()),
        // Cherokee folds to its large letters.
        'ı' | 'Ꭰ'..='Ᏽ' => out.push(c),
        'ᏸ'..='ᏽ' => out.push(char::from_u32(c as u32 - 8).unwrap_or(c)),
        'ꭰ'..='ꮿ' => out.push(char::from_u32(c as u32 - 0xab70 + 0x13a0).unwrap_or(c)),
        // All characters of one case class have the same large letters, but for large ones that are large themselves.
        _ => out.extend(
            c.to_lowercase()
                .flat_map(char::to_uppercase)
                .flat_map(char::to_lowercase),
        ),
    }
}
