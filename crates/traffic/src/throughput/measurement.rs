//! The result of a test.

use std::time::SystemTime;

use weir_units::Duration;

use super::error::Error;
use super::parameters::{Parameters, Side};
use super::path::PathSample;
use super::protocol::Outcome;
use crate::transport::ConnectionAddresses;

/// The result of a test.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The test and its two sides.
    pub start: Start,
    /// The intervals, as measured by this side.
    pub intervals: Vec<Interval>,
    /// This side's measurements.
    pub ours: Outcome,
    /// The other side's measurements, of the same number of streams.
    pub theirs: Outcome,
}

impl Measurement {
    /// # Errors
    /// [`Error::Protocol`] if the other side's outcome does not match this test.
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

/// The test and its two sides.
#[derive(Clone, Debug)]
pub struct Start {
    /// This side of the test.
    pub side: Side,
    /// The other side: the server as the user named it, or the client's address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The start time of the test.
    pub time: SystemTime,
    /// The test.
    pub parameters: Parameters,
    /// The time between two intervals; zero if only the last one is reported.
    pub interval: Duration,
    /// The addresses of the data connections.
    pub connections: Vec<ConnectionAddresses>,
}

/// The measurements of an interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its start, relative to the start of the test.
    pub start: Duration,
    /// Its end, relative to the start of the test.
    pub end: Duration,
    /// The measurements of each stream.
    pub streams: Vec<StreamInterval>,
}

/// The measurements of a stream in an interval.
#[derive(Clone, Copy, Debug)]
pub struct StreamInterval {
    /// Bytes sent or received.
    pub bytes: u64,
    /// A sender's state of the path, with the counters of this interval alone.
    pub path: Option<PathSample>,
}
