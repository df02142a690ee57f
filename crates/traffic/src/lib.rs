//! Bytes over kernel TCP, TLS, DCQUIC, DCUDP and UDP, and the workloads that move them.
//!
//! | module | what it tells |
//! |---|---|
//! | [`transport`] | what every transport offers: listen, connect, open and accept a stream, counters |
//! | [`tcp`], [`tls`], [`dcquic`], [`dcudp`] | an adapter each |
//! | [`byte_stream`] | what those have in common that carry one stream of bytes in each direction |
//! | [`udp`] | datagrams, without connections |
//! | [`probe`] | what a transport knows about a connection while it is in use |
//! | [`calls`] | requests and replies, measured: `weir bench rpc`, `make bench` |
//! | [`processor`] | the processor time of this process |
//! | [`throughput`] | bulk transfers between two machines, in the manner of iperf3 |
//!
//! Nothing here prints.

pub mod byte_stream;
pub mod calls;
pub mod dcquic;
pub mod dcudp;
mod error;
pub mod probe;
pub mod processor;
pub mod tcp;
pub mod throughput;
pub mod tls;
pub mod transport;
pub mod udp;

pub use error::Error;
