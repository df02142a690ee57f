//! A transport's measurements of a connection.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate};

/// One end's state of a connection at one time. Counters start when the connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSample {
    /// The transport's counters; delivered bytes are counted by the application.
    pub counters: FlowCounters,
    /// Packets with data that this end has sent, retransmissions included, if the transport reports it.
    pub packets_sent: Option<u64>,
    /// The packets with data that this end has received, if the transport reports them.
    pub reception: Option<Reception>,
    /// Packets sent by this end that arrived CE-marked, if the transport reports it.
    pub ce_marked: Option<u64>,
    /// The smoothed round-trip time, if any was sampled.
    pub smoothed_rtt: Option<Duration>,
    /// Its mean deviation, if the transport reports it.
    pub rtt_variation: Option<Duration>,
    /// The minimum round-trip time, if any was sampled.
    pub min_rtt: Option<Duration>,
    /// The congestion window, if the transport has one.
    pub cwnd: Option<ByteSize>,
    /// The maximum packet size as the transport counts it: for TCP the IP packet, for others the
    /// UDP payload.
    pub mtu: ByteSize,
    /// The pacing of a transport that has a rate instead of a window.
    pub pacing: Option<Pacing>,
}

/// The packets that a receiver has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reception {
    /// Packets, duplicates included.
    pub packets: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// The interarrival jitter (RFC 3550, section 6.4.1).
    pub jitter: Duration,
}

/// The pacing of a DCUDP sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// The sending rate, in UDP payload.
    pub rate: Rate,
    /// Whether it is in Congestion Mode.
    pub is_congested: bool,
    /// The number of its mode changes.
    pub switches: u64,
}

/// Queries the transport about a connection. Clones query the same one. It remains valid after the
/// connection is gone.
#[derive(Clone)]
pub struct Probe(Arc<dyn Fn() -> Option<PathSample> + Send + Sync>);

impl Probe {
    /// Returns a probe that calls `sample`, which returns `None` if the transport has no data.
    pub fn new(sample: impl Fn() -> Option<PathSample> + Send + Sync + 'static) -> Self {
        Self(Arc::new(sample))
    }

    /// Returns the current state.
    #[must_use]
    pub fn sample(&self) -> Option<PathSample> {
        (self.0)()
    }

    /// Returns whether both query the same connection.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.sample()).finish()
    }
}
