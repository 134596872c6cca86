//! The values of a spec's keys: sizes, factors, switches, and names from a list.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::config::WindowSize;

/// A window: `30p` (datagrams) or `44160B`, `40kB`, `1.5MB`, `1MiB`; at most `DATAGRAMS_MAX` and `BYTES_MAX`. Sizes are
/// written as everywhere in Lastbyte (`docs/units.md`), but a unit is required, since a bare number could mean
/// datagrams.
pub(super) fn window(text: &str, datagrams_min: u64) -> Result<WindowSize, String> {
    const BYTES_MAX: u64 = 1 << 30;
    const DATAGRAMS_MAX: u64 = 500_000;
    /// The smallest datagram that QUIC permits (RFC 9000 §14).
    const DATAGRAM_MIN: u64 = 1200;
    let bytes_min = datagrams_min * DATAGRAM_MIN;
    let allowed = || {
        format!(
            "{datagrams_min}p to {DATAGRAMS_MAX}p datagrams, or {bytes_min}B to 1GiB (such as `30p`, `44160B`, `64KiB`)"
        )
    };
    let (number, unit) = split_unit(text);
    let size = if unit == "p" {
        WindowSize::Datagrams(number.parse().map_err(|_| allowed())?)
    } else {
        let scale = byte_unit(unit).ok_or_else(allowed)?;
        let number: f64 = number.parse().map_err(|_| allowed())?;
        // Windows are far below 2^53, where this is exact.
        WindowSize::Bytes((number * scale as f64 + 0.5) as u64)
    };
    let is_allowed = match size {
        WindowSize::Datagrams(datagrams) => (datagrams_min..=DATAGRAMS_MAX).contains(&datagrams),
        WindowSize::Bytes(bytes) | WindowSize::Limited { limit: bytes, .. } => {
            (bytes_min..=BYTES_MAX).contains(&bytes)
        }
    };
    if is_allowed { Ok(size) } else { Err(allowed()) }
}

fn split_unit(text: &str) -> (&str, &str) {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(digits)
}

fn byte_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" | "kiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    })
}

/// A number between two bounds, inclusive.
pub(super) fn factor(text: &str, min: f64, max: f64) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|factor| (min..=max).contains(factor))
        .ok_or_else(|| format!("{min} to {max}"))
}

/// `on` or `off`.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    choice(text, ["on", "off"].into_iter()).map(|name| name == "on")
}

/// One of these names.
pub(super) fn choice(
    text: &str,
    mut names: impl Iterator<Item = &'static str> + Clone,
) -> Result<&'static str, String> {
    let all = names.clone();
    names.find(|name| *name == text).ok_or_else(|| one_of(all))
}

/// `one of a, b, c`.
fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.as_slice() {
        [only] => (*only).to_string(),
        names => format!("one of {}", names.join(", ")),
    }
}
