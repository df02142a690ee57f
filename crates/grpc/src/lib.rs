//! gRPC on DCQUIC: services and clients of tonic over HTTP/3. `docs/grpc.md` is a guide.
//!
//! | module | contents |
//! |---|---|
//! | `server` | serves tonic's routes |
//! | `channel` | what tonic's clients make their calls on |
//! | `service` | the routes as a service of `weir-h3` |
//! | `timeout` | deadlines: `grpc-timeout` |
//! | `body` | messages that arrive, and leave, before a deadline |
//! | `status` | HTTP/3's errors as statuses of gRPC |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod body;
mod channel;
mod server;
mod service;
mod status;
mod timeout;

pub use body::{RequestBody, ResponseBody, ServedBody};
pub use channel::{Channel, ConnectError};
pub use server::{BindError, Server};
pub use service::GrpcService;
pub use status::to_status;
pub use weir_h3;
pub use weir_h3::{APPLICATION_PROTOCOL, Peer};

/// Compiles the examples in `docs/grpc.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/grpc.md")]
struct Document;
