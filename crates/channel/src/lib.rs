//! DCQUIC connections to the servers behind a name: resolved, balanced, and replaced when they are
//! lost or drain. `weir-rpc` makes its calls over them; a [`Protocol`] of your own makes of a
//! connection what its calls need.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use weir_channel::{Protocol, ServersBuilder};
//! use weir_net::tls::{ClientTls, Identity, ServerTls};
//! use weir_net::{Connection, Endpoint, ServeOptions};
//!
//! /// The plain calls of `weir-net`.
//! struct Echo;
//!
//! impl Protocol for Echo {
//!     const APPLICATION_PROTOCOL: &'static [u8] = b"echo";
//!     type Link = Connection;
//!     type Error = Infallible;
//!
//!     async fn establish(&self, connection: Connection) -> Result<Connection, Infallible> {
//!         Ok(connection)
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # // `Identity::self_signed` needs weir-net's feature `self-signed`.
//! # let identity = Identity::self_signed(["localhost"])?;
//! # let fingerprint = identity.fingerprint();
//! # let tls = ServerTls::new(identity).application_protocols([Echo::APPLICATION_PROTOCOL]);
//! # let server = Endpoint::builder().server(tls.build()?).bind("127.0.0.1:0".parse()?)?;
//! # let address = server.local_address();
//! # tokio::spawn(async move {
//! #     while let Some(connecting) = server.accept().await {
//! #         let Ok(connection) = connecting.await else { continue };
//! #         let echo = |request: weir_net::Request| async { Ok(request.body) };
//! #         connection.serve(ServeOptions::default(), echo).await;
//! #     }
//! # });
//! let tls = ClientTls::pinned(fingerprint).application_protocols([Echo::APPLICATION_PROTOCOL]);
//! let endpoint = Endpoint::builder().client(tls.build()?).bind("127.0.0.1:0".parse()?)?;
//! let servers = ServersBuilder::to_addresses([address])
//!     .server_name("localhost")
//!     .connect(&endpoint, Echo)?;
//! let picked = servers.pick(&[], false).await?;
//! let response = picked.link().call("hello").await;
//! match &response {
//!     Ok(_) => picked.on_answer(),
//!     Err(_) => picked.on_failure(),
//! }
//! assert_eq!(response?, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `protocol` | what connections are used for |
//! | `builder`, `servers`, `picked`, `attempts`, `stats` | the API |
//! | `resolution`, `backoff`, `retry`, `health` | values without clocks: when to resolve, to connect, to call again, and whom to avoid |
//! | `pool`, `server` | the servers with their connections, and which of them gets a call |
//! | `maintain`, `connect` | the tasks: one that resolves, one per server that connects |
//! | `resolver`, `random`, `sources` | names to addresses; random numbers, the time |
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod attempts;
mod backoff;
mod builder;
mod connect;
mod health;
mod maintain;
mod picked;
mod pool;
mod protocol;
mod random;
mod resolution;
mod resolver;
mod retry;
mod server;
mod servers;
mod sources;
mod stats;

pub use attempts::{Attempts, NotRetried, Retry};
pub use backoff::{Backoff, BackoffConfig};
pub use builder::{ChannelError, ServersBuilder};
pub use picked::Picked;
pub use pool::Balancing;
pub use protocol::{Link, Protocol};
pub use random::{NoRandomness, Random};
pub use resolver::{ResolveError, Resolver, Resolving, SystemResolver};
pub use retry::{RetryBudget, RetryConfig};
pub use servers::{NoServer, Servers};
pub use stats::{ServerInfo, ServerState, ServersStats};
