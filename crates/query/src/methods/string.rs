//! String. Positions count characters; ASCII texts, the common case, are indexed by bytes.

pub(crate) mod case;
mod change;
mod search;
mod translate;

use super::object::enumerator;
use super::{Found, comparable};
use crate::class::Class;
use crate::names::M;
use crate::regex::escape;
use crate::symbol::Symbol;
use crate::value::exception::{
    Eval, argument_error, arity, error, frozen, no_conversion, type_error,
};
use crate::value::inspect::{inspect, to_s};
use crate::value::number::need_int;
use crate::value::numeral;
use crate::value::text::Text;
use crate::value::{Range, Value, compare};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

/// An argument that must be a String.
pub(crate) fn need_str(value: &Value) -> Eval<String> {
    match value {
        Value::Str(text) => Ok(text.string()),
        other => Err(no_conversion(other, "String")),
    }
}

pub(crate) fn need_strs(args: &[Value]) -> Eval<Vec<String>> {
    args.iter().map(need_str).collect()
}

pub(super) fn call(
    vm: &mut Vm,
    receiver: &Value,
    text: &Rc<Text>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    if let Some(plain) = without_bang(method) {
        return bang(vm, receiver, text, plain, args, block).map(Some);
    }
    let it = text.get();
    let s: &str = &it;
    let found = match method {
        M::Chars | M::GraphemeClusters | M::Bytes | M::Codepoints | M::Lines
            if let Some(block) = block =>
        {
            let list = read(s, receiver, method, args)?.unwrap_or_default();
            drop(it);
            if let Value::Array(list) = list {
                for it in list.take() {
                    vm.call1(block, it)?;
                }
            }
            receiver.clone()
        }
        M::Length | M::Size => Value::size(char_count(s)),
        M::Bytesize => Value::size(s.len()),
        M::EmptyQ => Value::Bool(s.is_empty()),
        M::ToS | M::ToStr | M::OpMinus | M::OpPlus | M::Scrub => receiver.clone(),
        M::ToSym | M::Intern => Value::Symbol(Symbol::new(s)),
        M::OpEq | M::OpCaseEq | M::EqlQ => {
            Value::Bool(matches!(&args[0], Value::Str(other) if *other.get() == *s))
        }
        M::OpCmp => compare::compare(receiver, &args[0])
            .map_or(Value::Nil, |order| Value::Int(order as i64)),
        M::OpAdd => return concatenated(s, args),
        M::OpMul => return repeated(s, args),
        M::OpMod => {
            let pattern = s.to_owned();
            drop(it);
            let values = match &args[0] {
                Value::Array(list) => list.borrow().clone(),
                other => vec![other.clone()],
            };
            return crate::methods::format::format(vm, &pattern, &values)
                .map(|text| Some(Value::str(text)));
        }
        M::OpIndex | M::Slice => {
            let s = s.to_owned();
            drop(it);
            return index(vm, &s, args).map(Some);
        }
        M::StartWithQ => {
            let s = s.to_owned();
            drop(it);
            return starts_with(vm, &s, args);
        }
        M::Upto => {
            let (from, to) = (s.to_owned(), need_str(&args[0])?);
            drop(it);
            let Some(block) = block else {
                return Ok(Some(enumerator(receiver, method, args)));
            };
            for text in successors(&from, &to, args.get(1).is_some_and(Value::truthy)) {
                vm.call1(block, Value::str(text))?;
            }
            receiver.clone()
        }
        M::OpShl | M::Concat | M::Prepend | M::Replace | M::Insert | M::Clear | M::OpIndexSet => {
            drop(it);
            if text.is_frozen() {
                return Err(frozen(receiver));
            }
            return change::in_place(vm, receiver, text, method, args).map(Some);
        }
        _ => {
            if let Some(value) = read(s, receiver, method, args)? {
                return Ok(Some(value));
            }
            let owned = s.to_owned();
            drop(it);
            if matches!(
                method,
                M::EachChar | M::EachLine | M::EachByte | M::EachGraphemeCluster
            ) {
                return each_piece(vm, receiver, &owned, method, args, block);
            }
            if let Some(value) = change::call(&owned, method, args)? {
                return Ok(Some(value));
            }
            if let Some(value) = translate::call(&owned, method, args)? {
                return Ok(Some(value));
            }
            if let Some(value) = search::call(vm, receiver, &owned, method, args, block)? {
                return Ok(Some(value));
            }
            return comparable::call(receiver, method, args);
        }
    };
    Ok(Some(found))
}

