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

/// A log with a number of a few megabytes used to take minutes: the conversion takes the square of the length of what it converts.
#[test]
fn a_long_integer_is_converted_in_pieces() {
    let digits = digits(300_000);
    let mut longest = 0;
    let mut convert = |piece: &str| {
        longest = longest.max(piece.len());
        BigInt::from_str_radix(piece, 10).ok()
    };
    assert_eq!(split(&digits, 10, &mut convert), big_integer(&digits, 10));
    assert!((1000..=2000).contains(&longest), "{longest}");
}

/// As Ruby 3.1 reads them.
#[test]
fn a_number_may_begin_with_its_point() {
    for (text, value) in [
        (".5", 0.5),
        ("-.5", -0.5),
        (" .25ms", 0.25),
        (".5e1", 5.0),
        (".", 0.0),
        (".e1", 0.0),
        ("..5", 0.0),
        ("._5", 0.0),
    ] {
        assert!((leading_float(text) - value).abs() < 1e-12, "{text}");
    }
    assert_eq!(strict_float(".5"), Some(0.5));
    assert_eq!(strict_float("-.5"), Some(-0.5));
    assert_eq!(strict_float("."), None);
    assert_eq!(strict_float("5."), None);
}
