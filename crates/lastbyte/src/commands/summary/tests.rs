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
