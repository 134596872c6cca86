//! `bucket(value, width)`: the start of the bucket that a number or a time is in.

use crate::class::Class;
use crate::names::M;
use crate::reducers::histogram::Histogram;
use crate::value::Value;
use crate::value::exception::{Eval, Flow, argument_error, no_conversion};
use crate::value::inspect::inspect;
use crate::value::time::{Time, Zone};
use crate::vm::Vm;
use std::rc::Rc;

const UNITS: &[(&str, i64)] = &[
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

pub(super) fn bucket(vm: &mut Vm, value: &Value, width: &Value) -> Eval {
    let Value::Str(text) = width else {
        return of_number(value, width);
    };
    let milliseconds = duration(&text.get()).ok_or_else(|| invalid(width))?;
    match value {
        Value::Time(time) => Ok(Value::Time(Rc::new(start(time, milliseconds).like(time)))),
        Value::Str(_) => {
            let parse = Value::Class(Class::Time);
            match vm.send(&parse, M::Parse, std::slice::from_ref(value), None)? {
                Value::Time(time) => {
                    let start = start(&time, milliseconds).with_zone(Zone::Utc);
                    let digits = if milliseconds % 1000 == 0 { 0 } else { 3 };
                    Ok(Value::str(start.iso8601(digits)))
                }
                other => Err(no_conversion(&other, "Time")),
            }
        }
        // As in logs, since 1970.
        number => of_number(number, &Value::Int(milliseconds)),
    }
}

fn of_number(value: &Value, width: &Value) -> Eval {
    if value.is_nil() {
        return Ok(Value::Nil);
    }
    let buckets = Histogram::new(Some(width)).map_err(|_| invalid(width))?;
    Ok(buckets.bound(buckets.index(value)?))
}

fn invalid(width: &Value) -> Box<Flow> {
    argument_error(format!(
        "bucket expects a positive width, as in 100, \"5m\" or \"1h\" (ms, s, m, h, d): {}",
        inspect(width)
    ))
}

fn start(time: &Time, milliseconds: i64) -> Time {
    let width = i128::from(milliseconds) * 1_000_000;
    Time::from_nanoseconds(time.nanoseconds().div_euclid(width) * width)
}

/// Milliseconds of `5m`.
fn duration(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, milliseconds) = UNITS.iter().find(|(known, _)| *known == unit)?;
    let duration = number.parse::<i64>().ok()?.checked_mul(*milliseconds)?;
    (duration > 0).then_some(duration)
}
