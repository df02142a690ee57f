//! The packets of the measured ports as a pcapng file.

use std::net::SocketAddr;
use std::path::PathBuf;

use weir_fabric::Packet as _;
use weir_results::OutputError;
use weir_results::capture::{
    CapturedFrame, CapturedPacket, Content, Direction, Interface, PacketCapture,
};
use weir_scenario::Scenario;
use weir_units::{ByteSize, Time};

use crate::packet::{Contents, Packet};
use crate::recorder::Recorder;

/// The time to live that hosts begin with. Switches of a data center that forward by hardware address
/// leave it as it is.
const HOPS: u8 = 64;

/// Records packets as they have passed the measured ports' links. Each port is an interface of the
/// file, under its name.
pub struct Capture {
    file: PacketCapture,
    /// By the position among the measured ports.
    interfaces: Vec<Interface>,
}

impl Capture {
    /// Opens a file for the packets of a run. It appears under its name when it is
    /// [finished](Self::finish).
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub fn create(path: impl Into<PathBuf>, scenario: &Scenario) -> Result<Self, OutputError> {
        let measurements = &scenario.measurements;
        let mut file = PacketCapture::create(path, measurements.snap_length)?;
        let ports = measurements.ports.iter();
        let interfaces = ports.map(|port| file.interface(&scenario.topology.port(*port).name));
        let interfaces = interfaces.collect::<Result<_, _>>()?;
        Ok(Self { file, interfaces })
    }

    /// Puts the file in its place and returns its path.
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

    fn packet(&mut self, time: Time, port: usize, packet: &Packet) -> Result<(), OutputError> {
        match self.interfaces.get(port) {
            Some(interface) => self.file.record(&captured(packet, time, *interface)),
            None => Ok(()),
        }
    }

    fn frame(&mut self, port: usize, frame: &CapturedFrame<'_>) -> Result<(), OutputError> {
        match self.interfaces.get(port) {
            Some(interface) => self
                .file
                .record_frame(*interface, Direction::Outbound, frame),
            None => Ok(()),
        }
    }
}

fn captured(packet: &Packet, time: Time, interface: Interface) -> CapturedPacket {
    let flow = packet.flow();
    CapturedPacket {
        time,
        interface,
        direction: Direction::Outbound,
        source: SocketAddr::new(flow.source, flow.source_port),
        destination: SocketAddr::new(flow.destination, flow.destination_port),
        ecn: packet.ecn,
        hops: HOPS,
        // Of packets that must not be fragmented it means nothing (RFC 6864).
        identification: 0,
        content: match packet.contents {
            Contents::Segment(segment) => Content::Tcp(segment),
            Contents::Datagram(datagram) => {
                Content::Udp(ByteSize::from_bytes(datagram.payload.into()))
            }
            Contents::Written(datagram) => {
                Content::Udp(ByteSize::from_bytes(datagram.payload.into()))
            }
        },
    }
}
