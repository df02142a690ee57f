//! Throughput measurements between two machines, in the manner of iperf3.
//!
//! A [`Server`] waits for clients; [`run`] is the client's side of one test. [`Parameters`] say
//! what is measured, a [`Report`] what came out: as JSON in iperf3's shape, or by [`text`] for
//! people.
//!
//! | module | what it tells |
//! |---|---|
//! | `parameters`, `client`, `server` | what a program calls |
//! | `protocol`, `control` | what the two sides say to each other beside the data |
//! | `transport`, `tcp`, `tls`, `dcquic`, `dcudp`, `port` | opening data connections over each transport |
//! | `stream`, `lane`, `payload` | a data connection at work |
//! | `transfer`, `path`, `processor` | all of them at work, and what is watched meanwhile |
//! | [`report`], [`text`] | what comes out |
//!
//! Nothing here prints.

mod client;
mod control;
mod dcquic;
mod dcudp;
mod error;
mod lane;
mod parameters;
mod path;
mod payload;
mod port;
mod processor;
mod protocol;
pub mod report;
mod server;
mod stream;
mod tcp;
pub mod text;
mod tls;
mod transfer;
mod transport;

/// Where servers listen unless they are told otherwise: W-E-I-R on a telephone's keys.
pub const DEFAULT_PORT: u16 = 9347;

pub use client::{ClientOptions, Event, run};
pub use error::Error;
pub use parameters::{
    DEFAULT_RATE, Direction, Extent, MAX_PARALLEL, MAX_TIME, Parameters, Transport,
};
pub use report::Report;
pub use server::{Server, ServerEvent, ServerOptions};
pub use weir_net::Registry;
pub use weir_net::dcudp::{KeyFileError, PreSharedKey, read_key};
pub use weir_net::tls::{Fingerprint, Identity};
