//! What a connection counts.

use weir_units::{Duration, Time};

use crate::path::PathSnapshot;

/// What happened on a connection so far.
#[derive(Clone, Debug)]
pub struct ConnectionStats {
    /// How long the handshake took; `None` while it is not complete.
    pub handshake: Option<Duration>,
    /// Packets that were dropped: duplicates, not authentic, without keys, not for us.
    pub packets_dropped: u64,
    /// PTO expirations.
    pub probe_timeouts: u64,
    /// Key updates by the peer.
    pub key_updates: u64,
    /// The paths, the one in use first.
    pub paths: Vec<PathSnapshot>,
}

/// The running counts.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) started: Time,
    pub(super) handshake: Option<Duration>,
    pub(super) packets_dropped: u64,
    pub(super) packets_not_authentic: u64,
    pub(super) probe_timeouts: u64,
    pub(super) key_updates: u64,
    /// Whether an authentic packet has arrived.
    pub(super) authenticated: bool,
    /// Whether an authentic packet had reserved bits set.
    pub(super) reserved_bits_violated: bool,
}

impl Counters {
    pub(super) fn new(started: Time) -> Self {
        Self {
            started,
            handshake: None,
            packets_dropped: 0,
            packets_not_authentic: 0,
            probe_timeouts: 0,
            key_updates: 0,
            authenticated: false,
            reserved_bits_violated: false,
        }
    }
}
