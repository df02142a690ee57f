//! DCQUIC as the transport of the `h3` crate: its `quic` traits over `weir-net`.

mod connection;
mod errors;
mod exchange;
mod peer;
mod streams;
mod unidirectional;

pub(crate) use connection::{Opener, Quic};
pub(crate) use exchange::Exchange;
pub(crate) use peer::PeerState;
pub(crate) use streams::{BidiStream, RecvStream, SendStream};
