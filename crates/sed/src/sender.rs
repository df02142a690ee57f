//! Senders that are their own agents: transports whose ACKs no switch can read, such as DCQUIC.
//!
//! A transport tells an [`Allocator`] of its flows that have deadlines, and hears what each may have on its
//! way; how the two come to a controller is the allocator's business.

use std::fmt;
use std::sync::Arc;

use weir_units::{ByteSize, Duration};
use weir_wire::FlowKey;

use crate::demand::Demand;

/// What a sender may have on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// That is its own affair.
    Own,
    /// So much at most.
    AtMost {
        /// How much; zero stops it.
        window: ByteSize,
        /// For how long that holds unless it is said again.
        lease: Duration,
    },
}

/// Hears what a flow may have: it may be called at any time from any thread, and has to be quick.
pub type Hear = Arc<dyn Fn(Allowance) + Send + Sync>;

/// Somebody who decides what flows may have on their way, or knows the way to him.
pub trait Allocator: fmt::Debug + Send + Sync {
    /// A flow begins whose packets carry `segment` bytes at most. It is over when the value is dropped;
    /// `hear` is not called any more soon after.
    fn open(&self, flow: FlowKey, segment: u32, hear: Hear) -> Box<dyn SenderFlow>;
}

/// A flow that an [`Allocator`] knows. None of these block.
pub trait SenderFlow: fmt::Debug + Send {
    /// The flow demands this from now on: its size is counted from where it was opened, its time from now.
    fn demand(&self, demand: Demand);

    /// So much of it has been acknowledged since it was opened.
    fn acknowledged(&self, bytes: u64);
}
