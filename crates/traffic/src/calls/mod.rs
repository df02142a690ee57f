//! Calls: requests and replies, measured over any transport.
//!
//! `weir bench rpc` and `make bench` share this module; they differ only in their transports. Its
//! parts:
//!
//! - [`preset`]: the server and the client, over any [`Transport`](crate::transport::Transport). A
//!   [`Preset`](preset::Preset) converts the settings of a measurement to a transport's: a new
//!   transport is one file with a preset. [`driver`]: the interface of anything that can be
//!   measured; a list of them is a [`Drivers`].
//! - [`payload`]: the request, the deterministic JSON document that answers it, and the check of
//!   the reply. [`identity`]: the certificate and the names that all stacks share.
//! - [`run`](mod@run): the plan of a measurement and its execution. Client and server of every
//!   transport are separate processes ([`worker`] is their main function, [`process`] their
//!   parent's handle), placed on processors by [`placement`], with a [`network`] between them.
//!   Transports alternate in rounds, so that a drift of the machine affects all of them alike.
//! - [`standing`]: servers for clients on other machines.
//! - [`report`]: the results, as JSON; [`table`]: the results as text; [`paper`]: the paper's
//!   numbers, for comparison.
//! - [`conformance`]: the test that every driver must pass.
//!
//! A worker process does everything on one thread. This module prints nothing.

pub mod conformance;
pub mod driver;
pub mod environment;
pub mod error;
pub mod identity;
mod interrupts;
pub mod measure;
pub mod message;
pub mod mix;
pub mod network;
pub mod paper;
pub mod payload;
pub mod placement;
pub mod preset;
mod presets;
pub mod process;
pub mod report;
pub mod run;
pub mod specification;
pub mod standing;
pub mod statistics;
pub mod table;
pub mod worker;

pub use driver::{Driver, Drivers, LocalFuture};
pub use error::Error;
pub use network::Network;
pub use placement::Placement;
pub use presets::{DcquicPreset, SOCKET_BUFFER, TcpPreset, TcpTlsPreset};
pub use process::Launcher;
pub use report::Report;
pub use run::{Plan, Progress, run};
pub use specification::{Capabilities, TransportSpecification};
pub use statistics::Summary;

/// Returns the transports that this crate implements: `dcquic`, `tcp-tls` and `tcp` (no encryption).
#[must_use]
pub fn standard_drivers() -> Drivers {
    Drivers::default()
        .with(DcquicPreset)
        .with(TcpTlsPreset)
        .with(TcpPreset)
}
