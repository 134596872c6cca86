//! `Time.at`, `Time.new`, `Time.utc`, and the zones they take.

use super::{nanoseconds, value};
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{
    Eval, argument_error, error, no_conversion, type_error, wrong_arguments,
};
use crate::value::inspect::{inspect, to_s};
use crate::value::number::{float_to_s, need_float, need_int};
use crate::value::numeral::parse_radix;
use crate::value::table::Table;
use crate::value::time::{Civil, Time, Zone};
use crate::vm::Vm;

pub(crate) fn call_class(_: &mut Vm, _: Class, call: Call<'_, '_>) -> Eval {
    let Call { method, args, .. } = call;
    Ok(match method {
        M::At => at(args)?,
        M::New => {
            let (mut args, keyword) = zone_keyword(args)?;
            if args.is_empty() {
                return Err(now_is_not_known());
            }
            let positional = match args {
                [fields @ .., zone] if fields.len() == 6 => {
                    args = fields;
                    (!zone.is_nil()).then_some(zone)
                }
                _ => None,
            };
            let zone = match (positional, keyword) {
                (Some(_), Some(_)) => {
                    return Err(argument_error(
                        "timezone argument given as positional and keyword arguments",
                    ));
                }
                (Some(zone), None) => zone_of(zone)?,
                (None, Some(zone)) => zone_of(&zone)?,
                (None, None) => Zone::Local,
            };
            let time = from_fields(args)?;
            // The fields are those of the zone.
            let shift = i128::from(zone.offset()) * 1_000_000_000;
            value(Time::from_nanoseconds(time.nanoseconds() - shift).with_zone(zone))
        }
        M::Utc => {
            // The order of `Time#to_a`, from which the year is the sixth.
            let turned: Vec<Value>;
            let mut fields = args;
            if args.len() == 10 {
                turned = [5, 4, 3, 2, 1, 0].map(|at| args[at].clone()).into();
                fields = &turned;
            } else if args.is_empty() || args.len() > 8 {
                return Err(wrong_arguments(args.len(), 1, Some(8)));
            }
            let mut time = from_fields(&fields[..fields.len().min(6)])?;
            if let Some(microseconds) = fields.get(6).filter(|it| !it.is_nil()) {
                let more = match microseconds {
                    Value::Str(text) => i128::from(need_int(&digits(&text.get())?)?) * 1000,
                    other => nanoseconds(other)? / 1_000_000,
                };
                let whole = time.nanoseconds().div_euclid(1_000_000_000) * 1_000_000_000;
                time = Time::from_nanoseconds(whole + more);
            }
            value(match method {
                M::Utc => time.with_zone(Zone::Utc),
                _ => time,
            })
        }
        M::Now => return Err(now_is_not_known()),
        _ => return Err(call.unknown()),
    })
}

