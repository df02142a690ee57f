//! What comes out of a test.

use std::time::SystemTime;

use weir_units::Duration;

use super::error::Error;
use super::parameters::{Parameters, Side};
use super::path::PathSample;
use super::protocol::Outcome;
use crate::transport::Ends;

/// The result of a test.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What was measured, and between whom.
    pub start: Start,
    /// What happened on the way, as seen by this side.
    pub intervals: Vec<Interval>,
    /// What this side measured.
    pub ours: Outcome,
    /// What the other side measured, of as many streams.
    pub theirs: Outcome,
}

impl Measurement {
    /// # Errors
    /// [`Error::Protocol`] where the other side's outcome is not of this test.
    pub(super) fn new(
        start: Start,
        intervals: Vec<Interval>,
        ours: Outcome,
        theirs: Outcome,
    ) -> Result<Self, Error> {
        if ours.streams.len() != theirs.streams.len() {
            return Err(Error::Protocol(format!(
                "it reports {} streams, where there were {}",
                theirs.streams.len(),
                ours.streams.len()
            )));
        }
        Ok(Self {
            start,
            intervals,
            ours,
            theirs,
        })
    }
}

/// What is measured, and between whom.
#[derive(Clone, Debug)]
pub struct Start {
    /// Which side of the test this is.
    pub side: Side,
    /// The other side: a client's server as the user named it, or the address of a server's client.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// When the test began.
    pub time: SystemTime,
    /// The test.
    pub parameters: Parameters,
    /// The time between two intervals; zero for none but the last.
    pub interval: Duration,
    /// The addresses of the data connections.
    pub connections: Vec<Ends>,
}

/// What happened in an interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// When it began, since the test did.
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
    /// What happened on each stream.
    pub streams: Vec<StreamInterval>,
}

/// What happened on a stream in an interval.
#[derive(Clone, Copy, Debug)]
pub struct StreamInterval {
    /// Bytes sent or received.
    pub bytes: u64,
    /// A sender's view of the path, its counts being of this interval alone.
    pub path: Option<PathSample>,
}
