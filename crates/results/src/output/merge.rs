//! Joins the tables of several runs to one, with columns that tell the runs apart.

use std::fs::File;
use std::io;
use std::path::Path;

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedRowGroupWriter;

use crate::Value;
use crate::dataset::{Dataset, Kind};
use crate::error::OutputError;
use crate::staged::{CompleteFile, StagedFile};
use crate::table::{Column, Row, into_io, new_file};

/// The name of the column with the variant's name, which is empty for the file's own values.
pub(crate) const VARIANT: &str = "variant";

/// The values that tell the runs of an experiment apart, one row for each.
pub(crate) struct RunColumns(Dataset);

impl RunColumns {
    /// Returns the columns for runs with these values.
    pub(crate) fn of<R: IntoIterator<Item = (String, Value)>>(
        runs: impl Iterator<Item = R>,
    ) -> Self {
        let mut dataset = Dataset::default();
        runs.for_each(|values| dataset.push(values));
        Self(dataset)
    }

    /// Returns the columns for runs with these names, which become the first column, and values.
    pub(super) fn new<'r>(
        runs: impl Iterator<Item = (Option<&'r str>, &'r [(String, Value)])>,
    ) -> Self {
        let mut dataset = Dataset::default();
        for (name, values) in runs {
            let name = name.map(|name| (VARIANT.to_owned(), Value::Text(name.to_owned())));
            dataset.push(name.into_iter().chain(values.iter().cloned()));
        }
        dataset.first_column(VARIANT);
        Self(dataset)
    }

    /// Writes one file with the rows of all parts, each of a run, to a temporary file that will get the path
    /// `path`. The rows of runs are in the order of the parts, which have all columns of `R`.
    pub(crate) fn merge<R: Row>(
        &self,
        path: &Path,
        parts: &[(usize, &Path)],
    ) -> Result<CompleteFile, OutputError> {
        let staged = StagedFile::create(path)?;
        let merged = self.write::<R>(staged.handle()?, parts);
        merged.map_err(OutputError::writing(path))?;
        staged.close()
    }

    fn write<R: Row>(&self, file: File, parts: &[(usize, &Path)]) -> io::Result<()> {
        let kinds = self.0.kinds();
        let blank = R::BLANK;
        let own = blank.cells().map(|(name, cell)| Column::new(name, &cell));
        let columns: Vec<Column> = self.0.columns(&kinds).chain(own).collect();
        let mut file = new_file(file, &columns).map_err(into_io)?;
        for (run, part) in parts {
            let source = File::open(part)?;
            let reader = SerializedFileReader::new(source.try_clone()?).map_err(into_io)?;
            for group in reader.metadata().row_groups() {
                let mut writer = file.next_row_group().map_err(into_io)?;
                self.write_constants(*run, &kinds, group.num_rows(), &mut writer)?;
                append(&source, group, &mut writer).map_err(into_io)?;
                writer.close().map_err(into_io)?;
            }
        }
        file.finish().map_err(into_io)?;
        Ok(())
    }

    /// Writes the run's values, once for each row.
    fn write_constants(
        &self,
        run: usize,
        kinds: &[Kind],
        rows: i64,
        writer: &mut SerializedRowGroupWriter<'_, File>,
    ) -> io::Result<()> {
        let mut columns: Vec<Column> = self.0.columns(kinds).collect();
        for _ in 0..rows {
            self.0.push_row(run, kinds, &mut columns)?;
        }
        for column in &mut columns {
            if let Some(mut writer) = writer.next_column().map_err(into_io)? {
                column.write(&mut writer).map_err(into_io)?;
                writer.close().map_err(into_io)?;
            }
        }
        Ok(())
    }
}

/// Appends the columns of a row group as they are.
fn append(
    source: &File,
    group: &RowGroupMetaData,
    writer: &mut SerializedRowGroupWriter<'_, File>,
) -> Result<(), ParquetError> {
    for column in group.columns() {
        let chunk = ColumnCloseResult {
            bytes_written: u64::try_from(column.compressed_size()).unwrap_or_default(),
            rows_written: u64::try_from(group.num_rows()).unwrap_or_default(),
            metadata: column.clone(),
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        writer.append_column(source, chunk)?;
    }
    Ok(())
}
