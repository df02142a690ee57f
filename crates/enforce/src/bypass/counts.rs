//! What the programs have counted: of the bypass, and of the fast path.

use serde::{Deserialize, Serialize};

/// The counters of the programs that forward frames while their process is dead or hangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BypassCounts {
    /// How often they began to forward.
    pub times: u64,
    /// The frames that they have forwarded, super-packets counted once.
    pub frames: u64,
    /// The time since they last began, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ms_ago: Option<u64>,
    /// Whether they forward now.
    pub is_active: bool,
}

/// The counters of the fast path: what goes straight across while the process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastPathCounts {
    /// Connections whose segments go straight across now.
    pub connections: u64,
    /// Connections whose segments began to.
    pub begun: u64,
    /// Of these, connections whose end was seen.
    pub closed: u64,
    /// Of these, connections that were forgotten after a long silence.
    pub idle: u64,
    /// Frames, super-packets counted once, by the interface that they came in at.
    pub frames: [u64; 2],
    /// Their bytes, Ethernet headers included.
    pub bytes: [u64; 2],
}
