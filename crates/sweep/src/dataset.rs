//! Writing the dataset of a directory.

use std::path::{Path, PathBuf};

use weir_results::Dataset;

use crate::SweepError;
use crate::journal::Journal;
use crate::plan::Sweep;
use crate::row::Rows;

/// The file name of the dataset in the directory.
const DATASET: &str = "runs.parquet";

/// A written dataset.
#[derive(Debug)]
pub struct WrittenDataset {
    /// Its path.
    pub path: PathBuf,
    /// The rows from which it was made.
    pub rows: Rows,
    /// Its contents.
    pub dataset: Dataset,
}

impl Sweep {
    /// Writes `runs.parquet` from all rows of this sweep in a directory's journals, including those of
    /// other parts, and `flows.parquet` if flows are kept.
    ///
    /// # Errors
    /// A journal cannot be read; the file cannot be written.
    pub fn write_dataset(&self, directory: &Path) -> Result<WrittenDataset, SweepError> {
        let (rows, _) = Journal::read_all(directory, &self.plan())?;
        let dataset = rows.dataset(self);
        let path = dataset.write(directory.join(DATASET))?;
        self.join_flows(directory, &rows)?;
        Ok(WrittenDataset {
            path,
            rows,
            dataset,
        })
    }
}
