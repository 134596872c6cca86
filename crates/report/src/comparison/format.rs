//! How numbers are written.

use crate::statistics::tests_of::Estimate;

/// Shown for an unknown value.
pub(super) const ABSENT: &str = "–";

/// A signed number with this many decimals; nothing is minus zero.
pub(super) fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.chars().all(|c| c == '0' || c == '.');
    match value {
        _ if is_zero => text,
        value if value < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// A change: `−14.7 %` of −0.147.
pub(super) fn percent(value: f64) -> String {
    format!("{}\u{a0}%", bare_percent(value))
}

fn bare_percent(value: f64) -> String {
    let value = value * 100.0;
    signed(value, percent_decimals(value))
}

fn percent_decimals(percent: f64) -> usize {
    usize::from(percent.abs() < 99.95)
}

/// A change in percent, rounded as [`percent`] writes it. The program of the page rounds another way, which then makes no difference.
pub(super) fn rounded_percent(value: f64) -> Option<f64> {
    let percent = value * 100.0;
    let decimals = percent_decimals(percent);
    let text = format!("{percent:.decimals$}");
    text.parse().ok().filter(|it: &f64| it.is_finite())
}

/// `−16.0 to −13.1 %`. An interval without an upper end is `at least −16.0 %`. The program of the page writes the same.
pub(super) fn percent_range((low, high): (f64, f64)) -> String {
    if high == f64::INFINITY {
        return if low > -1.0 {
            format!("at least {}", percent(low))
        } else {
            "unbounded".to_owned()
        };
    }
    format!(
        "{} to\u{a0}{}\u{a0}%",
        bare_percent(low),
        bare_percent(high)
    )
}

/// A share: `12.3 %`.
pub(super) fn share(value: f64) -> String {
    format!("{:.1}\u{a0}%", value * 100.0)
}

/// `11.1 to 13.6 %`.
pub(super) fn share_range((low, high): (f64, f64)) -> String {
    format!("{:.1} to\u{a0}{:.1}\u{a0}%", low * 100.0, high * 100.0)
}

/// Percentage points: `+0.46 pp`.
pub(super) fn points(value: f64) -> String {
    format!("{}\u{a0}pp", signed(value, 2))
}

pub(super) fn points_range((low, high): (f64, f64)) -> String {
    format!("{} to\u{a0}{}\u{a0}pp", signed(low, 2), signed(high, 2))
}

/// A whole number with thin spaces between its thousands.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A whole number and what follows for one, or for more or none.
pub(super) fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(value), if value == 1 { one } else { many })
}

/// `= 0.032`, `< 0.0001`.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.0001 {
        "<\u{a0}0.0001".to_owned()
    } else if p < 0.1 {
        format!("=\u{a0}{p:.4}")
    } else {
        format!("=\u{a0}{p:.2}")
    }
}

/// A time in milliseconds: `1 234`, `14.52`. Whole milliseconds have no decimals, others three digits or so. The program of
/// the page writes the same.
pub(super) fn bare_milliseconds(micros: u64) -> String {
    let step = match micros {
        100_000.. => 100,
        10_000.. => 10,
        _ => 1,
    };
    let micros = (micros + step / 2) / step * step;
    let decimals = format!("{:03}", micros % 1000);
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    format!("{}{point}{decimals}", count(micros / 1000))
}

/// A value in thousandths of this unit.
pub(super) fn value(thousandths: Option<u64>, unit: &str) -> String {
    thousandths.map_or_else(
        || ABSENT.to_owned(),
        |value| with_unit(&bare_milliseconds(value), unit),
    )
}

/// A number and its unit, if there is one.
pub(super) fn with_unit(number: &str, unit: &str) -> String {
    if unit.is_empty() {
        number.to_owned()
    } else {
        format!("{number}\u{a0}{unit}")
    }
}

/// A mean: of numbers from 100 on a whole one.
pub(super) fn mean_value(thousandths: Option<f64>, unit: &str) -> String {
    let rounded = thousandths.map(|value| {
        if value < 100_000.0 {
            value.round() as u64
        } else {
            (value / 1000.0).round() as u64 * 1000
        }
    });
    value(rounded, unit)
}

/// An estimate in hundredths of a percent as one in percentage points.
pub(super) fn hundredths(estimate: Option<Estimate>) -> Option<Estimate> {
    estimate.map(|one| Estimate {
        value: one.value / 100.0,
        interval: (one.interval.0 / 100.0, one.interval.1 / 100.0),
    })
}
