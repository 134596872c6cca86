//! Days of the Gregorian calendar, and dates as cookies have them (RFC 6265 §5.1.1). Never: asks what time it is.

/// Days from 1970-01-01 to a date of the Gregorian calendar, by years that begin in March, so that the day that leap years
/// have more is their last.
pub(crate) fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719 468 is the day of 1970-01-01 by that count.
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// The seconds since 1970 of a cookie's date, which servers write in many ways: a time, a day, a month and a year are found in
/// whatever order and between whatever signs they stand.
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
    // What ended before there was anything to count from has ended.
    let since = if year < 1970 {
        0
    } else {
        days(year, month, day) * 86_400 + time?
    };
    (is_date && time.is_some()).then_some(since)
}

/// The digits that a word begins with: how many, and their number.
fn leading(word: &str) -> Option<(usize, u64)> {
    let len = word.bytes().take_while(u8::is_ascii_digit).count();
    let number = word.get(..len)?.parse().ok()?;
    Some((len, number))
}

fn time_of(word: &str) -> Option<u64> {
    let mut parts = word.split(':');
    let mut next = || parts.next().and_then(|part| Some(leading(part)?.1));
    let (hour, minute, second) = (next()?, next()?, next()?);
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

fn month_of(word: &str) -> Option<u64> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let name = word.get(..3)?.to_ascii_lowercase();
    let place = NAMES.iter().position(|other| *other == name)?;
    Some(place as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc6265_5_1_1_dates_are_understood_as_servers_write_them() {
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
            "Nov 1994 é:é:é",
        ] {
            assert_eq!(cookie_date(text), None, "{text}");
        }
    }
}
