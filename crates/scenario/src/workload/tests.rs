use super::*;

#[test]
fn rounds_are_of_objects_at_once() {
    let workload = Workload {
        requests: 2,
        parallel: 3,
        pause: Duration::from_secs(1),
        direction: Direction::Down,
    };
    let requests = workload.requests(|number| 100 + number);
    let plan: Vec<(u64, u64, bool)> = requests
        .iter()
        .map(|one| (one.size, one.pause.as_secs(), one.is_parallel))
        .collect();
    assert_eq!(
        plan,
        [
            (100, 0, false),
            (101, 0, true),
            (102, 0, true),
            (103, 1, false),
            (104, 1, true),
            (105, 1, true),
        ]
    );
    assert_eq!(
        workload.describe().as_deref(),
        Some("3 responses at once, 2 times, 1000ms apart")
    );
    assert_eq!(Workload::default().requests(|_| 7), [Request::of(7)]);
    assert_eq!(Workload::default().describe(), None);
}

#[test]
fn numbers_out_of_range_are_errors() {
    let error = |workload: Workload| workload.check().expect_err("out of range").to_string();
    let base = Workload::default();
    assert_eq!(
        error(Workload {
            requests: 0,
            ..base
        }),
        "`requests`: 0 (expected a whole number from 1 to 1000)"
    );
    assert_eq!(
        error(Workload {
            parallel: 51,
            ..base
        }),
        "`parallel`: 51 (expected a whole number from 1 to 50)"
    );
    let pause = Duration::from_secs(1);
    assert_eq!(
        error(Workload { pause, ..base }),
        "`pause`: it needs `requests` of 2 or more"
    );
}
