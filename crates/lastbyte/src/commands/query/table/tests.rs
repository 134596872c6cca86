use super::*;

fn records(lines: &[&str], width: usize) -> Records {
    let mut records = Records::new(width);
    let query = lastbyte_query::Query::compile("_", &[], lastbyte_query::Options::default());
    let input = lastbyte_query::Input::from_bytes("rows", lines.join("\n").into_bytes());
    let outcome = query
        .expect("a query")
        .for_each_record(vec![input], |names, fields| records.push(names, &fields));
    assert!(outcome.errors.is_empty());
    records
}

fn text(lines: &[&str]) -> String {
    records(lines, 80).table().expect("records").text()
}

#[test]
fn numbers_are_to_the_right_and_texts_to_the_left() {
    let rows = [
        "{\"n\":1,\"site\":\"EU\",\"tags\":[\"a\",{\"b\":1}],\"x\":null}",
        "{\"n\":12.5,\"site\":\"North\",\"tags\":null,\"x\":7}",
    ];
    let expected = "   n  site   tags           x\n   1  EU     [\"a\",{\"b\":1}]\n12.5  North                 7";
    assert_eq!(text(&rows), expected);
    assert_eq!(
        text(&["[1,2]", "[3,4]"]),
        "column1  column2\n      1        2\n      3        4"
    );
    assert_eq!(text(&["\"a\"", "\"b\""]), "value\na\nb");
}

#[test]
fn a_single_record_has_a_line_for_each_field() {
    let rows = ["{\"EU\":120,\"North\":9}"];
    assert_eq!(text(&rows), "key    value\nEU       120\nNorth      9");
    let rows = ["{\"n\":120,\"site\":\"EU\"}"];
    assert_eq!(text(&rows), "key   value\nn     120\nsite  EU");
    assert_eq!(text(&["{\"n\":120}"]), "  n\n120");
    assert!(records(&[], 80).table().is_none());
}

#[test]
fn long_cells_are_cut_and_stay_on_a_line() {
    let long = format!("\"{}\"", "x".repeat(100));
    let cut = format!("value\n{}…\n{}…", "x".repeat(79), "x".repeat(79));
    assert_eq!(text(&[&long, &long]), cut);
    assert_eq!(
        text(&["\"a\\nb\\u001b[0m\"", "1"]),
        "value\na\\nb\\u{1b}[0m\n1"
    );
    // The mark fits, also where an escape does not.
    for count in 0..12 {
        let short = shown(&format!("{}\u{1b}\u{1b}x", "a".repeat(count)), 10);
        assert!(short.chars().count() <= 10, "{short}");
        assert!(
            short.ends_with('…') || count == 0 && short.len() == 10,
            "{short}"
        );
    }
}

#[test]
fn rows_and_cells_are_bounded() {
    let row = "[1,2]";
    let most = records(&vec![row; ROWS_MAX], 80);
    assert!(!most.is_cut);
    let more = records(&vec![row; ROWS_MAX + 1], 80);
    assert!(more.is_cut);
    assert_eq!(more.rows.len(), ROWS_MAX);
    let wide = format!("[{}1]", "1,".repeat(CELLS_MAX / 2 - 1));
    let wide = records(&[&wide, &wide, &wide], 80);
    assert_eq!((wide.is_cut, wide.rows.len()), (true, 2));
}
