use super::*;
use crate::value::inspect::inspect;

#[test]
fn kept_rows_are_not_overwritten() {
    let projection = Projection::Fields(vec![("a".to_owned(), Projection::Whole)]);
    let mut reader = Reader::new(&projection);
    let bytes = b"{\"a\":\"one\"}\n{\"a\":\"two\"}\n";
    assert_eq!(reader.line(bytes, 0), Line::Row(12));
    let first = reader.row(bytes);
    assert_eq!(reader.line(bytes, 12), Line::Row(24));
    let second = reader.row(bytes);
    let shown = |row: &Option<Value>| row.as_ref().map(inspect);
    assert_eq!(shown(&first).as_deref(), Some("{\"a\" => \"one\"}"));
    assert_eq!(shown(&second).as_deref(), Some("{\"a\" => \"two\"}"));
}

#[test]
fn changed_rows_are_not_reused() {
    let projection = Projection::Whole;
    let mut reader = Reader::new(&projection);
    let line = b"{\"a\":\"one\",\"b\":1,\"c\":[2]}\n";
    let bytes = line.repeat(6);
    let mut rows = Vec::new();
    for at in 0..6 {
        if reader.line(&bytes, at * line.len()) != Line::Row((at + 1) * line.len()) {
            continue;
        }
        let Some(Value::Hash(row)) = reader.row(&bytes) else {
            panic!("a whole row is read from its plan");
        };
        rows.push(inspect(&Value::Hash(row.clone())));
        match at {
            2 => drop(row.remove(&Value::str("b"))),
            3 => {
                row.remove_first();
                row.insert(Value::str("a"), Value::Nil);
            }
            4 => row.freeze(),
            _ => row.insert(Value::str("b"), Value::Nil),
        }
    }
    assert!(rows.len() > 3);
    for row in rows {
        assert_eq!(row, "{\"a\" => \"one\", \"b\" => 1, \"c\" => [2]}");
    }
}

#[test]
fn digits_at_any_place_give_their_number() {
    let projection = Projection::Fields(vec![("n".to_owned(), Projection::Whole)]);
    let mut reader = Reader::new(&projection);
    let text = "1234567890123456789";
    for digits in ["0", "7", "99999999", "100000000"]
        .into_iter()
        .chain((1..=19).map(|end| &text[..end]))
    {
        // A word is read at the number if the bytes go on for as long.
        for after in ["}\n", ",\"longer\":987654321}\n"] {
            let bytes = format!("{{\"n\":{digits}{after}");
            assert_eq!(reader.line(bytes.as_bytes(), 0), Line::Row(bytes.len()));
            let Some(Value::Hash(row)) = reader.row(bytes.as_bytes()) else {
                panic!("{bytes} is a row");
            };
            let value = row.get(&Value::str("n")).as_ref().map(inspect);
            assert_eq!(value.as_deref(), Some(digits));
        }
    }
}
