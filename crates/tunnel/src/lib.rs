//! TCP and UDP applications over DCQUIC, without a change to them: the library of `weir tunnel`.
//!
//! A [`Client`] beside an application accepts its TCP connections and opens a stream for each; a
//! [`Server`] connects the streams to their destinations, if its policy allows that. `docs/tunnel.md`
//! describes the use and the protocol.
//!
//! | module | content |
//! |---|---|
//! | [`header`], [`destination`], [`refusal`] | the protocol, without I/O |
//! | `proxy_protocol` | the application's address, for destinations that want it |
//! | `relay` | copies between a TCP connection and its carrier |
//! | `carrier` | a stream of a DCQUIC connection, or TLS over TCP |
//! | `client` | listeners, the server's connections, the fallback |
//! | `server` | clients, their streams, destinations |
//! | `flows` | UDP over DCQUIC's datagrams |
//! | `access`, `identity` | who may reach what |
//! | `counters`, `metrics`, `status`, [`control`] | what is counted and shown |
//! | [`handover`] | a restart that ends no connection |
//! | `transport`, `listen` | settings of connections and sockets |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod access;
mod carrier;
mod client;
pub mod control;
mod counters;
pub mod destination;
mod error;
mod flows;
pub mod handover;
pub mod header;
mod identity;
mod listen;
mod metrics;
mod proxy_protocol;
pub mod refusal;
mod relay;
mod server;
mod status;
mod transport;

pub use access::Access;
pub use carrier::CarrierKind;
pub use client::{Client, ClientOptions, LocalAddress, OriginalDestinations, Redirected, Tunnel};
pub use counters::TunnelValues;
pub use destination::Destination;
pub use error::TunnelError;
pub use metrics::register_metrics;
pub use refusal::Refusal;
pub use server::{HandoverError, Server, ServerOptions};
pub use status::{ConnectionStatus, PeerStatus, Status};
pub use transport::APPLICATION_PROTOCOL;

/// Identities and trust: see `weir_net::tls`.
pub mod tls {
    pub use weir_net::tls::{
        ClientCredentials, ClientTls, Crls, Fingerprint, Identity, Roots, ServerCredentials,
        ServerTls, SpiffeId, TlsError,
    };
}

pub use weir_net::{AlgorithmSpec, KnownClientsConfig};

/// The default port.
pub const DEFAULT_PORT: u16 = 5204;