fn repeated(s: &str, args: &[Value]) -> Found {
    arity(args, 1, 1)?;
    let count =
        usize::try_from(need_int(&args[0])?).map_err(|_| argument_error("negative argument"))?;
    if s.len().saturating_mul(count) > 1 << 30 {
        return Err(argument_error("argument too big"));
    }
    Ok(Some(Value::str(s.repeat(count))))
}

fn concatenated(s: &str, args: &[Value]) -> Found {
    arity(args, 1, 1)?;
    Ok(Some(match &args[0] {
        Value::Str(other) => Value::str([s, &other.get()].concat()),
        other => return Err(no_conversion(other, "String")),
    }))
}

fn starts_with(vm: &mut Vm, s: &str, args: &[Value]) -> Found {
    for prefix in args {
        let hit = match prefix {
            Value::Regexp(pattern) => {
                let found = pattern
                    .captures(&Rc::from(s), 0)?
                    .filter(|found| found.span(0).is_some_and(|(from, _)| from == 0));
                let hit = found.is_some();
                vm.last_match = found.map_or(Value::Nil, |found| Value::Match(Rc::new(found)));
                hit
            }
            other => s.starts_with(&need_str(other)?),
        };
        if hit {
            return Ok(Some(Value::Bool(true)));
        }
    }
    Ok(Some(Value::Bool(false)))
}

/// Methods that read a text.
fn read(s: &str, receiver: &Value, method: M, args: &[Value]) -> Found {
    Ok(Some(match method {
        M::Chars | M::GraphemeClusters => Value::array(s.chars().map(char_value).collect()),
        M::Bytes => Value::array(s.bytes().map(|byte| Value::Int(i64::from(byte))).collect()),
        M::Codepoints => Value::array(s.chars().map(|c| Value::Int(i64::from(c as u32))).collect()),
        M::Lines => Value::array(lines(s, args)?),
        M::Hex => numeral::leading_radix(s, 16),
        M::Oct => numeral::leading_octal(s),
        M::ToI => {
            let base = args.first().map_or(Ok(10), need_int)?;
            if !(2..=36).contains(&base) {
                return Err(argument_error(format!("invalid radix {base}")));
            }
            numeral::leading_radix(s, base as u32)
        }
        M::ToF => Value::Float(numeral::leading_float(s)),
        M::Ord => match s.chars().next() {
            Some(c) => Value::Int(i64::from(c as u32)),
            None => return Err(argument_error("empty string")),
        },
        M::Sum => {
            let sum = s.bytes().map(i64::from).sum::<i64>();
            let bits = args.first().map_or(Ok(16), need_int)?;
            Value::Int(if (1..63).contains(&bits) {
                sum & ((1 << bits) - 1)
            } else {
                sum
            })
        }
        M::Getbyte => {
            let at = need_int(&args[0])?;
            let at = if at < 0 {
                at + s.len().cast_signed() as i64
            } else {
                at
            };
            Value::option(
                usize::try_from(at)
                    .ok()
                    .and_then(|at| s.as_bytes().get(at))
                    .map(|byte| i64::from(*byte)),
            )
        }
        M::Unpack1 => unpack1(s, args)?,
        M::Byteslice => byteslice(s, args)?,
        M::EndWithQ => Value::Bool(
            need_strs(args)?
                .iter()
                .any(|suffix| s.ends_with(suffix.as_str())),
        ),
        M::IncludeQ => match &args[0] {
            Value::Str(other) => Value::Bool(s.contains(other.get().as_str())),
            other => return Err(no_conversion(other, "String")),
        },
        M::Casecmp | M::CasecmpQ => {
            let Value::Str(other) = &args[0] else {
                return Ok(Some(Value::Nil));
            };
            if method == M::CasecmpQ {
                Value::Bool(case::fold(s) == case::fold(&other.get()))
            } else {
                Value::Int(
                    s.to_ascii_lowercase()
                        .cmp(&other.get().to_ascii_lowercase()) as i64,
                )
            }
        }
        M::AsciiOnlyQ => Value::Bool(s.is_ascii()),
        M::ValidEncodingQ => Value::Bool(true),
        M::Encoding => Value::str("UTF-8"),
        M::ForceEncoding | M::Encode | M::UnicodeNormalize | M::B => {
            if !stays(s, method, args)? {
                let given: Vec<String> = args.iter().map(inspect).collect();
                let given = match given.as_slice() {
                    [] => String::new(),
                    given => format!("({})", given.join(", ")),
                };
                let what = format!("`{}{given}` of this text is not supported", method.name());
                return Err(error(Class::NotImplementedError, what));
            }
            receiver.clone()
        }
        _ => return Ok(None),
    }))
}

