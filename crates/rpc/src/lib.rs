//! RPC on DCQUIC: methods, deadlines, streams, retries, and channels to several servers.
//! `docs/rpc.md` describes it, and the wire format.
//!
//! ```
//! use weir_net::Endpoint;
//! use weir_net::tls::{ClientTls, Identity, ServerTls};
//! use weir_rpc::wire::APPLICATION_PROTOCOL;
//! use weir_rpc::{Bytes, Channel, Context, Server};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // `Identity::self_signed` needs weir-net's feature `self-signed`.
//! let identity = Identity::self_signed(["localhost"])?;
//! let fingerprint = identity.fingerprint();
//! let tls = ServerTls::new(identity).application_protocols([APPLICATION_PROTOCOL]);
//! let endpoint = Endpoint::builder().server(tls.build()?).bind("127.0.0.1:0".parse()?)?;
//! let address = endpoint.local_address();
//! let greet = |_: Context, name: Bytes| async move { Ok([b"hello ", &name[..]].concat()) };
//! let server = Server::builder().method("greeter.Greet", greet).build()?;
//! let serving = server.clone();
//! tokio::spawn(async move { serving.serve(&endpoint).await });
//!
//! let tls = ClientTls::pinned(fingerprint).application_protocols([APPLICATION_PROTOCOL]);
//! let endpoint = Endpoint::builder().client(tls.build()?).bind("127.0.0.1:0".parse()?)?;
//! let channel = Channel::to_addresses([address]).server_name("localhost").connect(&endpoint)?;
//! let response = channel.call("greeter.Greet").unary("you").await?;
//! assert_eq!(response.body, "hello you");
//! server.shutdown(std::time::Duration::from_secs(5)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`wire`] | frames, request headers, statuses: values without I/O |
//! | [`trace`] | W3C Trace Context, and what a handler's calls inherit |
//! | `server` | methods; a call from its header to its status |
//! | `channel` | a call on the client's side, and when it is made again; `weir-channel` keeps the connections |
//! | `frames` | the frames of a stream that arrives |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod channel;
mod executed;
mod frames;
mod metadata;
mod server;
mod status;
pub mod trace;
pub mod wire;

pub use bytes::Bytes;
pub use channel::{
    Call, CallError, Channel, ChannelBuilder, ChannelStats, RequestSender, Response,
    ResponseReceiver, StreamClosed,
};
pub use executed::Executed;
pub use metadata::{Metadata, MetadataError};
pub use server::{
    Context, RequestReceiver, ResponseSender, SendError, Server, ServerBuilder, ServerError,
    ServerStats,
};
pub use status::{Code, Status};
pub use weir_channel::{
    BackoffConfig, Balancing, ChannelError, NoRandomness, ResolveError, Resolver, Resolving,
    RetryConfig, ServerInfo, ServerState, SystemResolver,
};

/// Compiles the examples in `docs/rpc.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rpc.md")]
struct Document;
