//! Reads the output directory of an experiment.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate, Time};

use super::{ExperimentId, OWN};
use crate::output::VARIANT;
use crate::report::Overlay;
use crate::{
    Drops, EpochRecord, FlowRecord, GroupSample, PortSample, RunSummary, Summary, SummaryError,
    Traces,
};

/// Why two directories cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A directory has no summary.
    #[error(
        "{} is no output of an experiment: {source}; `weir run … --out DIR` writes one",
        path.display()
    )]
    NoOutput {
        /// The file that is missing.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A summary that cannot be read.
    #[error("{}: {source}", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// The error.
        source: SummaryError,
    },
    /// A table that cannot be read.
    #[error("{}: {message}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The error.
        message: String,
    },
    /// Two scenarios without a common group or port.
    #[error(
        "these are not the same scenario: \"{first}\" and \"{second}\" have neither a group nor a \
         measured port in common"
    )]
    NothingInCommon {
        /// A's title.
        first: String,
        /// B's title.
        second: String,
    },
}

/// The file that every output has.
const SUMMARY: &str = "summary.json";

/// One of the two experiments, as read from its directory.
#[derive(Debug)]
pub(super) struct Side {
    directory: PathBuf,
    first: Summary,
    /// The repetitions after the first one.
    others: Vec<Summary>,
    /// The traces of the first repetition by the run's name.
    traces: IndexMap<String, Traces>,
}

impl Side {
    pub(super) fn read(directory: &Path) -> Result<Self, CompareError> {
        let repetitions = repetitions(directory);
        let (of_first, others) = match repetitions.split_first() {
            Some((first, others)) => (first.as_path(), others),
            None => (directory, &[][..]),
        };
        let first = read_summary(of_first)?;
        let others = others.iter().map(|path| read_summary(path));
        let runs = first.runs();
        let mut traces: IndexMap<String, Traces> = runs
            .map(|(name, run)| (name.unwrap_or(OWN).to_owned(), Traces::new(run.simulated)))
            .collect();
        read_traces(of_first, &mut traces)?;
        Ok(Self {
            directory: directory.to_owned(),
            others: others.collect::<Result<_, _>>()?,
            first,
            traces,
        })
    }

    /// Returns the summary of the first repetition.
    pub(super) fn summary(&self) -> &Summary {
        &self.first
    }

    /// Returns the number of repetitions.
    pub(super) fn repetitions(&self) -> usize {
        1 + self.others.len()
    }

    pub(super) fn about(&self) -> ExperimentId {
        ExperimentId {
            directory: self.directory.display().to_string(),
            title: self.first.title.clone(),
            world: self.first.run.world,
            repetitions: self.repetitions(),
        }
    }

    /// Iterates over the repetitions of the run with this name.
    pub(super) fn runs(&self, name: &str) -> impl Iterator<Item = &RunSummary> {
        let all = std::iter::once(&self.first).chain(&self.others);
        all.filter_map(move |summary| match name {
            OWN => Some(&summary.run),
            name => summary.variants.get(name),
        })
    }

    /// Returns the data of a run to plot.
    pub(super) fn overlay(&self, name: &str) -> Option<Overlay<'_>> {
        Some(Overlay {
            repetitions: self.runs(name).collect(),
            traces: self.traces.get(name)?,
        })
    }
}

/// Returns the directories of an experiment's repetitions, in the order of their names; none if the directory
/// is the output of one experiment.
fn repetitions(directory: &Path) -> Vec<PathBuf> {
    if directory.join(SUMMARY).exists() {
        return Vec::new();
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join(SUMMARY).exists())
        .collect();
    // `seed-2` comes before `seed-10`.
    found.sort_by_key(|path| {
        let name = path.as_os_str().len();
        (name, path.clone())
    });
    found
}

fn read_summary(directory: &Path) -> Result<Summary, CompareError> {
    let path = directory.join(SUMMARY);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) => return Err(CompareError::NoOutput { path, source }),
    };
    let summary = Summary::from_json(&text);
    summary.map_err(|source| CompareError::Summary { path, source })
}

