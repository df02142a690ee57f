//! Calls: requests and their replies, measured over any transport.
//!
//! `weir bench rpc` and `make bench` share everything that is here; they differ only in the
//! transports that they bring. The map:
//!
//! - [`preset`]: the server that answers and the client that asks, over any
//!   [`Transport`](crate::transport::Transport). A [`Preset`](preset::Preset) says how the settings of
//!   a measurement become a transport's: adding a transport is one file with a preset.
//!   [`driver`]: what is measured, whatever it is made of; a list of them is a [`Drivers`].
//! - [`payload`]: the request, the deterministic JSON document that answers it, and the check that
//!   all of it arrived. [`identity`]: the certificate and the names that all stacks share.
//! - [`run`](mod@run): the plan of a measurement and its execution. Client and server of every
//!   transport are processes of their own ([`worker`] is their main function, [`process`] their
//!   parent's handle), placed on processors as [`placement`] says. Transports take turns in
//!   rounds, so that a drift of the machine hits all of them alike.
//! - [`standing`]: servers for clients on other machines.
//! - [`report`]: what comes out, as JSON; [`table`]: the same for people; [`paper`]: the figures
//!   that the paper gives for comparison.
//! - [`conformance`]: the test that every driver has to pass.
//!
//! Everything a worker process does happens on one thread. Nothing here prints.

pub mod conformance;
pub mod driver;
pub mod environment;
pub mod error;
pub mod identity;
pub mod measure;
pub mod message;
pub mod mix;
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
pub use placement::Placement;
pub use presets::{DcquicPreset, SOCKET_BUFFER, TcpPreset, TcpTlsPreset};
pub use process::Launcher;
pub use report::Report;
pub use run::{Plan, Progress, run};
pub use specification::{Abilities, TransportSpecification};
pub use statistics::Summary;

/// The transports that this crate drives itself: `dcquic`, `tcp-tls` and `tcp` (no encryption).
#[must_use]
pub fn standard_drivers() -> Drivers {
    Drivers::default()
        .with(DcquicPreset)
        .with(TcpTlsPreset)
        .with(TcpPreset)
}
