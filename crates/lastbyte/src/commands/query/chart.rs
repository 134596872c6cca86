//! `-o chart`: histograms, a number for each group, and percentiles, drawn with characters.

use super::table::shown;
use core::fmt::Write as _;
use lastbyte_query::{Measure, Scale, Value};
use lastbyte_record::connection_log::schema::unit_of;

#[cfg(test)]
mod tests;

/// Maximum number of bars, and characters of their names.
const BARS_MAX: usize = 200;
const NAME_MAX: usize = 30;

/// Marks of the curves, one for each group.
const MARKS: [char; 6] = ['*', 'o', '+', 'x', '#', '@'];

/// Steps of the vertical axis of curves, and lines of each.
const STEPS: f64 = 4.0;
const STEP_LINES: usize = 4;

/// Columns of a drawing, at least.
const PLOT_MIN: usize = 20;

/// Eighths of a bar's last character.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Draws a result, or returns what can be drawn.
pub(super) fn draw(
    result: &[Value],
    measure: Option<&Measure>,
    width: usize,
) -> Result<String, String> {
    if let Some(curve) = numbers(result) {
        return curves(&[(String::new(), curve)], measure, width);
    }
    let [Value::Object(members)] = result else {
        return Err(refused("another value"));
    };
    let of_lists = members.iter().map(|(name, value)| {
        let list = value.as_array().and_then(numbers)?;
        Some((shown(name, NAME_MAX), list))
    });
    if let Some(lists) = of_lists.collect::<Option<Vec<_>>>()
        && !lists.is_empty()
    {
        return curves(&lists, measure, width);
    }
    let of_numbers = members.iter().map(|(name, value)| {
        let number = match value {
            Value::Null => None,
            value => Some(finite(value)?),
        };
        Some((name.clone(), number))
    });
    match of_numbers.collect::<Option<Vec<_>>>() {
        Some(bars) if !bars.is_empty() => draw_bars(bars, measure, width),
        Some(_) => Err(refused("an empty Hash")),
        None => Err(refused("a Hash with other values")),
    }
}

/// The error of a result that is none of these.
pub(super) fn refused(what: &str) -> String {
    format!(
        "-o chart cannot draw {what} (expected one result: `histogram(e, width)`, a number for each group as in `group_by(key) {{ count() }}`, or percentiles as in `percentile(e, [0.1, 0.5, 0.9])`, also by group)"
    )
}

/// A number whose distance from others is a number.
fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|it| it.abs() <= f64::MAX / 4.0)
}

/// At least two numbers.
fn numbers(values: &[Value]) -> Option<Vec<f64>> {
    let list: Option<Vec<f64>> = values.iter().map(finite).collect();
    list.filter(|list| list.len() > 1)
}

/// What the numbers are of, with the unit if it is known.
fn title(measure: Option<&Measure>) -> String {
    let Some(key) = measure.and_then(|measure| measure.key.as_deref()) else {
        return String::new();
    };
    let name = shown(key, NAME_MAX);
    match unit_of(key) {
        Some(unit) if !unit.is_empty() => format!("{name}, {unit}"),
        _ => name,
    }
}

/// A number with four digits, or all of those before the point.
fn number(it: f64) -> String {
    let digits = it.abs().max(1.0).log10().floor();
    let text = format!("{it:.*}", (3.0 - digits).max(0.0) as usize);
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    if text == "-0" { "0" } else { text }.to_owned()
}

/// The bound of the next bucket.
fn next_bucket(bound: f64, width: Option<f64>) -> f64 {
    match width {
        Some(width) => bound + width,
        None if bound < 0.0 => bound / 2.0,
        None => bound * 2.0,
    }
}

/// A name, and a number unless there is none.
type Bar = (String, Option<f64>);

