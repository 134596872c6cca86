//! Windows of time in which the share of an arm does not grow: a range of days, or a part of each week. All times are UTC.
//!
//! ```
//! use lastbyte_scenario::Freeze;
//!
//! let weekend: Freeze = "Fri 16:00 to Mon 08:00".parse().expect("a window");
//! // Thursday, 1 January 1970, and the Saturday after it.
//! assert!(!weekend.contains(0));
//! assert!(weekend.contains(2 * 24 * 3_600_000));
//! ```

use core::{fmt, str::FromStr};

use lastbyte_units::{date_of_days, days_of_date};

use crate::setting::SettingError;

const MINUTE_MS: u64 = 60_000;
const DAY_MINUTES: u64 = 24 * 60;
const WEEK_MINUTES: u64 = 7 * DAY_MINUTES;
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// The minute of the week in which 1970 began, a Thursday.
const FIRST_MINUTE: u64 = 3 * DAY_MINUTES;
const EXPECTED: &str = "a range of days or a part of each week, in UTC: `2026-12-20 to 2027-01-02`, `Fri 16:00 to Mon 08:00`";

/// A window of time in which no share grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    text: String,
    window: Window,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    /// Days since 1970: the first, and the last, which belongs to it.
    Days(u64, u64),
    /// Minutes since the begin of a Monday: the first, and the one after the last, which may be in the next week.
    Week(u64, u64),
}

impl Freeze {
    /// Whether a time, in milliseconds since the Unix epoch, is in the window.
    pub const fn contains(&self, time_ms: u64) -> bool {
        let minute = time_ms / MINUTE_MS;
        match self.window {
            Window::Days(first, last) => {
                let day = minute / DAY_MINUTES;
                first <= day && day <= last
            }
            Window::Week(first, end) => {
                let minute = (minute + FIRST_MINUTE) % WEEK_MINUTES;
                (first <= minute && minute < end) || minute + WEEK_MINUTES < end
            }
        }
    }
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Freeze {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let window = || {
            let (from, to) = text.split_once(" to ")?;
            if let (Some(first), Some(last)) = (day(from), day(to)) {
                return (first <= last).then_some(Window::Days(first, last));
            }
            let (first, end) = (minute_of_week(from)?, minute_of_week(to)?);
            let next = if end > first { 0 } else { WEEK_MINUTES };
            (first != end).then_some(Window::Week(first, end + next))
        };
        let window =
            window().ok_or_else(|| SettingError::of_value(format!("`{text}`"), EXPECTED))?;
        Ok(Self {
            text: text.to_owned(),
            window,
        })
    }
}

/// The number that all characters of a text of this length are.
fn digits(text: &str, length: usize) -> Option<u64> {
    let are_digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().ok())?
}

/// The number of days from the first of 1970 to a date: `2026-12-20`.
fn day(text: &str) -> Option<u64> {
    let mut parts = text.splitn(3, '-');
    let mut part = |length| parts.next().and_then(|part| digits(part, length));
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let date = [year, month, day].map(u64::cast_signed);
    let days = days_of_date(date[0], date[1], date[2]);
    // A day that the month lacks is one of the next month.
    let is_valid = year >= 1970 && <[i64; 3]>::from(date_of_days(days)) == date;
    is_valid.then_some(days.cast_unsigned())
}

/// The minute of the week of a day and time: `Fri 16:00`.
fn minute_of_week(text: &str) -> Option<u64> {
    let (name, time) = text.split_once(' ')?;
    let day = WEEKDAYS.iter().position(|one| *one == name)? as u64;
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute) = (digits(hour, 2)?, digits(minute, 2)?);
    (hour < 24 && minute < 60).then_some(day * DAY_MINUTES + hour * 60 + minute)
}
