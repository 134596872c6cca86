//! Time.

mod class;
mod parse;

use super::strftime;
use crate::class::Class;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, brief, error, no_method, type_error};
use crate::value::number::{big_of, need_int};
use crate::value::time::{Time, Zone};
use crate::vm::Vm;
use crate::vm::block::Block;
pub(super) use class::call_class;
use num_traits::ToPrimitive;
pub(super) use parse::from_text;
use std::rc::Rc;

fn value(time: Time) -> Value {
    Value::Time(Rc::new(time))
}

/// By the number of the weekday.
const DAYS: [M; 7] = [
    M::SundayQ,
    M::MondayQ,
    M::TuesdayQ,
    M::WednesdayQ,
    M::ThursdayQ,
    M::FridayQ,
    M::SaturdayQ,
];

pub(super) fn call(
    _: &mut Vm,
    receiver: &Value,
    time: &Rc<Time>,
    method: M,
    args: &[Value],
    _: Option<&Block<'_>>,
) -> Eval {
    let civil = time.civil();
    Ok(match method {
        M::Year => Value::Int(civil.year),
        M::Month | M::Mon => Value::Int(civil.month),
        M::Day | M::Mday => Value::Int(civil.day),
        M::Hour => Value::Int(civil.hour),
        M::Min => Value::Int(civil.minute),
        M::Sec => Value::Int(civil.second),
        M::Usec | M::TvUsec => Value::Int(time.fraction() / 1000),
        M::Nsec => Value::Int(time.fraction()),
        M::Wday => Value::Int(civil.weekday),
        M::Yday => Value::Int(civil.yearday),
        day if DAYS.contains(&day) => {
            Value::Bool(DAYS.iter().position(|day| *day == method) == Some(civil.weekday as usize))
        }
        M::ToI | M::TvSec => Value::Int(time.seconds()),
        M::ToF => Value::Float(time.to_f()),
        M::Utc | M::Gmtime => {
            time.set_zone(Zone::Utc);
            receiver.clone()
        }
        M::Getutc | M::Getgm => value(Time::clone(time).with_zone(Zone::Utc)),
        M::Localtime | M::Getlocal => {
            let zone = match args.first() {
                None | Some(Value::Nil) => Zone::Local,
                Some(zone) => class::zone_of(zone)?,
            };
            if method == M::Localtime {
                time.set_zone(zone);
                return Ok(receiver.clone());
            }
            value(Time::clone(time).with_zone(zone))
        }
        M::UtcQ | M::GmtQ => Value::Bool(time.is_utc()),
        M::UtcOffset | M::GmtOffset | M::Gmtoff => Value::Int(i64::from(time.offset())),
        M::Zone => Value::option(time.zone()),
        M::Strftime => Value::str(strftime::format(time, &super::string::need_str(&args[0])?)),
        M::Iso8601 | M::Xmlschema => {
            let digits = args.first().map_or(Ok(0), need_int)?;
            Value::str(time.iso8601(digits.clamp(0, 100) as usize))
        }
        M::Httpdate => Value::str(strftime::format(
            &Time::clone(time).with_zone(Zone::Utc),
            "%a, %d %b %Y %H:%M:%S GMT",
        )),
        M::ToA => Value::array(vec![
            Value::Int(civil.second),
            Value::Int(civil.minute),
            Value::Int(civil.hour),
            Value::Int(civil.day),
            Value::Int(civil.month),
            Value::Int(civil.year),
            Value::Int(civil.weekday),
            Value::Int(civil.yearday),
            Value::Bool(false),
            Value::option(time.zone()),
        ]),
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
        _ => return Err(no_method(method.name(), receiver)),
    })
}

fn rounded(time: &Rc<Time>, method: M, args: &[Value]) -> Eval {
    let digits = args.first().map_or(Ok(0), need_int)?.clamp(0, 9);
    let unit = 10_i128.pow(9 - digits as u32);
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
        Value::Rational(it) => Ok((&it.0 * 1_000_000_000_i64 / &it.1).to_i128().unwrap_or(0)),
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
