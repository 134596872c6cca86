//! Searching: matches, substitution, splitting.

use super::super::object::enumerator;
use super::{byte_of, char_count, need_str, pattern_of};
use crate::class::Class;
use crate::memory::Growth;
use crate::methods::call::Call;
use crate::names::M;
use crate::regex::{Match, Pattern};
use crate::value::Value;
use crate::value::exception::{Eval, brief, error, type_error, wrong_arguments};
use crate::value::inspect::write_to_s;
use crate::value::number::need_int;
use crate::value::text::Text;
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

pub(in crate::methods) fn call(vm: &mut Vm, text: &Rc<Text>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let s = text.string();
    let s = s.as_str();
    Ok(match method {
        M::OpMatch => match &args[0] {
            Value::Regexp(pattern) => matched(vm, pattern, s, 0)?.map_or(Value::Nil, |found| {
                Value::size(found.char_index(found.span(0).map_or(0, |(from, _)| from)))
            }),
            Value::Str(_) | Value::Symbol(_) => {
                return Err(type_error("wrong argument type String (expected Regexp)"));
            }
            _ => Value::Nil,
        },
        M::Match => {
            let pattern = source_pattern(&args[0])?;
            // A place after the end means the end, unlike for `match?`.
            let from = match (start_byte(s, args.get(1))?, args.get(1)) {
                (None, Some(place)) if need_int(place)? > 0 => Some(s.len()),
                (from, _) => from,
            };
            match from.map_or(Ok(None), |from| matched(vm, &pattern, s, from))? {
                Some(found) => match block {
                    Some(block) => vm.call1(block, Value::Match(found))?,
                    None => Value::Match(found),
                },
                None => Value::Nil,
            }
        }
        M::MatchQ => {
            let from = start_byte(s, args.get(1))?;
            let pattern = source_pattern(&args[0])?;
            Value::Bool(from.map_or(Ok(false), |from| pattern.is_match(s, from))?)
        }
        M::Scan => scan(vm, receiver, s, args, block)?,
        M::Sub | M::Gsub => substitute(vm, s, call)?,
        M::Split => {
            let list = split(vm, s, args)?;
            match block {
                Some(block) => {
                    for piece in list {
                        vm.call1(block, piece)?;
                    }
                    receiver.clone()
                }
                None => Value::array(list),
            }
        }
        M::Index => {
            let Some(from) = start_byte(s, args.get(1))? else {
                return Ok(Value::Nil);
            };
            let at = match &args[0] {
                Value::Regexp(pattern) => matched(vm, pattern, s, from)?
                    .and_then(|found| found.span(0))
                    .map(|(at, _)| at),
                other => s[from..]
                    .find(need_str(other)?.as_str())
                    .map(|at| at + from),
            };
            Value::option(at.map(|at| char_count(&s[..at])))
        }
        M::Rindex => rindex(vm, s, args)?,
        M::Partition | M::Rpartition => partition(vm, s, method, args)?,
        _ => return Err(call.unknown()),
    })
}

/// Matches and remembers it as `$~`.
fn matched(vm: &mut Vm, pattern: &Rc<Pattern>, s: &str, from: usize) -> Eval<Option<Rc<Match>>> {
    let found = pattern.captures(&Rc::from(s), from)?.map(Rc::new);
    vm.last_match = found.clone().map_or(Value::Nil, Value::Match);
    Ok(found)
}

/// For `match`, a String is the source of a regex.
fn source_pattern(value: &Value) -> Eval<Rc<Pattern>> {
    match value {
        Value::Str(text) => Ok(Pattern::compile(&text.get(), 0)?),
        other => pattern_of(other),
    }
}

/// The byte to start from; `None` when it is outside.
fn start_byte(s: &str, start: Option<&Value>) -> Eval<Option<usize>> {
    let Some(start) = start else {
        return Ok(Some(0));
    };
    let start = need_int(start)?;
    let start = if start < 0 {
        start + char_count(s).cast_signed() as i64
    } else {
        start
    };
    Ok(usize::try_from(start)
        .ok()
        .and_then(|start| byte_of(s, start)))
}

/// All matches, each beginning where the last one ended, or one character on after an empty one.
fn all_matches(pattern: &Rc<Pattern>, s: &str, limit: usize) -> Eval<Vec<Rc<Match>>> {
    let text: Rc<str> = Rc::from(s);
    let mut list = Vec::new();
    let mut from = 0;
    while list.len() < limit {
        let Some(found) = pattern.captures(&text, from)? else {
            break;
        };
        let (start, end) = found.span(0).unwrap_or((s.len(), s.len()));
        from = if end > start {
            end
        } else {
            end + s[end..].chars().next().map_or(1, char::len_utf8)
        };
        list.push(Rc::new(found));
        if from > s.len() {
            break;
        }
    }
    Ok(list)
}

fn groups(found: &Match) -> Value {
    if found.len() == 1 {
        return Value::option(found.group(0));
    }
    Value::array(
        (1..found.len())
            .map(|group| Value::option(found.group(group)))
            .collect(),
    )
}

