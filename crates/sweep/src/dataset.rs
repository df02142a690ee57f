//! The dataset of a directory.

use std::path::{Path, PathBuf};

use weir_results::Dataset;

use crate::SweepError;
use crate::journal::Journal;
use crate::plan::Sweep;
use crate::row::Rows;

/// The dataset's file in the directory.
const DATASET: &str = "runs.parquet";

/// A dataset that has been written.
#[derive(Debug)]
pub struct WrittenDataset {
    /// Where it is.
    pub path: PathBuf,
    /// The rows of which it was made.
    pub rows: Rows,
    /// What is in it.
    pub dataset: Dataset,
}

impl Sweep {
    /// Makes `runs.parquet` of all rows that a directory's journals have of this sweep, those of other parts
    /// included.
    ///
    /// # Errors
    /// A journal cannot be read; the file cannot be written.
    pub fn write_dataset(&self, directory: &Path) -> Result<WrittenDataset, SweepError> {
        let (rows, _) = Journal::read_all(directory, &self.plan())?;
        let dataset = rows.dataset(self);
        let path = dataset.write(directory.join(DATASET))?;
        Ok(WrittenDataset {
            path,
            rows,
            dataset,
        })
    }
}
