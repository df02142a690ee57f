//! What a sender may do, where somebody else sees to it.

use weir_fabric::WindowLimit;
use weir_units::{Duration, Rate};

/// How long a cap holds that is not given anew: when nobody decides any more, TCP goes on by its own
/// congestion control.
pub const HOLD: Duration = Duration::from_secs(1);

/// What a sender may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// What it may have outstanding.
    pub limit: WindowLimit,
    /// How fast its segments may leave, where the interface holds them back.
    pub rate: Option<Rate>,
}
