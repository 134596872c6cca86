//! Time.

use super::{Found, comparable, strftime};
use crate::names::M;
use crate::value::Value;
use crate::value::class::Class;
use crate::value::exception::{Eval, argument_error, arity, brief, error, type_error};
use crate::value::inspect::to_s;
use crate::value::number::{big_of, need_float, need_int};
use crate::value::time::{Civil, Time};
use num_traits::ToPrimitive;
use std::rc::Rc;

fn value(time: Time) -> Value {
    Value::Time(Rc::new(time))
}

pub(super) fn call(time: &Rc<Time>, method: M, args: &[Value]) -> Found {
    let civil = time.civil();
    let this = || Value::Time(Rc::clone(time));
    Ok(Some(match method {
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
        M::SundayQ
        | M::MondayQ
        | M::TuesdayQ
        | M::WednesdayQ
        | M::ThursdayQ
        | M::FridayQ
        | M::SaturdayQ => {
            let days = [
                M::SundayQ,
                M::MondayQ,
                M::TuesdayQ,
                M::WednesdayQ,
                M::ThursdayQ,
                M::FridayQ,
                M::SaturdayQ,
            ];
            Value::Bool(days.iter().position(|day| *day == method) == Some(civil.weekday as usize))
        }
        M::ToI | M::TvSec => Value::Int(time.seconds()),
        M::ToF => Value::Float(time.to_f()),
        M::Utc | M::Gmtime => {
            time.set_utc();
            this()
        }
        M::Getutc | M::Getgm => value(Time::clone(time).with_utc()),
        M::Localtime | M::Getlocal => {
            let offset = args.first().map_or(Ok(0), offset_of)?;
            value(Time::clone(time).with_offset(offset))
        }
        M::UtcQ | M::GmtQ => Value::Bool(time.is_utc()),
        M::UtcOffset | M::GmtOffset | M::Gmtoff => Value::Int(i64::from(time.offset())),
        M::Zone => Value::option(time.zone()),
        M::DstQ => Value::Bool(false),
        M::Strftime => {
            arity(args, 1, 1)?;
            Value::str(strftime::format(time, &super::string::need_str(&args[0])?))
        }
        M::Iso8601 | M::Xmlschema => {
            let digits = args.first().map_or(Ok(0), need_int)?;
            Value::str(time.iso8601(digits.clamp(0, 100) as usize))
        }
        M::Httpdate => Value::str(strftime::format(
            &Time::clone(time).with_utc(),
            "%a, %d %b %Y %H:%M:%S GMT",
        )),
        M::Rfc2822 => {
            Value::str(strftime::format(time, "%a, %d %b %Y %H:%M:%S ") + &time.offset_text(""))
        }
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
            arity(args, 1, 1)?;
            if let Value::Time(_) = args[0] {
                return Err(type_error("time + time?"));
            }
            value(Time::from_nanoseconds(time.nanoseconds() + nanoseconds(&args[0])?).like(time))
        }
        M::OpSub => {
            arity(args, 1, 1)?;
            match &args[0] {
                Value::Time(other) => {
                    Value::Float((time.nanoseconds() - other.nanoseconds()) as f64 / 1e9)
                }
                other => value(
                    Time::from_nanoseconds(time.nanoseconds() - nanoseconds(other)?).like(time),
                ),
            }
        }
        M::Round | M::Floor | M::Ceil => {
            let digits = args.first().map_or(Ok(0), need_int)?.clamp(0, 9);
            let unit = 10_i128.pow(9 - digits as u32);
            let shift = match method {
                M::Round => unit / 2,
                M::Ceil => unit - 1,
                _ => 0,
            };
            value(
                Time::from_nanoseconds((time.nanoseconds() + shift).div_euclid(unit) * unit)
                    .like(time),
            )
        }
        M::Hash => return Ok(None),
        _ => return comparable::call(&this(), method, args),
    }))
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

