//! Regexp and `MatchData`.

use super::string::need_str;
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::regex::{Match, Pattern};
use crate::value::Value;
use crate::value::exception::{Eval, error, type_error};
use crate::value::inspect::to_s;
use crate::value::number::need_int;
use crate::value::table::Table;
use crate::vm::Vm;
use std::rc::Rc;

pub(super) fn call(vm: &mut Vm, pattern: &Rc<Pattern>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    Ok(match method {
        M::OpMatch | M::OpCaseEq | M::Match | M::MatchQ => {
            let Some(text @ (Value::Str(_) | Value::Symbol(_))) = args.first() else {
                vm.last_match = Value::Nil;
                return match (method, args.first()) {
                    (M::OpCaseEq, _) | (M::MatchQ, Some(Value::Nil)) => Ok(Value::Bool(false)),
                    (_, Some(Value::Nil)) => Ok(Value::Nil),
                    (_, Some(other)) => {
                        Err(crate::value::exception::no_conversion(other, "String"))
                    }
                    (_, None) => Err(crate::value::exception::wrong_arguments(0, 1, Some(2))),
                };
            };
            let (text, pattern) = (Value::str(to_s(text)), receiver.clone());
            match method {
                M::OpCaseEq => Value::Bool(vm.send(&text, M::OpMatch, &[pattern], None)?.truthy()),
                M::OpMatch => vm.send(&text, M::OpMatch, &[pattern], None)?,
                _ => vm.send(&text, method, &[&[pattern], &args[1..]].concat(), block)?,
            }
        }
        M::Source => Value::str(pattern.source()),
        _ => return Err(call.unknown()),
    })
}

/// The group an index or a name means.
fn group_of(found: &Match, value: &Value) -> Eval<Option<usize>> {
    match value {
        Value::Str(_) | Value::Symbol(_) => {
            let name = to_s(value);
            match found.pattern.group_named(&name) {
                Some(group) => Ok(Some(group)),
                None => Err(error(
                    Class::IndexError,
                    format!("undefined group name reference: {name}"),
                )),
            }
        }
        other => {
            let at = need_int(other)?;
            let from_end = at + found.len().cast_signed() as i64;
            Ok(match at {
                0.. => usize::try_from(at).ok(),
                // The whole match has no place from the end.
                _ => usize::try_from(from_end).ok().filter(|at| *at > 0),
            })
        }
    }
}

pub(super) fn call_match(vm: &mut Vm, found: &Rc<Match>, call: Call<'_, '_>) -> Eval {
    let Call { method, args, .. } = call;
    let group = |group: usize| Value::option(found.group(group));
    Ok(match method {
        M::OpIndex => match &args[0] {
            Value::Range(_) => vm.send(
                &Value::array((0..found.len()).map(group).collect()),
                M::OpIndex,
                args,
                None,
            )?,
            one => group_of(found, one)?.map_or(Value::Nil, group),
        },
        M::ToA => Value::array((0..found.len()).map(group).collect()),
        M::Captures => Value::array((1..found.len()).map(group).collect()),
        M::NamedCaptures => {
            let table = Table::default();
            for name in found.pattern.names() {
                table.insert(Value::str(name), Value::option(found.named(name).flatten()));
            }
            Value::hash(table)
        }
        M::PreMatch => Value::str(found.pre()),
        M::PostMatch => Value::str(found.post()),
        M::Length | M::Size => Value::size(found.len()),
        M::Begin | M::End => {
            let group = match &args[0] {
                Value::Str(_) | Value::Symbol(_) => group_of(found, &args[0])?,
                place => usize::try_from(need_int(place)?).ok(),
            };
            let Some(group) = group.filter(|group| *group < found.len()) else {
                return Err(error(
                    Class::IndexError,
                    format!("index {} out of matches", to_s(&args[0])),
                ));
            };
            let span = found.span(group);
            let place = |byte: usize| Value::size(found.char_index(byte));
            match (span, method) {
                (Some((from, _)), M::Begin) => place(from),
                (Some((_, to)), M::End) => place(to),
                (Some((from, to)), _) => Value::pair(place(from), place(to)),
                (None, _) => Value::Nil,
            }
        }
        M::ValuesAt => {
            let mut out = Vec::new();
            for arg in args {
                if let Value::Range(_) = arg {
                    let all = Value::array((0..found.len()).map(group).collect());
                    let list = vm.send(&all, method, std::slice::from_ref(arg), None)?;
                    out.extend(vm.splat(&list)?);
                } else {
                    out.push(group_of(found, arg)?.map_or(Value::Nil, group));
                }
            }
            Value::array(out)
        }
        _ => return Err(call.unknown()),
    })
}

/// `Regexp.new`, `Regexp.escape`, `Regexp.union`.
pub(super) fn call_class(_vm: &mut Vm, _: Class, call: Call<'_, '_>) -> Eval {
    let Call { method, args, .. } = call;
    Ok(match method {
        M::New => match &args[0] {
            Value::Regexp(_) => args[0].clone(),
            source => {
                let options = match args.get(1) {
                    Some(Value::Int(options)) => *options as u8,
                    Some(other) if other.truthy() => crate::regex::IGNORE_CASE,
                    _ => 0,
                };
                Value::Regexp(Pattern::compile(&need_str(source)?, options)?)
            }
        },
        M::Escape => Value::str(crate::regex::escape(&match &args[0] {
            symbol @ Value::Symbol(_) => to_s(symbol),
            other => need_str(other)?,
        })),
        M::Union => {
            let list = match args {
                [Value::Array(list)] => list.borrow().clone(),
                many => many.to_vec(),
            };
            let parts: Vec<String> = list
                .iter()
                .map(|it| match it {
                    Value::Regexp(pattern) if list.len() == 1 => Ok(pattern.source().to_owned()),
                    Value::Regexp(pattern) => Ok(pattern.to_s()),
                    Value::Str(text) => Ok(crate::regex::escape(&text.get())),
                    other => Err(type_error(format!(
                        "no implicit conversion of {} into String",
                        Class::of(other).name()
                    ))),
                })
                .collect::<Eval<_>>()?;
            let source = if parts.is_empty() {
                "(?!)".to_owned()
            } else {
                parts.join("|")
            };
            Value::Regexp(Pattern::compile(&source, 0)?)
        }
        _ => return Err(call.unknown()),
    })
}
