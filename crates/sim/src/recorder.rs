//! Where a simulation puts what it observes while it runs.

use weir_results::{FlowRecord, GroupSample, OutputError, PortSample, RunFiles};
use weir_units::Time;

use crate::Packet;

/// Takes what a simulation observes. Whoever wants only some of it leaves the rest as it is.
pub trait Recorder {
    /// A flow has ended, or the run has.
    ///
    /// # Errors
    /// It cannot be recorded. The simulation stops.
    fn flow(&mut self, _: &FlowRecord<'_>) -> Result<(), OutputError> {
        Ok(())
    }

    /// A sample of a port.
    ///
    /// # Errors
    /// It cannot be recorded. The simulation stops.
    fn port(&mut self, _: &PortSample<'_>) -> Result<(), OutputError> {
        Ok(())
    }

    /// A sample of a group of flows.
    ///
    /// # Errors
    /// It cannot be recorded. The simulation stops.
    fn group(&mut self, _: &GroupSample<'_>) -> Result<(), OutputError> {
        Ok(())
    }

    /// Whether it wants the packets of the measured ports.
    fn wants_packets(&self) -> bool {
        false
    }

    /// A packet has left the port with this position among the measured ones, and arrived at the
    /// other end of its link.
    ///
    /// # Errors
    /// It cannot be recorded. The simulation stops.
    fn packet(&mut self, _: Time, _: usize, _: &Packet) -> Result<(), OutputError> {
        Ok(())
    }
}

/// Takes nothing.
impl Recorder for () {}

/// Takes everything but packets.
impl Recorder for RunFiles {
    fn flow(&mut self, flow: &FlowRecord<'_>) -> Result<(), OutputError> {
        Self::flow(self, flow)
    }

    fn port(&mut self, sample: &PortSample<'_>) -> Result<(), OutputError> {
        Self::port(self, sample)
    }

    fn group(&mut self, sample: &GroupSample<'_>) -> Result<(), OutputError> {
        Self::group(self, sample)
    }
}
