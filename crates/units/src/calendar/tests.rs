use super::*;

#[test]
fn dates_follow_each_other_and_are_read_back() {
    for (days, date) in [
        (0, (1970, 1, 1)),
        (-1, (1969, 12, 31)),
        (11_016, (2000, 2, 29)),
        (11_017, (2000, 3, 1)),
        (20_778, (2026, 11, 21)),
    ] {
        assert_eq!(date_of_days(days), date);
    }
    assert_eq!(date_of_days(20_521), (2026, 3, 9));
    assert_eq!(date_of_days(-719_528), (0, 1, 1));
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (mut year, mut month, mut day) = (1896, 1, 1);
    for days in days_of_date(1896, 1, 1)..days_of_date(2404, 1, 1) {
        assert_eq!(date_of_days(days), (year, month, day));
        assert_eq!(days_of_date(year, month, day), days);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = lengths[month as usize - 1] + i64::from(month == 2 && is_leap);
        day += 1;
        if day > length {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
}
