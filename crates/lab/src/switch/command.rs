//! What passes between the switch's user and its thread.

use std::net::IpAddr;
use std::sync::mpsc::Sender;

use weir_enforce::offload::MacAddress;
use weir_enforce::port::Port;
use weir_fabric::PortChange;
use weir_results::Drops;
use weir_scenario::PortIndex;
use weir_units::{ByteSize, Time};

/// An interface of a host.
#[derive(Debug)]
pub struct HostSocket {
    /// The host's port that it stands for.
    pub port: PortIndex,
    /// Where its frames come out and go in.
    pub device: Port,
    /// Its Ethernet address, which frames for it get.
    pub mac: MacAddress,
}

/// A measured port at one moment. Counters have run since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortReading {
    /// Which port.
    pub port: PortIndex,
    /// The moment.
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

/// What the switch is told.
#[derive(Debug)]
pub(super) enum SwitchCommand {
    Apply(PortIndex, PortChange),
    Assign(IpAddr, PortIndex),
    Withdraw(IpAddr),
    Begin,
    Sample(Sender<Vec<PortReading>>),
    Stop,
}
