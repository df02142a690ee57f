//! Proactive migration (DCQUIC paper, section 3.4.1): whether a client's connection should leave its
//! path, for which other one, and why.
//!
//! A connection owns a [`MigrationMonitor`], tells it what happens, and asks:
//!
//! ```
//! use weir_quic::migration::{MigrationConfig, MigrationMonitor, PathView, Wakeup};
//! use weir_quic::{Direction, Side, StreamId};
//! use weir_units::{Duration, Time};
//!
//! # fn main() -> Result<(), weir_quic::migration::MigrationConfigError> {
//! let mut now = Time::ZERO;
//! let mut monitor = MigrationMonitor::new(MigrationConfig::default(), now, 0)?;
//! monitor.set_standby(now, true);
//! let pto = Duration::from_micros(650);
//! monitor.on_rtt_sample(now, 0, Duration::from_micros(100), pto);
//!
//! // A request leaves, and nothing comes back.
//! let stream = StreamId::new(Side::Client, Direction::Bidirectional, 0);
//! monitor.on_stream_opened(now, stream);
//! monitor.on_request_sent(now, stream);
//! monitor.on_packet_sent(now, 0);
//! while !monitor.wants_decision() {
//!     now = monitor.timeout().unwrap_or(Time::MAX);
//!     if monitor.on_timeout(now) == Wakeup::SendPing {
//!         monitor.on_packet_sent(now, 0);
//!     }
//! }
//! let standby = PathView {
//!     id: 1,
//!     validated: true,
//!     preferred: false,
//!     rtt: Some(Duration::from_micros(120)),
//!     loss: 0.0,
//! };
//! let decision = monitor.decide(now, &[standby]).expect("path 1 is there");
//! assert_eq!((decision.from, decision.to), (0, 1));
//! assert_eq!(decision.cause.name(), "interruption");
//! monitor.on_moved(now, decision.to, Some(pto));
//! # Ok(())
//! # }
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `config` | what an operator may set |
//! | `monitor` | the value that a connection owns |
//! | `table` | the stream table |
//! | `paper` | the detector `paper`: equations 1 to 4 |
//! | `size_class`, `round_trips`, `baseline` | the detector `size-class`, the default |
//! | `interruption` | silence: its deadline, and the PINGs that make sure of it |
//! | `choice` | which standby path |
//! | `return_watch` | the way back to the preferred path |
//! | `decision` | what comes out, with its figures |
//!
//! `docs/migration.md` explains what is measured and why.

mod baseline;
mod choice;
mod config;
mod decision;
mod interruption;
mod monitor;
mod paper;
mod return_watch;
mod round_trips;
mod size_class;
mod table;
#[cfg(test)]
mod tests;

pub use choice::PathView;
pub use config::{
    Detector, MigrationConfig, MigrationConfigError, PaperParameters, SizeClassParameters,
};
pub use decision::{Cause, Decision, Equation4, Interruption, Return, RoundTrips, Streams};
pub use monitor::{MigrationMonitor, Wakeup};

/// A connection's number of one of its paths.
pub type PathId = u32;
