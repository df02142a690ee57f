//! What is done to which flow.

use std::fmt;

use weir_congestion::AlgorithmSpec;
use weir_fabric::PortIndex;
use weir_policy::TconControl;
use weir_units::ByteSize;
use weir_wire::FlowKey;

/// How the data is treated that goes one way of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPolicy {
    /// The congestion control.
    pub congestion: AlgorithmSpec,
    /// Whether ECN is negotiated with the receiver on behalf of a sender that does not know of it
    /// (RFC 3168, section 6.1.1). Every data segment says CWR then, so that a receiver's echo tells of
    /// the segments that were marked since the one before, and not of a round trip.
    pub ecn: bool,
    /// How much may be kept of one flow.
    pub buffer: ByteSize,
    /// Which rule says so, as whoever chooses counts them: it comes back in reports.
    pub rule: u32,
}

/// A flow about which somebody has to decide: the data that goes one way of a connection that opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// Addresses and ports, as the sender of the data names them.
    pub key: FlowKey,
    /// The differentiated services code point (RFC 2474) of its sender's SYN; of the other end's, as long
    /// as that alone has passed.
    pub dscp: u8,
    /// Where its sender's packets come in, if one has.
    pub ingress: Option<PortIndex>,
    /// Where those of the other end come in: this is where the data goes.
    pub egress: Option<PortIndex>,
}

/// Who decides which flows are treated, and how.
pub trait PolicyLookup: fmt::Debug + Send + 'static {
    /// How the data of `flow` is treated; `None` leaves it alone. It is asked as the first SYN passes, for whom
    /// to negotiate ECN, and again when the connection is open, which is what holds.
    fn choose(&self, flow: &FlowInfo) -> Option<&FlowPolicy>;
}

/// Every flow alike.
impl PolicyLookup for FlowPolicy {
    fn choose(&self, _: &FlowInfo) -> Option<&FlowPolicy> {
        Some(self)
    }
}

impl FlowPolicy {
    /// What is kept of one flow unless something else is said.
    pub const BUFFER: ByteSize = ByteSize::from_mib(4);

    /// A treatment by this algorithm. DCTCP and D2TCP get the marks that they live on.
    pub fn new(congestion: AlgorithmSpec) -> Self {
        Self {
            ecn: matches!(congestion.name(), "dctcp" | "d2tcp"),
            congestion,
            buffer: Self::BUFFER,
            rule: 0,
        }
    }

    /// What a rule asks for.
    pub fn by(control: &TconControl, rule: u32) -> Self {
        let policy = Self::new(control.congestion.clone());
        Self {
            ecn: control.ecn.unwrap_or(policy.ecn),
            buffer: control.buffer,
            rule,
            ..policy
        }
    }
}
