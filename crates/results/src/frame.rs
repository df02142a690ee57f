//! Tables in memory: the columns of the Parquet files under the same names, without the files.

use std::borrow::Cow;

use crate::output::VARIANT;
use crate::table::{Cell, Row, Sample};
use crate::{EpochRecord, FlowRecord, Observation, OutputError, Recorder};

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    columns: Vec<FrameColumn>,
}

/// A column: its name and a cell for each row.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameColumn {
    /// Its name, which includes the unit.
    pub name: Cow<'static, str>,
    /// Its cells.
    pub cells: Cells,
}

/// Cells of one type; `None` where a row has no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Text.
    Text(Vec<Option<String>>),
    /// Numbers: seconds, or ratios.
    Number(Vec<Option<f64>>),
    /// Counts: bytes, bits per second, packets. Larger values saturate.
    Count(Vec<Option<i64>>),
}

impl Frame {
    /// Returns the columns, in the order of the files.
    pub fn columns(&self) -> &[FrameColumn] {
        &self.columns
    }

    /// Returns the columns by value.
    pub fn into_columns(self) -> Vec<FrameColumn> {
        self.columns
    }

    /// Returns a frame without rows, with the columns of this row type.
    fn like<R: Row>() -> Self {
        let blank = R::BLANK;
        let columns = blank.cells();
        Self::with(columns.map(|(name, cell)| (Cow::Borrowed(name), cell)))
    }

    /// Returns a frame without rows, with columns for cells of these types.
    pub(crate) fn with<'c>(columns: impl Iterator<Item = (Cow<'static, str>, Cell<'c>)>) -> Self {
        let columns = columns.map(|(name, cell)| FrameColumn {
            name,
            cells: match cell {
                Cell::Text(_) => Cells::Text(Vec::new()),
                Cell::Number(_) => Cells::Number(Vec::new()),
                Cell::Count(_) => Cells::Count(Vec::new()),
            },
        });
        Self {
            columns: columns.collect(),
        }
    }

    fn push<R: Row>(&mut self, row: &R) {
        self.push_cells(row.cells().map(|(_, cell)| cell));
    }

    /// Adds a row. A cell whose type differs from its column's is left empty. This does not happen:
    /// every row of a table has the same names and types.
    pub(crate) fn push_cells<'c>(&mut self, cells: impl Iterator<Item = Cell<'c>>) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match (&mut column.cells, cell) {
                (Cells::Text(texts), Cell::Text(text)) => texts.push(text.map(str::to_owned)),
                (Cells::Number(numbers), Cell::Number(number)) => numbers.push(number),
                (Cells::Count(counts), Cell::Count(count)) => {
                    counts.push(count.map(|count| i64::try_from(count).unwrap_or(i64::MAX)));
                }
                (Cells::Text(texts), _) => texts.push(None),
                (Cells::Number(numbers), _) => numbers.push(None),
                (Cells::Count(counts), _) => counts.push(None),
            }
        }
    }
}

/// The tables of one run, in memory.
///
/// ```
/// use weir_results::{EpochRecord, Observation, Recorder, RunFrames};
/// use weir_units::{Duration, Time};
///
/// let mut frames = RunFrames::default();
/// frames.record(Observation::Epoch(EpochRecord {
///     group: "requests",
///     index: 0,
///     epoch: 0,
///     start: Time::ZERO,
///     completion: Some(Duration::from_millis(2)),
///     attempts: 1,
/// }))?;
/// assert_eq!(frames.epochs.columns()[0].name, "group");
/// # Ok::<(), weir_results::OutputError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RunFrames {
    /// A row for each flow, as in `flows.parquet`.
    pub flows: Frame,
    /// Ports and groups over time, as in `samples.parquet`.
    pub samples: Frame,
    /// A row for each request of an epoch, as in `epochs.parquet`.
    pub epochs: Frame,
}

impl Default for RunFrames {
    fn default() -> Self {
        Self {
            flows: Frame::like::<FlowRecord<'_>>(),
            samples: Frame::like::<Sample<'_>>(),
            epochs: Frame::like::<EpochRecord<'_>>(),
        }
    }
}

/// Whether a table of a run has a column with this name, or may get one.
pub fn is_table_column(name: &str) -> bool {
    let RunFrames {
        flows,
        samples,
        epochs,
    } = RunFrames::default();
    let mut columns = [flows, samples, epochs]
        .into_iter()
        .flat_map(Frame::into_columns);
    name == VARIANT || columns.any(|column| column.name == name)
}

/// Records everything except packets.
impl Recorder for RunFrames {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        match observation {
            Observation::Flow(flow) => self.flows.push(&flow),
            Observation::Epoch(epoch) => self.epochs.push(&epoch),
            Observation::Port(sample) => self.samples.push(&Sample::Port(sample)),
            Observation::Group(sample) => self.samples.push(&Sample::Group(sample)),
            Observation::FlowSample(_) | Observation::Packet(..) | Observation::Frame(..) => {}
        }
        Ok(())
    }
}
