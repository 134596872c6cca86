//! The points of a series as compact text: differences as varints in base64.
//!
//! Times are whole microseconds; values are whole numbers of the row's grain, see [`grain`]. A point is the difference of
//! both to the point before, each zigzag-coded (0, -1, 1, -2 … become 0, 1, 2, 3 …) and cut into groups of seven bits,
//! lowest first, as in LEB128. `page.js` has the inverse.

use crate::scale::Unit;

use super::Point;

#[cfg(test)]
mod tests;

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
