//! Throughput measurements between two machines, in the manner of iperf3.
//!
//! A [`Server`] waits for clients; [`run`] is the client's side of one test. [`Parameters`] say
//! what is measured, a [`Measurement`] what came out.
//!
//! | module | what it tells |
//! |---|---|
//! | `parameters`, `validation`, `options`, `client`, `server` | what a program calls |
//! | `protocol`, `control` | what the two sides say to each other beside the data |
//! | `settings`, `connector`, `acceptor`, `port` | opening data connections over each transport |
//! | `lane`, `payload` | a data connection at work |
//! | `transfer`, `path` | all of them at work, and what is watched meanwhile |
//! | `measurement` | what comes out |

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

/// Where servers listen unless they are told otherwise: W-E-I-R on a telephone's keys.
pub const DEFAULT_PORT: u16 = 9347;

pub use client::{Event, run};
pub use error::Error;
pub use measurement::{Interval, Measurement, Start, StreamInterval};
pub use options::{ClientOptions, ServerOptions};
pub use parameters::{
    DEFAULT_RATE, Direction, Extent, MAX_PARALLEL, MAX_TIME, Parameters, Side, Transport,
};
pub use path::{PathSample, PathSummary};
pub use payload::BLOCK;
pub use protocol::{Outcome, StreamOutcome};
pub use server::{Server, ServerEvent};
pub use weir_net::dcudp::{PreSharedKey, read_key};

#[cfg(test)]
mod tests;
