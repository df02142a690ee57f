//! Where a simulation puts what it observes while it runs.

use weir_results::capture::CapturedFrame;
use weir_results::{
    EpochRecord, FlowRecord, GroupSample, OutputError, PortSample, RunFiles, RunFrames,
};
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

    /// A request of an epoch was answered, or given up.
    ///
    /// # Errors
    /// It cannot be recorded. The simulation stops.
    fn epoch(&mut self, _: &EpochRecord<'_>) -> Result<(), OutputError> {
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

    fn packet(&mut self, time: Time, port: usize, packet: &Packet) -> Result<(), OutputError> {
        self.as_mut()
            .map_or(Ok(()), |it| it.packet(time, port, packet))
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

    fn packet(&mut self, time: Time, port: usize, packet: &Packet) -> Result<(), OutputError> {
        self.0.packet(time, port, packet)?;
        self.1.packet(time, port, packet)
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
