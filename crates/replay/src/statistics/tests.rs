use super::*;

#[test]
fn chi_squared_agrees_with_tables() {
    for (value, freedom, p) in [
        (3.841, 1.0, 0.05),
        (12.592, 6.0, 0.05),
        (22.458, 6.0, 0.001),
    ] {
        let found = chi_squared_above(value, freedom);
        assert!(
            (found / p - 1.0).abs() < 0.12,
            "{value} of {freedom}: {found}"
        );
    }
}

#[test]
fn the_change_of_transfers_has_the_mean_of_logarithms_and_the_share_beyond_5_percent() {
    let transfer = |ms: f64, loss| Transfer {
        log_ttlb: libm::log(ms),
        loss,
    };
    let pairs = [
        (transfer(100.0, 0.0), transfer(106.0, 0.02)),
        (transfer(200.0, 0.0), transfer(208.0, 0.0)),
    ];
    let change = change(pairs.into_iter());
    let mean = f64::midpoint(libm::log(1.06), libm::log(1.04));
    assert!((change[MEAN] - mean).abs() < 1e-12);
    assert!((change[LOSS] - 0.01).abs() < 1e-12);
    assert!((change[SLOWER] - 0.5).abs() < 1e-12);
}
