//! The limits for a sender that another component enforces.

use weir_fabric::WindowLimit;
use weir_units::{Duration, Rate};

/// How long a cap holds without renewal. When the controller stops, TCP falls back to its own
/// congestion control.
pub const HOLD: Duration = Duration::from_secs(1);

/// The limits for one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// The limit for its bytes in flight.
    pub limit: WindowLimit,
    /// The rate at which its segments may leave, where the interface paces them.
    pub rate: Option<Rate>,
}