/// `+09:00`, `UTC`, or seconds.
fn offset_of(value: &Value) -> Eval<i32> {
    let text = match value {
        Value::Int(seconds) => return Ok(*seconds as i32),
        other => to_s(other),
    };
    if matches!(text.as_str(), "UTC" | "Z") {
        return Ok(0);
    }
    let wrong = || {
        argument_error(format!(
            "\"+HH:MM\", \"-HH:MM\", \"UTC\" or \"A\"..\"I\",\"K\"..\"Z\" expected for utc_offset: {text}"
        ))
    };
    let sign = match text.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Err(wrong()),
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let (hours, minutes): (i32, i32) = (
        digits[..2].parse().unwrap_or(0),
        digits[2..].parse().unwrap_or(0),
    );
    Ok(sign * (hours * 3600 + minutes * 60))
}

/// `Time.at`, `Time.utc` and so on.
pub(super) fn call_class(method: M, args: &[Value]) -> Found {
    Ok(Some(match method {
        M::At => {
            let mut args = args;
            let mut zone = None;
            if let Some((Value::Hash(options), before)) = args.split_last() {
                zone = options.get(&Value::symbol("in"));
                args = before;
            }
            arity(args, 1, 3)?;
            let mut time = match &args[0] {
                Value::Time(time) => Time::clone(time),
                Value::Float(it) => Time::from_seconds(*it).ok_or_else(|| {
                    error(
                        Class::FloatDomainError,
                        crate::value::number::float_to_s(*it),
                    )
                })?,
                other => Time::from_nanoseconds(nanoseconds(other)?),
            };
            if let Some(part) = args.get(1) {
                let unit = match args.get(2).map(to_s).as_deref() {
                    None | Some("microsecond" | "usec") => 1e3,
                    Some("millisecond") => 1e6,
                    Some("nanosecond" | "nsec") => 1.0,
                    Some(other) => return Err(argument_error(format!("unexpected unit: {other}"))),
                };
                let more = match part {
                    Value::Int(it) => i128::from(*it) * unit as i128,
                    other => (need_float(other)? * unit).floor() as i128,
                };
                time = Time::from_nanoseconds(time.nanoseconds() + more);
            }
            if let Some(zone) = zone {
                let utc = matches!(to_s(&zone).as_str(), "UTC" | "Z");
                time = time.with_offset(offset_of(&zone)?);
                if utc {
                    time = time.with_utc();
                }
            }
            value(time)
        }
        M::Utc | M::Gm | M::Mktime | M::Local | M::New => {
            if args.is_empty() {
                return Err(now_is_not_known());
            }
            let field = |at: usize, default: i64| match args.get(at) {
                None | Some(Value::Nil) => Ok(default),
                Some(text @ Value::Str(_)) => Ok(to_s(text).parse().unwrap_or(default)),
                Some(number) => need_int(number),
            };
            let seconds = match args.get(5) {
                Some(Value::Float(it)) => Some(*it),
                _ => None,
            };
            let civil = Civil {
                year: field(0, 1970)?,
                month: field(1, 1)?,
                day: field(2, 1)?,
                hour: field(3, 0)?,
                minute: field(4, 0)?,
                second: field(5, 0)?,
                weekday: 0,
                yearday: 0,
            };
            let inside = (1..=12).contains(&civil.month)
                && (1..=31).contains(&civil.day)
                && (0..=24).contains(&civil.hour)
                && (0..=59).contains(&civil.minute)
                && (0..=60).contains(&civil.second);
            if !inside || civil.year.abs() > 1_000_000 {
                return Err(argument_error("argument out of range"));
            }
            let fraction = seconds.map_or(0, |it| ((it - it.floor()) * 1e9) as i128);
            let time = Time::from_civil(&civil, fraction);
            value(if matches!(method, M::Utc | M::Gm) {
                time.with_utc()
            } else {
                time
            })
        }
        M::Now => return Err(now_is_not_known()),
        _ => return Ok(None),
    }))
}

fn now_is_not_known() -> Box<crate::value::exception::Flow> {
    error(
        Class::NotImplementedError,
        "Time.now is not supported: a query's result depends on its input only; use the `time` of a row",
    )
}
