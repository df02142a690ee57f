//! The results of an experiment, as plain records and as files in standard formats.
//!
//! The simulator or the live run fills the records; this crate does not depend on either:
//!
//! - [`Summary`]: the numbers of an experiment and its variants, for `summary.json`
//!   ([`to_json`](Summary::to_json)) and a terminal ([`to_text`](Summary::to_text));
//! - [`FlowRecord`], [`EpochRecord`], [`PortSample`], [`GroupSample`]: rows of Parquet tables,
//!   written during the run ([`RunFiles`]);
//! - [`RunFrames`], [`Frame`]: the same tables in memory, for programs that process them;
//! - [`Observation`], [`Recorder`]: an event or sample of a run, and the interface that receives it;
//! - [`Report`]: the summary with plots, as one HTML page;
//! - [`Repetitions`]: an experiment with several seeds, each measure with its confidence interval;
//! - [`Comparison`]: two experiments side by side, read back from their directories;
//! - [`capture`]: packets as pcapng;
//! - [`PerfettoTrace`]: a run over time, for Perfetto.
//!
//! [`Output`] writes all files of an experiment to a directory, or none of them:
//!
//! ```
//! use weir_counters::FlowCounters;
//! use weir_results::{
//!     FlowRecord, Observation, Output, Recorder, Report, RunPlots, RunSummary, Summary,
//! };
//! use weir_units::{ByteSize, Duration, Rate, Time};
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let output = Output::create(directory)?;
//! let mut run = output.run(Vec::new(), Duration::from_secs(10))?;
//! run.record(Observation::Flow(FlowRecord {
//!     group: "dctcp",
//!     index: 0,
//!     source: "sender-0",
//!     destination: "receiver",
//!     start: Time::ZERO,
//!     end: None,
//!     size: None,
//!     ideal: None,
//!     counters: FlowCounters {
//!         delivered: ByteSize::from_mib(100),
//!         marks: 12,
//!         ..FlowCounters::ZERO
//!     },
//!     goodput: Rate::from_mbps(84),
//!     smoothed_rtt: Some(Duration::from_micros(61)),
//!     min_rtt: Some(Duration::from_micros(50)),
//! }))?;
//! let run = run.finish()?;
//!
//! let summary = Summary::new("A flow", "", RunSummary::default());
//! let report = Report {
//!     summary: &summary,
//!     parameters: &[("rate".to_owned(), "100Mbps".to_owned())],
//!     runs: vec![RunPlots {
//!         traces: run.traces(),
//!         thresholds: Default::default(),
//!         values: run.values(),
//!     }],
//! };
//! let html = report.to_html();
//! output.commit(&summary, &html, [run])?;
//! assert!(directory.join("summary.json").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod capture;
mod compare;
mod dataset;
mod error;
mod flow_file;
mod frame;
mod measures;
mod output;
mod overview;
mod perfetto;
mod quantity;
mod ratio;
mod record;
mod recorder;
mod repetitions;
mod report;
mod serialized;
mod staged;
mod summary;
mod table;
mod text;
mod trace;

pub use compare::{
    CompareError, Comparison, ExperimentId, PairStatistics, RunComparison, ValuePair, Verdict,
};
pub use dataset::{Dataset, Value};
pub use error::OutputError;
pub use flow_file::{FlowFile, join_flows};
pub use frame::{Cells, Frame, FrameColumn, RunFrames, is_table_column};
pub use output::{FinishedRun, Output, RunFiles};
pub use perfetto::PerfettoTrace;
pub use ratio::Ratio;
pub use record::{EpochRecord, FlowRecord, FlowSample, GroupSample, PortSample};
pub use recorder::{Observation, Recorder};
pub use repetitions::{MeanInterval, RepeatedRun, Repetitions, TwoGroups};
pub use report::{Report, RunPlots, Threshold};
pub use staged::StagedFile;
pub use summary::{
    AchievedRate, ChangeRecord, CompletionTimes, DeadlineSummary, Drops, Emulation, EpochSummary,
    GroupSummary, HostSummary, LinkLoad, PortDeadlines, PortSummary, RunKind, RunSummary,
    SCHEMA_VERSION, SlowdownStatistics, Slowdowns, Summary, SummaryError, TconSummary,
    TransferTime,
};
pub use trace::Traces;
