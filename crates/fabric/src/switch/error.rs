//! What keeps a switch from being.

use super::routes::PortIndex;

/// A switch that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// A route leads to a port that is not there.
    #[error("the route to {destination} leads to port {}, but there are {ports} ports, counted from 0", port.index())]
    NoSuchPort {
        /// Whom the route is for.
        destination: u32,
        /// Where it leads.
        port: PortIndex,
        /// How many ports there are.
        ports: usize,
    },
    /// The shared buffer has another number of limits than the switch has ports.
    #[error("the shared buffer has limits for {limits} ports, but there are {ports}")]
    Limits {
        /// How many limits there are.
        limits: usize,
        /// How many ports there are.
        ports: usize,
    },
}
