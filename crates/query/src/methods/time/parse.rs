//! `Time.iso8601` and `Time.parse`, for the stamps that logs have.

use super::class::{MONTHS, from_fields, zone_of};
use super::value;
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, error, no_conversion};
use crate::value::inspect::inspect;
use crate::value::time::{Time, Zone};
use crate::vm::Vm;

pub(crate) fn from_text(_: &mut Vm, _: Class, call: Call<'_, '_>) -> Eval {
    let Call { method, args, .. } = call;
    let Value::Str(text) = &args[0] else {
        return Err(no_conversion(&args[0], "String"));
    };
    match method {
        M::Parse => parse(&text.get()),
        _ => iso8601(&text.get()),
    }
}

/// `Time.iso8601`: `2024-03-01T01:02:03.456+09:00`; the fraction and the zone may be missing.
fn iso8601(text: &str) -> Eval {
    let stamp = text.trim_matches(is_blank);
    iso_stamp(stamp, "Tt", false).unwrap_or_else(|| {
        Err(argument_error(format!(
            "invalid xmlschema format: {}",
            shown(text)
        )))
    })
}

/// `Time.parse`, of two forms: ISO 8601, also with a space for the `T`, and the dates of HTTP (RFC 9110 §5.6.7,
/// IMF-fixdate).
fn parse(text: &str) -> Eval {
    let stamp = text.trim_matches(is_blank);
    iso_stamp(stamp, "Tt ", true)
        .or_else(|| http_date(stamp))
        .unwrap_or_else(|| {
            Err(error(
                Class::NotImplementedError,
                format!(
                    "Time.parse of {} is not supported (expected ISO 8601 or `Tue, 10 Oct 2000 13:55:36 GMT`)",
                    shown(text)
                ),
            ))
        })
}

fn shown(text: &str) -> String {
    inspect(&Value::str(text))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The rest of a text.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// A number of exactly this many digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let head = self.0.get(..digits)?;
        if !head.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = &self.0[digits..];
        head.parse().ok()
    }

    /// One of these characters.
    fn one_of(&mut self, set: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(|c| set.contains(c))?;
        Some(())
    }

    /// The number of a month from its name.
    fn month(&mut self) -> Option<i64> {
        let name = self.0.get(..3)?.to_ascii_lowercase();
        let at = MONTHS.iter().position(|month| *month == name)?;
        self.0 = &self.0[3..];
        Some(at.cast_signed() as i64 + 1)
    }

    /// `01:02:03`.
    fn clock(&mut self) -> Option<[i64; 3]> {
        let hour = self.number(2)?;
        self.one_of(":")?;
        let minute = self.number(2)?;
        self.one_of(":")?;
        Some([hour, minute, self.number(2)?])
    }

    /// `.456` in nanoseconds; 0 without a point. `None` beyond nanoseconds.
    fn fraction(&mut self) -> Option<i128> {
        let Some(after) = self.0.strip_prefix('.') else {
            return Some(0);
        };
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=9).contains(&digits) {
            return None;
        }
        self.0 = &after[digits..];
        format!("{:0<9}", &after[..digits]).parse().ok()
    }

    /// The zone, at the end.
    fn zone(&self, has_names: bool) -> Option<Zone> {
        match self.0 {
            "" => return Some(Zone::Local),
            "Z" | "z" | "-00:00" | "-0000" | "-00" => return Some(Zone::Utc),
            "UTC" if has_names => return Some(Zone::Utc),
            // Ruby keeps the two apart.
            "GMT" if has_names => return Some(Zone::Fixed(0)),
            _ => {}
        }
        let is_offset = self.0.starts_with(['+', '-']) && matches!(self.0.len(), 3 | 5 | 6);
        if !is_offset {
            return None;
        }
        zone_of(&Value::str(self.0)).ok()
    }
}

/// `None` if the text does not have this form.
fn iso_stamp(text: &str, between: &str, is_lenient: bool) -> Option<Eval> {
    let mut rest = Rest(text);
    let year = rest.number(4)?;
    rest.one_of("-")?;
    let month = rest.number(2)?;
    rest.one_of("-")?;
    let day = rest.number(2)?;
    if is_lenient && rest.0.is_empty() {
        return Some(moment([year, month, day, 0, 0, 0], 0, Zone::Local));
    }
    rest.one_of(between)?;
    let [hour, minute, second] = rest.clock()?;
    let fraction = rest.fraction()?;
    if is_lenient {
        let _ = rest.one_of(" ");
    }
    let zone = rest.zone(is_lenient)?;
    Some(moment(
        [year, month, day, hour, minute, second],
        fraction,
        zone,
    ))
}

fn http_date(text: &str) -> Option<Eval> {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let (weekday, after) = text.split_once(", ")?;
    if !DAYS.contains(&weekday) {
        return None;
    }
    let mut rest = Rest(after);
    let day = rest.number(2)?;
    rest.one_of(" ")?;
    let month = rest.month()?;
    rest.one_of(" ")?;
    let year = rest.number(4)?;
    rest.one_of(" ")?;
    let [hour, minute, second] = rest.clock()?;
    (rest.0 == " GMT").then(|| moment([year, month, day, hour, minute, second], 0, Zone::Fixed(0)))
}

/// The moment at which a clock in a zone has these fields.
fn moment(fields: [i64; 6], nanoseconds: i128, zone: Zone) -> Eval {
    let time = from_fields(&fields.map(Value::Int))?;
    let shift = i128::from(zone.offset()) * 1_000_000_000;
    let time = Time::from_nanoseconds(time.nanoseconds() + nanoseconds - shift);
    Ok(value(time.with_zone(zone)))
}