fn each_piece(
    vm: &mut Vm,
    receiver: &Value,
    s: &str,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let Some(block) = block else {
        return Ok(Some(enumerator(receiver, method, args)));
    };
    let pieces = match method {
        M::EachLine => lines(s, args)?,
        M::EachByte => s.bytes().map(|byte| Value::Int(i64::from(byte))).collect(),
        _ => s.chars().map(char_value).collect(),
    };
    for piece in pieces {
        vm.call1(block, piece)?;
    }
    Ok(Some(receiver.clone()))
}

/// `upcase!` as `upcase`.
fn without_bang(method: M) -> Option<M> {
    Some(match method {
        M::SqueezeBang => M::Squeeze,
        M::SubBang => M::Sub,
        M::GsubBang => M::Gsub,
        M::TrBang => M::Tr,
        M::TrSBang => M::TrS,
        M::UpcaseBang => M::Upcase,
        M::DowncaseBang => M::Downcase,
        M::CapitalizeBang => M::Capitalize,
        M::SwapcaseBang => M::Swapcase,
        M::StripBang => M::Strip,
        M::LstripBang => M::Lstrip,
        M::RstripBang => M::Rstrip,
        M::ChompBang => M::Chomp,
        M::ChopBang => M::Chop,
        M::ReverseBang => M::Reverse,
        M::DeleteBang => M::Delete,
        M::SuccBang | M::NextBang => M::Succ,
        M::DeletePrefixBang => M::DeletePrefix,
        M::DeleteSuffixBang => M::DeleteSuffix,
        M::SliceBang => M::Slice,
        _ => return None,
    })
}

/// Changes in place; nil when nothing changed.
fn bang(
    vm: &mut Vm,
    receiver: &Value,
    text: &Rc<Text>,
    plain: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    if text.is_frozen() {
        return Err(frozen(receiver));
    }
    let value = super::call(vm, receiver, plain, args, block)?;
    let Value::Str(new) = &value else {
        return Ok(value);
    };
    if plain == M::Slice {
        let rest = text.get().replacen(new.get().as_str(), "", 1);
        text.set(rest);
        return Ok(value);
    }
    let new = new.string();
    if *text.get() == new && !matches!(plain, M::Reverse | M::Succ) {
        return Ok(Value::Nil);
    }
    text.set(new);
    Ok(receiver.clone())
}

pub(crate) fn char_value(c: char) -> Value {
    Value::str(c.to_string())
}

pub(crate) fn char_count(s: &str) -> usize {
    if s.is_ascii() {
        s.len()
    } else {
        s.chars().count()
    }
}

/// The byte at which a character begins; the end for the one after the last.
pub(crate) fn byte_of(s: &str, character: usize) -> Option<usize> {
    if s.is_ascii() {
        return (character <= s.len()).then_some(character);
    }
    s.char_indices()
        .map(|(at, _)| at)
        .chain([s.len()])
        .nth(character)
}

/// Start and length of a range over something of a length; `None` when it begins outside.
pub(crate) fn range_of(range: &Range, length: usize) -> Eval<Option<(usize, usize)>> {
    let length = length.cast_signed() as i64;
    let from = if range.from.is_nil() {
        0
    } else {
        need_int(&range.from)?
    };
    let to = if range.to.is_nil() {
        -1
    } else {
        need_int(&range.to)?
    };
    let exclusive = range.exclusive && !range.to.is_nil();
    let from = if from < 0 { from + length } else { from };
    if from < 0 || from > length {
        return Ok(None);
    }
    let to = if to < 0 { to + length } else { to };
    let end = (if exclusive { to } else { to + 1 }).clamp(from, length);
    Ok(Some((from as usize, (end - from) as usize)))
}

