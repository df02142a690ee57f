//! Where a run puts what it observes while it goes on.

use crate::capture::{CapturedFrame, CapturedPacket};
use crate::frame::RunFrames;
use crate::output::{OutputError, RunFiles};
use crate::record::{EpochRecord, FlowRecord, GroupSample, PortSample};

/// Takes what a simulation or a live run observes. Whoever wants only some of it leaves the rest as it is.
pub trait Recorder {
    /// A flow has ended, or the run has.
    ///
    /// # Errors
    /// It cannot be recorded. The run ends.
    fn flow(&mut self, _: &FlowRecord<'_>) -> Result<(), OutputError> {
        Ok(())
    }

    /// A request of an epoch was answered, or given up.
    ///
    /// # Errors
    /// It cannot be recorded. The run ends.
    fn epoch(&mut self, _: &EpochRecord<'_>) -> Result<(), OutputError> {
        Ok(())
    }

    /// A sample of a port.
    ///
    /// # Errors
    /// It cannot be recorded. The run ends.
    fn port(&mut self, _: &PortSample<'_>) -> Result<(), OutputError> {
        Ok(())
    }

    /// A sample of a group of flows.
    ///
    /// # Errors
    /// It cannot be recorded. The run ends.
    fn group(&mut self, _: &GroupSample<'_>) -> Result<(), OutputError> {
        Ok(())
    }

    /// Whether it wants the packets of the measured ports.
    fn wants_packets(&self) -> bool {
        false
    }

    /// A simulated packet has left the port with this position among the measured ones, and arrived at
    /// the other end of its link.
    ///
    /// # Errors
    /// It cannot be recorded. The run ends.
    fn packet(&mut self, _: usize, _: &CapturedPacket) -> Result<(), OutputError> {
        Ok(())
    }

    /// The same of a real packet, in a live run.
    ///
    /// # Errors
    /// It cannot be recorded. The run ends.
    fn frame(&mut self, _: usize, _: &CapturedFrame<'_>) -> Result<(), OutputError> {
        Ok(())
    }
}

/// Takes nothing.
impl Recorder for () {}

/// Takes what the recorder takes, if there is one.
impl<R: Recorder> Recorder for Option<R> {
    fn flow(&mut self, flow: &FlowRecord<'_>) -> Result<(), OutputError> {
        self.as_mut().map_or(Ok(()), |it| it.flow(flow))
    }

    fn epoch(&mut self, epoch: &EpochRecord<'_>) -> Result<(), OutputError> {
        self.as_mut().map_or(Ok(()), |it| it.epoch(epoch))
    }

    fn port(&mut self, sample: &PortSample<'_>) -> Result<(), OutputError> {
        self.as_mut().map_or(Ok(()), |it| it.port(sample))
    }

    fn group(&mut self, sample: &GroupSample<'_>) -> Result<(), OutputError> {
        self.as_mut().map_or(Ok(()), |it| it.group(sample))
    }

    fn wants_packets(&self) -> bool {
        self.as_ref().is_some_and(Recorder::wants_packets)
    }

    fn packet(&mut self, port: usize, packet: &CapturedPacket) -> Result<(), OutputError> {
        self.as_mut().map_or(Ok(()), |it| it.packet(port, packet))
    }

    fn frame(&mut self, port: usize, frame: &CapturedFrame<'_>) -> Result<(), OutputError> {
        self.as_mut().map_or(Ok(()), |it| it.frame(port, frame))
    }
}

/// Each takes what it wants.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    fn flow(&mut self, flow: &FlowRecord<'_>) -> Result<(), OutputError> {
        self.0.flow(flow)?;
        self.1.flow(flow)
    }

    fn epoch(&mut self, epoch: &EpochRecord<'_>) -> Result<(), OutputError> {
        self.0.epoch(epoch)?;
        self.1.epoch(epoch)
    }

    fn port(&mut self, sample: &PortSample<'_>) -> Result<(), OutputError> {
        self.0.port(sample)?;
        self.1.port(sample)
    }

    fn group(&mut self, sample: &GroupSample<'_>) -> Result<(), OutputError> {
        self.0.group(sample)?;
        self.1.group(sample)
    }

    fn wants_packets(&self) -> bool {
        self.0.wants_packets() || self.1.wants_packets()
    }

    fn packet(&mut self, port: usize, packet: &CapturedPacket) -> Result<(), OutputError> {
        self.0.packet(port, packet)?;
        self.1.packet(port, packet)
    }

    fn frame(&mut self, port: usize, frame: &CapturedFrame<'_>) -> Result<(), OutputError> {
        self.0.frame(port, frame)?;
        self.1.frame(port, frame)
    }
}

/// Takes everything but packets.
impl Recorder for RunFiles {
    fn flow(&mut self, flow: &FlowRecord<'_>) -> Result<(), OutputError> {
        Self::flow(self, flow)
    }

    fn epoch(&mut self, epoch: &EpochRecord<'_>) -> Result<(), OutputError> {
        Self::epoch(self, epoch)
    }

    fn port(&mut self, sample: &PortSample<'_>) -> Result<(), OutputError> {
        Self::port(self, sample)
    }

    fn group(&mut self, sample: &GroupSample<'_>) -> Result<(), OutputError> {
        Self::group(self, sample)
    }
}

/// Takes everything but packets.
impl Recorder for RunFrames {
    fn flow(&mut self, flow: &FlowRecord<'_>) -> Result<(), OutputError> {
        Self::flow(self, flow);
        Ok(())
    }

    fn epoch(&mut self, epoch: &EpochRecord<'_>) -> Result<(), OutputError> {
        Self::epoch(self, epoch);
        Ok(())
    }

    fn port(&mut self, sample: &PortSample<'_>) -> Result<(), OutputError> {
        Self::port(self, sample);
        Ok(())
    }

    fn group(&mut self, sample: &GroupSample<'_>) -> Result<(), OutputError> {
        Self::group(self, sample);
        Ok(())
    }
}