fn at(args: &[Value]) -> Eval {
    let (args, zone) = zone_keyword(args)?;
    if args.is_empty() || args.len() > 3 {
        return Err(wrong_arguments(args.len(), 1, Some(3)));
    }
    let mut time = match &args[0] {
        Value::Time(time) => Time::clone(time),
        Value::Float(it) => Time::from_seconds(*it)
            .ok_or_else(|| error(Class::FloatDomainError, float_to_s(*it)))?,
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
    Ok(value(match zone {
        Some(zone) => time.with_zone(zone_of(&zone)?),
        None => time,
    }))
}

/// The arguments before the keywords, and the value of `in:` unless it is nil.
fn zone_keyword(args: &[Value]) -> Eval<(&[Value], Option<Value>)> {
    let Some((Value::Hash(options), before)) = args.split_last() else {
        return Ok((args, None));
    };
    Ok((before, only_in(options)?))
}

fn only_in(options: &Table) -> Eval<Option<Value>> {
    let key = Value::symbol("in");
    match options.keys().iter().find(|known| !known.same(&key)) {
        Some(unknown) => Err(argument_error(format!(
            "unknown keyword: {}",
            inspect(unknown)
        ))),
        None => Ok(options.get(&key).filter(|zone| !zone.is_nil())),
    }
}

/// A whole number in digits.
fn digits(text: &str) -> Eval {
    parse_radix(text, 10)?.ok_or_else(|| {
        argument_error(format!(
            "invalid value for Integer(): {}",
            inspect(&Value::str(text))
        ))
    })
}

fn whole(given: &Value) -> Eval<i64> {
    match given {
        Value::Str(text) => need_int(&digits(&text.get())?),
        Value::Nil | Value::Bool(_) => Err(type_error(format!(
            "no implicit conversion of {} into Integer",
            crate::value::exception::brief(given)
        ))),
        Value::Int(_) | Value::Big(_) | Value::Float(_) => need_int(given),
        other => Err(no_conversion(other, "Integer")),
    }
}

pub(super) const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Year, month, day, hour, minute and second, of which all but the first are optional; in UTC.
pub(super) fn from_fields(args: &[Value]) -> Eval<Time> {
    // Ruby keeps each in this number of bits.
    let field = |at: usize, default: i64, bits: u32| -> Eval<i64> {
        let number = match args.get(at).filter(|it| !it.is_nil()) {
            None => return Ok(default),
            Some(given) => whole(given)?,
        };
        if !(0..1 << bits).contains(&number) {
            return Err(argument_error("argument out of range"));
        }
        Ok(number)
    };
    let year = whole(&args[0])?;
    let named = match args.get(1) {
        Some(Value::Str(name)) => {
            let name = name.get().to_ascii_lowercase();
            MONTHS.iter().position(|month| *month == name)
        }
        _ => None,
    };
    let month = match named {
        Some(at) => at.cast_signed() as i64 + 1,
        None => field(1, 1, 4)?,
    };
    let day = field(2, 1, 5)?;
    let hour = field(3, 0, 5)?;
    let minute = field(4, 0, 6)?;
    let (second, fraction) = match args.get(5).filter(|it| !it.is_nil()) {
        Some(exact @ Value::Float(_)) => {
            let all = nanoseconds(exact)?;
            let seconds = all.div_euclid(1_000_000_000);
            if !(0..64).contains(&seconds) {
                return Err(argument_error("argument out of range"));
            }
            (seconds as i64, all.rem_euclid(1_000_000_000))
        }
        _ => (field(5, 0, 6)?, 0),
    };
    let end = hour == 24;
    let wrong = [
        ("mon", !(1..=12).contains(&month)),
        ("mday", day == 0),
        ("hour", hour > 24),
        ("min", minute > 59 || end && minute > 0),
        ("sec", second > 60 || end && second > 0),
    ];
    if let Some((name, _)) = wrong.iter().find(|(_, wrong)| *wrong) {
        return Err(argument_error(format!("{name} out of range")));
    }
    if year.unsigned_abs() > 1_000_000 {
        return Err(error(
            Class::NotImplementedError,
            format!("the year {year} is not supported (expected -1000000 to 1000000)"),
        ));
    }
    let civil = Civil {
        year,
        month,
        day,
        hour,
        minute,
        second,
        weekday: 0,
        yearday: 0,
    };
    Ok(Time::from_civil(&civil, fraction))
}

/// `+09:00`, `UTC`, a military letter, or seconds.
pub(super) fn zone_of(given: &Value) -> Eval<Zone> {
    let text = match given {
        Value::Int(seconds) => return fixed(*seconds),
        Value::Str(text) => text.string(),
        other => {
            return Err(error(
                Class::NotImplementedError,
                format!(
                    "a zone of {} is not supported (expected a String such as \"+09:00\", or whole seconds)",
                    inspect(other)
                ),
            ));
        }
    };
    if matches!(text.as_str(), "UTC" | "Z" | "-00:00") {
        return Ok(Zone::Utc);
    }
    let wrong = || {
        argument_error(format!(
            "\"+HH:MM\", \"-HH:MM\", \"UTC\" or \"A\"..\"I\",\"K\"..\"Z\" expected for utc_offset: {text}"
        ))
    };
    if let [letter] = text.as_bytes() {
        let hours = match letter {
            b'A'..=b'I' => i64::from(letter - b'A') + 1,
            b'K'..=b'M' => i64::from(letter - b'K') + 10,
            b'N'..=b'Y' => -i64::from(letter - b'N') - 1,
            _ => return Err(wrong()),
        };
        return fixed(hours * 3600);
    }
    let parts = offset_parts(&text).ok_or_else(wrong)?;
    let [hours, minutes, seconds] = parts;
    if minutes > 59 || seconds > 59 {
        return Err(wrong());
    }
    let size = hours * 3600 + minutes * 60 + seconds;
    fixed(if text.starts_with('-') { -size } else { size })
}

/// The numbers of `+HH`, `+HHMM`, `+HH:MM`, `+HHMMSS` and `+HH:MM:SS`.
fn offset_parts(text: &str) -> Option<[i64; 3]> {
    let rest = text.strip_prefix(['+', '-'])?;
    let shape: String = rest
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let plain = rest.replace(':', "");
    if !matches!(
        shape.as_str(),
        "00" | "0000" | "000000" | "00:00" | "00:00:00"
    ) {
        return None;
    }
    let part = |at: usize| plain.get(at..at + 2).map_or(Some(0), |it| it.parse().ok());
    Some([part(0)?, part(2)?, part(4)?])
}

fn fixed(seconds: i64) -> Eval<Zone> {
    match i32::try_from(seconds) {
        Ok(offset) if offset.abs() < 86_400 => Ok(Zone::Fixed(offset)),
        _ => Err(argument_error("utc_offset out of range")),
    }
}

fn now_is_not_known() -> Box<crate::value::exception::Flow> {
    error(
        Class::NotImplementedError,
        "Time.now is not supported: a query's result depends on its input only; use the `time` of a row",
    )
}