fn scan(vm: &mut Vm, receiver: &Value, s: &str, args: &[Value], block: Option<&Block<'_>>) -> Eval {
    let pattern = pattern_of(&args[0])?;
    let found = all_matches(&pattern, s, usize::MAX)?;
    if let Some(block) = block {
        for one in found {
            let value = groups(&one);
            vm.last_match = Value::Match(one);
            vm.call1(block, value)?;
        }
        return Ok(receiver.clone());
    }
    if let Some(last) = found.last() {
        vm.last_match = Value::Match(Rc::clone(last));
    } else {
        vm.last_match = Value::Nil;
    }
    Ok(Value::array(found.iter().map(|one| groups(one)).collect()))
}

fn substitute(vm: &mut Vm, s: &str, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    if args.is_empty() || args.len() > 2 || args.len() == 1 && block.is_none() {
        if method == M::Gsub && args.len() == 1 {
            return Ok(enumerator(receiver, method, args));
        }
        return Err(wrong_arguments(
            args.len(),
            if block.is_some() { 1 } else { 2 },
            Some(2),
        ));
    }
    let limit = if method == M::Sub { 1 } else { usize::MAX };
    // A search for plain text needs no regex.
    if let (Value::Str(from), Some(Value::Str(to))) = (&args[0], args.get(1))
        && !to.get().contains('\\')
        && !from.get().is_empty()
    {
        let (from, to) = (from.get(), to.get());
        return Ok(Value::str(if limit == 1 {
            s.replacen(from.as_str(), &to, 1)
        } else {
            s.replace(from.as_str(), &to)
        }));
    }
    let pattern = match &args[0] {
        Value::Nil | Value::Int(_) | Value::Float(_) => {
            return Err(type_error(format!(
                "wrong argument type {} (expected Regexp)",
                Class::of(&args[0]).name()
            )));
        }
        other => pattern_of(other)?,
    };
    let found = all_matches(&pattern, s, limit)?;
    if found.is_empty() {
        vm.last_match = Value::Nil;
        return Ok(Value::str(s));
    }
    let mut out = String::with_capacity(s.len());
    let mut done = 0;
    for one in &found {
        let (from, to) = one.span(0).unwrap_or((0, 0));
        out.push_str(&s[done..from]);
        done = to;
        let whole = Value::option(one.group(0));
        vm.last_match = Value::Match(Rc::clone(one));
        match args.get(1) {
            Some(table @ Value::Hash(_)) => {
                let value = vm.send(table, M::OpIndex, &[whole], None)?;
                let mut growth = Growth::of(&vm.bounds, out.len());
                write_to_s(&mut out, &value, &mut |len| growth.to(len))?;
            }
            Some(template) => expand(&mut out, &need_str(template)?, one)?,
            None => {
                if let Some(block) = block {
                    let value = vm.call1(block, whole)?;
                    let mut growth = Growth::of(&vm.bounds, out.len());
                    write_to_s(&mut out, &value, &mut |len| growth.to(len))?;
                }
            }
        }
    }
    out.push_str(&s[done..]);
    if let Some(last) = found.last() {
        vm.last_match = Value::Match(Rc::clone(last));
    }
    Ok(Value::str(out))
}

/// `\1`, `\0`, `\k<name>`, `\\` in a replacement.
fn expand(out: &mut String, template: &str, found: &Match) -> Eval<()> {
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some(digit) if digit.is_ascii_digit() => {
                let group = digit as usize - '0' as usize;
                // Groups beside named ones have no numbers.
                if group == 0 || found.pattern.names().is_empty() {
                    out.push_str(found.group(group).unwrap_or_default());
                }
            }
            Some('&') => out.push_str(found.group(0).unwrap_or_default()),
            Some('`') => out.push_str(found.pre()),
            Some('\'') => out.push_str(found.post()),
            Some('\\') | None => out.push('\\'),
            Some('k') if chars.peek() == Some(&'<') => {
                chars.next();
                let name: String = chars.by_ref().take_while(|c| *c != '>').collect();
                match found.named(&name) {
                    Some(group) => out.push_str(group.unwrap_or_default()),
                    None => {
                        return Err(error(
                            Class::IndexError,
                            format!("undefined group name reference: {name}"),
                        ));
                    }
                }
            }
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    Ok(())
}

