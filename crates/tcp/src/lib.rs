//! TCP as state machines for simulated hosts.
//!
//! A [`Connection`] is one end of a TCP connection. It reads no clock, opens no socket and moves no
//! bytes. It exchanges the headers of `weir_wire::tcp`, and only counts the bytes of the stream.
//! The caller calls
//!
//! 1. [`Connection::receive`] for every arriving segment, [`Connection::handle_timeout`] at
//!    [`Connection::timeout`], and [`Connection::write`], [`Connection::read`] and
//!    [`Connection::close`] for the application;
//! 2. after each of these, [`Connection::next_segment`] until it returns `None`.
//!
//! Congestion control is a `weir_congestion::Controller` supplied by the caller. [`Config`] has a
//! field for each choice that the RFCs leave open, with Linux's values as defaults.
//!
//! ```
//! use std::sync::Arc;
//!
//! use weir_congestion::{AlgorithmSpec, Context};
//! use weir_tcp::{Config, Connection, State};
//! use weir_units::{ByteSize, Duration, Time};
//! use weir_wire::tcp::Sequence;
//!
//! let config = Arc::new(Config::default());
//! let controller = || {
//!     let context = Context { packet_size: config.mss, seed: 1, is_paced: false };
//!     "cubic".parse::<AlgorithmSpec>().map(|spec| spec.build(&context))
//! };
//! let mut now = Time::ZERO;
//! let mut client = Connection::client(now, &config, controller()?, Sequence::new(7))?;
//! let mut server = Connection::server(&config, controller()?, Sequence::new(9))?;
//! client.write(ByteSize::from_bytes(100_000));
//! client.close();
//!
//! // Half a round trip of 1 ms.
//! while server.received() < ByteSize::from_bytes(100_000) {
//!     now += Duration::from_micros(500);
//!     let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
//!     to_server.extend(std::iter::from_fn(|| client.next_segment(now)));
//!     to_client.extend(std::iter::from_fn(|| server.next_segment(now)));
//!     to_server.iter().for_each(|(segment, ecn)| server.receive(now, segment, *ecn));
//!     to_client.iter().for_each(|(segment, ecn)| client.receive(now, segment, *ecn));
//! }
//! assert_eq!(server.state(), State::CloseWait);
//! // The handshake and four flights of slow start.
//! assert!(now < Time::ZERO + Duration::from_millis(6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Internally, the stream is counted in 64-bit offsets; wrapping sequence numbers exist only in
//! `connection`. The sending half (`sender`) keeps a `scoreboard` of outstanding segments; the
//! receiving half (`receiver`) reassembles data received out of order.
//!
//! Most segments of a simulation are the next data in order, or acknowledge whole segments that were sent
//! once. For these there are fast paths (the files named `plain`), with the same effects as the general ones,
//! and state that only losses, waits or handshakes need lies apart (`apart`).
//!
//! Not modelled: urgent data, data on a SYN, simultaneous open, path MTU discovery, and segments
//! that carry more than three SACK blocks.

mod cold;
mod config;
mod connection;
mod controller_source;
mod counters;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;

pub use config::{
    Config, ConfigError, DelayedAcks, EcnMode, KeepAlive, LossDetection, Pacing, PartialAckTimer,
    RtoFloor,
};
pub use connection::{Connection, Ending, QuickNext, Snapshot, State};
pub use controller_source::{ControllerFactory, ControllerSource};
pub use counters::Counters;

/// Bytes that the timestamps option takes from a segment's data, padding included (RFC 7323,
/// appendix A).
const TIMESTAMPS_LENGTH: u64 = 12;
