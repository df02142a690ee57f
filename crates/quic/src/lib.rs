//! The DCQUIC engine: QUIC v1 (RFC 9000, 9001, 9002) as state machines without clocks, sockets or
//! tasks.
//!
//! A caller owns an [`Endpoint`], which routes datagrams to [`Connection`]s and creates new ones.
//! Every input is a method call with the time as an argument. [`Connection::poll_transmit`] returns
//! datagrams to send, [`Connection::poll_event`] returns events for the application, and
//! [`Connection::timeout`] returns the time of the next timer.
//!
//! | module | what it holds |
//! |---|---|
//! | [`packet`], [`frame`], [`transport_parameters`], [`codec`] | the wire format, and its integers |
//! | [`crypto`] | the key interface: rustls, or a seeded provider for simulations |
//! | `stream_table`, `inline_queue` | a table and a queue whose first element needs no allocation |
//! | `streams` | stream states, send and reassembly buffers, flow control, priorities |
//! | `recovery` | sent and received packets: ACKs, loss detection, RTT, pacing, ECN validation |
//! | `path` | an address pair and its state: congestion controller, ECN, MTU discovery |
//! | [`migration`] | when a client moves from its path to another one |
//! | [`observe`] | the events that an observer of a connection receives |
//! | `connection` | one connection, from received datagrams to events and sent datagrams |
//! | `interfaces` | the packet sizes that the machine's own interfaces carry |
//! | `known_peers` | connections without a handshake: path secrets, key IDs, replay windows |
//! | `endpoint`, `id_layout` | connection IDs, routing, new connections, stateless replies |
//! | `token`, `secret` | address validation tokens and stateless reset tokens, and their keys |
//! | `version`, `negotiation` | QUIC versions, and which of them a connection uses |

pub mod codec;
mod config;
mod connection;
pub mod crypto;
mod endpoint;
mod error;
mod event;
pub mod frame;
mod id_layout;
mod ids;
mod inline_queue;
mod interfaces;
mod known_peers;
pub mod migration;
mod negotiation;
pub mod observe;
pub mod packet;
mod path;
mod ranges;
mod rate_limit;
mod recovery;
mod secret;
mod space;
mod stateless_reset;
mod stream_table;
mod streams;
mod token;
pub mod transport_parameters;
mod version;

pub use config::{
    ClientConfig, ConfigError, Congestion, ControllerChoice, ControllerFactory, DatagramConfig,
    EndpointConfig, PacketSizePolicy, PathEndpoints, PreferredAddresses, RetryPolicy, ServerConfig,
    TransportConfig,
};
pub use connection::{
    Connection, ConnectionStats, DatagramStats, GoAway, PathSnapshot, SendDatagramError,
    UpdateKeysError,
};
pub use endpoint::{
    ClientLimits, ClientTable, ConnectError, ConnectionHandle, Decision, Endpoint,
    EndpointCounters, IncomingId, IncomingInfo, Route,
};
pub use error::{Code, ConnectionError, Executed, TransportError};
pub use event::{EndpointEvent, Event};
pub use id_layout::ConnectionIdLayout;
pub use ids::{ConnectionId, Direction, PathId, Side, StreamId};
pub use interfaces::{Interface, InterfaceAddress, Interfaces};
pub use known_peers::{
    Abandonment, CredentialId, KNOWN_PEERS_VERSION, KnownClients, KnownClientsConfig,
    KnownClientsCounters, KnownServers, KnownServersCounters,
};
pub use path::{MoveCause, MtuPhase, PathError, PathEvent};
pub use secret::EndpointSecret;
pub use space::{Level, Space};
pub use stream_table::StreamTable;
pub use streams::{ReadError, Skipped, StreamEvent, WriteError};
pub use token::TokenStore;
pub use version::{Version, Versions};
pub use weir_wire::Transmit;
