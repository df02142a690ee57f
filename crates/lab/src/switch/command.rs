//! The commands to the switch's thread, and its answers.

use std::net::IpAddr;
use std::sync::mpsc::Sender;

use weir_enforce::offload::MacAddress;
use weir_enforce::port::Port;
use weir_fabric::PortChange;
use weir_results::Drops;
use weir_scenario::{Port as PortSettings, PortIndex, SharedBuffer, SwitchIndex};
use weir_units::{ByteSize, Time};

/// An interface of a host.
#[derive(Debug)]
pub struct HostSocket {
    /// The host's port that it belongs to.
    pub port: PortIndex,
    /// The device that its frames are read from and written to.
    pub device: Port,
    /// Its Ethernet address, the destination of frames for it.
    pub mac: MacAddress,
}

/// The state of a measured port at one time. Counters run from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortReading {
    /// The port.
    pub port: PortIndex,
    /// The time.
    pub time: Time,
    /// The queue's length in IP bytes.
    pub queue: ByteSize,
    /// The queue's length in packets.
    pub queue_packets: u64,
    /// IP bytes that have left.
    pub sent: ByteSize,
    /// Packets that the queue has marked.
    pub marks: u64,
    /// Packets that have been dropped.
    pub drops: Drops,
}

/// A command to the switch's thread.
#[derive(Debug)]
pub(super) enum SwitchCommand {
    Apply(PortIndex, PortChange),
    /// Changes the thresholds of a port's queue to those of these settings.
    ChangeQueue(PortIndex, Box<PortSettings>),
    ChangeSharedBuffer(SwitchIndex, SharedBuffer),
    Assign(IpAddr, PortIndex),
    Withdraw(IpAddr),
    Begin,
    Sample(Sender<Vec<PortReading>>),
    Stop,
}
