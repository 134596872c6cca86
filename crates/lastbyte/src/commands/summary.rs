//! The table that `ab` and `report` print: times and losses by arm.

use lastbyte_report::comparison::{Metric, Summary};

use crate::table::Table;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_against_the_baseline() {
        let arm = |name: &str, ttlb_ms: [Option<f64>; 4]| Summary {
            arm: name.to_owned(),
            connections: 4,
            completed: 3,
            ttlb_ms,
            loss_percent: [Some(0.5), None, None, None],
        };
        let arms = [
            arm("new", [Some(90.0), Some(110.256), None, Some(5.0)]),
            arm("old", [Some(100.0), Some(100.0), Some(1.0), None]),
        ];
        let text = table(&arms, 1, &Metric::default());
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip(1)
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect();
        let wanted = [
            "new",
            "4",
            "75.00 %",
            "90 (-10.0 %)",
            "110.3 (+10.3 %)",
            "never",
            "5 ms",
            "0.50 %",
            "–",
            "–",
            "–",
        ];
        assert_eq!(rows[0], wanted, "{text}");
        assert_eq!(
            rows[1][3..7],
            ["100 ms", "100 ms", "1 ms", "never"],
            "{text}"
        );
    }
}
