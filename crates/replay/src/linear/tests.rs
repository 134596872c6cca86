use super::*;

#[test]
fn an_outcome_that_is_linear_in_the_features_is_recovered_away_from_the_neighbours_mean() {
    let of: Vec<Vec<f64>> = (0..200_u32)
        .map(|one| vec![f64::from(one % 20) - 9.5, f64::from(one / 20) - 4.5])
        .collect();
    let outcomes: Vec<[f64; 2]> = of
        .iter()
        .map(|at| [1.0 + 2.0 * at[0] - at[1], 3.0 * at[1]])
        .collect();
    let all: Vec<Weighted> = (0..200).map(|path| (path, 1.0 / 200.0)).collect();
    let [first, second] = at(&[1.0, -1.0], &all, &of, &outcomes);
    assert!((first - 4.0).abs() < 0.05, "{first}");
    assert!((second + 3.0).abs() < 0.05, "{second}");
}

#[test]
fn a_system_is_solved() {
    let solved = solve(
        vec![vec![4.0], vec![2.0, 3.0]],
        vec![[2.0, 4.0], [5.0, 2.0]],
    );
    let expected = [[-0.5, 1.0], [2.0, 0.0]];
    for (solved, expected) in solved.iter().zip(expected) {
        for at in [0, 1] {
            assert!((solved[at] - expected[at]).abs() < 1e-12, "{solved:?}");
        }
    }
}
