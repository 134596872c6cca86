use super::*;
use crate::figure::{csv, tests::assert_readable};

fn estimate(value: f64, interval: (f64, f64)) -> Estimate {
    Estimate { value, interval }
}

fn front() -> Front {
    let candidate = |name: &str, ttlb, loss, is_on_front| Candidate {
        name: name.to_owned(),
        ttlb,
        loss,
        is_on_front,
    };
    Front {
        baseline: "cubic".to_owned(),
        candidates: vec![
            candidate(
                "fast",
                estimate(-0.2, (-0.25, -0.1)),
                estimate(0.5, (0.25, 1.0)),
                true,
            ),
            candidate(
                "careful",
                estimate(-0.05, (-0.1, 0.02)),
                estimate(-0.25, (-0.5, 0.0)),
                true,
            ),
            candidate(
                "worse",
                estimate(0.03, (-0.9, 0.9)),
                estimate(0.75, (-9.0, 9.0)),
                false,
            ),
        ],
    }
}

/// A share is percent on the axis, and a candidate on the front has its intervals; of the others, there is the estimate alone.
#[test]
fn candidates_are_at_their_estimates() {
    let figure = front().figure();
    assert_eq!(
        csv(core::slice::from_ref(&figure)),
        "chart,panel,series,x,y,x_low,x_high,y_low,y_high\n\
         front,,not on the front,3,0.75,,,,\n\
         front,,fast,-20,0.5,-25,-10,0.25,1\n\
         front,,careful,-5,-0.25,-10,2,-0.5,0\n"
    );
    let panel = &figure.panels[0];
    let looks: Vec<Look> = panel.series.iter().map(|series| series.look).collect();
    assert_ne!(looks[1], looks[2]);
    assert_ne!(looks[0], looks[1]);
    assert_readable(&figure);
}

/// The axes hold all that is drawn, and nothing decides about them that is not; the lines of no change cross in the plot.
#[test]
fn axes_hold_the_front_with_its_intervals() {
    let figure = front().figure();
    let panel = &figure.panels[0];
    let ((left, right), (low, high)) = (panel.x.domain, panel.y.domain);
    assert!(
        (-30.0..-25.0).contains(&left) && (3.0..10.0).contains(&right),
        "{left} {right}"
    );
    assert!(
        (-0.8..-0.5).contains(&low) && (1.0..1.3).contains(&high),
        "{low} {high}"
    );
    assert_eq!(
        panel.guides,
        [[(0.0, low), (0.0, high)], [(left, 0.0), (right, 0.0)]]
    );
    assert_eq!(
        figure.captions.0,
        "change of the time to last byte relative to cubic"
    );
}

#[test]
fn a_front_of_all_candidates_names_no_others() {
    let mut front = front();
    front.candidates.truncate(2);
    let figure = front.figure();
    let names = figure.panels[0].series.iter().map(|one| one.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["fast", "careful"]);
}
