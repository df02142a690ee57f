//! The DCQUIC engine: QUIC v1 (RFC 9000, 9001, 9002) as state machines, without clocks, sockets or
//! tasks.
//!
//! A caller owns an [`Endpoint`], which routes datagrams to [`Connection`]s and makes new ones.
//! Everything that happens goes in by a method with the time as an argument; what is to be sent
//! comes out of [`Connection::poll_transmit`], what the application should know out of
//! [`Connection::poll_event`], and [`Connection::timeout`] says when to come back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`packet`], [`frame`], [`transport_parameters`] | the bytes on the wire |
//! | [`crypto`] | the door through which keys come: rustls, or a seeded provider for simulations |
//! | `streams` | stream states, send and reassembly buffers, flow control, priorities |
//! | `recovery` | what was sent and received: ACKs, loss detection, RTT, pacing, ECN validation |
//! | `path` | an address pair and all that belongs to it: congestion controller, ECN, MTU discovery |
//! | [`migration`] | when a client leaves its path for another one |
//! | [`observe`] | what those learn who watch a connection |
//! | `connection` | the whole of it, from a datagram to events and back |
//! | `interfaces` | how large the packets are that the machine's own interfaces carry |
//! | `endpoint` | connection IDs, routing, new connections, stateless replies |
//! | `token`, `secret` | address validation tokens and stateless reset tokens, and their keys |
//! | `version`, `negotiation` | the versions of QUIC, and which of them a connection uses |

mod codec;
mod config;
mod connection;
pub mod crypto;
mod endpoint;
mod error;
mod event;
pub mod frame;
mod ids;
mod interfaces;
pub mod migration;
mod negotiation;
pub mod observe;
pub mod packet;
mod path;
mod ranges;
mod recovery;
mod secret;
mod space;
mod stateless_reset;
mod streams;
mod token;
pub mod transport_parameters;
mod version;

pub use config::{
    ClientConfig, ConfigError, Congestion, ControllerChoice, ControllerFactory, DatagramConfig,
    EndpointConfig, PacketSizePolicy, PathEnds, PreferredAddresses, RetryPolicy, ServerConfig,
    TransportConfig,
};
pub use connection::{
    Connection, ConnectionStats, DatagramStats, PathSnapshot, SendDatagramError, UpdateKeysError,
};
pub use endpoint::{ConnectError, ConnectionHandle, Endpoint, EndpointCounters, Route};
pub use error::{Code, ConnectionError, TransportError};
pub use event::{EndpointEvent, Event};
pub use ids::{ConnectionId, Direction, PathId, Side, StreamId};
pub use interfaces::{Interface, Interfaces};
pub use path::{MoveCause, MtuPhase, PathError, PathEvent};
pub use secret::EndpointSecret;
pub use space::{Level, Space};
pub use streams::{ReadError, StreamEvent, WriteError};
pub use token::TokenStore;
pub use version::{Version, Versions};
pub use weir_wire::Transmit;
