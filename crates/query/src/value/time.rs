//! A moment, in nanoseconds since the epoch, and the offset it is read with. The local zone is UTC, so that results do
//! not depend on the machine.

use std::cell::Cell;
use std::fmt::Write as _;

use lastbyte_units::{date_of_days, days_of_date};

const DAY: i128 = 86_400;
const BILLION: i128 = 1_000_000_000;

#[derive(Clone)]
pub(crate) struct Time {
    nanoseconds: i128,
    /// The Float it was made of, where that holds more than nanoseconds.
    exact: Option<f64>,
    zone: Cell<Zone>,
}

/// The time zone in which a time is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zone {
    /// The machine's, which is taken to be UTC everywhere.
    Local,
    Utc,
    /// Seconds east of UTC.
    Fixed(i32),
}

impl Zone {
    pub(crate) fn offset(self) -> i32 {
        match self {
            Zone::Local | Zone::Utc => 0,
            Zone::Fixed(seconds) => seconds,
        }
    }
}

/// A moment on the calendar.
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    /// 0 is Sunday.
    pub(crate) weekday: i64,
    /// 1 is the first of January.
    pub(crate) yearday: i64,
}

impl Time {
    pub(crate) fn from_nanoseconds(nanoseconds: i128) -> Time {
        Time {
            nanoseconds,
            exact: None,
            zone: Cell::new(Zone::Local),
        }
    }

    /// `None` for NaN, infinities and what no calendar holds.
    pub(crate) fn from_seconds(seconds: f64) -> Option<Time> {
        if !seconds.is_finite() || seconds.abs() > 1e14 {
            return None;
        }
        // Exactly: a Float is a fraction of a power of two, and 10^9 times it fits.
        let whole = seconds.trunc() as i128 * BILLION;
        let (billionths, exact) = exact_billionths((seconds - seconds.trunc()).abs());
        let mut time = Time::from_nanoseconds(if seconds < 0.0 {
            whole - billionths - i128::from(!exact)
        } else {
            whole + billionths
        });
        if !exact {
            time.exact = Some(seconds);
        }
        Some(time)
    }

    pub(crate) fn from_civil(civil: &Civil, nanoseconds: i128) -> Time {
        let days = days_of_date(civil.year, civil.month, civil.day);
        let seconds = i128::from(days) * DAY
            + i128::from(civil.hour) * 3600
            + i128::from(civil.minute) * 60
            + i128::from(civil.second);
        Time::from_nanoseconds(seconds * BILLION + nanoseconds)
    }

    pub(crate) fn with_zone(self, zone: Zone) -> Time {
        self.zone.set(zone);
        self
    }

    pub(crate) fn set_zone(&self, zone: Zone) {
        self.zone.set(zone);
    }

    /// The same way of reading, another moment.
    pub(crate) fn like(self, other: &Time) -> Time {
        self.with_zone(other.zone.get())
    }

    pub(crate) fn nanoseconds(&self) -> i128 {
        self.nanoseconds
    }

    pub(crate) fn seconds(&self) -> i64 {
        self.nanoseconds.div_euclid(BILLION) as i64
    }

    /// Of the second.
    pub(crate) fn fraction(&self) -> i64 {
        self.nanoseconds.rem_euclid(BILLION) as i64
    }

    pub(crate) fn to_f(&self) -> f64 {
        match self.exact {
            Some(exact) => exact,
            // Whole seconds are exact; else Ruby divides the rounded count of nanoseconds.
            None if self.nanoseconds % BILLION == 0 => (self.nanoseconds / BILLION) as f64,
            None => self.nanoseconds as f64 / 1e9,
        }
    }

    pub(crate) fn is_utc(&self) -> bool {
        self.zone.get() == Zone::Utc
    }

    pub(crate) fn offset(&self) -> i32 {
        self.zone.get().offset()
    }

    pub(crate) fn zone(&self) -> Option<&'static str> {
        matches!(self.zone.get(), Zone::Local | Zone::Utc).then_some("UTC")
    }

    pub(crate) fn civil(&self) -> Civil {
        let seconds = self.seconds() + i64::from(self.offset());
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date_of_days(days);
        Civil {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7),
            yearday: days - days_of_date(year, 1, 1) + 1,
        }
    }

    /// `+0900`, or with a colon `+09:00`.
    pub(crate) fn offset_text(&self, colon: &str) -> String {
        let offset = self.offset();
        let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.abs());
        format!("{sign}{:02}{colon}{:02}", size / 3600, size / 60 % 60)
    }

    pub(crate) fn to_s(&self) -> String {
        let c = self.civil();
        let zone = if self.is_utc() {
            "UTC".to_owned()
        } else {
            let seconds = match self.offset() % 60 {
                0 => String::new(),
                seconds => format!("{:02}", seconds.abs()),
            };
            self.offset_text("") + &seconds
        };
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02} {zone}",
            c.year, c.month, c.day, c.hour, c.minute, c.second
        )
    }

    pub(crate) fn inspect(&self) -> String {
        let mut text = self.to_s();
        if self.fraction() != 0 {
            let digits = format!(".{:09}", self.fraction());
            text.insert_str(19, digits.trim_end_matches('0'));
        }
        text
    }

    pub(crate) fn iso8601(&self, digits: usize) -> String {
        let c = self.civil();
        let mut out = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            c.year, c.month, c.day, c.hour, c.minute, c.second
        );
        if digits > 0 {
            let nine = format!("{:09}", self.fraction());
            let _ = write!(out, ".{:0<digits$}", &nine[..digits.min(9)]);
        }
        out.push_str(&if self.is_utc() {
            "Z".to_owned()
        } else {
            self.offset_text(":")
        });
        out
    }
}

/// The whole billionths of a fraction below one, and whether nothing is left.
fn exact_billionths(fraction: f64) -> (i128, bool) {
    if fraction == 0.0 {
        return (0, true);
    }
    let bits = fraction.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let mantissa = i128::from(bits & ((1 << 52) - 1) | if exponent > 0 { 1 << 52 } else { 0 });
    let shift = 1075 - exponent.max(1);
    let product = mantissa * BILLION;
    if shift >= 127 {
        return (0, false);
    }
    (product >> shift, product & ((1 << shift) - 1) == 0)
}
