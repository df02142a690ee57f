//! Proactive migration (DCQUIC paper, section 3.4.1): decides whether a client's connection should
//! move to another path, to which one, and why.
//!
//! A connection owns a [`MigrationMonitor`], reports events to it, and asks for decisions:
//!
//! ```
//! use weir_quic::migration::{MigrationConfig, MigrationMonitor, PathView, Wakeup};
//! use weir_quic::{Direction, PathId, Side, StreamId};
//! use weir_units::{Duration, Time};
//!
//! # fn leave(paths: &[PathView]) -> Result<(), weir_quic::migration::MigrationConfigError> {
//! let (mut now, path) = (Time::ZERO, PathId::FIRST);
//! let mut monitor = MigrationMonitor::new(MigrationConfig::default(), now, path)?;
//! monitor.set_standby(now, true);
//! let pto = Duration::from_micros(650);
//! monitor.on_rtt_sample(now, path, Duration::from_micros(100), pto);
//!
//! // A request is sent, and no answer arrives.
//! let stream = StreamId::new(Side::Client, Direction::Bidirectional, 0);
//! monitor.on_stream_opened(now, stream);
//! monitor.on_request_sent(now, stream);
//! monitor.on_packet_sent(now, path);
//! while !monitor.wants_decision() {
//!     now = monitor.timeout().unwrap_or(Time::MAX);
//!     if monitor.handle_timeout(now) == Wakeup::SendPing {
//!         monitor.on_packet_sent(now, path);
//!     }
//! }
//! if let Some(decision) = monitor.decide(now, paths) {
//!     assert_eq!(decision.cause.name(), "interruption");
//!     monitor.on_moved(now, decision.to, Some(pto));
//! }
//! # assert_eq!(monitor.current() == path, paths.is_empty());
//! # Ok(())
//! # }
//! # leave(&[]).unwrap();
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `config` | the settings |
//! | `monitor` | the monitor that a connection owns |
//! | `table` | the stream table |
//! | `paper` | the detector `paper`: equations 1 to 4 |
//! | `size_class`, `round_trips`, `baseline` | the detector `size-class`, the default |
//! | `interruption` | silence: its deadline, and the PINGs that confirm it |
//! | `choice` | the choice of a standby path |
//! | `return_watch` | the return to the preferred path |
//! | `decision` | the decision with its metrics |
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
