//! What switches and the controller tell each other, as plain values: the channel between them is
//! somebody else's.

use weir_units::{ByteSize, Duration};
use weir_wire::FlowKey;
use weir_wire::tcp::Sequence;

use crate::demand::Demand;

/// A port of a switch: a queue and the link behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId {
    /// The number by which the controller knows the switch.
    pub switch: u32,
    /// The port's number at the switch.
    pub port: u32,
}

/// What a switch tells the controller. Flows are named in the direction of their data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchReport {
    /// A SYN passed: what its sender is going to send leaves by this port.
    Opened {
        /// Whose SYN it was.
        flow: FlowKey,
        /// Where it left.
        port: u32,
        /// How long ago that was: only to a controller that has begun since, anything but zero.
        age: Duration,
        /// What an earlier controller had the switch remember of it.
        demand: Option<Demand>,
    },
    /// The SYN-ACK passed: the flow's packets carry so much data at most.
    Accepted {
        /// The flow whose SYN was answered.
        flow: FlowKey,
        /// The data of a full segment, in bytes.
        segment: u32,
        /// Where the SYN-ACK left, and so what the answering host sends.
        reverse_port: u32,
    },
    /// A FIN of the flow's sender passed, or a reset of either end.
    Closed {
        /// Which flow.
        flow: FlowKey,
    },
    /// The queue of a port has reached the threshold K: it is in the state CNG (section 3.3).
    Congested {
        /// Which port.
        port: u32,
    },
    /// The queue of a port is below the threshold again: it is in the state NOM.
    Recovered {
        /// Which port.
        port: u32,
    },
    /// What has been acknowledged of flows so far, by the switch's count.
    Counters {
        /// Flow and bytes.
        acknowledged: Vec<(FlowKey, u64)>,
    },
    /// The queue of a port dropped a flow's packet (RSED, Figure 7).
    Dropped {
        /// Which flow.
        flow: FlowKey,
        /// The sequence number of the packet's first byte.
        sequence: Sequence,
    },
}

/// What the controller tells a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOrder {
    /// The flow's sender may have so much on its way.
    Allow {
        /// Which flow.
        flow: FlowKey,
        /// The window in bytes; zero stops it.
        window: u32,
    },
    /// The flow's window is its own affair again.
    Release {
        /// Which flow.
        flow: FlowKey,
    },
    /// The sender is to be sent three duplicate ACKs for this packet (RSED, section 4).
    Retransmit {
        /// Which flow.
        flow: FlowKey,
        /// The sequence number of the packet's first byte.
        sequence: Sequence,
    },
    /// The controller is there: what it has allowed holds for another lease.
    Renew,
    /// The controller has just begun and knows nothing: tell it of every flow and every port.
    Describe,
    /// This is what the flow demands, for a controller that may have to begin anew.
    Remember {
        /// Which flow.
        flow: FlowKey,
        /// What it has to carry and by when.
        demand: Demand,
    },
}

impl SwitchReport {
    /// How long it is on a channel, in bytes: the 5-tuple of IPv4 with the fields of an OpenFlow message's
    /// header, or the like.
    pub fn length(&self) -> ByteSize {
        const HEADER: u64 = 16;
        const FLOW: u64 = 13;
        ByteSize::from_bytes(match self {
            // A packet-in holds the packet.
            Self::Opened { .. } | Self::Accepted { .. } | Self::Closed { .. } => HEADER + 60,
            Self::Congested { .. } | Self::Recovered { .. } => HEADER + 4,
            Self::Counters { acknowledged } => HEADER + (FLOW + 8) * acknowledged.len() as u64,
            Self::Dropped { .. } => HEADER + 60,
        })
    }
}

impl WindowOrder {
    /// How long it is on a channel: see [`SwitchReport::length`].
    pub fn length(&self) -> ByteSize {
        const HEADER: u64 = 16;
        const FLOW: u64 = 13;
        ByteSize::from_bytes(match self {
            Self::Allow { .. } | Self::Retransmit { .. } => HEADER + FLOW + 4,
            Self::Release { .. } => HEADER + FLOW,
            Self::Remember { .. } => HEADER + FLOW + 16,
            Self::Renew | Self::Describe => HEADER,
        })
    }
}
