//! Packet capture: the packets of the measured ports as a pcapng file.

use std::path::PathBuf;

use weir_results::capture::{Direction, Interface, PacketCapture};
use weir_results::{Observation, OutputError, Recorder};
use weir_scenario::Scenario;

/// Records packets that have passed the links of the measured ports. Each port is an interface of the
/// file, under its name.
pub struct Capture {
    file: PacketCapture,
    /// By position among the measured ports.
    interfaces: Vec<Interface>,
}

impl Capture {
    /// Opens a file for the packets of a run. It gets its name when it is [finished](Self::finish).
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: impl Into<PathBuf>, scenario: &Scenario) -> Result<Self, OutputError> {
        let measurements = &scenario.measurements;
        let mut file = PacketCapture::create(path, measurements.snap_length)?;
        let ports = measurements.ports.iter();
        let interfaces = ports.map(|port| file.interface(&scenario.topology.port(*port).name));
        let interfaces = interfaces.collect::<Result<_, _>>()?;
        Ok(Self { file, interfaces })
    }

    /// Closes the file, moves it to its final name, and returns its path.
    ///
    /// # Errors
    /// The file cannot be written or renamed.
    pub fn finish(self) -> Result<PathBuf, OutputError> {
        self.file.finish()
    }
}

impl Recorder for Capture {
    fn wants_packets(&self) -> bool {
        true
    }

    fn wants_samples(&self) -> bool {
        false
    }

    fn record(&mut self, observation: Observation<'_>) -> Result<(), OutputError> {
        let interface = |port| self.interfaces.get(port).copied();
        match observation {
            Observation::Packet(port, packet) => match interface(port) {
                Some(interface) => self.file.record(interface, Direction::Outbound, packet),
                None => Ok(()),
            },
            Observation::Frame(port, frame) => match interface(port) {
                Some(interface) => self
                    .file
                    .record_frame(interface, Direction::Outbound, frame),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