/// The buckets of a histogram, also the empty ones if they are few; `⋮` stands for many.
fn with_empty(buckets: Vec<Bar>, width: Option<f64>) -> Vec<Bar> {
    let mut all: Vec<Bar> = Vec::new();
    let mut before: Option<f64> = None;
    for (name, count) in buckets {
        let bound = name.parse().unwrap_or(0.0);
        if let Some(before) = before {
            let mut empty = Vec::new();
            let mut next = next_bucket(before, width);
            let step = next - before;
            // Bounds are multiples of the width, as far as floats have them.
            while step > 0.0 && before * bound >= 0.0 && next + step / 2.0 < bound {
                empty.push((number(next), Some(0.0)));
                next = next_bucket(next, width);
                if empty.len() > BARS_MAX / 10 {
                    empty = vec![("⋮".to_owned(), None)];
                    break;
                }
            }
            all.extend(empty);
        }
        all.push((name, count));
        before = Some(bound);
    }
    all
}

fn draw_bars(bars: Vec<Bar>, measure: Option<&Measure>, width: usize) -> Result<String, String> {
    let scale = measure.map(|measure| &measure.scale);
    let of = title(measure);
    let (bars, header, value) = match scale {
        Some(Scale::Buckets(width)) => (with_empty(bars, *width), of, "count".to_owned()),
        _ => (bars, String::new(), of),
    };
    if bars.len() > BARS_MAX {
        return Err(format!(
            "-o chart draws {BARS_MAX} bars at most, not {} (expected wider buckets, or fewer groups)",
            bars.len()
        ));
    }
    let is_histogram = matches!(scale, Some(Scale::Buckets(_)));
    let rows: Vec<(String, String, f64)> = bars
        .iter()
        .map(|(name, it)| {
            let value = it.map_or(String::new(), number);
            (shown(name, NAME_MAX), value, it.unwrap_or(0.0))
        })
        .collect();
    let widest = |texts: &mut dyn Iterator<Item = &str>| {
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let names = widest(&mut rows.iter().map(|row| &*row.0).chain([&*header]));
    let values = widest(&mut rows.iter().map(|row| &*row.1).chain([&*value]));
    let room = width.saturating_sub(names + values + 4).max(PLOT_MIN);
    let low = rows.iter().map(|row| row.2).fold(0.0, f64::min);
    let high = rows.iter().map(|row| row.2).fold(0.0, f64::max);
    let place = |it: f64| {
        let span = high - low;
        if span > 0.0 {
            (it - low) / span * room as f64
        } else {
            0.0
        }
    };
    let mut text = String::new();
    // Writing to a `String` does not fail.
    if !header.is_empty() || !value.is_empty() {
        let _ = writeln!(text, "{header:>names$}  {value:>values$}");
    }
    let zero = place(0.0).round() as usize;
    for (name, shown, it) in &rows {
        let bar = if *it < 0.0 {
            let start = place(*it).round() as usize;
            " ".repeat(start) + &"█".repeat(zero.saturating_sub(start))
        } else {
            let eighths = ((place(*it) - zero as f64).max(0.0) * 8.0).round() as usize;
            // What is more than nothing is seen.
            let eighths = eighths.max(usize::from(*it > 0.0));
            " ".repeat(zero) + &"█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
        };
        let name = if is_histogram {
            format!("{name:>names$}")
        } else {
            format!("{name:<names$}")
        };
        let line = format!("{name}  {shown:>values$}  {bar}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let (low, high) = (number(low), number(high));
    let indent = " ".repeat(names + values + 4);
    let _ = writeln!(text, "{indent}├{}┤", "─".repeat(room - 2));
    let rest = room.saturating_sub(low.chars().count());
    let _ = writeln!(text, "{indent}{low}{high:>rest$}");
    Ok(text)
}

/// The width of a step of an axis, so that its bounds are round: 1, 2 or 5 times a power of ten.
fn step(span: f64) -> f64 {
    let least = (span / STEPS).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(least.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter();
    let mut fitting = times.map(|times| times * power).filter(|it| *it >= least);
    fitting.next().unwrap_or(10.0 * power)
}

fn curves(
    curves: &[(String, Vec<f64>)],
    measure: Option<&Measure>,
    width: usize,
) -> Result<String, String> {
    let shares = match measure.map(|measure| &measure.scale) {
        Some(Scale::Shares(shares)) => shares.clone(),
        _ => Vec::new(),
    };
    let count = curves[0].1.len();
    if curves.iter().any(|(_, curve)| curve.len() != count) {
        return Err(refused("lists of different lengths"));
    }
    if curves.len() > MARKS.len() {
        return Err(format!(
            "-o chart draws {} curves at most, not {} (expected fewer groups)",
            MARKS.len(),
            curves.len()
        ));
    }
    // Without shares, the places in the list.
    let is_of_shares = shares.len() == count && shares.is_sorted_by(|a, b| a < b);
    let xs: Vec<f64> = if is_of_shares {
        shares.iter().map(|share| share * 100.0).collect()
    } else {
        (1..=count).map(|place| place as f64).collect()
    };
    let all = || curves.iter().flat_map(|(_, curve)| curve.iter().copied());
    let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let step = step(high - low);
    let first = (low / step).floor();
    let steps = ((high / step).ceil() - first).max(1.0) as usize;
    let lines = steps * STEP_LINES;
    let labels: Vec<String> = (0..=steps)
        .map(|at| number((first + at as f64) * step))
        .collect();
    let label_width = labels
        .iter()
        .map(|it| it.chars().count())
        .max()
        .unwrap_or(0);
    let room = width.saturating_sub(label_width + 3).max(PLOT_MIN);
    let mut grid = vec![vec![' '; room]; lines + 1];
    let (start, span) = (xs[0], xs[count - 1] - xs[0]);
    for ((_, curve), mark) in curves.iter().zip(MARKS) {
        for column in 0..room {
            let x = start + span * column as f64 / (room - 1) as f64;
            let after = xs
                .iter()
                .position(|it| *it >= x)
                .unwrap_or(count - 1)
                .max(1);
            let (x0, x1) = (xs[after - 1], xs[after]);
            let part = ((x - x0) / (x1 - x0)).clamp(0.0, 1.0);
            let y = curve[after - 1] + (curve[after] - curve[after - 1]) * part;
            let line = ((y / step - first) * STEP_LINES as f64).round() as usize;
            let row = grid.get_mut(line.min(lines));
            if let Some(cell) = row.and_then(|row| row.get_mut(column)) {
                *cell = mark;
            }
        }
    }
    let mut text = String::new();
    // Writing to a `String` does not fail.
    let of = title(measure);
    if !of.is_empty() {
        let _ = writeln!(text, "{of}");
    }
    for (line, row) in grid.iter().enumerate().rev() {
        let label = match line % STEP_LINES {
            0 => labels[line / STEP_LINES].as_str(),
            _ => "",
        };
        let tick = if label.is_empty() { '│' } else { '┤' };
        let row: String = row.iter().collect();
        let _ = writeln!(text, "{label:>label_width$} {tick}{}", row.trim_end());
    }
    let indent = " ".repeat(label_width + 1);
    let _ = writeln!(text, "{indent}└{}", "─".repeat(room));
    let unit = if is_of_shares { " %" } else { "" };
    let middle = format!("{}{unit}", number(start + span / 2.0));
    let (left, right) = (number(start), format!("{}{unit}", number(xs[count - 1])));
    let centre = middle.chars().count() / 2;
    let half = (room / 2 + centre).saturating_sub(left.chars().count());
    let rest = (room - room / 2).saturating_sub(centre);
    let _ = writeln!(text, "{indent} {left}{middle:>half$}{right:>rest$}");
    let named = curves.iter().zip(MARKS);
    let named = named.filter(|((name, _), _)| !name.is_empty());
    let legend: Vec<String> = named
        .map(|((name, _), mark)| format!("{mark} {name}"))
        .collect();
    if !legend.is_empty() {
        let _ = writeln!(text, "{indent} {}", legend.join("   "));
    }
    Ok(text)
}
