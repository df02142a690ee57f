//! RPC on DCQUIC.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod channel;
mod executed;
mod frames;
mod metadata;
mod random;
mod server;
mod status;
pub mod trace;
pub mod wire;

pub use channel::{
    BackoffConfig, Balancing, Call, CallError, Channel, ChannelBuilder, ChannelError, ChannelStats,
    RequestSender, ResolveError, Resolver, Resolving, Response, ResponseReceiver, RetryConfig,
    ServerInfo, ServerState, StreamClosed, SystemResolver,
};
pub use executed::Executed;
pub use metadata::{Metadata, MetadataError};
pub use random::NoRandomness;
pub use server::{
    Context, RequestReceiver, ResponseSender, SendError, Server, ServerBuilder, ServerError,
    ServerStats,
};
pub use status::{Code, Status};
