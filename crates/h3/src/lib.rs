//! HTTP/3 on DCQUIC, by the `h3` crate: servers for tower services, such as axum routers, and clients.
//! `docs/http3.md` is a guide.
//!
//! With the feature `http2`, `HttpsServer` serves HTTP/2 and HTTP/1.1 beside it.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod body;
mod client;
mod error;
mod fields;
mod frames;
mod outgoing;
mod peer;
mod qpack;
mod quic;
mod server;
mod service;

pub use body::IncomingBody;
pub use client::{Channel, ChannelBuilder, Client};
pub use error::{BoxError, Error, ErrorCode};
pub use peer::Peer;
#[cfg(feature = "http2")]
pub use server::{BindError, HttpsServer, HttpsServerBuilder, TcpStats};
pub use server::{ResponseDeadline, Server, ServerBuilder, ServerStats};
pub use service::HttpService;
pub use weir_channel::{
    BackoffConfig, Balancing, ChannelError, ResolveError, Resolver, Resolving, RetryConfig,
    ServerInfo, ServerState, ServersStats,
};

/// The application protocol (ALPN) of HTTP/3.
pub const APPLICATION_PROTOCOL: &[u8] = b"h3";

/// Compiles the examples in `docs/http3.md`.
#[cfg(all(doctest, feature = "http2"))]
#[doc = include_str!("../../../docs/http3.md")]
struct Document;
