//! What is done to which flow.

use std::fmt;

use weir_congestion::AlgorithmSpec;
use weir_units::ByteSize;
use weir_wire::FlowKey;

/// How the data is treated that goes one way of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Treatment {
    /// The congestion control.
    pub congestion: AlgorithmSpec,
    /// Whether ECN is negotiated with the receiver on behalf of a sender that does not know of it
    /// (RFC 3168, section 6.1.1). Every data segment says CWR then, so that a receiver's echo tells of
    /// the segments that were marked since the one before, and not of a round trip.
    pub ecn: bool,
    /// How much may be kept of one flow.
    pub buffer: ByteSize,
}

/// Who decides which flows are treated, and how.
pub trait Choose: fmt::Debug + Send + 'static {
    /// How the data of `flow` is treated, as its sender names it; `None` leaves it alone.
    fn choose(&self, flow: &FlowKey) -> Option<&Treatment>;
}

/// Every flow alike.
impl Choose for Treatment {
    fn choose(&self, _: &FlowKey) -> Option<&Treatment> {
        Some(self)
    }
}

impl Treatment {
    /// What is kept of one flow unless something else is said.
    pub const BUFFER: ByteSize = ByteSize::from_mib(4);

    /// A treatment by this algorithm. DCTCP and D2TCP get the marks that they live on.
    pub fn new(congestion: AlgorithmSpec) -> Self {
        Self {
            ecn: matches!(congestion.name(), "dctcp" | "d2tcp"),
            congestion,
            buffer: Self::BUFFER,
        }
    }
}
