//! The table that `ab` and `report` print: times and losses by arm.

use lastbyte_report::comparison::{Metric, Summary};

use crate::table::Table;

#[cfg(test)]
mod tests;

/// A row for each arm, with percentiles of this metric. The changes are against the arm at this place.
pub(crate) fn table(arms: &[Summary], baseline: usize, metric: &Metric) -> String {
    let p25 = format!("{} p25", metric.name);
    let complete = match metric.expression() {
        None => "complete",
        Some(_) => "with value",
    };
    let mut table = Table::new([
        "arm", "conns", complete, &p25, "p50", "p75", "p95", "loss avg", "p50", "p90", "p99",
    ]);
    let base = arms.get(baseline);
    for (place, arm) in arms.iter().enumerate() {
        let mut row = vec![arm.arm.clone(), arm.connections.to_string()];
        row.push(if arm.connections > 0 {
            let share = arm.completed as f64 / arm.connections as f64;
            format!("{:.2} %", share * 100.0)
        } else {
            ABSENT.to_owned()
        });
        let bases = base.map_or([None; 4], |base| base.ttlb_ms);
        for (value, base) in arm.ttlb_ms.into_iter().zip(bases) {
            row.push(match (value, base) {
                (None, _) if arm.connections > 0 => "never".to_owned(),
                (None, _) => ABSENT.to_owned(),
                (Some(value), Some(base)) if place != baseline && base > 0.0 => {
                    format!("{} ({:+.1} %)", ms(value), (value / base - 1.0) * 100.0)
                }
                (Some(value), _) => format!("{} {}", ms(value), metric.unit)
                    .trim_end()
                    .to_owned(),
            });
        }
        for loss in arm.loss_percent {
            row.push(loss.map_or_else(|| ABSENT.to_owned(), |loss| format!("{loss:.2} %")));
        }
        table.row(row);
    }
    table.text() + "\n"
}

/// Whole milliseconds as they are, others to three digits or so.
fn ms(value: f64) -> String {
    let scale = match value {
        100.0.. => 10.0,
        10.0.. => 100.0,
        _ => 1000.0,
    };
    ((value * scale).round() / scale).to_string()
}

/// Shown for an unknown value.
const ABSENT: &str = "–";
