//! Writes rows to a Parquet file one row group at a time, so that memory is bounded for any run length.

mod column;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use column::{Cell, Column};
pub(crate) use rows::Sample;

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// The number of buffered rows: a few megabytes for either table.
const GROUP_ROWS: usize = 8192;

/// A record that is a row of a table.
pub(crate) trait Row {
    /// A row that defines the columns.
    const BLANK: Self;

    /// Returns the name and the cell of every column: the same names and types for every row.
    fn cells(&self) -> impl Iterator<Item = (&'static str, Cell<'_>)>;
}

/// A Parquet file that is being written. Equal rows give equal bytes.
pub(crate) struct Table<W: Write> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
}

impl<W: Write + Send> Table<W> {
    /// Returns a table for rows of this type.
    pub(crate) fn new<R: Row>(writer: W) -> io::Result<Self> {
        let blank = R::BLANK;
        let cells = blank.cells();
        Self::with_columns(writer, cells.map(|(name, cell)| Column::new(name, &cell)))
    }

    /// Returns a table with these columns.
    pub(crate) fn with_columns(
        writer: W,
        columns: impl IntoIterator<Item = Column>,
    ) -> io::Result<Self> {
        let columns: Vec<Column> = columns.into_iter().collect();
        let file = new_file(writer, &columns).map_err(into_io)?;
        Ok(Self {
            file,
            columns,
            rows: 0,
        })
    }

    /// Adds a row.
    pub(crate) fn push<R: Row>(&mut self, row: &R) -> io::Result<()> {
        self.push_cells(row.cells().map(|(_, cell)| cell))
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn push_cells<'c>(
        &mut self,
        cells: impl Iterator<Item = Cell<'c>>,
    ) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell)?;
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS {
            self.write_group().map_err(into_io)?;
        }
        Ok(())
    }

    /// Writes the buffered rows and the end of the file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group().map_err(into_io)?;
        }
        self.file.finish().map_err(into_io)?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            if let Some(mut writer) = group.next_column()? {
                column.write(&mut writer)?;
                writer.close()?;
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

/// The program that the files name as their writer.
pub(crate) const CREATED_BY: &str = "weir";

/// Returns a file with these columns and without rows.
pub(crate) fn new_file<W: Write + Send>(
    writer: W,
    columns: &[Column],
) -> Result<SerializedFileWriter<W>, ParquetError> {
    // The file must not change from one build or run to the next.
    let properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::SNAPPY)
        .build();
    SerializedFileWriter::new(writer, Arc::new(schema(columns)?), Arc::new(properties))
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let fields = columns.iter().map(|column| column.schema().map(Arc::new));
    Type::group_type_builder("schema")
        .with_fields(fields.collect::<Result<_, _>>()?)
        .build()
}

/// Returns the operating system's error if there is one: "no space left" is clearer than "external".
pub(crate) fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        error => io::Error::other(error),
    }
}
