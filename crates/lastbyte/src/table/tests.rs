use super::*;

#[test]
fn columns_are_as_wide_as_their_widest_cell() {
    let mut table = Table::new(["arm", "p50", ""]);
    table.row(["a".to_owned(), "–".to_owned(), "1".to_owned()]);
    table.row(["longer".to_owned(), "100 ms".to_owned(), String::new()]);
    let expected = "arm        p50\na            –  1\nlonger  100 ms";
    assert_eq!(table.text_within(None), expected);
    assert_eq!(table.text_within(Some(17)), expected);
}

#[test]
fn columns_that_do_not_fit_follow_below_with_the_name_of_the_row() {
    let mut table = Table::new(["arm", "p50", "p95"]);
    table.row(["slow".to_owned(), "10 ms".to_owned(), "100 ms".to_owned()]);
    let expected = "arm     p50\nslow  10 ms\n\narm      p95\nslow  100 ms";
    assert_eq!(table.text_within(Some(12)), expected);
    // At least one column follows the name.
    assert_eq!(table.text_within(Some(1)), expected);
    let expected = " arm    p50\nslow  10 ms\n\n   p95\n100 ms";
    assert_eq!(table.without_names().text_within(Some(12)), expected);
}

#[test]
fn long_texts_are_wrapped() {
    let mut table = Table::with_text(["key", "meaning"]);
    let word = "x".repeat(30);
    table.row(["a".to_owned(), "a text of several words".to_owned()]);
    table.row(["b".to_owned(), format!("one {word} two")]);
    let text = table.text_within(Some(26));
    let expected = "key  meaning\na    a text of several\n     words\nb    one\n     xxxxxxxxxxxxxxxxxxxxx\n     xxxxxxxxx two";
    assert_eq!(text, expected);
    assert!(table.text_within(None).lines().count() == 3);
}
