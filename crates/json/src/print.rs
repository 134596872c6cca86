//! Numbers and strings as JSON text.

use std::fmt::Write as _;

/// Appends an integer.
pub fn write_integer(out: &mut String, it: i64) {
    if let 0..10 = it {
        out.push(char::from(b'0' + it as u8));
        return;
    }
    // The longest has nineteen digits.
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = it.unsigned_abs();
    while rest > 0 && first > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if it < 0 {
        out.push('-');
    }
    out.push_str(std::str::from_utf8(&digits[first..]).unwrap_or_default());
}

/// Appends the shortest digits that are read back as the same number, in the form of Ruby's `Float#to_s`. The form of
/// infinities and NaN is not JSON.
pub fn write_float(out: &mut String, it: f64) {
    if it.is_nan() {
        return out.push_str("NaN");
    }
    if it.is_infinite() {
        return out.push_str(if it > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let magnitude = it.abs();
    if it == 0.0 || (1e-4..1e15).contains(&magnitude) {
        let mut buffer = ryu::Buffer::new();
        let text = buffer.format_finite(it);
        if !text.contains('e') {
            return out.push_str(text);
        }
    }
    let (digits, exponent) = digits_of(magnitude);
    if it.is_sign_negative() {
        out.push('-');
    }
    // The value is 0.DIGITS times ten to the `exponent`.
    if -3 <= exponent && (exponent <= 15 || exponent == 16 && digits.len() > 16) {
        return write_plain(out, &digits, exponent);
    }
    out.push_str(&digits[..1]);
    out.push('.');
    out.push_str(if digits.len() > 1 { &digits[1..] } else { "0" });
    let power = exponent - 1;
    out.push_str(if power < 0 { "e-" } else { "e+" });
    let power = power.unsigned_abs().to_string();
    if power.len() < 2 {
        out.push('0');
    }
    out.push_str(&power);
}

fn write_plain(out: &mut String, digits: &str, exponent: isize) {
    let point = exponent.max(0) as usize;
    if exponent <= 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', exponent.unsigned_abs()));
        out.push_str(digits);
    } else if digits.len() <= point {
        out.push_str(digits);
        out.extend(std::iter::repeat_n('0', point - digits.len()));
        out.push_str(".0");
    } else {
        out.push_str(&digits[..point]);
        out.push('.');
        out.push_str(&digits[point..]);
    }
}

/// The shortest digits, and the exponent of `0.DIGITS`.
fn digits_of(magnitude: f64) -> (String, isize) {
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(magnitude);
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let power: isize = power.parse().unwrap_or(0);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: String = [whole, fraction].concat();
    let leading = all.len() - all.trim_start_matches('0').len();
    let digits = all.trim_matches('0');
    (
        digits.to_owned(),
        power.saturating_add_unsigned(whole.len()) - leading.cast_signed(),
    )
}

/// Appends a string in quotes, with `"`, `\` and the controls below a space escaped.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    loop {
        let plain = plain_length(rest.as_bytes());
        out.push_str(&rest[..plain]);
        let Some(byte) = rest.as_bytes().get(plain) else {
            break;
        };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            other => {
                let _ = write!(out, "\\u{other:04x}");
            }
        }
        rest = &rest[plain + 1..];
    }
    out.push('"');
}

/// Whether a string is printed without escapes.
pub fn is_plain(text: &str) -> bool {
    plain_length(text.as_bytes()) == text.len()
}

/// The number of bytes before the first that must be escaped.
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let special = zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5c)) | control;
        if special != 0 {
            // The lowest mark is true; those above it may be a borrow's.
            return at * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    let plain = rest.iter().position(special).unwrap_or(rest.len());
    text.len() - rest.len() + plain
}

#[cfg(test)]
mod tests;
