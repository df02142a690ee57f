//! The messages between switches and the controller, as plain values without a channel.

use weir_units::{ByteSize, Duration};
use weir_wire::FlowKey;
use weir_wire::tcp::Sequence;

use crate::demand::Demand;

/// A port of a switch: a queue and the link behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId {
    /// The controller's number of the switch.
    pub switch: u32,
    /// The port's number at the switch.
    pub port: u32,
}

/// A report of a switch to the controller. Flows are named in the direction of their data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchReport {
    /// A SYN passed: its sender's data leaves by this port.
    Opened {
        /// The flow of the SYN's sender.
        flow: FlowKey,
        /// The egress port of the SYN.
        port: u32,
        /// How long ago that was; nonzero only when the switch describes itself to a new controller.
        age: Duration,
        /// The demand that an earlier controller stored at the switch.
        demand: Option<Demand>,
    },
    /// The SYN-ACK passed, which limits the data in the flow's packets.
    Accepted {
        /// The flow whose SYN was answered.
        flow: FlowKey,
        /// The payload of a full segment, in bytes.
        segment: u32,
        /// The egress port of the SYN-ACK, and so of the answering host's data.
        reverse_port: u32,
    },
    /// A FIN of the flow's sender passed, or a reset of either end.
    Closed {
        /// The flow.
        flow: FlowKey,
    },
    /// The queue of a port has reached the threshold K: state CNG (section 3.3).
    Congested {
        /// The port.
        port: u32,
    },
    /// The queue of a port is below the threshold again: state NOM.
    Recovered {
        /// The port.
        port: u32,
    },
    /// The bytes of flows that have been acknowledged so far, by the switch's count.
    Counters {
        /// Flow and bytes.
        acknowledged: Vec<(FlowKey, u64)>,
    },
    /// A flow that had nothing to send, or that was not reported before, sends data
    /// ([`Method::EarliestDeadline`](crate::Method::EarliestDeadline)).
    Active {
        /// The flow.
        flow: FlowKey,
        /// The egress port of its data.
        port: u32,
        /// The payload of a full segment, in bytes.
        segment: u32,
        /// How long ago its SYN passed.
        age: Duration,
        /// The bytes acknowledged so far.
        acknowledged: u64,
        /// The demand that a controller has stored at the switch.
        demand: Option<Demand>,
    },
    /// The state of flows and queues, at intervals
    /// ([`Method::EarliestDeadline`](crate::Method::EarliestDeadline)).
    Progress {
        /// Flows whose state has changed, or that were last reported a quarter of a second ago.
        flows: Vec<FlowProgress>,
        /// The queues that flows wait in.
        queues: Vec<QueueState>,
    },
    /// The queue of a port dropped a flow's packet (RSED, Figure 7).
    Dropped {
        /// The flow.
        flow: FlowKey,
        /// The sequence number of the packet's first byte.
        sequence: Sequence,
    },
}

/// The state of a flow, by the segments that have passed a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowProgress {
    /// The flow.
    pub flow: FlowKey,
    /// The bytes acknowledged so far.
    pub acknowledged: u64,
    /// The bytes sent and not acknowledged.
    pub in_flight: u32,
    /// Whether it has nothing to send: nothing has been in flight for two intervals.
    pub is_idle: bool,
}

/// The state of a port's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// The port.
    pub port: u32,
    /// The length of the queue, in bytes.
    pub backlog: u64,
    /// How long the port's link had nothing to send since the last report of this queue.
    pub idle: Duration,
    /// The bytes in flight of all flows that leave by the port, those in the queue included.
    pub in_flight: u64,
    /// Whether a flow waits for its ordered window.
    pub is_window_limited: bool,
}

/// An order of the controller to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOrder {
    /// Limits the bytes in flight of the flow's sender.
    Allow {
        /// The flow.
        flow: FlowKey,
        /// The window in bytes; zero stops it.
        window: u32,
    },
    /// Removes the limit from the flow's window.
    Release {
        /// The flow.
        flow: FlowKey,
    },
    /// Orders three duplicate ACKs for this packet to its sender (RSED, section 4).
    Retransmit {
        /// The flow.
        flow: FlowKey,
        /// The sequence number of the packet's first byte.
        sequence: Sequence,
    },
    /// The controller is alive: its windows hold for another lease.
    Renew,
    /// The controller has just started: report every flow and every congested port.
    Describe,
    /// Stores the flow's demand at the switch, for a controller that starts without state.
    Remember {
        /// The flow.
        flow: FlowKey,
        /// Its size and deadline.
        demand: Demand,
    },
}

impl SwitchReport {
    /// Returns the length on a channel, in bytes: the IPv4 5-tuple with the fields of an OpenFlow
    /// message's header, or similar.
    pub fn length(&self) -> ByteSize {
        const HEADER: u64 = 16;
        const FLOW: u64 = 13;
        ByteSize::from_bytes(match self {
            // A packet-in contains the packet.
            Self::Opened { .. } | Self::Accepted { .. } | Self::Closed { .. } => HEADER + 60,
            Self::Active { .. } => HEADER + 60,
            Self::Progress { flows, queues } => {
                HEADER + (FLOW + 13) * flows.len() as u64 + 29 * queues.len() as u64
            }
            Self::Congested { .. } | Self::Recovered { .. } => HEADER + 4,
            Self::Counters { acknowledged } => HEADER + (FLOW + 8) * acknowledged.len() as u64,
            Self::Dropped { .. } => HEADER + 60,
        })
    }
}

impl WindowOrder {
    /// Returns the length on a channel: see [`SwitchReport::length`].
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
