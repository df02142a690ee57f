//! Senders that are their own agents: transports whose ACKs no switch can read, such as DCQUIC.
//!
//! A transport opens its flows with deadlines at an [`Allocator`], and receives each flow's limit for
//! its bytes in flight. How the allocator reaches a controller is its own matter.

use std::fmt;
use std::sync::Arc;

use weir_units::{ByteSize, Duration};
use weir_wire::FlowKey;

use crate::demand::Demand;

/// The limit for a sender's bytes in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// No limit: congestion control alone decides.
    Unlimited,
    /// This many bytes at most.
    AtMost {
        /// The limit; zero stops the flow.
        window: ByteSize,
        /// How long the limit holds without renewal.
        lease: Duration,
    },
}

/// Receives a flow's allowance. It may be called at any time from any thread, and must return quickly.
pub type AllowanceCallback = Arc<dyn Fn(Allowance) + Send + Sync>;

/// Allocates windows to flows, or forwards to a component that does.
pub trait Allocator: fmt::Debug + Send + Sync {
    /// Opens a flow whose packets carry `segment` bytes at most. Dropping the value closes it; `hear`
    /// is not called any more soon after.
    fn open(&self, flow: FlowKey, segment: u32, hear: AllowanceCallback) -> Box<dyn SenderFlow>;
}

/// A flow that an [`Allocator`] knows. No method blocks.
pub trait SenderFlow: fmt::Debug + Send {
    /// Sets the demand. The size counts from where the flow was opened, the time from now.
    fn demand(&self, demand: Demand);

    /// Sets the bytes acknowledged since the flow was opened.
    fn acknowledged(&self, bytes: u64);
}
