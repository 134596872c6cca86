//! What pictures of transfers state.

use std::fs;

use super::{command_line, folder, sim, stderr};

/// A first loss by chance is no overshoot, a transfer that is not complete is described as such, and headings name cross traffic.
#[test]
fn a_plot_states_what_happened_only() {
    let folder = folder("plot-truth");
    let draw = |name: &str, more: &[&str]| {
        let file = folder.join(name);
        let plot = file.to_str().expect("UTF-8");
        let mut arguments = vec![
            "--arm", "cubic", "--rate", "10mbit", "--rtt", "40ms", "--plot", plot,
        ];
        arguments.extend(more);
        sim(&arguments);
        fs::read_to_string(&file).expect("a file")
    };
    let full = draw("full.svg", &["--size", "5MB", "--queue", "50ms"]);
    assert!(full.contains("overshoot: "), "a full queue");
    let random = draw(
        "random.svg",
        &["--size", "300kB", "--queue", "10s", "--loss", "10%"],
    );
    assert!(
        random.contains("packets lost at") && !random.contains("overshoot"),
        "random loss"
    );
    let failed = draw(
        "failed.html",
        &command_line("--size 1MB --queue 50ms --loss 60% --time-limit 5s"),
    );
    assert!(
        failed.contains("The transfer is not complete. Of the ")
            && !failed.contains("to the last acknowledgment"),
        "a failed transfer"
    );
    let cross = draw("cross.svg", &["--size", "100kB", "--cross", "cbr:2mbit"]);
    assert!(cross.contains("cross traffic cbr:2mbit"), "the heading");
}

/// The lines of a flow that is complete end there, also if another goes on.
#[test]
fn the_lines_of_a_flow_end_with_it() {
    let folder = folder("plot-ended");
    let file = folder.join("two.html");
    let plot = file.to_str().expect("UTF-8");
    let output = sim(&[
        "--arm",
        "cubic",
        "--rate",
        "10mbit",
        "--rtt",
        "40ms",
        "--size",
        "500kB",
        "--flows",
        "2",
        "--stagger",
        "2s",
        "--plot",
        plot,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(&file).expect("a file");
    let ended: Vec<&str> = page
        .split("\"ended\":")
        .skip(1)
        .filter_map(|part| part.split(',').next())
        .collect();
    let [first, last] = ended[..] else {
        panic!("{ended:?}");
    };
    assert!(first.parse::<f64>().is_ok_and(|ms| ms < 2000.0), "{first}");
    assert!(
        last == "null" || last.parse::<f64>().is_ok_and(|ms| ms > 2000.0),
        "{last}"
    );
}
