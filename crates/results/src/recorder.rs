//! The interface through which a run records its observations.

use crate::capture::{CapturedFrame, CapturedPacket};
use crate::error::OutputError;
use crate::record::{EpochRecord, FlowRecord, FlowSample, GroupSample, PortSample};

/// An event or a sample of a run.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// A flow has ended, or the run has ended.
    Flow(FlowRecord<'a>),
    /// A request of an epoch was answered or abandoned.
    Epoch(EpochRecord<'a>),
    /// A port was sampled.
    Port(PortSample<'a>),
    /// A group of flows was sampled. A group's samples are in order of time.
    Group(GroupSample<'a>),
    /// A flow without a size was sampled, for a recorder with [`sampled_flows`](Recorder::sampled_flows).
    FlowSample(FlowSample<'a>),
    /// A simulated packet has left the measured port with this index, and arrived at the other end
    /// of the link.
    Packet(usize, &'a CapturedPacket),
    /// The same for a real packet, in a live run.
    Frame(usize, &'a CapturedFrame<'a>),
}

/// Receives the observations of a simulation or a live run.
pub trait Recorder {
    /// Records an observation. Unwanted kinds are ignored.
    ///
    /// # Errors
    /// It cannot be recorded. The run ends.
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError>;

    /// Returns whether the packets of the measured ports are wanted. If not, none are observed.
    fn wants_packets(&self) -> bool {
        false
    }

    /// Returns whether samples of ports and groups are wanted. If not, a simulation takes none.
    fn wants_samples(&self) -> bool {
        true
    }

    /// Returns how many of the flows without a size are sampled one by one, at the times of the groups' samples.
    fn sampled_flows(&self) -> usize {
        0
    }
}

/// Ignores everything.
impl Recorder for () {
    fn record(&mut self, _: Observation<'_>) -> Result<(), OutputError> {
        Ok(())
    }

    fn wants_samples(&self) -> bool {
        false
    }
}

/// Forwards to the recorder, if there is one.
impl<R: Recorder> Recorder for Option<R> {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        self.as_mut().map_or(Ok(()), |it| it.record(observation))
    }

    fn wants_packets(&self) -> bool {
        self.as_ref().is_some_and(Recorder::wants_packets)
    }

    fn wants_samples(&self) -> bool {
        self.as_ref().is_some_and(Recorder::wants_samples)
    }

    fn sampled_flows(&self) -> usize {
        self.as_ref().map_or(0, Recorder::sampled_flows)
    }
}

/// Forwards to both recorders.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        self.0.record(observation)?;
        self.1.record(observation)
    }

    fn wants_packets(&self) -> bool {
        self.0.wants_packets() || self.1.wants_packets()
    }

    fn wants_samples(&self) -> bool {
        self.0.wants_samples() || self.1.wants_samples()
    }

    fn sampled_flows(&self) -> usize {
        self.0.sampled_flows().max(self.1.sampled_flows())
    }
}
