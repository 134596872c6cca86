//! Numbers in text: the leading one, as `to_i` and `to_f` take it, or the whole, as `Integer()` and `Float()` want it.

use super::Value;
use super::exception::Eval;
use super::number::{integer, within_bits};
use num_bigint::BigInt;
use num_traits::Num;

#[cfg(test)]
mod tests;

/// `to_i(base)`: the number at the start of the text.
pub(crate) fn leading_radix(s: &str, base: u32) -> Eval {
    let s = s.trim_start();
    let (negative, rest) = match s.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, s.strip_prefix('+').unwrap_or(s)),
    };
    let prefix = match base {
        16 => "0x",
        8 => "0o",
        2 => "0b",
        _ => "",
    };
    let rest = match rest.get(..2) {
        Some(two) if !prefix.is_empty() && two.eq_ignore_ascii_case(prefix) => &rest[2..],
        _ => rest,
    };
    let mut digits = String::new();
    let mut before = '_';
    for c in rest.chars() {
        if c == '_' && before != '_' {
            before = c;
            continue;
        }
        if !c.is_digit(base) {
            break;
        }
        digits.push(c);
        before = c;
    }
    let it = big_integer(&digits, base)?.unwrap_or_default();
    Ok(integer(if negative { -it } else { it }))
}

/// The integer of these digits, without a sign; `None` if they are something else.
fn big_integer(digits: &str, base: u32) -> Eval<Option<BigInt>> {
    let bits = digits.len() as f64 * f64::from(base).log2();
    within_bits(bits as u64)?;
    Ok(BigInt::from_str_radix(digits, base).ok())
}

/// The decimal number at the start of a text, without underscores.
fn float_prefix(s: &str) -> (String, usize) {
    let bytes = s.as_bytes();
    let mut out = String::new();
    let mut at = 0;
    if let Some(sign @ (b'-' | b'+')) = bytes.first() {
        out.push(char::from(*sign));
        at = 1;
    }
    let digits = |out: &mut String, at: &mut usize| {
        let start = *at;
        while let Some(c) = bytes.get(*at) {
            let next_is_digit = bytes.get(*at + 1).is_some_and(u8::is_ascii_digit);
            if c.is_ascii_digit() {
                out.push(char::from(*c));
            } else if !(*c == b'_' && *at > start && next_is_digit) {
                break;
            }
            *at += 1;
        }
        *at > start
    };
    let has_fraction = |at: usize| {
        bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    if !digits(&mut out, &mut at) && !has_fraction(at) {
        return (String::new(), 0);
    }
    if has_fraction(at) {
        out.push('.');
        at += 1;
        digits(&mut out, &mut at);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let (mut tail, mut after) = (String::from("e"), at + 1);
        if let Some(sign @ (b'-' | b'+')) = bytes.get(after) {
            tail.push(char::from(*sign));
            after += 1;
        }
        if digits(&mut tail, &mut after) {
            out.push_str(&tail);
            at = after;
        }
    }
    (out, at)
}

/// `to_f`.
pub(crate) fn leading_float(s: &str) -> f64 {
    float_prefix(s.trim_start()).0.parse().unwrap_or(0.0)
}

/// `Float(text)`.
pub(crate) fn strict_float(s: &str) -> Option<f64> {
    let s = s.trim();
    let (text, end) = float_prefix(s);
    if end == s.len() && end > 0 {
        return text.parse().ok();
    }
    match strict_integer(s) {
        Ok(Some(Value::Int(it))) if s.to_ascii_lowercase().contains("0x") => Some(it as f64),
        _ => None,
    }
}

/// `Integer(text)`, with its prefixes.
pub(crate) fn strict_integer(s: &str) -> Eval<Option<Value>> {
    let s = s.trim();
    let unsigned = s.trim_start_matches(['-', '+']).to_ascii_lowercase();
    let base = match unsigned.get(..2) {
        Some("0x") => 16,
        Some("0b") => 2,
        Some("0o") => 8,
        Some("0d") => 10,
        Some(two) if two.starts_with('0') => 8,
        _ => 10,
    };
    parse_radix(s, base)
}

/// A whole text as an integer of a base: `Integer("ff", 16)`.
pub(crate) fn parse_radix(text: &str, base: i64) -> Eval<Option<Value>> {
    let trimmed = text.trim();
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let lower = digits.to_ascii_lowercase();
    let digits = match base {
        16 => lower.strip_prefix("0x").unwrap_or(&lower),
        8 => lower.strip_prefix("0o").unwrap_or(&lower),
        2 => lower.strip_prefix("0b").unwrap_or(&lower),
        10 => lower.strip_prefix("0d").unwrap_or(&lower),
        _ => &lower,
    };
    if digits.is_empty()
        || digits.starts_with('_')
        || digits.ends_with('_')
        || digits.contains("__")
    {
        return Ok(None);
    }
    let Some(base @ 2..=36) = u32::try_from(base).ok() else {
        return Ok(None);
    };
    let it = big_integer(&digits.replace('_', ""), base)?;
    Ok(it.map(|it| integer(if negative { -it } else { it })))
}
