use super::*;

fn page() -> Page {
    Page {
        title: "a <log>".to_owned(),
        answers: vec![Section {
            title: "Answer".to_owned(),
            curves: vec![Curve {
                name: "bbr".to_owned(),
                points: vec![(5.0, -1.0, -2.0, 0.5), (95.0, f64::NAN, 0.0, 0.0)],
            }],
            header: vec!["arm".to_owned()],
            rows: vec![vec!["bbr".to_owned()]],
            ..Section::default()
        }],
        ..Page::default()
    }
}

#[test]
fn a_page_with_a_reason_has_no_answer() {
    let mut page = page();
    assert!(page.html().contains("<th>bbr</th>"));
    page.reasons.push("the check failed".to_owned());
    let html = page.html();
    assert!(html.contains("the check failed") && !html.contains("<th>bbr</th>"));
}

#[test]
fn texts_are_escaped_and_values_that_are_no_numbers_are_left_out() {
    let html = page().html();
    assert!(html.contains("a &lt;log&gt;") && !html.contains("NaN"));
}

#[test]
fn a_curve_has_changes_by_percentile_with_their_intervals() {
    let figure = page().answers[0].figure();
    assert_eq!(
        crate::figure::csv(core::slice::from_ref(&figure)),
        "chart,panel,series,x,y,x_low,x_high,y_low,y_high\nreplay,,bbr,-1,5,-2,0.5,,\n"
    );
    crate::figure::tests::assert_readable(&figure);
}
