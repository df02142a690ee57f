//! The resources that a run holds until its end.

use super::algorithms::KernelAlgorithms;
use super::processes::Processes;
use crate::runs::RunDirectory;

/// The resources that a run holds until its end.
pub(super) struct Resources {
    pub(super) processes: Processes,
    /// Registered with the kernel as long as hosts may use them.
    pub(super) algorithms: KernelAlgorithms,
    /// Dropping it removes the directory.
    #[expect(dead_code, reason = "held for its drop")]
    pub(super) directory: RunDirectory,
}
