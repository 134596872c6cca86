//! Methods that change a String or return a changed copy: blanks, padding, cutting.

use super::{byte_of, char_count, need_str, need_strs};
use crate::class::Class;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, error, no_conversion, no_method};
use crate::value::number::need_int;
use crate::value::text::Text;
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

pub(in crate::methods) fn call(
    _: &mut Vm,
    receiver: &Value,
    text: &Rc<Text>,
    method: M,
    args: &[Value],
    _: Option<&Block<'_>>,
) -> Eval {
    let it = text.get();
    let s: &str = &it;
    Ok(Value::str(match method {
        M::Upcase | M::Downcase | M::Capitalize | M::Swapcase => super::case::call(s, method),
        M::Strip => s
            .trim_start_matches(is_blank)
            .trim_end_matches(is_blank)
            .to_owned(),
        M::Lstrip => s.trim_start_matches(is_blank).to_owned(),
        M::Rstrip => s.trim_end_matches(is_blank).to_owned(),
        M::Chomp => match args.first() {
            None => s
                .strip_suffix("\r\n")
                .or_else(|| s.strip_suffix(['\n', '\r']))
                .unwrap_or(s)
                .to_owned(),
            Some(Value::Nil) => s.to_owned(),
            Some(suffix) => {
                let suffix = need_str(suffix)?;
                if suffix.is_empty() {
                    s.trim_end_matches(['\n']).to_owned()
                } else {
                    s.strip_suffix(suffix.as_str()).unwrap_or(s).to_owned()
                }
            }
        },
        M::Chop => match s.strip_suffix("\r\n") {
            Some(cut) => cut.to_owned(),
            None => s
                .chars()
                .next_back()
                .map_or("", |last| &s[..s.len() - last.len_utf8()])
                .to_owned(),
        },
        M::Chr => s.chars().next().map(String::from).unwrap_or_default(),
        M::Reverse => s.chars().rev().collect(),
        M::Succ | M::Next => successor(s),
        M::DeletePrefix => s
            .strip_prefix(need_str(&args[0])?.as_str())
            .unwrap_or(s)
            .to_owned(),
        M::DeleteSuffix => s
            .strip_suffix(need_str(&args[0])?.as_str())
            .unwrap_or(s)
            .to_owned(),
        M::Ljust | M::Rjust | M::Center => {
            let pad = args.get(1).map_or_else(|| Ok(" ".to_owned()), need_str)?;
            if pad.is_empty() {
                return Err(argument_error("zero width padding"));
            }
            let width = usize::try_from(need_int(&args[0])?).unwrap_or(0);
            if width > PADDED_MAX {
                return Err(argument_error("argument too big"));
            }
            let missing = width.saturating_sub(char_count(s));
            let left = match method {
                M::Ljust => 0,
                M::Rjust => missing,
                _ => missing / 2,
            };
            let fill = |count: usize| pad.chars().cycle().take(count).collect::<String>();
            fill(left) + s + &fill(missing - left)
        }
        _ => return Err(no_method(method.name(), receiver)),
    }))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r' | '\0')
}

/// The widest text that padding makes, in characters.
const PADDED_MAX: usize = 1 << 28;

/// `succ`: increments the rightmost letter or digit, and carries to the left.
pub(super) fn successor(s: &str) -> String {
    if s.is_empty() {
        return String::new();
    }
    let mut chars: Vec<char> = s.chars().collect();
    let Some(last) = chars.iter().rposition(|c| counts_on(*c)) else {
        // Without letters and digits, the last character is incremented.
        for at in (0..chars.len()).rev() {
            if let Some(next) = char::from_u32(chars[at] as u32 + 1) {
                chars[at] = next;
                break;
            }
        }
        return chars.into_iter().collect();
    };
    let mut at = last;
    loop {
        let (next, carry) = match chars[at] {
            'z' => ('a', Some('a')),
            'Z' => ('A', Some('A')),
            '9' => ('0', Some('1')),
            c => (char::from_u32(c as u32 + 1).unwrap_or(c), None),
        };
        chars[at] = next;
        let Some(carry) = carry else {
            return chars.into_iter().collect();
        };
        // The next one to the left, unless another character is between them.
        match chars[..at].iter().rposition(|c| counts_on(*c)) {
            Some(left)
                if left + 1 == at
                    || chars[left].is_ascii_digit() == chars[last].is_ascii_digit() =>
            {
                at = left;
            }
            _ => {
                chars.insert(at, carry);
                return chars.into_iter().collect();
            }
        }
    }
}

