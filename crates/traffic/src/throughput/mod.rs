//! Throughput measurements between two machines, like iperf3.
//!
//! A [`Server`] waits for clients; [`run`] is the client's side of one test. [`Parameters`]
//! describe a test, and a [`Measurement`] is its result.
//!
//! | module | contents |
//! |---|---|
//! | `parameters`, `validation`, `options`, `client`, `server` | the public interface |
//! | `protocol`, `control` | the control protocol between the two sides |
//! | `settings`, `connector`, `acceptor`, `port` | opening data connections over each transport |
//! | `lane`, `payload` | a data connection and its data |
//! | `transfer`, `path` | all lanes, and their periodic samples |
//! | `measurement` | the result |

mod acceptor;
mod client;
mod connector;
mod control;
mod error;
mod lane;
mod measurement;
mod options;
mod parameters;
mod path;
mod payload;
mod port;
mod protocol;
mod server;
mod settings;
mod transfer;
mod validation;

/// The default port of servers: W-E-I-R on a telephone's keys.
pub const DEFAULT_PORT: u16 = 9347;

pub use crate::probe::Reception;
pub use client::{Event, run};
pub use error::Error;
pub use measurement::{Interval, Measurement, Start, StreamInterval};
pub use options::{ClientOptions, ServerOptions};
pub use parameters::{
    DEFAULT_RATE, Direction, Extent, MAX_PARALLEL, MAX_TIME, Parameters, Profile, Side, Transport,
};
pub use path::{PathSample, PathSummary};
pub use payload::BLOCK;
pub use protocol::{Outcome, StreamOutcome};
pub use server::{Server, ServerEvent};
pub use weir_net::dcudp::{PreSharedKey, read_key};
pub use weir_net::{check_policy_rule, register_metrics};

#[cfg(test)]
mod tests;
