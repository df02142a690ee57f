//! Where a connection has its congestion control from.

use std::fmt::Debug;
use std::sync::Arc;

use weir_congestion::Controller;

/// Builds the controllers of connections with the same settings.
pub trait ControllerFactory: Debug + Send + Sync {
    /// Builds a controller that makes its random choices by this seed.
    fn build(&self, seed: u64) -> Box<dyn Controller>;
}

/// The controller of a connection, or the way to one when the connection begins to send: of the two ends of
/// most connections, one never does.
#[derive(Clone, Debug)]
pub enum ControllerSource {
    /// This one.
    Built(Box<dyn Controller>),
    /// One that is built at the first write. Not for algorithms that [want delivery
    /// rates](Controller::wants_delivery): these also depend on the time without data to send.
    AtFirstWrite {
        /// Builds it.
        factory: Arc<dyn ControllerFactory>,
        /// With this seed.
        seed: u64,
    },
}

impl From<Box<dyn Controller>> for ControllerSource {
    fn from(controller: Box<dyn Controller>) -> Self {
        Self::Built(controller)
    }
}
