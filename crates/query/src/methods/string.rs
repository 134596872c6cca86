//! String. Positions count characters; ASCII texts, the common case, are indexed by bytes.

pub(crate) mod case;
pub(super) mod change;
pub(super) mod search;
pub(super) mod translate;

use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::regex::escape;
use crate::symbol::Symbol;
use crate::value::exception::{Eval, argument_error, error, no_conversion, type_error};
use crate::value::inspect::to_s;
use crate::value::number::need_int;
use crate::value::numeral;
use crate::value::text::Text;
use crate::value::{Range, Value};
use crate::vm::Vm;
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

pub(super) fn starts_with(vm: &mut Vm, text: &Rc<Text>, call: Call<'_, '_>) -> Eval {
    let Call { args, .. } = call;
    let s = text.string();
    for prefix in args {
        let hit = match prefix {
            Value::Regexp(pattern) => {
                let found = pattern
                    .captures(&Rc::from(s.as_str()), 0)?
                    .filter(|found| found.span(0).is_some_and(|(from, _)| from == 0));
                let hit = found.is_some();
                vm.last_match = found.map_or(Value::Nil, |found| Value::Match(Rc::new(found)));
                hit
            }
            other => s.starts_with(&need_str(other)?),
        };
        if hit {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// The parts of a text: a list of them, or the block is called with each.
pub(super) fn pieces(vm: &mut Vm, text: &Rc<Text>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let s = text.string();
    let list: Vec<Value> = match method {
        M::Lines | M::EachLine => lines(&s, args)?,
        M::Bytes => s.bytes().map(|byte| Value::Int(byte.into())).collect(),
        _ => s.chars().map(char_value).collect(),
    };
    let Some(block) = block else {
        return Ok(Value::array(list));
    };
    for piece in list {
        vm.call1(block, piece)?;
    }
    Ok(receiver.clone())
}

/// Methods that read a text.
pub(super) fn read(vm: &mut Vm, text: &Rc<Text>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, _) = call.parts();
    if method == M::OpMod {
        let values = match &args[0] {
            Value::Array(list) => list.borrow().clone(),
            other => vec![other.clone()],
        };
        return super::format::format(vm, &text.string(), &values).map(Value::str);
    }
    let it = text.get();
    let s: &str = &it;
    Ok(match method {
        M::Length | M::Size => Value::size(char_count(s)),
        M::Bytesize => Value::size(s.len()),
        M::EmptyQ => Value::Bool(s.is_empty()),
        M::OpPlus if text.is_frozen() => Value::str(s),
        M::OpMinus if !text.is_frozen() => Value::Str(Rc::new(Text::frozen(s.to_owned()))),
        M::ToS | M::OpPlus | M::OpMinus => receiver.clone(),
        M::ToSym => Value::Symbol(Symbol::new(s)),
        M::OpAdd => match &args[0] {
            Value::Str(other) => Value::str([s, &other.get()].concat()),
            other => return Err(no_conversion(other, "String")),
        },
        M::OpMul => {
            let count = usize::try_from(need_int(&args[0])?)
                .map_err(|_| argument_error("negative argument"))?;
            if s.len().saturating_mul(count) > 1 << 30 {
                return Err(argument_error("argument too big"));
            }
            vm.will_make(s.len() * count)?;
            Value::str(s.repeat(count))
        }
        M::Hex => numeral::leading_radix(s, 16)?,
        M::ToI => {
            let base = args.first().map_or(Ok(10), need_int)?;
            if base == 0 {
                let what = "to_i(0) is not supported (expected a base from 2 to 36)";
                return Err(error(Class::NotImplementedError, what));
            }
            if !(2..=36).contains(&base) {
                return Err(argument_error(format!("invalid radix {base}")));
            }
            numeral::leading_radix(s, base as u32)?
        }
        M::ToF => Value::Float(numeral::leading_float(s)),
        M::Ord => match s.chars().next() {
            Some(c) => Value::Int(i64::from(c as u32)),
            None => return Err(argument_error("empty string")),
        },
        M::EndWithQ => Value::Bool(
            need_strs(args)?
                .iter()
                .any(|suffix| s.ends_with(suffix.as_str())),
        ),
        M::IncludeQ => match &args[0] {
            Value::Str(other) => Value::Bool(s.contains(other.get().as_str())),
            other => return Err(no_conversion(other, "String")),
        },
        M::CasecmpQ => {
            let Value::Str(other) = &args[0] else {
                return Ok(Value::Nil);
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
        _ => return Err(call.unknown()),
    })
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

pub(super) fn index(vm: &mut Vm, text: &Rc<Text>, call: Call<'_, '_>) -> Eval {
    let Call { args, .. } = call;
    let s = text.string();
    let s = s.as_str();
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

/// The texts from one to another, made by `succ`.
pub(crate) fn successors(
    from: &str,
    to: &str,
    exclusive: bool,
    step: &mut dyn FnMut(String) -> Eval<()>,
) -> Eval<()> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if digits(from) && digits(to) {
        // Numbers in text: by value, keeping the width.
        let width = from.len();
        if let (Ok(a), Ok(b)) = (from.parse::<u64>(), to.parse::<u64>()) {
            let mut numbers = a..b.saturating_add(u64::from(!exclusive));
            return numbers.try_for_each(|number| step(format!("{number:0width$}")));
        }
    }
    if let ([a], [b]) = (from.as_bytes(), to.as_bytes()) {
        // Two characters: by their codes.
        let mut codes = u16::from(*a)..u16::from(*b) + u16::from(!exclusive);
        return codes.try_for_each(|code| step(char::from(code as u8).to_string()));
    }
    if from > to || exclusive && from == to {
        return Ok(());
    }
    let after = change::successor(to);
    let mut text = from.to_owned();
    while text != after {
        step(text.clone())?;
        if text == to {
            break;
        }
        text = change::successor(&text);
        if exclusive && text == to || text.len() > to.len() || text.is_empty() {
            break;
        }
    }
    Ok(())
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
