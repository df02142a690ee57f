//! A table whose columns are not known in advance, with one row for each run of a set.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::BufWriter;
use std::path::PathBuf;

use indexmap::IndexMap;

use crate::table::{Cell, Column, Table};
use crate::{Frame, OutputError, StagedFile};

/// The value of a cell of a [`Dataset`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A count: bytes, bits per second, packets. A column that also has a [`Self::Number`] stores
    /// numbers only.
    Count(u64),
    /// A number: seconds, or a ratio.
    Number(f64),
    /// True or false, written as a count of one or zero.
    Flag(bool),
    /// Text. A column that contains text stores text only.
    Text(String),
}

/// Rows of named cells. The columns are in the order in which their names first appeared. A cell
/// that a row does not set is empty.
///
/// ```
/// use weir_results::{Dataset, Value};
///
/// let directory = tempfile::tempdir()?;
/// let mut dataset = Dataset::default();
/// dataset.push([("rate_bps", Value::Count(1_000_000)), ("share", Value::Number(0.5))]);
/// dataset.push([("rate_bps", Value::Count(2_000_000)), ("error", Value::Text("no".to_owned()))]);
/// let path = dataset.write(directory.path().join("runs.parquet"))?;
/// assert!(path.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Dataset {
    columns: IndexMap<String, Vec<Option<Value>>>,
    rows: usize,
}

/// The type that all cells of a column are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Count,
    Number,
    Text,
}

impl Dataset {
    /// Adds a row. If two cells have one name, the later one wins.
    pub fn push<N: Into<String>>(&mut self, cells: impl IntoIterator<Item = (N, Value)>) {
        for (name, value) in cells {
            let column = self.columns.entry(name.into()).or_default();
            column.resize(self.rows, None);
            column.push(Some(value));
        }
        self.rows += 1;
        for column in self.columns.values_mut() {
            column.resize(self.rows, None);
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Writes a Parquet file. It replaces the file at the path once it is complete. Equal rows give
    /// equal bytes.
    ///
    /// # Errors
    /// The file cannot be created, written or renamed.
    pub fn write(&self, path: impl Into<PathBuf>) -> Result<PathBuf, OutputError> {
        let staged = StagedFile::create(path)?;
        let writer = BufWriter::new(staged.handle()?);
        self.write_to(writer)
            .map_err(OutputError::writing(staged.path()))?;
        staged.persist()
    }

    /// Returns the rows as columns in memory.
    pub fn frame(&self) -> Frame {
        let kinds = self.kinds();
        let names = self.columns.keys().zip(&kinds);
        let mut frame =
            Frame::with(names.map(|(name, kind)| (Cow::Owned(name.clone()), kind.cell(&None, ""))));
        self.each_row(&kinds, |cells| {
            frame.push_cells(cells.iter().copied());
            Ok(())
        })
        .unwrap_or_else(|never: Infallible| match never {});
        frame
    }

    /// Makes a column, which no row may have set, the first one.
    pub(crate) fn first_column(&mut self, name: &str) {
        let cells = self.columns.shift_remove(name);
        let cells = cells.unwrap_or_else(|| vec![None; self.rows]);
        self.columns.shift_insert(0, name.to_owned(), cells);
    }

    /// Returns the types of the columns.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.columns.values().map(|cells| Kind::of(cells)).collect()
    }

    /// Returns the columns without cells.
    pub(crate) fn columns(&self, kinds: &[Kind]) -> impl Iterator<Item = Column> {
        let names = self.columns.keys().zip(kinds);
        names.map(|(name, kind)| Column::new(name.clone(), &kind.cell(&None, "")))
    }

    /// Adds the cells of a row to `columns`.
    pub(crate) fn push_row(
        &self,
        row: usize,
        kinds: &[Kind],
        columns: &mut [Column],
    ) -> std::io::Result<()> {
        let values = self.columns.values().map(|column| &column[row]);
        let mut cells = values.zip(kinds).zip(columns);
        cells.try_for_each(|((value, kind), column)| column.push(kind.cell(value, &text(value))))
    }

    /// Passes the cells of each row to `push`.
    fn each_row<E>(
        &self,
        kinds: &[Kind],
        mut push: impl FnMut(&[Cell<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        for row in 0..self.rows {
            let values = self.columns.values().map(|column| &column[row]);
            let texts: Vec<String> = values.clone().map(text).collect();
            let cells = values.zip(kinds).zip(&texts);
            let cells: Vec<_> = cells
                .map(|((value, kind), text)| kind.cell(value, text))
                .collect();
            push(&cells)?;
        }
        Ok(())
    }

    fn write_to(&self, writer: impl std::io::Write + Send) -> std::io::Result<()> {
        let kinds = self.kinds();
        let mut table = Table::with_columns(writer, self.columns(&kinds))?;
        self.each_row(&kinds, |cells| table.push_cells(cells.iter().copied()))?;
        table.finish()
    }
}

impl Kind {
    fn of(cells: &[Option<Value>]) -> Self {
        let kinds = cells.iter().flatten().map(|value| match value {
            Value::Count(_) | Value::Flag(_) => Self::Count,
            Value::Number(_) => Self::Number,
            Value::Text(_) => Self::Text,
        });
        kinds.max().unwrap_or(Self::Text)
    }

    fn cell<'v>(self, value: &'v Option<Value>, text: &'v str) -> Cell<'v> {
        match (self, value) {
            (Self::Count, Some(Value::Count(count))) => Cell::Count(Some(*count)),
            (Self::Count, Some(Value::Flag(flag))) => Cell::Count(Some((*flag).into())),
            (Self::Count, _) => Cell::Count(None),
            (Self::Number, Some(Value::Number(number))) => Cell::Number(Some(*number)),
            (Self::Number, Some(Value::Count(count))) => Cell::Number(Some(*count as f64)),
            (Self::Number, Some(Value::Flag(flag))) => Cell::Number(Some(f64::from(*flag))),
            (Self::Number, _) => Cell::Number(None),
            (Self::Text, value) => Cell::Text(value.as_ref().map(|_| text)),
        }
    }
}

/// Formats a value for a text column.
fn text(value: &Option<Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Count(count)) => count.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Flag(flag)) => flag.to_string(),
        Some(Value::Text(text)) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::Cells;

    #[test]
    fn columns_are_the_union_of_all_rows() {
        let mut dataset = Dataset::default();
        dataset.push([("a", Value::Count(1)), ("b", Value::Text("x".to_owned()))]);
        dataset.push([("c", Value::Count(2)), ("b", Value::Count(7))]);
        dataset.push([("c", Value::Number(0.5))]);
        let frame = dataset.frame();
        let columns: Vec<_> = frame.columns().iter().map(|column| &*column.name).collect();
        assert_eq!(columns, ["a", "b", "c"]);
        assert_eq!(
            frame.columns()[2].cells,
            Cells::Number(vec![None, Some(2.0), Some(0.5)])
        );
        let mut bytes = Vec::new();
        dataset.write_to(&mut bytes).unwrap();
        let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let rows: Vec<Vec<(String, Field)>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().into_columns())
            .collect();
        let row = |a: Field, b: Field, c: Field| {
            vec![
                ("a".to_owned(), a),
                ("b".to_owned(), b),
                ("c".to_owned(), c),
            ]
        };
        assert_eq!(
            rows,
            [
                row(Field::Long(1), Field::Str("x".to_owned()), Field::Null),
                row(Field::Null, Field::Str("7".to_owned()), Field::Double(2.0)),
                row(Field::Null, Field::Null, Field::Double(0.5)),
            ]
        );
    }
}
