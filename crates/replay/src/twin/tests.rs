use super::*;

/// A transfer at this rate that stops, and goes on, at these times.
fn curve(rate: f64, stop: Option<(usize, usize)>) -> Vec<f64> {
    let mut value = 0.0;
    let grow = |at: usize| {
        let is_stopped = stop.is_some_and(|(from, to)| (from..to).contains(&at));
        value += if is_stopped { 0.0 } else { rate };
        value
    };
    (0..200).map(grow).collect()
}

#[test]
fn a_pause_that_no_path_has_is_where_the_twin_parts() {
    let curves: Vec<Vec<f64>> = (0..60)
        .map(|path| curve(500.0 + 20.0 * f64::from(path), None))
        .collect();
    let found = parting(&curve(1007.0, None), &curves, 2).expect("curves");
    assert!(
        found.at.is_none() && (25..=26).contains(&found.twin),
        "{found:?}"
    );
    let found = parting(&curve(1007.0, Some((100, 150))), &curves, 2).expect("curves");
    let at = found.at.expect("a parting");
    assert!((95..=105).contains(&at), "{found:?}");
    assert!(found.difference < 0.0, "{found:?}");
    // A path that has it is a twin to the end.
    let mut with_pause = curves.clone();
    with_pause.push(curve(1000.0, Some((100, 150))));
    let found = parting(&curve(1007.0, Some((100, 150))), &with_pause, 2).expect("curves");
    assert_eq!((found.at, found.twin), (None, 60));
    assert_eq!(parting(&curve(1.0, None), &curves[..2], 2), None);
}
