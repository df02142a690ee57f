//! DCQUIC on tokio: endpoints, connections, streams and calls in real time. [`dcudp`] has the same
//! for DCUDP.
//!
//! An [`Endpoint`] owns one UDP socket per address and is a client, a server or both. A
//! [`Connection`] has streams ([`SendStream`], [`RecvStream`]) and calls on top of them:
//! [`Connection::call`] on one side, [`Connection::serve`] on the other. `weir-quic` implements the
//! protocol; this crate adds sockets, timers and tasks.
//!
//! ```no_run
//! # // With the feature `self-signed`.
//! use weir_net::tls::{ClientTls, Identity, ServerTls};
//! use weir_net::{Endpoint, ServeOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = Identity::self_signed(["localhost"])?;
//! let fingerprint = identity.fingerprint();
//! let server = Endpoint::builder()
//!     .server(ServerTls::new(identity).build()?)
//!     .bind("127.0.0.1:0".parse()?)?;
//! let address = server.local_address();
//! tokio::spawn(async move {
//!     while let Some(connecting) = server.accept().await {
//!         tokio::spawn(async move {
//!             if let Ok(connection) = connecting.await {
//!                 let echo = |request: weir_net::Request| async { Ok(request.body) };
//!                 connection.serve(ServeOptions::default(), echo).await;
//!             }
//!         });
//!     }
//! });
//!
//! let client = Endpoint::builder()
//!     .client(ClientTls::pinned(fingerprint).build()?)
//!     .bind("127.0.0.1:0".parse()?)?;
//! let connection = client.connect(address, "localhost")?.await?;
//! let response = connection.call("hello").await?;
//! assert_eq!(response, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! | feature | what it adds |
//! |---|---|
//! | `metrics` | `EndpointBuilder::metrics`: counters in a registry that Prometheus can scrape |
//! | `self-signed` | `tls::Identity::self_signed` |
//!
//! No feature is on by default.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint`, `builder`, `connecting`, `undecided`, `connection`, `datagrams`, `send_stream`, `recv_stream` | the API for applications |
//! | [`rpc`] | calls: deadline, cancellation, size limits |
//! | [`tls`] | identities, trust, pinned fingerprints |
//! | `protocol`, `driver` | the trait of a protocol; an endpoint's task, the same for every protocol: one receive batch per pass |
//! | `shared_connection` | a connection behind its lock |
//! | `shared`, `routing`, `driver_queue`, `incoming` | state shared by handles, connections and driver: routing, send queue, new connections |
//! | `engines`, `engine_runtime`, `port_sharing` | several engines at one port, each with its thread |
//! | `succession` | a restart that ends no connection |
//! | `dcquic`, `waiters`, `handle`, `allocation`, `sender_flow`, `path_updates` | DCQUIC only: engine, waiting tasks, deadlines, path events |
//! | `paths`, `addresses` | paths to the peer; local addresses that appear, disappear and change |
//! | `interfaces` | the kernel's interface and address notifications, and the reaction to them |
//! | [`dcudp`] | reliable, ECN-driven UDP, on the same driver |
//! | `policy_resolver` | the congestion controller of a path, by the path's addresses |
//! | `observe` | observers: qlog files, metrics, `tracing` |
//! | `socket`, `sockets`, `small_datagrams`, `buffers`, `timers`, `clock`, `spin`, `busy_poll`, `random` | the system: GSO and GRO, several addresses, a timerfd, busy polling before sleeping |

mod addresses;
mod allocation;
mod buffers;
mod builder;
mod busy_poll;
mod chunks;
mod clock;
mod connecting;
mod connection;
mod datagrams;
mod dcquic;
pub mod dcudp;
mod driver;
mod driver_queue;
mod endpoint;
mod engine_runtime;
mod engines;
mod error;
mod error_queue;
mod handle;
mod incoming;
mod interfaces;
mod lost_events;
mod observe;
mod path_updates;
mod paths;
mod policy_resolver;
mod port_sharing;
mod protocol;
mod random;
mod receive_drops;
mod recv_stream;
mod repeated_warning;
mod routing;
pub mod rpc;
mod send_stream;
mod sender_flow;
mod shared;
mod shared_connection;
mod small_datagrams;
mod socket;
mod sockets;
mod spin;
mod state_directory;
mod stats;
mod succession;
mod timers;
pub mod tls;
mod undecided;
mod waiters;

pub use builder::EndpointBuilder;
pub use connecting::Connecting;
pub use connection::Connection;
pub use endpoint::{Endpoint, SHUT_DOWN};
pub use error::{
    ConnectError, ConnectionError, DatagramError, DeadlinePassed, EndpointError, MoveError,
    ReadError, SuccessionError, WriteError,
};
#[cfg(feature = "metrics")]
pub use observe::register_metrics;
pub use path_updates::PathUpdate;
pub use paths::{PathEvents, PathInfo, PathState};
pub use policy_resolver::check_policy_rule;
pub use recv_stream::RecvStream;
pub use repeated_warning::RepeatedWarning;
pub use rpc::{
    Call, CallError, IncomingCall, Refusal, Request, RequestError, Responder, Response,
    ServeOptions,
};
pub use send_stream::{SendStream, StopNotice};
pub use socket::SocketBuffers;
pub use stats::EndpointStats;
pub use succession::Predecessor;
pub use undecided::{Incoming, IncomingError, RetryError};
pub use weir_congestion::{AlgorithmSpec, Controller, Deadline};
#[cfg(feature = "metrics")]
pub use weir_metrics::Registry;
pub use weir_policy::{Policy, PolicySource};
pub use weir_quic::crypto::{ClientNames, Identity as PeerIdentity};
pub use weir_quic::migration;
pub use weir_quic::{
    ClientLimits, Congestion, ConnectionStats, DatagramConfig, DatagramStats, EndpointCounters,
    EndpointSecret, Executed, KnownClientsConfig, KnownClientsCounters, KnownServersCounters,
    MoveCause, PathError, PathEvent, PathId, PathSnapshot, RetryPolicy, Side, StreamId,
    TransportConfig, UpdateKeysError, Version, Versions,
};
pub use weir_sed::Allocator;
pub use weir_units::{ByteSize, Duration};

/// Compiles the example in README.md.
#[cfg(all(doctest, feature = "self-signed"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
