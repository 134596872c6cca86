use super::super::Table;
use super::*;
use parquet::data_type::{ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::io::Write;

/// A file without a name.
fn file(bytes: &[u8]) -> OpenFile {
    let name = format!(
        "lastbyte-parquet-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let path = std::env::temp_dir().join(name.replace(['(', ')'], ""));
    let mut file = OpenFile::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("a file");
    std::fs::remove_file(&path).expect("the file is there");
    file.write_all(bytes).expect("room");
    file.rewind().expect("a file");
    file
}

fn lines(bytes: &[u8], columns: Option<&[String]>, memory: Option<Memory>) -> io::Result<String> {
    let mut rows = Rows::open(&file(bytes), columns, memory)?.expect("a Parquet file");
    let mut text = String::new();
    rows.read_to_string(&mut text)?;
    Ok(text)
}

fn all(bytes: &[u8]) -> String {
    lines(bytes, None, None).expect("rows")
}

/// What `-o parquet` writes of records.
fn written(names: &[String], records: Vec<Vec<Value>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut table = Table::new(&mut bytes);
    for record in records {
        assert!(table.push(names, record).is_ok());
    }
    assert!(table.finish().is_ok());
    bytes
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("c\"{at}")).collect()
}

/// A column of one type, with nulls.
fn column(rows: usize) -> impl Strategy<Value = Vec<Value>> {
    let of = |value: BoxedStrategy<Value>| {
        let value = prop_oneof![1 => Just(Value::Null), 3 => value];
        proptest::collection::vec(value, rows)
    };
    prop_oneof![
        of(any::<bool>().prop_map(Value::Bool).boxed()),
        of(any::<i64>().prop_map(Value::Integer).boxed()),
        of(any::<f64>()
            .prop_filter("JSON has no others", |it| it.is_finite())
            .prop_map(Value::Float)
            .boxed()),
        of(".{0,6}".prop_map(Value::String).boxed()),
    ]
}

proptest! {
    #[test]
    fn rows_that_are_written_are_read(
        columns in (1..40_usize).prop_flat_map(|rows| proptest::collection::vec(column(rows), 1..5)),
        kept in any::<u8>(),
    ) {
        let names = names(columns.len());
        let record = |at: usize| columns.iter().map(|column| column[at].clone()).collect::<Vec<_>>();
        let records: Vec<Vec<Value>> = (0..columns[0].len()).map(record).collect();
        let bytes = written(&names, records.clone());
        let line = |record: &Vec<Value>, keeps: &dyn Fn(usize) -> bool| {
            let members = names.iter().cloned().zip(record.iter().cloned()).enumerate();
            let members = members.filter(|(at, _)| keeps(*at)).map(|(_, member)| member);
            format!("{}\n", Value::Object(members.collect()))
        };
        let expected: String = records.iter().map(|record| line(record, &|_| true)).collect();
        prop_assert_eq!(all(&bytes), expected);
        // Some of the columns; at least the first one.
        let keeps = |at: usize| kept >> at & 1 == 1 || at == 0;
        let wanted: Vec<String> = names.iter().enumerate().filter(|(at, _)| keeps(*at)).map(|(_, name)| name.clone()).collect();
        let expected: String = records.iter().map(|record| line(record, &keeps)).collect();
        prop_assert_eq!(lines(&bytes, Some(&wanted), None).expect("rows"), expected);
    }
}

/// A file with columns of many types, in two row groups.
fn varied() -> Vec<u8> {
    let schema = "message schema {
        required int64 id;
        optional int64 millis (TIMESTAMP(MILLIS,true));
        optional int64 micros (TIMESTAMP(MICROS,false));
        optional int64 nanos (TIMESTAMP(NANOS,true));
        optional int32 day (DATE);
        optional int32 clock (TIME(MILLIS,true));
        optional int32 price (DECIMAL(9,2));
        optional binary large (DECIMAL(30,0));
        optional int64 unsigned (INTEGER(64,false));
        optional double ratio;
        optional binary name (STRING);
        optional binary raw;
        optional group list (LIST) { repeated group list { optional int64 element; } }
        optional group map (MAP) { repeated group key_value { required binary key (STRING); optional int64 value; } }
        optional group nested { optional int64 a; }
    }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).expect("a writer");
    for first in [1_i64, 3] {
        let mut group = writer.next_row_group().expect("a row group");
        let mut at = 0;
        while let Some(mut column) = group.next_column().expect("a column") {
            let present = Some(&[1, 0][..]);
            let int = |it| vec![it];
            let list = (&[3, 2, 0][..], &[0, 1, 0][..]);
            let done = match at {
                0 => column
                    .typed::<Int64Type>()
                    .write_batch(&[first, first + 1], None, None),
                1 => {
                    column
                        .typed::<Int64Type>()
                        .write_batch(&int(1_700_000_000_123), present, None)
                }
                2 | 8 => column
                    .typed::<Int64Type>()
                    .write_batch(&int(-1), present, None),
                3 => column.typed::<Int64Type>().write_batch(
                    &int(1_700_000_000_000_000_001),
                    present,
                    None,
                ),
                4 => column
                    .typed::<Int32Type>()
                    .write_batch(&[-719_162], present, None),
                5 => column
                    .typed::<Int32Type>()
                    .write_batch(&[86_399_999], present, None),
                6 => column
                    .typed::<Int32Type>()
                    .write_batch(&[-1250], present, None),
                7 => {
                    let large = (-1_i128 << 80).to_be_bytes().to_vec();
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(&[large.into()], present, None)
                }
                9 => column
                    .typed::<DoubleType>()
                    .write_batch(&[f64::NAN], present, None),
                10 => column
                    .typed::<ByteArrayType>()
                    .write_batch(&["é\n".into()], present, None),
                11 => column.typed::<ByteArrayType>().write_batch(
                    &[vec![255, 1].into()],
                    present,
                    None,
                ),
                12 => column
                    .typed::<Int64Type>()
                    .write_batch(&[7], Some(list.0), Some(list.1)),
                13 => column.typed::<ByteArrayType>().write_batch(
                    &["k".into()],
                    Some(&[2, 0]),
                    Some(&[0, 0]),
                ),
                14 => column
                    .typed::<Int64Type>()
                    .write_batch(&[8], Some(&[3, 0]), Some(&[0, 0])),
                _ => column
                    .typed::<Int64Type>()
                    .write_batch(&[9], Some(&[2, 0]), None),
            };
            done.expect("values");
            column.close().expect("a column");
            at += 1;
        }
        group.close().expect("a row group");
    }
    writer.close().expect("a file");
    bytes
}

