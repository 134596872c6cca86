//! Parquet files as lines of JSON: the columns that a query reads, row by row.
//!
//! The crate `parquet` asserts what a damaged file may break, and makes room for what a page says that it holds. So panics
//! are caught here, and pages are checked against the memory limit before they are read.

use super::COLUMNS_MAX;
use bytes::Bytes;
use lastbyte_query::{Memory, Value};
use lastbyte_units::date_of_days;
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, TimestampType};
use parquet::data_type::Decimal;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::{SchemaDescriptor, Type};
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Once, OnceLock};

#[cfg(test)]
mod tests;

/// Rows of a column that are decoded at a time.
const BATCH: usize = 128;

/// Bytes of lines that are made at a time.
const LINES: usize = 64 << 10;

/// Bytes that an element of a list takes in memory.
const ELEMENT_BYTES: u64 = 64;

/// The first bytes of a file.
const MAGIC: &[u8] = b"PAR1";

/// A file that is read at any place.
#[expect(
    clippy::disallowed_types,
    reason = "the binary opens files at its edge, and reads one here"
)]
type OpenFile = std::fs::File;

/// Lines of JSON, one for each row.
pub(in super::super) struct Rows {
    /// `None` after the last row or an error.
    left: Option<RowIter<'static>>,
    fields: Vec<Arc<Type>>,
    lines: Cursor<Vec<u8>>,
    /// Returned after the lines.
    failure: Option<io::Error>,
}

impl Rows {
    /// The rows of a file with those of these columns that it has, or all; `None` if it is no Parquet file. The file is read from its start after that.
    pub(in super::super) fn open(
        file: &OpenFile,
        columns: Option<&[String]>,
        memory: Option<Memory>,
    ) -> io::Result<Option<Rows>> {
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut own = file.try_clone()?;
        let mut head = Vec::new();
        Read::by_ref(&mut own)
            .take(MAGIC.len() as u64)
            .read_to_end(&mut head)?;
        own.rewind()?;
        if head != MAGIC {
            return Ok(None);
        }
        guarded(|| Rows::new(own, columns, memory)).map(Some)
    }

    fn new(
        file: OpenFile,
        columns: Option<&[String]>,
        memory: Option<Memory>,
    ) -> Result<Rows, ParquetError> {
        let has_lists = Arc::new(OnceLock::new());
        let reader = SerializedFileReader::new(Source {
            file,
            memory,
            has_lists: Arc::clone(&has_lists),
        })?;
        let read = selected(reader.metadata().file_metadata().schema(), columns)?;
        let leaves = SchemaDescriptor::new(Arc::new(read.clone()));
        if leaves.num_columns() > COLUMNS_MAX {
            return Err(ParquetError::General(format!(
                "{} columns (expected at most {COLUMNS_MAX})",
                leaves.num_columns()
            )));
        }
        let mut leaves = leaves.columns().iter();
        let _ = has_lists.set(leaves.any(|leaf| leaf.max_rep_level() > 0));
        let fields = read.get_fields().to_vec();
        let rows = RowIter::from_file_into(Box::new(reader)).project(Some(read))?;
        Ok(Rows {
            left: Some(rows.with_batch_size(BATCH)),
            fields,
            lines: Cursor::default(),
            failure: None,
        })
    }

    /// Makes the next lines: none after the last row.
    fn fill(&mut self) -> io::Result<()> {
        let Some(mut rows) = self.left.take() else {
            return Ok(());
        };
        let mut lines = String::new();
        let filled = guarded(|| {
            while lines.len() < LINES {
                let Some(row) = rows.next() else {
                    return Ok(false);
                };
                lines += &object(row?, &self.fields)?.to_string();
                lines.push('\n');
            }
            Ok(true)
        });
        self.lines = Cursor::new(lines.into_bytes());
        match filled {
            Ok(true) => self.left = Some(rows),
            Ok(false) => {}
            // The rows before it come first.
            Err(reason) if !self.lines.get_ref().is_empty() => self.failure = Some(reason),
            Err(reason) => return Err(reason),
        }
        Ok(())
    }
}

impl Read for Rows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.lines.read(buffer)?;
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        if let Some(reason) = self.failure.take() {
            return Err(reason);
        }
        self.fill()?;
        self.lines.read(buffer)
    }
}

/// The columns of the schema that are read: at least one, whose rows are counted.
fn selected(schema: &Type, columns: Option<&[String]>) -> Result<Type, ParquetError> {
    let Some(columns) = columns else {
        return Ok(schema.clone());
    };
    let all = schema.get_fields();
    let is_read = |field: &&Arc<Type>| columns.iter().any(|name| name == field.name());
    let mut fields: Vec<Arc<Type>> = all.iter().filter(is_read).cloned().collect();
    if fields.is_empty() {
        fields.extend(all.first().cloned());
    }
    Type::group_type_builder(schema.name())
        .with_fields(fields)
        .build()
}

