use super::*;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::sync::Mutex;

/// A file that can be read after the writer took it.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a lock").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file with these records, in row groups of this size.
fn file(
    group_bytes: usize,
    names: &[&str],
    records: &[Vec<Value>],
) -> Result<SerializedFileReader<bytes::Bytes>, Failure> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let file = File::default();
    let mut table = Table::new(file.clone());
    table.group_bytes = group_bytes;
    for record in records {
        table.push(&names, record.clone())?;
    }
    assert!(table.finish()?);
    let bytes = std::mem::take(&mut *file.0.lock().expect("a lock"));
    Ok(SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a Parquet file"))
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[test]
fn columns_have_the_type_of_their_values() {
    let names = ["bool", "integer", "float", "text", "mixed", "large", "none"];
    let records = [
        vec![
            Value::Bool(true),
            Value::Integer(i64::MAX),
            Value::Integer(1),
            text("a"),
            Value::Integer(1),
            Value::Integer(i64::MAX),
            Value::Null,
        ],
        vec![Value::Null; 7],
        vec![
            Value::Bool(false),
            Value::Integer(-1),
            Value::Float(0.5),
            text("é\n"),
            Value::Array(vec![Value::Null, text("x")]),
            Value::Float(0.5),
            Value::Null,
        ],
    ];
    for group_bytes in [1, GROUP_BYTES] {
        let file = file(group_bytes, &names, &records[..1]).expect("it is written");
        assert_eq!(file.metadata().file_metadata().num_rows(), 1);
    }
    let file = file(GROUP_BYTES, &names, &records).expect("it is written");
    let rows: Vec<Vec<Field>> = file
        .get_row_iter(None)
        .expect("rows")
        .map(|row| {
            let row = row.expect("a row");
            row.get_column_iter()
                .map(|(_, field)| field.clone())
                .collect()
        })
        .collect();
    let string = |text: &str| Field::Str(text.to_owned());
    assert_eq!(
        rows,
        [
            vec![
                Field::Bool(true),
                Field::Long(i64::MAX),
                Field::Double(1.0),
                string("a"),
                string("1"),
                // An integer that is no float.
                string("9223372036854775807"),
                Field::Null,
            ],
            vec![Field::Null; 7],
            vec![
                Field::Bool(false),
                Field::Long(-1),
                Field::Double(0.5),
                string("é\n"),
                string("[null,\"x\"]"),
                string("0.5"),
                Field::Null,
            ],
        ]
    );
}

#[test]
fn records_are_written_in_groups_of_bounded_size() {
    let records: Vec<Vec<Value>> = (0..1000).map(|n| vec![Value::Integer(n)]).collect();
    let size = Value::Null.weight();
    let file = file(size * 100, &["n"], &records).expect("it is written");
    assert_eq!(file.num_row_groups(), 10);
    let numbers: Vec<i64> = file
        .get_row_iter(None)
        .expect("rows")
        .map(|row| match row.expect("a row").get_column_iter().next() {
            Some((_, Field::Long(number))) => *number,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers, (0..1000).collect::<Vec<i64>>());
}

#[test]
fn a_value_of_another_type_in_a_later_group_is_an_error() {
    let size = Value::Null.weight();
    let records = |last| vec![vec![Value::Integer(1)], vec![Value::Null], vec![last]];
    assert!(file(size, &["n"], &records(Value::Integer(3))).is_ok());
    let wrong = file(size, &["n"], &records(text("x"))).err();
    let Some(Failure::Run(why)) = wrong else {
        panic!("{wrong:?}")
    };
    assert_eq!(
        why,
        "parquet: the field `n` of record 3 is `\"x\"` (expected a 64-bit integer, as in the records before it); convert it in the query, as in `_[\"n\"]&.to_s`"
    );
}

#[test]
fn the_number_of_columns_is_bounded() {
    let names: Vec<String> = (0..=COLUMNS_MAX).map(|at| at.to_string()).collect();
    let mut table = Table::new(File::default());
    assert!(table.push(&names, vec![Value::Null; names.len()]).is_err());
    let mut table = Table::new(File::default());
    assert!(
        table
            .push(&names[1..], vec![Value::Null; COLUMNS_MAX])
            .is_ok()
    );
}
