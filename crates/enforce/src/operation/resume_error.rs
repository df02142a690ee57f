//! Why a rule cannot be put in force again.

/// Why a rule cannot be put in force again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// The data plane has no guards.
    #[error("no rule is ever taken back here: guards are for `weir enforce --cgroup`")]
    NoGuards,
    /// The rule is not one that was taken back.
    #[error(transparent)]
    Rule(#[from] weir_canary::ResumeError),
    /// The data plane failed to put it in force.
    #[error("{0}")]
    Failed(String),
}
