//! Methods that change a String or return a changed copy: blanks, padding, cutting.

use super::{char_count, need_str};
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, error};
use crate::value::number::need_int;
use crate::value::text::Text;
use crate::vm::Vm;
use std::rc::Rc;

pub(in crate::methods) fn call(vm: &mut Vm, text: &Rc<Text>, call: Call<'_, '_>) -> Eval {
    let Call { method, args, .. } = call;
    let it = text.get();
    let s: &str = &it;
    Ok(Value::str(match method {
        M::Upcase | M::Downcase | M::Capitalize => super::case::call(s, method),
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
            vm.will_make(missing)?;
            let left = match method {
                M::Ljust => 0,
                M::Rjust => missing,
                _ => missing / 2,
            };
            let fill = |count: usize| pad.chars().cycle().take(count).collect::<String>();
            fill(left) + s + &fill(missing - left)
        }
        _ => return Err(call.unknown()),
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
pub(in crate::methods) fn in_place(_: &mut Vm, text: &Rc<Text>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, _) = call.parts();
    match method {
        M::OpShl => text.push(&appended(&args[0])?),
        M::Concat => {
            // The receiver may be one of its arguments.
            let more: String = args.iter().map(appended).collect::<Eval<_>>()?;
            text.push(&more);
        }
        _ => return Err(call.unknown()),
    }
    Ok(receiver.clone())
}
