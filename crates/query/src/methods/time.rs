//! Time.

mod class;
mod parse;

use super::strftime;
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, brief, error, type_error};
use crate::value::number::{big_of, need_int};
use crate::value::time::{Time, Zone};
use crate::vm::Vm;
pub(super) use class::call_class;
pub(super) use parse::from_text;
use std::rc::Rc;

fn value(time: Time) -> Value {
    Value::Time(Rc::new(time))
}

pub(super) fn call(_: &mut Vm, time: &Rc<Time>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, _) = call.parts();
    let civil = time.civil();
    Ok(match method {
        M::Year => Value::Int(civil.year),
        M::Month => Value::Int(civil.month),
        M::Day => Value::Int(civil.day),
        M::Hour => Value::Int(civil.hour),
        M::Min => Value::Int(civil.minute),
        M::Sec => Value::Int(civil.second),
        M::Usec => Value::Int(time.fraction() / 1000),
        M::Nsec => Value::Int(time.fraction()),
        M::Wday => Value::Int(civil.weekday),
        M::Yday => Value::Int(civil.yearday),
        M::ToI => Value::Int(time.seconds()),
        M::ToA => {
            let days = [
                civil.day,
                civil.month,
                civil.year,
                civil.weekday,
                civil.yearday,
            ];
            let mut list: Vec<Value> = [civil.second, civil.minute, civil.hour]
                .into_iter()
                .chain(days)
                .map(Value::Int)
                .collect();
            // There is no daylight saving time.
            list.extend([Value::Bool(false), Value::option(time.zone())]);
            Value::array(list)
        }
        M::ToF => Value::Float(time.to_f()),
        M::Utc => {
            time.set_zone(Zone::Utc);
            receiver.clone()
        }
        M::Getlocal => {
            let zone = match args.first() {
                None | Some(Value::Nil) => Zone::Local,
                Some(zone) => class::zone_of(zone)?,
            };
            value(Time::clone(time).with_zone(zone))
        }
        M::UtcQ => Value::Bool(time.is_utc()),
        M::UtcOffset => Value::Int(i64::from(time.offset())),
        M::Zone => Value::option(time.zone()),
        M::Strftime => Value::str(strftime::format(time, &super::string::need_str(&args[0])?)),
        M::Iso8601 => {
            let digits = args.first().map_or(Ok(0), need_int)?;
            Value::str(time.iso8601(digits.clamp(0, 100) as usize))
        }
        M::OpAdd => {
            if let Value::Time(_) = args[0] {
                return Err(type_error("time + time?"));
            }
            value(Time::from_nanoseconds(time.nanoseconds() + nanoseconds(&args[0])?).like(time))
        }
        M::OpSub => match &args[0] {
            Value::Time(other) => {
                Value::Float((time.nanoseconds() - other.nanoseconds()) as f64 / 1e9)
            }
            other => {
                value(Time::from_nanoseconds(time.nanoseconds() - nanoseconds(other)?).like(time))
            }
        },
        M::Round | M::Floor | M::Ceil => return rounded(time, method, args),
        _ => return Err(call.unknown()),
    })
}

fn rounded(time: &Rc<Time>, method: M, args: &[Value]) -> Eval {
    let digits = args.first().map_or(Ok(0), need_int)?;
    if digits < 0 {
        return Err(argument_error("negative ndigits given"));
    }
    let unit = 10_i128.pow(9 - digits.min(9) as u32);
    let shift = match method {
        M::Round => unit / 2,
        M::Ceil => unit - 1,
        _ => 0,
    };
    Ok(value(
        Time::from_nanoseconds((time.nanoseconds() + shift).div_euclid(unit) * unit).like(time),
    ))
}

/// Seconds as nanoseconds.
fn nanoseconds(seconds: &Value) -> Eval<i128> {
    match seconds {
        Value::Int(it) => Ok(i128::from(*it) * 1_000_000_000),
        Value::Float(it) => Time::from_seconds(*it)
            .map(|time| time.nanoseconds())
            .ok_or_else(|| {
                error(
                    Class::FloatDomainError,
                    crate::value::number::float_to_s(*it),
                )
            }),
        other => match big_of(other) {
            Some(_) => Err(error(
                Class::RangeError,
                "a time so far away is not supported",
            )),
            None => Err(type_error(format!(
                "can't convert {} into an exact number",
                brief(other)
            ))),
        },
    }
}
