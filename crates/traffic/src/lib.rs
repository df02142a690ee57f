//! Transport adapters for kernel TCP, TLS, DCQUIC, DCUDP and UDP, and the workloads that use them.
//!
//! | module | contents |
//! |---|---|
//! | [`transport`] | the common interface: listen, connect, open and accept a stream, counters |
//! | [`tcp`], [`tls`], [`dcquic`], [`dcudp`] | the adapters |
//! | [`byte_stream`] | the common part of transports with one byte stream in each direction |
//! | [`udp`] | datagrams, without connections |
//! | [`probe`] | a transport's measurements of an open connection |
//! | [`calls`] | requests and replies, measured: `weir bench rpc`, `make bench` |
//! | [`processor`] | the processor time of this process |
//! | [`restart`] | a server that is killed and restarted under calls: `make bench-restart` |
//! | [`throughput`] | bulk transfers between two machines, like iperf3 |
//!
//! This crate prints nothing.

pub mod byte_stream;
pub mod calls;
pub mod dcquic;
pub mod dcudp;
mod error;
pub mod probe;
pub mod processor;
pub mod restart;
pub mod tcp;
pub mod throughput;
pub mod tls;
pub mod transport;
pub mod udp;

pub use error::Error;
