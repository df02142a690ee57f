//! The cells of a column before their row group is written.

use std::borrow::Cow;
use std::io;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::Type;

/// An optional value of one of the column types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    /// UTF-8.
    Text(Option<&'a str>),
    /// A 64-bit floating-point number: seconds.
    Number(Option<f64>),
    /// A 64-bit signed integer, which data frames can subtract without wraparound; larger counts
    /// saturate.
    Count(Option<u64>),
}

/// The cells of one column in a row group.
#[derive(Debug)]
pub(crate) struct Column {
    name: Cow<'static, str>,
    values: Values,
    /// 1 for each cell with a value and 0 for each without (Parquet's definition levels).
    levels: Vec<i16>,
}

#[derive(Debug)]
enum Values {
    Text(Vec<ByteArray>),
    Number(Vec<f64>),
    Count(Vec<i64>),
}

impl Column {
    /// Returns a column for cells of the same type as this one.
    pub(crate) fn new(name: impl Into<Cow<'static, str>>, cell: &Cell<'_>) -> Self {
        let values = match cell {
            Cell::Text(_) => Values::Text(Vec::new()),
            Cell::Number(_) => Values::Number(Vec::new()),
            Cell::Count(_) => Values::Count(Vec::new()),
        };
        Self {
            name: name.into(),
            values,
            levels: Vec::new(),
        }
    }

    pub(crate) fn schema(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Number(_) => (Physical::DOUBLE, None),
            Values::Count(_) => (Physical::INT64, None),
        };
        Type::primitive_type_builder(&self.name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL)
            .build()
    }

    /// Adds a cell. A cell of another type than the column's is an error.
    pub(crate) fn push(&mut self, cell: Cell<'_>) -> io::Result<()> {
        let is_there = match (&mut self.values, cell) {
            (Values::Text(values), Cell::Text(cell)) => append(values, cell.map(ByteArray::from)),
            (Values::Number(values), Cell::Number(cell)) => append(values, cell),
            (Values::Count(values), Cell::Count(cell)) => {
                let cell = cell.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
                append(values, cell)
            }
            (_, cell) => {
                let message = format!("column {} does not take {cell:?}", self.name);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        };
        self.levels.push(i16::from(is_there));
        Ok(())
    }

    /// Writes the cells and clears them.
    pub(crate) fn write(
        &mut self,
        writer: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let levels = Some(self.levels.as_slice());
        match &mut self.values {
            Values::Text(values) => {
                let writer = writer.typed::<ByteArrayType>();
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Number(values) => {
                let writer = writer.typed::<DoubleType>();
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Count(values) => {
                let writer = writer.typed::<Int64Type>();
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
        }
        self.levels.clear();
        Ok(())
    }
}

fn append<T>(values: &mut Vec<T>, cell: Option<T>) -> bool {
    let is_there = cell.is_some();
    values.extend(cell);
    is_there
}
