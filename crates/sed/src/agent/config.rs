//! Settings and counters of an agent.

use weir_fabric::{ConnectionCounters, ConnectionLimits};
use weir_units::{ByteSize, Duration};

/// Settings of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentConfig {
    /// K: from this length on a queue is congested.
    pub threshold: ByteSize,
    /// Below this length it is no longer congested.
    pub recovery: ByteSize,
    /// The length of a full packet.
    pub packet: ByteSize,
    /// How long orders hold without another one.
    pub lease: Duration,
    /// How often acknowledged bytes are reported while a queue is congested.
    pub counters_interval: Duration,
    /// Whether dropped packets are reported and duplicate ACKs made for them (RSED). Senders with SACK
    /// ignore an ACK without news, so the SACK offer is removed from SYNs.
    pub retransmit: bool,
    /// Flows that open while a port has more than this many start with one segment, whatever their
    /// initial window, by the window in their SYN-ACK; `None` for never. A clamp ordered by the
    /// controller comes a round trip too late for that.
    pub single_segment_above: Option<u32>,
    /// Whether no flow is stopped: each keeps a window of one segment, its activity and the queues are
    /// reported, and senders that exceed their windows are policed
    /// ([`Method::EarliestDeadline`](crate::Method::EarliestDeadline)).
    pub never_stops: bool,
    /// Limits of the connection table.
    pub connections: ConnectionLimits,
}

impl AgentConfig {
    /// Returns the paper's values for packets of 1500 bytes.
    pub fn paper() -> Self {
        let packet = ByteSize::from_bytes(1500);
        Self {
            threshold: packet * 30,
            recovery: packet * 15,
            packet,
            lease: Duration::from_secs(2),
            counters_interval: Duration::from_millis(1),
            retransmit: false,
            single_segment_above: None,
            never_stops: false,
            connections: ConnectionLimits::default(),
        }
    }
}

/// Counts of an agent, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCounters {
    /// How often a queue became congested.
    pub congested: u64,
    /// Windows that were lowered.
    pub clamped: u64,
    /// Windows that could not be lowered, as the SYN was not seen.
    pub unknown_scale: u64,
    /// Window updates that were made for stopped flows.
    pub updates: u64,
    /// Packets for which duplicate ACKs were made.
    pub repeats: u64,
    /// Packets dropped because their sender exceeded its window.
    pub policed: u64,
    /// FINs and resets whose sequence number is far from their flow's.
    pub forged: u64,
    /// How often all windows were released because the controller was silent.
    pub expired: u64,
    /// Counters of the connection table.
    pub connections: ConnectionCounters,
}