#[test]
fn columns_of_all_types_are_read() {
    let row = |id: i64| {
        format!(
            "{{\"id\":{id},\"millis\":\"2023-11-14T22:13:20.123Z\",\"micros\":\"1969-12-31T23:59:59.999999\",\"nanos\":\"2023-11-14T22:13:20.000000001Z\",\"day\":\"0001-01-01\",\"clock\":\"23:59:59.999\",\"price\":-12.5,\"large\":-1208925819614629174706176,\"unsigned\":18446744073709551615,\"ratio\":null,\"name\":\"é\\n\",\"raw\":\"ff01\",\"list\":[7,null],\"map\":{{\"k\":8}},\"nested\":{{\"a\":9}}}}\n"
        )
    };
    let none = |id: i64| {
        format!(
            "{{\"id\":{id},\"millis\":null,\"micros\":null,\"nanos\":null,\"day\":null,\"clock\":null,\"price\":null,\"large\":null,\"unsigned\":null,\"ratio\":null,\"name\":null,\"raw\":null,\"list\":null,\"map\":null,\"nested\":null}}\n"
        )
    };
    assert_eq!(all(&varied()), [row(1), none(2), row(3), none(4)].concat());
    let columns = ["list".to_owned(), "absent".to_owned()];
    let found = lines(&varied(), Some(&columns), None).expect("rows");
    assert_eq!(found, "{\"list\":[7,null]}\n{\"list\":null}\n".repeat(2));
    // Rows are counted by a column.
    let found = lines(&varied(), Some(&[]), None).expect("rows");
    assert_eq!(found, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n");
}

#[test]
fn damaged_files_are_errors() {
    let records = (0..300).map(|at| vec![Value::Integer(at), Value::String(format!("{}", at % 7))]);
    for bytes in [varied(), written(&names(2), records.collect())] {
        // In the memory of the machine, for pages that are said to be large.
        let memory = Memory {
            bytes_max: 1 << 31,
            used: || Some(1 << 30),
        };
        let mut failed = 0;
        for end in MAGIC.len()..bytes.len() {
            failed += usize::from(lines(&bytes[..end], None, Some(memory)).is_err());
        }
        assert_eq!(failed, bytes.len() - MAGIC.len());
        for at in MAGIC.len()..bytes.len() {
            for change in [0x01, 0x02, 0x10, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                // Some changes are other valid data.
                failed += usize::from(lines(&changed, None, Some(memory)).is_err());
            }
        }
        assert!(failed > bytes.len() * 2, "{failed} of {}", bytes.len());
    }
}

#[test]
fn pages_beyond_the_memory_limit_are_refused() {
    let memory = Memory {
        bytes_max: 1000,
        used: || Some(990),
    };
    let error = lines(&varied(), None, Some(memory)).expect_err("an error");
    let expected = "does not fit into `--max-memory`";
    assert!(error.to_string().contains(expected), "{error}");
    assert!(
        error.to_string().starts_with("invalid Parquet: a page of "),
        "{error}"
    );
}

#[test]
fn other_files_are_read_from_their_start() {
    for text in ["", "PAR", "{\"a\":1}\n"] {
        let mut file = file(text.as_bytes());
        assert!(matches!(Rows::open(&file, None, None), Ok(None)));
        let mut found = String::new();
        file.read_to_string(&mut found).expect("text");
        assert_eq!(found, text);
    }
}
