//! Parquet files: as input, and records as a Parquet file: a column for each field of the first record, with the type of its values in the first row
//! group.

mod read;

use lastbyte_query::Value;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

use crate::failure::Failure;

pub(super) use read::Rows;

/// Size of a row group in memory, in bytes.
const GROUP_BYTES: usize = 64 << 20;

/// Maximum number of columns, since the writer has buffers for each.
const COLUMNS_MAX: usize = 10_000;

/// Numbers up to this one are exact as a float.
const EXACT_MAX: u64 = 1 << 53;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bool,
    Integer,
    Float,
    /// A string, or JSON.
    Text,
}

impl Kind {
    /// The type that has room for all values.
    fn of(values: &[Value]) -> Kind {
        if values.iter().all(Value::is_null) {
            return Kind::Text;
        }
        [Kind::Bool, Kind::Integer, Kind::Float]
            .into_iter()
            .find(|kind| values.iter().all(|value| kind.has_room_for(value)))
            .unwrap_or(Kind::Text)
    }

    fn has_room_for(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null)
            | (Kind::Text, _)
            | (Kind::Bool, Value::Bool(_))
            | (Kind::Integer, Value::Integer(_))
            | (Kind::Float, Value::Float(_)) => true,
            (Kind::Float, Value::Integer(it)) => it.unsigned_abs() <= EXACT_MAX,
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Bool => "a boolean",
            Kind::Integer => "a 64-bit integer",
            Kind::Float => "a float",
            Kind::Text => "a text",
        }
    }

    fn physical(self) -> Physical {
        match self {
            Kind::Bool => Physical::BOOLEAN,
            Kind::Integer => Physical::INT64,
            Kind::Float => Physical::DOUBLE,
            Kind::Text => Physical::BYTE_ARRAY,
        }
    }
}

/// Writes records into a Parquet file.
pub(super) struct Table<W: Write + Send> {
    /// Until the types of the columns are known.
    out: Option<W>,
    writer: Option<SerializedFileWriter<W>>,
    group_bytes: usize,
    names: Vec<String>,
    kinds: Vec<Kind>,
    /// The row group that is filled, by column.
    columns: Vec<Vec<Value>>,
    /// The size of the column in memory.
    bytes: usize,
    /// Number of records in the groups before it.
    written: usize,
}

impl<W: Write + Send> Table<W> {
    pub(super) fn new(out: W) -> Table<W> {
        Table {
            out: Some(out),
            writer: None,
            group_bytes: GROUP_BYTES,
            names: Vec::new(),
            kinds: Vec::new(),
            columns: Vec::new(),
            bytes: 0,
            written: 0,
        }
    }

    /// Adds a record. `names` are the same for all.
    pub(super) fn push(&mut self, names: &[String], fields: Vec<Value>) -> Result<(), Failure> {
        if self.names.is_empty() {
            if names.is_empty() || names.len() > COLUMNS_MAX {
                return Err(Failure::Run(format!(
                    "a Parquet file has 1 to {COLUMNS_MAX} columns: {}",
                    names.len()
                )));
            }
            self.names = names.to_vec();
            self.columns = vec![Vec::new(); names.len()];
        }
        for (column, field) in self.columns.iter_mut().zip(fields) {
            self.bytes += field.weight();
            column.push(field);
        }
        if self.bytes >= self.group_bytes {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes the rest. Returns whether there was any record: without one, the columns are unknown, and nothing is
    /// written.
    pub(super) fn finish(mut self) -> Result<bool, Failure> {
        if self.names.is_empty() {
            return Ok(false);
        }
        if self.bytes > 0 {
            self.write_group()?;
        }
        if let Some(writer) = self.writer {
            writer.close().map_err(failed)?;
        }
        Ok(true)
    }

    fn write_group(&mut self) -> Result<(), Failure> {
        let first = self.writer.is_none();
        if first {
            self.kinds = self.columns.iter().map(|it| Kind::of(it)).collect();
        }
        for ((name, kind), values) in self.names.iter().zip(&self.kinds).zip(&self.columns) {
            if let Some(at) = values.iter().position(|value| !kind.has_room_for(value)) {
                return Err(Failure::Run(format!(
                    "parquet: the field `{name}` of record {} is `{}` (expected {}, as in the records before it); convert it in the query, as in `_[{name:?}]&.to_s`",
                    self.written + at + 1,
                    values[at],
                    kind.name()
                )));
            }
        }
        if let Some(out) = self.out.take() {
            self.writer = Some(begin(out, &self.names, &self.kinds).map_err(failed)?);
        }
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        self.written += self.columns.first().map_or(0, Vec::len);
        let mut columns = self.kinds.iter().zip(&mut self.columns);
        let mut group = writer.next_row_group().map_err(failed)?;
        while let Some(mut column) = group.next_column().map_err(failed)? {
            if let Some((kind, values)) = columns.next() {
                write_column(&mut column, *kind, values).map_err(failed)?;
                values.clear();
            }
            column.close().map_err(failed)?;
        }
        group.close().map_err(failed)?;
        self.bytes = 0;
        Ok(())
    }
}

fn begin<W: Write + Send>(
    out: W,
    names: &[String],
    kinds: &[Kind],
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields = names.iter().zip(kinds).map(|(name, kind)| {
        let logical = (*kind == Kind::Text).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(name, kind.physical())
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    });
    let schema = Type::group_type_builder("schema")
        .with_fields(fields.collect::<Result<_, ParquetError>>()?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
}

fn write_column(
    column: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    values: &[Value],
) -> Result<(), ParquetError> {
    match kind {
        Kind::Bool => write_values::<BoolType>(column, values, Value::as_bool),
        Kind::Integer => write_values::<Int64Type>(column, values, Value::as_i64),
        Kind::Float => write_values::<DoubleType>(column, values, Value::as_f64),
        Kind::Text => write_values::<ByteArrayType>(column, values, |value| match value {
            Value::Null => None,
            Value::String(text) => Some(ByteArray::from(text.as_str())),
            other => Some(ByteArray::from(other.to_string().into_bytes())),
        }),
    }
}

fn write_values<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: &[Value],
    value: impl Fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let present: Vec<T::T> = values.iter().filter_map(value).collect();
    let levels: Vec<i16> = values.iter().map(|it| i16::from(!it.is_null())).collect();
    column
        .typed::<T>()
        .write_batch(&present, Some(&levels), None)?;
    Ok(())
}

fn failed(error: ParquetError) -> Failure {
    let ParquetError::External(reason) = error else {
        return Failure::run(error);
    };
    let kind = reason.downcast_ref().map(io::Error::kind);
    if kind == Some(io::ErrorKind::BrokenPipe) {
        return Failure::BrokenPipe;
    }
    Failure::Run(format!("cannot write: {reason}"))
}

#[cfg(test)]
mod tests;
