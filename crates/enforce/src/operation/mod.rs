//! The operator's interface to a running enforcer with any [data plane](Enforce): its [`Status`], its
//! metrics, and the socket that returns both and reloads the policy ([`control`]).

mod canary_metrics;
mod canary_status;
pub mod clean;
pub mod control;
mod flow_measurement;
mod frame_metrics;
mod metrics;
mod policy_metrics;
mod processors;
mod resume_error;
mod socket_metrics;
mod status;

use weir_canary::Snapshot;
use weir_metrics::Registry;
use weir_policy::Policy;
use weir_units::Duration;

pub use crate::bypass::{BypassCounts, FastPathCounts};
pub use canary_status::{CanaryStatus, GroupStatus, IntervalStatus, PeriodStatus, UndoneStatus};
pub(crate) use flow_measurement::FlowMeasurement;
pub(crate) use frame_metrics::{FrameMetrics, InterfaceFrames};
pub use metrics::{EnforcerMetrics, PlaneKind};
pub use policy_metrics::PolicyMetrics;
pub use processors::ProcessorUse;
pub use resume_error::ResumeError;
pub use socket_metrics::SocketMetrics;
pub use status::{
    FlowStatus, InlineCounts, KernelCounts, RuleStatus, SocketStatus, Status, Totals,
};

/// A data plane that enforces a policy on the connections that open while it runs.
pub trait Enforce {
    /// The error that stops it.
    type Error: std::error::Error;

    /// Registers its metrics in a registry.
    fn set_registry(&mut self, registry: &Registry);

    /// Sets the policy for connections that open from now on; existing flows keep theirs, but at sockets,
    /// which follow the policy.
    ///
    /// # Errors
    /// It cannot be put in force: the one before stays.
    fn set_policy(&mut self, policy: Policy) -> Result<(), Self::Error>;

    /// Puts the rule on a line of the policy file, which a guard has taken back, in force again.
    ///
    /// # Errors
    /// No guard has taken back such a rule.
    fn resume(&mut self, line: u32) -> Result<(), ResumeError> {
        let _ = line;
        Err(ResumeError::NoGuards)
    }

    /// Handles pending events, and waits for more; about a tenth of a second.
    ///
    /// # Errors
    /// The kernel refuses an operation that it has allowed before.
    fn step(&mut self) -> Result<(), Self::Error>;

    /// Returns the names of interfaces, or the control group, that have disappeared since the last call.
    fn take_gone(&mut self) -> Vec<String>;

    /// Returns what it cannot do as the policy asks, since the last call.
    fn take_warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether too little is left to continue.
    fn is_over(&self) -> bool;

    /// Returns what connections did in the last span, under the policy in force; `None` where they are not
    /// measured. At sockets these are all connections, elsewhere those that a rule controls.
    fn snapshot(&self, span: Duration) -> Option<Snapshot> {
        let _ = span;
        None
    }

    /// Returns the status.
    fn status(&self) -> Status;
}
