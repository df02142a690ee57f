//! Errors in the configuration of a switch.

use super::routes::PortIndex;

/// An invalid configuration of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// A route leads to a port that does not exist.
    #[error("the route to {destination} leads to port {}, but there are {ports} ports, counted from 0", port.index())]
    NoSuchPort {
        /// The destination of the route.
        destination: u32,
        /// The port of the route.
        port: PortIndex,
        /// The number of ports.
        ports: usize,
    },
    /// The number of limits of the shared buffer differs from the number of ports.
    #[error("the shared buffer has limits for {limits} ports, but there are {ports}")]
    Limits {
        /// The number of limits.
        limits: usize,
        /// The number of ports.
        ports: usize,
    },
}
