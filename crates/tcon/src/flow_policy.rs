//! Which flows are controlled, and how.

use std::fmt;

use weir_congestion::AlgorithmSpec;
use weir_fabric::PortIndex;
use weir_policy::TconControl;
use weir_units::ByteSize;
use weir_wire::FlowKey;

/// How the data in one direction of a connection is controlled.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPolicy {
    /// The congestion control algorithm.
    pub congestion: AlgorithmSpec,
    /// Whether ECN is negotiated with the receiver on behalf of a sender without ECN (RFC 3168, section
    /// 6.1.1).
    pub ecn: bool,
    /// The most bytes of packets that may be kept of one flow.
    pub buffer: ByteSize,
    /// The rule that matched, in the numbering of the [`PolicyLookup`]: it is returned in reports.
    pub rule: u32,
}

/// A flow to look up: the data in one direction of a connection that opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// Addresses and ports, in the direction of the data.
    pub key: FlowKey,
    /// The DSCP (RFC 2474) of the sender's SYN, or of the other end's SYN as long as only that has
    /// passed.
    pub dscp: u8,
    /// Ingress port of its sender's packets, if one has arrived.
    pub ingress: Option<PortIndex>,
    /// Ingress port of the other end's packets: the egress port of the data.
    pub egress: Option<PortIndex>,
}

/// Decides which flows are controlled, and how.
pub trait PolicyLookup: fmt::Debug + Send + 'static {
    /// Returns the policy for the data of `flow`; `None` leaves it alone. It is called when the first
    /// SYN passes, to negotiate ECN, and again when the connection is open, which is final.
    fn policy_for(&self, flow: &FlowInfo) -> Option<&FlowPolicy>;

    /// Called when the SYN-ACK of a connection passes whose SYN and SYN-ACK carry no data, with the data in
    /// the direction of the SYN and in the other one. Returns whether its further segments take another way,
    /// as no rule controls either. The element then forgets the connection, and does not count it.
    fn offload(&self, _: &FlowInfo, _: &FlowInfo) -> bool {
        false
    }
}

/// Applies to every flow.
impl PolicyLookup for FlowPolicy {
    fn policy_for(&self, _: &FlowInfo) -> Option<&FlowPolicy> {
        Some(self)
    }
}

impl FlowPolicy {
    /// The default of [`Self::buffer`].
    pub const BUFFER: ByteSize = ByteSize::from_mib(4);

    /// Creates a policy with this algorithm. ECN is on for DCTCP and D2TCP, which depend on CE marks.
    pub fn new(congestion: AlgorithmSpec) -> Self {
        Self {
            ecn: matches!(congestion.name(), "dctcp" | "d2tcp"),
            congestion,
            buffer: Self::BUFFER,
            rule: 0,
        }
    }

    /// Creates the policy that a rule asks for.
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