fn split(vm: &mut Vm, s: &str, args: &[Value]) -> Eval<Vec<Value>> {
    let limit = args.get(1).map_or(Ok(0), need_int)?;
    let mut list: Vec<String> = Vec::new();
    let most = if limit > 0 {
        limit as usize
    } else {
        usize::MAX
    };
    if s.is_empty() {
        return Ok(Vec::new());
    }
    if most == 1 {
        return Ok(vec![Value::str(s)]);
    }
    let by_blanks = match args.first() {
        None | Some(Value::Nil) => true,
        Some(Value::Str(separator)) => *separator.get() == " ",
        _ => false,
    };
    if by_blanks {
        let blank = |c: char| matches!(c, ' ' | '\t'..='\r');
        let mut rest = s.trim_start_matches(blank);
        while !rest.is_empty() {
            if list.len() + 1 == most {
                list.push(rest.to_owned());
                rest = "";
                break;
            }
            if let Some(end) = rest.find(blank) {
                list.push(rest[..end].to_owned());
                rest = rest[end..].trim_start_matches(blank);
                if rest.is_empty() && limit != 0 {
                    list.push(String::new());
                }
            } else {
                list.push(rest.to_owned());
                rest = "";
            }
        }
        let _ = rest;
    } else {
        match &args[0] {
            Value::Str(separator) if !separator.get().is_empty() => {
                let separator = separator.string();
                list.extend(s.splitn(most, &separator).map(str::to_owned));
            }
            other => {
                let pattern = match other {
                    Value::Str(_) => Pattern::compile("", 0)?,
                    Value::Regexp(pattern) => Rc::clone(pattern),
                    other => {
                        return Err(type_error(format!(
                            "wrong argument type {} (expected Regexp)",
                            brief(other)
                        )));
                    }
                };
                let outer = vm.last_match.clone();
                split_by(&pattern, s, limit, &mut list)?;
                vm.last_match = outer;
            }
        }
    }
    if limit == 0 {
        while list.last().is_some_and(String::is_empty) {
            list.pop();
        }
    }
    Ok(list.into_iter().map(Value::str).collect())
}

/// As Ruby does: an empty match where the last one ended cuts a character off; groups do not count for the limit.
fn split_by(pattern: &Rc<Pattern>, s: &str, limit: i64, list: &mut Vec<String>) -> Eval<()> {
    let text: Rc<str> = Rc::from(s);
    let (mut begin, mut start, mut cuts, mut was_empty) = (0, 0, 1, false);
    while start <= s.len() && (limit <= 0 || cuts < limit) {
        let Some(found) = pattern.captures(&text, start)? else {
            break;
        };
        let (from, to) = found.span(0).unwrap_or((s.len(), s.len()));
        let is_here = from == start && to == start;
        if is_here && !was_empty {
            start += s[start..].chars().next().map_or(1, char::len_utf8);
            was_empty = true;
            continue;
        }
        if is_here {
            list.push(s[begin..start].to_owned());
            begin = start;
        } else {
            list.push(s[begin..from].to_owned());
            (begin, start) = (to, to);
        }
        was_empty = false;
        let groups = (1..found.len()).filter_map(|group| found.group(group));
        list.extend(groups.map(str::to_owned));
        cuts += 1;
    }
    if limit != 0 || s.len() > begin {
        list.push(s[begin..].to_owned());
    }
    Ok(())
}

fn rindex(vm: &mut Vm, s: &str, args: &[Value]) -> Eval {
    let last = match args.get(1) {
        None => s.len(),
        Some(from) => {
            let from = need_int(from)?;
            let length = char_count(s).cast_signed() as i64;
            let from = if from < 0 { from + length } else { from };
            if from < 0 {
                return Ok(Value::Nil);
            }
            byte_of(s, from.min(length) as usize).unwrap_or(s.len())
        }
    };
    let mut starts: Vec<usize> = s
        .char_indices()
        .map(|(at, _)| at)
        .chain([s.len()])
        .filter(|at| *at <= last)
        .collect();
    starts.reverse();
    match &args[0] {
        Value::Regexp(pattern) => {
            for at in starts {
                if let Some(found) = pattern.captures(&Rc::from(s), at)?
                    && found.span(0).is_some_and(|(from, _)| from == at)
                {
                    vm.last_match = Value::Match(Rc::new(found));
                    return Ok(Value::size(char_count(&s[..at])));
                }
            }
            Ok(Value::Nil)
        }
        other => {
            let wanted = need_str(other)?;
            let at = starts.into_iter().find(|at| s[*at..].starts_with(&wanted));
            Ok(at.map_or(Value::Nil, |at| Value::size(char_count(&s[..at]))))
        }
    }
}

fn partition(vm: &mut Vm, s: &str, method: M, args: &[Value]) -> Eval {
    let span = match &args[0] {
        Value::Regexp(pattern) if method == M::Partition => {
            matched(vm, pattern, s, 0)?.and_then(|found| found.span(0))
        }
        Value::Regexp(pattern) => {
            let at = rindex(vm, s, args)?;
            let Value::Int(at) = at else {
                return Ok(Value::array(vec![
                    Value::str(""),
                    Value::str(""),
                    Value::str(s),
                ]));
            };
            pattern.find(s, byte_of(s, at as usize).unwrap_or(0))?
        }
        other => {
            let wanted = need_str(other)?;
            let at = if method == M::Partition {
                s.find(&wanted)
            } else {
                s.rfind(&wanted)
            };
            at.map(|at| (at, at + wanted.len()))
        }
    };
    let parts = match (span, method) {
        (Some((from, to)), _) => [&s[..from], &s[from..to], &s[to..]],
        (None, M::Partition) => [s, "", ""],
        (None, _) => ["", "", s],
    };
    Ok(Value::array(parts.into_iter().map(Value::from).collect()))
}
