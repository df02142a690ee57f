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
    /// The highest rate of its payload, where the interface does not pace: the window must hold it.
    pub max_rate: Option<Rate>,
    /// The rate at which the sender's socket is to pace itself, if it is one of this machine and has a
    /// highest rate.
    pub socket_rate: Option<Rate>,
}
