//! What an operator has of an enforcer that runs, whichever [data plane](Enforce) it has: its [`Status`], its
//! metrics, and the socket by which both are asked for and a policy is loaded again ([`control`]).

pub mod control;
mod metrics;
mod status;

use weir_metrics::Registry;
use weir_policy::Policy;

pub use metrics::EnforcerMetrics;
pub use status::{FlowStatus, InlineCounts, KernelCounts, Status, Totals};

/// A data plane that enforces a policy on the connections that open while it runs.
pub trait Enforce {
    /// Why it cannot go on.
    type Error: std::error::Error;

    /// Shows what it does in a registry too.
    fn set_registry(&mut self, registry: &Registry);

    /// Has another policy decide about connections that open from now on; flows keep what they have.
    fn set_policy(&mut self, policy: Policy);

    /// Does what is to be done, and waits for more; for a tenth of a second or so.
    ///
    /// # Errors
    /// The kernel refuses something that it has granted before.
    fn step(&mut self) -> Result<(), Self::Error>;

    /// The names of interfaces that have disappeared since the last call.
    fn take_gone(&mut self) -> Vec<String>;

    /// Whether too few interfaces are left to do anything.
    fn is_over(&self) -> bool;

    /// What is being done.
    fn status(&self) -> Status;
}
