//! Packet captures as pcapng files, for Wireshark and tshark.

mod frame;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use weir_units::{ByteSize, Time};
use weir_wire::Ecn;
use weir_wire::tcp::Segment;

use crate::error::OutputError;
use crate::staged::StagedFile;

/// A packet at the time it passed an interface. Its payload is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// The time it passed, shown as time since 1970.
    pub time: Time,
    /// The source address and port.
    pub source: SocketAddr,
    /// The destination address and port, of the same family as the source. Wireshark dissects by
    /// well-known ports, and reports a payload of zeros as malformed.
    pub destination: SocketAddr,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// Time to live, or hop limit.
    pub hops: u8,
    /// The identification field of IPv4.
    pub identification: u16,
    /// The transport header and the payload's length.
    pub content: Content,
}

/// A real frame at the time it passed an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedFrame<'a> {
    /// The time it passed, shown as time since 1970.
    pub time: Time,
    /// The frame's bytes from the Ethernet header on; it may be truncated.
    pub bytes: &'a [u8],
    /// The length of the whole frame, in bytes.
    pub length: u32,
}

/// The transport content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram with a payload of this size.
    Udp(ByteSize),
}

/// The direction of a packet at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// An interface of a [`PacketCapture`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface(u32);

/// A pcapng file that is being written, with times in nanoseconds. It gets its final name when it
/// is [finished](Self::finish). If it is dropped earlier, nothing is left.
pub struct PacketCapture {
    writer: Writer<BufWriter<StagedFile>>,
    path: PathBuf,
}

impl PacketCapture {
    /// Opens a file. It keeps the first `snap` bytes of every frame, headers included; zero keeps all.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: impl Into<PathBuf>, snap: ByteSize) -> Result<Self, OutputError> {
        let path = path.into();
        let file = BufWriter::new(StagedFile::create(&path)?);
        let writer = Writer::new(file, snap).map_err(OutputError::writing(&path))?;
        Ok(Self { writer, path })
    }

    /// Adds a named interface: a port, or a host.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn interface(&mut self, name: &str) -> Result<Interface, OutputError> {
        let added = self.writer.interface(name);
        added.map_err(OutputError::writing(&self.path))
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// The file cannot be written; the interface belongs to another file; the addresses are of
    /// different families; the packet exceeds IP's length field.
    pub fn record(
        &mut self,
        interface: Interface,
        direction: Direction,
        packet: &CapturedPacket,
    ) -> Result<(), OutputError> {
        let written = self.writer.record(interface, direction, packet);
        written.map_err(OutputError::writing(&self.path))
    }

    /// Adds a frame, truncated to the snap length.
    ///
    /// # Errors
    /// The file cannot be written; the interface belongs to another file.
    pub fn record_frame(
        &mut self,
        interface: Interface,
        direction: Direction,
        frame: &CapturedFrame<'_>,
    ) -> Result<(), OutputError> {
        let written = self.writer.record_frame(interface, direction, frame);
        written.map_err(OutputError::writing(&self.path))
    }

    /// Moves the file to its final name and returns its path.
    ///
    /// # Errors
    /// The file cannot be written or renamed.
    pub fn finish(self) -> Result<PathBuf, OutputError> {
        let file = self.writer.pcapng.into_inner().into_inner();
        let file = file.map_err(io::IntoInnerError::into_error);
        file.map_err(OutputError::writing(&self.path))?.persist()
    }
}

/// The pcapng format, over any writer.
struct Writer<W: Write> {
    pcapng: PcapNgWriter<W>,
    interfaces: u32,
    snap: usize,
    /// The frame that is being written; reused to save allocations.
    frame: Vec<u8>,
}

/// `if_tsresol`: time stamps are in nanoseconds.
const NANOSECONDS: u8 = 9;

impl<W: Write> Writer<W> {
    fn new(writer: W, snap: ByteSize) -> io::Result<Self> {
        Ok(Self {
            pcapng: PcapNgWriter::new(writer).map_err(into_io)?,
            interfaces: 0,
            snap: if snap.is_zero() {
                usize::MAX
            } else {
                snap.as_usize()
            },
            frame: Vec::new(),
        })
    }

    fn interface(&mut self, name: &str) -> io::Result<Interface> {
        let description = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            // Zero: no limit.
            snaplen: u32::try_from(self.snap).unwrap_or_default(),
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        self.pcapng
            .write_pcapng_block(description)
            .map_err(into_io)?;
        let interface = Interface(self.interfaces);
        self.interfaces += 1;
        Ok(interface)
    }

    fn record(
        &mut self,
        interface: Interface,
        direction: Direction,
        packet: &CapturedPacket,
    ) -> io::Result<()> {
        let mut frame = std::mem::take(&mut self.frame);
        let length = frame::write(packet, self.snap, &mut frame)?;
        let whole = CapturedFrame {
            time: packet.time,
            bytes: &frame,
            length,
        };
        let written = self.record_frame(interface, direction, &whole);
        self.frame = frame;
        written
    }

    fn record_frame(
        &mut self,
        interface: Interface,
        direction: Direction,
        frame: &CapturedFrame<'_>,
    ) -> io::Result<()> {
        if interface.0 >= self.interfaces {
            let message = "the interface is not of this file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let direction = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        let bytes = &frame.bytes[..frame.bytes.len().min(self.snap)];
        let block = EnhancedPacketBlock {
            interface_id: interface.0,
            timestamp: std::time::Duration::from_nanos(frame.time.as_nanos()),
            original_len: frame.length,
            data: Cow::Borrowed(bytes),
            options: vec![EnhancedPacketOption::Flags(direction)],
        };
        self.pcapng.write_pcapng_block(block).map_err(into_io)?;
        Ok(())
    }
}

/// Returns the operating system's error if there is one.
fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
