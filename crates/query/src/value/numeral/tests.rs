#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the time of two conversions is compared"
)]

use std::time::Instant;

use super::*;

/// Digits that do not repeat.
fn digits(count: usize) -> String {
    let digit = |index: usize| char::from(b'1' + (index * index / 7 % 9) as u8);
    (0..count).map(digit).collect()
}

#[test]
fn long_integers_are_read_as_short_ones() {
    for count in [1, 1999, 2000, 2001, 4003, 40_000] {
        for base in [2, 3, 10, 36] {
            let digits = match base {
                2 | 3 => digits(count).replace(|digit| digit > '1', "0"),
                _ => digits(count),
            };
            let expected = BigInt::from_str_radix(&digits, base).expect("digits");
            assert_eq!(
                big_integer(&digits, base),
                Some(expected),
                "{count}, {base}"
            );
        }
    }
    let many = digits(3000);
    assert_eq!(big_integer(&format!("{many}+{many}"), 10), None);
    assert_eq!(big_integer(&format!("{many}x{many}"), 10), None);
    assert_eq!(big_integer(&format!("{many}ä{many}"), 10), None);
}

/// A log with a number of a few megabytes used to take minutes.
#[test]
fn a_long_integer_takes_less_than_the_square_of_its_length() {
    let digits = digits(300_000);
    let time = |parse: &dyn Fn() -> Option<BigInt>| {
        let start = Instant::now();
        assert!(parse().is_some());
        start.elapsed()
    };
    let own = (0..3).map(|_| time(&|| big_integer(&digits, 10))).min();
    let direct = time(&|| BigInt::from_str_radix(&digits, 10).ok());
    assert!(own.expect("three") * 2 < direct, "{own:?}, {direct:?}");
}
