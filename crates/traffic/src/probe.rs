//! What a transport knows about a connection while it is in use.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_counters::FlowCounters;
use weir_units::{ByteSize, Duration, Rate};

/// An end's view of a connection at one moment. Counts are since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSample {
    /// What the transport counted; what was delivered is the application's to count.
    pub counters: FlowCounters,
    /// Packets of this end's that arrived CE-marked, where the transport knows.
    pub ce_marked: Option<u64>,
    /// The smoothed round-trip time, where there was a sample.
    pub smoothed_rtt: Option<Duration>,
    /// Its mean deviation, where the transport tells.
    pub rtt_variation: Option<Duration>,
    /// The shortest round-trip time, where there was a sample.
    pub min_rtt: Option<Duration>,
    /// The congestion window, where the transport has one.
    pub cwnd: Option<ByteSize>,
    /// The largest packet as the transport counts it: TCP the IP packet, the others the UDP payload.
    pub mtu: ByteSize,
    /// How a transport sends that has a rate instead of a window.
    pub pacing: Option<Pacing>,
}

/// How a DCUDP sender sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pacing {
    /// The rate at which packets leave, in UDP payload.
    pub rate: Rate,
    /// Whether it is in Congestion Mode.
    pub is_congested: bool,
    /// How often it has changed its mode.
    pub switches: u64,
}

/// Asks a transport about a connection. Clones ask about the same one; it may be asked after the
/// connection is gone.
#[derive(Clone)]
pub struct Probe(Arc<dyn Fn() -> Option<PathSample> + Send + Sync>);

impl Probe {
    /// A probe that calls `sample`, which gives `None` where the transport does not tell.
    pub fn new(sample: impl Fn() -> Option<PathSample> + Send + Sync + 'static) -> Self {
        Self(Arc::new(sample))
    }

    /// The view now.
    #[must_use]
    pub fn sample(&self) -> Option<PathSample> {
        (self.0)()
    }

    /// Whether both ask about the same connection.
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
