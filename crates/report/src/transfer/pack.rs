//! The points of a series as compact text: differences as varints in base64.
//!
//! Times are whole microseconds; values are whole numbers of the row's grain, see [`grain`]. A point is the difference of
//! both to the point before, each zigzag-coded (0, -1, 1, -2 … become 0, 1, 2, 3 …) and cut into groups of seven bits,
//! lowest first, as in LEB128. `page.js` has the inverse.

use crate::scale::Unit;

use super::Point;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of a difference of one, in the unit of the values.
pub(super) fn grain(unit: Unit) -> f64 {
    match unit {
        Unit::Bytes => 1.0,
        Unit::BitsPerSecond => 1000.0,
        Unit::Milliseconds | Unit::Percent | Unit::PerSecond | Unit::Number => 0.001,
    }
}

/// The points, packed. They must be clean.
pub(super) fn packed(points: &[Point], grain: f64) -> String {
    let mut bytes = Vec::with_capacity(points.len() * 4);
    let (mut time, mut value) = (0, 0);
    for point in points {
        let (new_time, new_value) = (whole(point.ms / 0.001), whole(point.value / grain));
        varint(&mut bytes, new_time - time);
        varint(&mut bytes, new_value - value);
        (time, value) = (new_time, new_value);
    }
    base64(&bytes)
}

/// A whole number such that it and its differences are exact in JavaScript.
pub(super) fn whole(value: f64) -> i64 {
    const MAX: f64 = (1_u64 << 51) as f64;
    value.round().clamp(-MAX, MAX) as i64
}

pub(super) fn varint(bytes: &mut Vec<u8>, difference: i64) {
    let mut rest = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// RFC 4648 §4, without padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 4);
    for group in bytes.chunks(3) {
        let mut bits = 0;
        for index in 0..3 {
            bits = bits << 8 | usize::from(group.get(index).copied().unwrap_or(0));
        }
        for index in 0..=group.len() {
            text.push(ALPHABET[bits >> (18 - 6 * index) & 63] as char);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_rfc_test_vectors() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn packed_values_are_read_back() {
        let points = [
            Point::new(0.0, 0.0),
            Point::new(39.1234, 1200.0),
            Point::new(39.1234, 2400.0),
            Point::new(1e9, -1e15),
            Point::new(1e9, 1e15),
        ];
        let mut bytes = Vec::new();
        let (mut bits, mut count) = (0_u32, 0);
        for c in packed(&points, 1.0).bytes() {
            let digit = ALPHABET.iter().position(|known| *known == c);
            bits = bits << 6 | digit.expect("a digit of base64") as u32;
            count += 6;
            if count >= 8 {
                count -= 8;
                bytes.push((bits >> count) as u8);
            }
        }
        let mut bytes = bytes.into_iter();
        let mut next = || {
            let (mut value, mut shift) = (0_u64, 0);
            loop {
                let byte = bytes.next().expect("another byte");
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
                }
            }
        };
        let (mut time, mut value) = (0, 0);
        for point in points {
            time += next();
            value += next();
            assert_eq!(time, (point.ms * 1000.0).round() as i64);
            assert_eq!(value, (point.value as i64).clamp(-(1 << 51), 1 << 51));
        }
        assert!(bytes.next().is_none());
    }

    #[test]
    fn a_packet_takes_about_six_characters() {
        let points: Vec<Point> = (0..10_000)
            .map(|i| Point::new(f64::from(i) * 0.171, f64::from(i) * 1200.0))
            .collect();
        assert!(packed(&points, 1.0).len() < 60_000);
    }
}
