use super::*;

#[test]
fn points_that_are_not_finite_are_left_out() {
    let mut dirty = Arm::new("x");
    for (ms, value) in [
        (3.0, 30.0),
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
        (2.0, f64::NAN),
        (-1.0, 5.0),
        (1e300, 5.0),
        (1.0, 10.0),
        (2.0, 1e300),
    ] {
        dirty.sent.push(Point::new(ms, value));
    }
    dirty.recovery = vec![
        (5.0, 4.0),
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
        (2.0, 2.5),
    ];
    dirty.events = vec![(2.0, "b".into()), (f64::NAN, "c".into()), (1.0, "a".into())];
    let clean = arm(&dirty);
    assert_eq!(clean.sent, [Point::new(1.0, 10.0), Point::new(3.0, 30.0)]);
    assert_eq!(clean.recovery, [(1.0, 3.0), (2.0, 2.5)]);
    assert_eq!(clean.events, [(1.0, "a".into()), (2.0, "b".into())]);
    assert!((end(&clean) - 3.0).abs() < 1e-9);
}