fn counts_on(c: char) -> bool {
    c.is_alphabetic() || c.is_ascii_digit()
}

/// The text that `<<` and `concat` append: an Integer is a code point.
fn appended(value: &Value) -> Eval<String> {
    let Value::Int(code) = value else {
        return need_str(value);
    };
    match u32::try_from(*code).ok().and_then(char::from_u32) {
        Some(c) => Ok(c.to_string()),
        None => Err(error(
            Class::RangeError,
            format!("{code} out of char range"),
        )),
    }
}

/// The methods that change their receiver.
pub(in crate::methods) fn in_place(
    _: &mut Vm,
    receiver: &Value,
    text: &Rc<Text>,
    method: M,
    args: &[Value],
    _: Option<&Block<'_>>,
) -> Eval {
    match method {
        M::OpShl => text.push(&appended(&args[0])?),
        M::Concat => {
            // The receiver may be one of its arguments.
            let more: String = args.iter().map(appended).collect::<Eval<_>>()?;
            text.push(&more);
        }
        M::Prepend => {
            let before = need_strs(args)?.concat();
            let whole = before + &text.get();
            text.set(whole);
        }
        M::Replace => {
            text.set(need_str(&args[0])?);
        }
        M::Clear => text.set(String::new()),
        M::Insert => {
            let (at, more) = (need_int(&args[0])?, need_str(&args[1])?);
            let mut whole = text.string();
            let length = char_count(&whole).cast_signed() as i64;
            let place = if at < 0 { at + length + 1 } else { at };
            let byte = usize::try_from(place)
                .ok()
                .and_then(|place| byte_of(&whole, place));
            let byte =
                byte.ok_or_else(|| error(Class::IndexError, format!("index {at} out of string")))?;
            whole.insert_str(byte, &more);
            text.set(whole);
        }
        _ => return set_part(text, args),
    }
    Ok(receiver.clone())
}

/// `s[place] = text`.
fn set_part(text: &Rc<Text>, args: &[Value]) -> Eval {
    let Some((value, place)) = args.split_last() else {
        return Err(argument_error(
            "wrong number of arguments (given 0, expected 2..3)",
        ));
    };
    let whole = text.string();
    let more = need_str(value)?;
    let length = char_count(&whole);
    let span = match place {
        [Value::Str(part)] => {
            let part = part.string();
            let at = whole
                .find(&part)
                .ok_or_else(|| error(Class::IndexError, "string not matched"))?;
            text.set([&whole[..at], &more, &whole[at + part.len()..]].concat());
            return Ok(value.clone());
        }
        [Value::Regexp(pattern)] => {
            let (from, to) = pattern
                .find(&whole, 0)?
                .ok_or_else(|| error(Class::IndexError, "regexp not matched"))?;
            text.set([&whole[..from], &more, &whole[to..]].concat());
            return Ok(value.clone());
        }
        [Value::Range(range)] => super::range_of(range, length)?,
        [start] => super::span_of(need_int(start)?, 1, length),
        [start, count] => super::span_of(need_int(start)?, need_int(count)?, length),
        _ => return Err(no_conversion(&Value::Nil, "Integer")),
    };
    let (start, count) = span.ok_or_else(|| error(Class::IndexError, "index out of string"))?;
    let from = byte_of(&whole, start).unwrap_or(whole.len());
    let to = byte_of(&whole, start + count).unwrap_or(whole.len());
    text.set([&whole[..from], &more, &whole[to..]].concat());
    Ok(value.clone())
}
