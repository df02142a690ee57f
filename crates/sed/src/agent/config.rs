//! How an agent works, and what it counts.

use weir_fabric::{ConnectionCounters, ConnectionLimits};
use weir_units::{ByteSize, Duration};

/// How an agent works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentConfig {
    /// K: from this length on a queue is congested.
    pub threshold: ByteSize,
    /// Below this length it no longer is.
    pub recovery: ByteSize,
    /// The length of a full packet.
    pub packet: ByteSize,
    /// For how long orders hold without another one.
    pub lease: Duration,
    /// How often the controller hears how far flows are while a queue is congested.
    pub counters_interval: Duration,
    /// Whether dropped packets are reported and duplicate ACKs made for them (RSED). Senders that use
    /// SACK do not heed an ACK that says nothing new, so SYNs lose their offer of it.
    pub retransmit: bool,
    /// Flows that are opened while there are more than these at a port begin with one segment, whatever
    /// their initial window, by the window in their SYN-ACK; `None` for never. A clamp that comes from
    /// the controller is a round trip too late for that.
    pub gentle_above: Option<u32>,
    /// How many connections are remembered, and for how long.
    pub connections: ConnectionLimits,
}

impl AgentConfig {
    /// The paper's values for packets of 1500 bytes.
    pub fn paper() -> Self {
        let packet = ByteSize::from_bytes(1500);
        Self {
            threshold: packet * 30,
            recovery: packet * 15,
            packet,
            lease: Duration::from_secs(2),
            counters_interval: Duration::from_millis(1),
            retransmit: false,
            gentle_above: None,
            connections: ConnectionLimits::default(),
        }
    }
}

/// What an agent has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCounters {
    /// How often a queue became congested.
    pub congested: u64,
    /// Windows that were made smaller.
    pub clamped: u64,
    /// Windows that could not be, as their SYN was not seen.
    pub unknown_scale: u64,
    /// Window updates that were made for stopped flows.
    pub updates: u64,
    /// Packets for which duplicate ACKs were made.
    pub repeats: u64,
    /// FINs and resets with a sequence number that their flow is not near.
    pub forged: u64,
    /// How often all windows were released as the controller was silent.
    pub expired: u64,
    /// What is known of connections.
    pub connections: ConnectionCounters,
}