/// Start and length, given as two numbers.
pub(crate) fn span_of(start: i64, count: i64, length: usize) -> Option<(usize, usize)> {
    let length = length.cast_signed() as i64;
    let start = if start < 0 { start + length } else { start };
    if start < 0 || start > length || count < 0 {
        return None;
    }
    Some((start as usize, count.min(length - start) as usize))
}

fn substring(s: &str, start: usize, count: usize) -> Value {
    let from = byte_of(s, start).unwrap_or(s.len());
    let to = from + byte_of(&s[from..], count).unwrap_or(s.len() - from);
    Value::str(&s[from..to])
}

fn index(vm: &mut Vm, s: &str, args: &[Value]) -> Eval {
    arity(args, 1, 2)?;
    if let Value::Regexp(pattern) = &args[0] {
        let found = pattern.captures(&Rc::from(s), 0)?;
        vm.last_match = found.map_or(Value::Nil, |found| Value::Match(Rc::new(found)));
        let Value::Match(found) = &vm.last_match else {
            return Ok(Value::Nil);
        };
        return match args.get(1) {
            None => Ok(Value::option(found.group(0))),
            Some(group @ (Value::Str(_) | Value::Symbol(_))) => {
                let name = to_s(group);
                match found.named(&name) {
                    Some(group) => Ok(Value::option(group)),
                    None => Err(error(
                        Class::IndexError,
                        format!("undefined group name reference: {name}"),
                    )),
                }
            }
            Some(group) => {
                let group = need_int(group)?;
                let group = if group < 0 {
                    group + found.len().cast_signed() as i64
                } else {
                    group
                };
                Ok(Value::option(
                    usize::try_from(group)
                        .ok()
                        .and_then(|group| found.group(group)),
                ))
            }
        };
    }
    let length = char_count(s);
    let span = match (&args[0], args.get(1)) {
        (start, Some(count)) => span_of(need_int(start)?, need_int(count)?, length),
        (Value::Range(range), None) => range_of(range, length)?,
        (Value::Str(other), None) => {
            return Ok(if s.contains(other.get().as_str()) {
                Value::str(other.string())
            } else {
                Value::Nil
            });
        }
        (at, None) => {
            let span = span_of(need_int(at)?, 1, length);
            return Ok(match span {
                Some((start, 1)) => substring(s, start, 1),
                _ => Value::Nil,
            });
        }
    };
    Ok(span.map_or(Value::Nil, |(start, count)| substring(s, start, count)))
}

fn byteslice(s: &str, args: &[Value]) -> Eval {
    arity(args, 1, 2)?;
    let span = match (&args[0], args.get(1)) {
        (start, Some(count)) => span_of(need_int(start)?, need_int(count)?, s.len()),
        (Value::Range(range), None) => range_of(range, s.len())?,
        (at, None) => span_of(need_int(at)?, 1, s.len()).filter(|(_, count)| *count == 1),
    };
    let Some((start, count)) = span else {
        return Ok(Value::Nil);
    };
    match s.get(start..start + count) {
        Some(part) => Ok(Value::str(part)),
        None => Err(error(
            Class::NotImplementedError,
            "a String that is not UTF-8 is not supported: `byteslice` cuts a character",
        )),
    }
}

fn unpack1(s: &str, args: &[Value]) -> Eval {
    arity(args, 1, 1)?;
    let directive = need_str(&args[0])?;
    let bytes = s.as_bytes();
    Ok(match directive.as_str() {
        "C" => Value::option(bytes.first().map(|byte| i64::from(*byte))),
        "c" => Value::option(bytes.first().map(|byte| i64::from(byte.cast_signed()))),
        "U" => Value::option(s.chars().next().map(|c| i64::from(c as u32))),
        "a*" | "A*" => Value::str(s),
        other => {
            return Err(argument_error(format!(
                "unpack1 of {other:?} is not supported"
            )));
        }
    })
}

