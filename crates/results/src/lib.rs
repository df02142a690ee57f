//! What comes out of an experiment, as plain records and as files that the field's tools open.
//!
//! Whoever runs an experiment fills [`Summary`] and the records [`FlowRecord`], [`PortSample`] and
//! [`GroupSample`]; this crate knows nothing of what ran.

mod capture;
mod output;
mod quantity;
mod ratio;
mod record;
mod report;
mod serialized;
mod summary;
mod table;
mod tables;
mod text;
mod trace;

pub use capture::{CapturedPacket, Content, Direction, Interface, PacketCapture};
pub use output::{FinishedRun, Output, OutputError, RunFiles, StagedFile};
pub use ratio::Ratio;
pub use record::{FlowRecord, GroupSample, PortSample};
pub use report::{Report, RunPlots, Threshold};
pub use summary::{
    CompletionTimes, Drops, GroupSummary, PortSummary, RunSummary, SCHEMA_VERSION, Summary,
    SummaryError,
};
pub use trace::Traces;