/// Runs the decoder, which panics at some damaged files.
fn guarded<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> io::Result<T> {
    thread_local! {
        static IS_DECODING: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_DECODING.get() {
                others(info);
            }
        }));
    });
    IS_DECODING.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    IS_DECODING.set(false);
    let reason = match result {
        Ok(Ok(it)) => return Ok(it),
        Ok(Err(ParquetError::External(reason))) => return Err(io::Error::other(reason)),
        Ok(Err(ParquetError::General(reason) | ParquetError::EOF(reason))) => {
            match reason.strip_prefix("Disabled feature at compile time: ") {
                Some(name) => format!("compressed with {name} (expected Snappy, or uncompressed data)"),
                None => reason,
            }
        }
        Ok(Err(other)) => other.to_string(),
        Err(_) => "the data are corrupt, or of a type that is not read, such as an interval (expected a query without that column)".to_owned(),
    };
    let reason = format!("invalid Parquet: {reason}");
    Err(io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// A file whose pages fit into memory.
struct Source {
    file: OpenFile,
    memory: Option<Memory>,
    /// Whether a column has lists, once the schema is known; pages are read after that.
    has_lists: Arc<OnceLock<bool>>,
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Source {
    type T = BufReader<OpenFile>;

    /// Called for the header of each page.
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let mut reader = self.file.get_read(start)?;
        if let Some(has_lists) = self.has_lists.get() {
            let corrupt = || ParquetError::General("a page has no header".to_owned());
            let (bytes, values) = page_size(reader.fill_buf()?).ok_or_else(corrupt)?;
            let elements = if *has_lists { values } else { 0 };
            let needed = bytes.saturating_add(elements.saturating_mul(ELEMENT_BYTES));
            if let Some(memory) = self.memory
                && let Some(used) = (memory.used)()
                && used.saturating_add(needed) > memory.bytes_max
            {
                return Err(ParquetError::General(format!(
                    "a page of {bytes} bytes and {values} values does not fit into `--max-memory`"
                )));
            }
        }
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.saturating_add(length as u64) > self.len() {
            return Err(ParquetError::General("the file is cut off".to_owned()));
        }
        self.file.get_bytes(start, length)
    }
}

/// The size of a page when unpacked, and its number of values, of a header in Thrift's compact protocol.
fn page_size(mut header: &[u8]) -> Option<(u64, u64)> {
    const INTEGER: u8 = 5;
    const STRUCT: u8 = 12;
    let mut field = 0;
    let mut bytes = None;
    loop {
        let kind = next(&mut header)?;
        field += kind >> 4;
        match kind & 15 {
            INTEGER => {
                let value = integer(&mut header)?;
                if field == 2 {
                    bytes = Some(value);
                }
            }
            // Each kind of page begins with the number of values.
            STRUCT if next(&mut header)? == 1 << 4 | INTEGER => {
                return Some((bytes?, integer(&mut header)?));
            }
            _ => return None,
        }
    }
}

fn next(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// An integer that is not negative.
fn integer(bytes: &mut &[u8]) -> Option<u64> {
    let mut coded = 0;
    for shift in (0..35).step_by(7) {
        let byte = next(bytes)?;
        coded |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return (coded & 1 == 0).then_some(coded >> 1);
        }
    }
    None
}

fn object(row: Row, types: &[Arc<Type>]) -> Result<Value, ParquetError> {
    let members = row.into_columns().into_iter().enumerate();
    let members = members.map(|(at, (name, field))| {
        let value = value(field, types.get(at).map(Arc::as_ref))?;
        Ok((name, value))
    });
    members
        .collect::<Result<_, ParquetError>>()
        .map(Value::Object)
}

fn value(field: Field, kind: Option<&Type>) -> Result<Value, ParquetError> {
    Ok(match field {
        Field::Null => Value::Null,
        Field::Bool(it) => Value::Bool(it),
        Field::Byte(it) => Value::Integer(it.into()),
        Field::Short(it) => Value::Integer(it.into()),
        Field::Int(it) => Value::Integer(it.into()),
        Field::Long(it) => match timestamp(kind).map(|it| &it.unit) {
            Some(TimeUnit::NANOS) => stamp(it.into(), 9, kind),
            _ => Value::Integer(it),
        },
        Field::UByte(it) => Value::Integer(it.into()),
        Field::UShort(it) => Value::Integer(it.into()),
        Field::UInt(it) => Value::Integer(it.into()),
        Field::ULong(it) => {
            i64::try_from(it).map_or_else(|_| Value::BigInteger(it.to_string()), Value::Integer)
        }
        Field::Float16(it) => float(&it.to_f32().to_string()),
        // The shortest digits are those of its own class.
        Field::Float(it) => float(&it.to_string()),
        Field::Double(it) => float(&it.to_string()),
        Field::Decimal(it) => decimal(&it)?,
        Field::Str(text) => Value::String(text),
        Field::Bytes(bytes) => Value::String(text(bytes.data())),
        Field::Date(days) => Value::String(date(days.into())),
        Field::TimeMillis(it) => Value::String(time(i128::from(it), 3)),
        Field::TimeMicros(it) => Value::String(time(i128::from(it), 6)),
        Field::TimestampMillis(it) => stamp(it.into(), 3, kind),
        Field::TimestampMicros(it) => stamp(it.into(), 6, kind),
        Field::Group(row) => object(row, kind.map_or(&[], children))?,
        Field::ListInternal(list) => {
            let kind = kind.map(element);
            let elements = list.elements().iter();
            let elements = elements.map(|element| value(element.clone(), kind));
            Value::Array(elements.collect::<Result<_, ParquetError>>()?)
        }
        Field::MapInternal(map) => {
            let kinds = kind
                .and_then(|kind| children(kind).first())
                .map(|pair| children(pair));
            let kind = |at: usize| kinds.and_then(|kinds| kinds.get(at)).map(Arc::as_ref);
            let members = map.entries().iter().map(|(key, it)| {
                let key = match value(key.clone(), kind(0))? {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                Ok((key, value(it.clone(), kind(1))?))
            });
            Value::Object(members.collect::<Result<_, ParquetError>>()?)
        }
    })
}

fn children(kind: &Type) -> &[Arc<Type>] {
    if kind.is_group() {
        kind.get_fields()
    } else {
        &[]
    }
}

/// The type of the elements of a list.
fn element(list: &Type) -> &Type {
    if list.get_basic_info().converted_type() != ConvertedType::LIST {
        return list;
    }
    let Some(repeated) = children(list).first() else {
        return list;
    };
    match children(repeated) {
        [only] if repeated.get_basic_info().repetition() == Repetition::REPEATED => only,
        _ => repeated,
    }
}

/// JSON has no number for infinities and NaN.
fn float(text: &str) -> Value {
    let number = text.parse().ok().filter(|it: &f64| it.is_finite());
    number.map_or(Value::Null, Value::Float)
}

/// A whole number if it has no places, else the nearest float.
fn decimal(it: &Decimal) -> Result<Value, ParquetError> {
    let bytes = it.data();
    let is_negative = bytes.first().is_some_and(|byte| byte & 128 > 0);
    let mut digits = [if is_negative { 255 } else { 0 }; 16];
    let Some(start) = digits.len().checked_sub(bytes.len()) else {
        let what = format!("a decimal of {} bytes (expected at most 16)", bytes.len());
        return Err(ParquetError::General(what));
    };
    digits[start..].copy_from_slice(bytes);
    let whole = i128::from_be_bytes(digits);
    Ok(match (it.scale(), i64::try_from(whole)) {
        (0, Ok(whole)) => Value::Integer(whole),
        (0, Err(_)) => Value::BigInteger(whole.to_string()),
        (scale, _) => float(&format!("{whole}e{}", -i64::from(scale))),
    })
}

/// Bytes that are no text in hexadecimal digits.
fn text(bytes: &[u8]) -> String {
    let digits = || bytes.iter().map(|byte| format!("{byte:02x}"));
    let text = str::from_utf8(bytes).map(str::to_owned);
    text.unwrap_or_else(|_| digits().collect::<Vec<_>>().concat())
}

fn timestamp(kind: Option<&Type>) -> Option<&TimestampType> {
    match kind?.get_basic_info().logical_type_ref() {
        Some(LogicalType::Timestamp(it)) => Some(it),
        _ => None,
    }
}

/// A time since 1970 in units of this number of decimal places, in ISO 8601; in UTC, unless the type is a local time.
fn stamp(units: i128, places: u32, kind: Option<&Type>) -> Value {
    let is_local = timestamp(kind).is_some_and(|it| !it.is_adjusted_to_u_t_c);
    let day = 86_400 * 10_i128.pow(places);
    let days = i64::try_from(units.div_euclid(day)).unwrap_or_default();
    let zone = if is_local { "" } else { "Z" };
    Value::String(format!(
        "{}T{}{zone}",
        date(days),
        time(units.rem_euclid(day), places)
    ))
}

/// A time of day in units of this number of decimal places.
fn time(units: i128, places: u32) -> String {
    let second = 10_i128.pow(places);
    let (seconds, part) = (units.div_euclid(second), units.rem_euclid(second));
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    let places = places as usize;
    format!("{hour:02}:{minute:02}:{:02}.{part:0places$}", seconds % 60)
}

fn date(days: i64) -> String {
    let (year, month, day) = date_of_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}