fn lines(s: &str, args: &[Value]) -> Eval<Vec<Value>> {
    let mut separator = "\n".to_owned();
    let mut chomp = false;
    for arg in args {
        match arg {
            Value::Str(text) => separator = text.string(),
            Value::Hash(options) => {
                chomp = options
                    .get(&Value::symbol("chomp"))
                    .is_some_and(|it| it.truthy());
            }
            other => return Err(no_conversion(other, "String")),
        }
    }
    if separator.is_empty() {
        return Err(type_error("paragraph mode is not supported"));
    }
    Ok(s.split_inclusive(separator.as_str())
        .map(|line| {
            let cut = line.strip_suffix(separator.as_str());
            match (chomp, cut) {
                (true, Some(cut)) if separator == "\n" => {
                    Value::str(cut.strip_suffix('\r').unwrap_or(cut))
                }
                (true, Some(cut)) => Value::str(cut),
                _ => Value::str(line),
            }
        })
        .collect())
}

/// Whether a conversion to another encoding or form leaves the text unchanged.
fn stays(s: &str, method: M, args: &[Value]) -> Eval<bool> {
    Ok(match (method, args) {
        // What these options are for does not occur in UTF-8.
        (M::Encode, [names @ .., Value::Hash(options)]) => {
            let known = ["invalid", "undef", "replace", "fallback"].map(Value::symbol);
            let is_known = |option: &Value| known.iter().any(|known| known.same(option));
            stays(s, method, names)? && options.keys().iter().all(is_known)
        }
        (M::ForceEncoding | M::Encode, names) => {
            need_strs(names)?.iter().all(|name| keeps(s, name))
        }
        (M::UnicodeNormalize, []) => composes_nothing(s),
        (M::UnicodeNormalize, [form]) => match to_s(form).as_str() {
            "nfc" => composes_nothing(s),
            "nfd" | "nfkc" | "nfkd" => s.is_ascii(),
            _ => false,
        },
        _ => s.is_ascii(),
    })
}

/// Whether a text has the same bytes in UTF-8 and in this encoding.
fn keeps(s: &str, encoding: &str) -> bool {
    match encoding.to_ascii_lowercase().as_str() {
        "utf-8" => true,
        "us-ascii" | "ascii" | "ascii-8bit" | "binary" | "iso-8859-1" | "iso-8859-15"
        | "windows-1252" => s.is_ascii(),
        _ => false,
    }
}

/// Characters below the combining marks, and Chinese characters, do not compose.
fn composes_nothing(s: &str) -> bool {
    let mut chars = s.chars();
    chars.all(|c| c < '\u{300}' || ('\u{4e00}'..='\u{9fff}').contains(&c))
}

/// The texts from one to another, made by `succ`.
pub(crate) fn successors(from: &str, to: &str, exclusive: bool) -> Vec<String> {
    let mut list = Vec::new();
    let mut text = from.to_owned();
    if from.chars().all(|c| c.is_ascii_digit())
        && to.chars().all(|c| c.is_ascii_digit())
        && !from.is_empty()
    {
        // Numbers in text: by value, keeping the width.
        let width = from.len();
        if let (Ok(a), Ok(b)) = (from.parse::<u64>(), to.parse::<u64>()) {
            return (a..b + u64::from(!exclusive))
                .map(|number| format!("{number:0width$}"))
                .collect();
        }
    }
    let one = |text: &str| match text.as_bytes() {
        [byte] if byte.is_ascii() => Some(*byte),
        _ => None,
    };
    if let (Some(a), Some(b)) = (one(from), one(to)) {
        // Two characters: by their codes.
        let end = u16::from(b) + u16::from(!exclusive);
        return (u16::from(a)..end)
            .map(|code| char::from(code as u8).to_string())
            .collect();
    }
    if from > to || exclusive && from == to {
        return list;
    }
    let after = change::successor(to);
    while text != after && list.len() < 10_000_000 {
        list.push(text.clone());
        if !exclusive && text == to {
            break;
        }
        text = change::successor(&text);
        if exclusive && text == to || text.len() > to.len() || text.is_empty() {
            break;
        }
    }
    list
}

/// The regex of a pattern that is a text or a regex.
pub(crate) fn pattern_of(value: &Value) -> Eval<Rc<crate::regex::Pattern>> {
    match value {
        Value::Regexp(pattern) => Ok(Rc::clone(pattern)),
        Value::Str(text) => Ok(crate::regex::Pattern::compile(&escape(&text.get()), 0)?),
        other => Err(type_error(format!(
            "wrong argument type {} (expected Regexp)",
            Class::of(other).name()
        ))),
    }
}