/// Reads the tables of all runs, which `traces` has by name.
fn read_traces(
    directory: &Path,
    traces: &mut IndexMap<String, Traces>,
) -> Result<(), CompareError> {
    let path = |table: &str| directory.join(format!("{table}.parquet"));
    for_each_row(&path("samples"), |row| {
        let Some(traces) = traces.get_mut(row.text(VARIANT).unwrap_or(OWN)) else {
            return;
        };
        if let Some(group) = row.text("group") {
            traces.group(&GroupSample {
                time: row.time("time_s"),
                group,
                counters: FlowCounters {
                    delivered: row.size("delivered_bytes"),
                    ..FlowCounters::ZERO
                },
                goodput: Rate::ZERO,
                window: row.optional_size("window_bytes"),
            });
        } else if let Some(port) = row.text("port") {
            traces.port(&PortSample {
                time: row.time("time_s"),
                port,
                queue: row.size("queue_bytes"),
                queue_packets: 0,
                sent: ByteSize::ZERO,
                marks: row.count("marks"),
                drops: Drops {
                    red: row.count("drops_red"),
                    tail: row.count("drops_tail"),
                    buffer: row.count("drops_buffer"),
                    element: row.count("drops_other"),
                    ..Drops::default()
                },
            });
        }
    })?;
    for_each_row(&path("flows"), |row| {
        let Some(traces) = traces.get_mut(row.text(VARIANT).unwrap_or(OWN)) else {
            return;
        };
        traces.flow(&FlowRecord {
            group: row.text("group").unwrap_or_default(),
            index: row.count("index"),
            source: "",
            destination: "",
            start: row.time("start_s"),
            end: (row.number("end_s")).map(|end| Time::ZERO + duration(end)),
            size: row.optional_size("size_bytes"),
            ideal: None,
            counters: FlowCounters::ZERO,
            goodput: Rate::ZERO,
            smoothed_rtt: None,
            min_rtt: None,
        });
    })?;
    for_each_row(&path("epochs"), |row| {
        let Some(traces) = traces.get_mut(row.text(VARIANT).unwrap_or(OWN)) else {
            return;
        };
        traces.epoch(&EpochRecord {
            group: row.text("group").unwrap_or_default(),
            index: 0,
            epoch: row.count("epoch"),
            start: Time::ZERO,
            completion: row.number("completion_s").map(duration),
            attempts: 0,
        });
    })
}

/// Reads a table, if it exists.
fn for_each_row(path: &Path, mut take: impl FnMut(Cells<'_>)) -> Result<(), CompareError> {
    let unreadable = |message: String| CompareError::Table {
        path: path.to_owned(),
        message,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let mut read = |file| -> Result<(), ParquetError> {
        let reader = SerializedFileReader::new(file)?;
        for row in reader.get_row_iter(None)? {
            take(Cells(&row?));
        }
        Ok(())
    };
    read(file).map_err(|error| unreadable(error.to_string()))
}

/// A row's cells by column name. A missing cell, or one of another type, is empty: other programs
/// may have written the table.
struct Cells<'r>(&'r Row);

impl<'r> Cells<'r> {
    fn field(&self, column: &str) -> Option<&'r Field> {
        let mut cells = self.0.get_column_iter();
        cells
            .find(|(name, _)| *name == column)
            .map(|(_, field)| field)
    }

    fn text(&self, column: &str) -> Option<&'r str> {
        match self.field(column)? {
            Field::Str(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self, column: &str) -> Option<f64> {
        match self.field(column)? {
            Field::Double(value) => Some(*value),
            _ => None,
        }
    }

    fn count(&self, column: &str) -> u64 {
        match self.field(column) {
            Some(Field::Long(value)) => u64::try_from(*value).unwrap_or_default(),
            _ => 0,
        }
    }

    fn size(&self, column: &str) -> ByteSize {
        ByteSize::from_bytes(self.count(column))
    }

    fn optional_size(&self, column: &str) -> Option<ByteSize> {
        matches!(self.field(column)?, Field::Long(_)).then(|| self.size(column))
    }

    fn time(&self, column: &str) -> Time {
        Time::ZERO + duration(self.number(column).unwrap_or_default())
    }
}

/// Converts seconds; invalid values become zero.
fn duration(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}
