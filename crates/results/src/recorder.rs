//! Where a run puts what it observes while it goes on.

use crate::capture::{CapturedFrame, CapturedPacket};
use crate::error::OutputError;
use crate::record::{EpochRecord, FlowRecord, GroupSample, PortSample};

/// What a run observes.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// A flow has ended, or the run has.
    Flow(FlowRecord<'a>),
    /// A request of an epoch was answered, or given up.
    Epoch(EpochRecord<'a>),
    /// A port was sampled.
    Port(PortSample<'a>),
    /// A group of flows was sampled; a group's samples come in the order of their times.
    Group(GroupSample<'a>),
    /// A simulated packet has left the port with this position among the measured ones, and arrived at
    /// the other end of its link.
    Packet(usize, &'a CapturedPacket),
    /// The same of a real packet, in a live run.
    Frame(usize, &'a CapturedFrame<'a>),
}

/// Takes what a simulation or a live run observes.
pub trait Recorder {
    /// Takes an observation; what is not wanted is dropped.
    ///
    /// # Errors
    /// It cannot be recorded. The run ends.
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError>;

    /// Whether the packets of the measured ports are wanted. Without, none are observed.
    fn wants_packets(&self) -> bool {
        false
    }
}

/// Takes nothing.
impl Recorder for () {
    fn record(&mut self, _: Observation<'_>) -> Result<(), OutputError> {
        Ok(())
    }
}

/// Takes what the recorder takes, if there is one.
impl<R: Recorder> Recorder for Option<R> {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        self.as_mut().map_or(Ok(()), |it| it.record(observation))
    }

    fn wants_packets(&self) -> bool {
        self.as_ref().is_some_and(Recorder::wants_packets)
    }
}

/// Each takes what it wants.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        self.0.record(observation)?;
        self.1.record(observation)
    }

    fn wants_packets(&self) -> bool {
        self.0.wants_packets() || self.1.wants_packets()
    }
}
