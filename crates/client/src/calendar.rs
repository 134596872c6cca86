//! Days of the Gregorian calendar, and dates in the formats of cookies (RFC 6265 §5.1.1). Pure functions.

/// The number of days from 1970-01-01 to a date of the Gregorian calendar. Years are counted from March, so that the leap
/// day is the last day of a year.
pub(crate) fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 1970-01-01 is day 719 468 in this count.
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Parses the date of a cookie to seconds since the Unix epoch. Servers use many formats, so time, day, month and year are
/// accepted in any order and with any delimiters.
pub(crate) fn cookie_date(text: &str) -> Option<u64> {
    let is_delimiter = |c: char| !(c.is_ascii_alphanumeric() || c == ':' || !c.is_ascii());
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for word in text.split(is_delimiter).filter(|word| !word.is_empty()) {
        if time.is_none() && word.contains(':') {
            time = Some(time_of(word)?);
        } else if day.is_none() && leading(word).is_some_and(|(len, _)| len <= 2) {
            day = leading(word).map(|(_, number)| number);
        } else if month.is_none() && month_of(word).is_some() {
            month = month_of(word);
        } else if year.is_none()
            && let Some((len, number)) = leading(word)
            && matches!(len, 2 | 4)
        {
            year = Some(match number {
                0..=69 if len == 2 => 2000 + number,
                70..=99 if len == 2 => 1900 + number,
                number => number,
            });
        }
    }
    let (day, month, year) = (day?, month?, year?);
    let is_date = (1..=31).contains(&day) && year >= 1601;
    // Dates before the epoch count as the epoch: the cookie has expired.
    let since = if year < 1970 {
        0
    } else {
        days(year, month, day) * 86_400 + time?
    };
    (is_date && time.is_some()).then_some(since)
}

/// The leading digits of a word: their count and their value.
fn leading(word: &str) -> Option<(usize, u64)> {
    let len = word.bytes().take_while(u8::is_ascii_digit).count();
    let number = word.get(..len)?.parse().ok()?;
    Some((len, number))
}

fn time_of(word: &str) -> Option<u64> {
    let mut parts = word.split(':');
    let mut next = || parts.next().and_then(|part| Some(leading(part)?.1));
    let (hour, minute, second) = (next()?, next()?, next()?);
    (hour < 24 && minute < 60 && second <= 60).then(|| hour * 3600 + minute * 60 + second)
}

fn month_of(word: &str) -> Option<u64> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let name = word.get(..3)?.to_ascii_lowercase();
    let index = NAMES.iter().position(|other| *other == name)?;
    Some(index as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc6265_5_1_1_all_date_formats_of_servers_are_parsed() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 6-Nov-1994 08:49:37 GMT",
            "1994 06 08:49:37 november",
        ] {
            assert_eq!(cookie_date(text), Some(784_111_777), "{text}");
        }
        assert_eq!(cookie_date("Thu, 01-Jan-1970 00:00:00 GMT"), Some(0));
        assert_eq!(cookie_date("Mon, 01 Jan 1900 00:00:00 GMT"), Some(0));
        assert_eq!(
            cookie_date("Fri, 31 Dec 9999 23:59:59 GMT"),
            Some(253_402_300_799)
        );
        for text in [
            "",
            "0",
            "tomorrow",
            "06 Nov 1994",
            "40 Nov 1994 08:49:37",
            "06 Nov 1994 24:00:00",
            "06 Nov 1994 18446744073709551615:00:00",
            "06 Nov 1994 00:18446744073709551615:00",
            "Nov 1994 é:é:é",
        ] {
            assert_eq!(cookie_date(text), None, "{text}");
        }
    }
}
