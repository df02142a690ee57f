//! DCUDP on tokio: reliable, ECN-driven UDP as streams and as messages.
//!
//! > **DCUDP is not encrypted.** Without a [`PreSharedKey`] it is not authenticated either: who sees
//! > its packets can read them, change them and end the connection. Use it in networks that you trust,
//! > or with a key, or use DCQUIC.
//!
//! > **DCUDP needs switches that mark.** In UDP Mode nothing but a CE mark slows a sender down below
//! > [`TransportConfig::rate`].
//!
//! A [`DcudpListener`] takes connections at a UDP socket, a [`DcudpClient`] begins them from one; each
//! socket carries as many as there are. A connection is a [`DcudpStream`], which reads and writes as
//! tokio's streams do, or a [`DcudpMessages`]. The protocol is `weir-dcudp`'s, `docs/dcudp.md`
//! describes it.
//!
//! ```no_run
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use weir_net::dcudp::{DcudpClient, DcudpConfig, DcudpListener, DcudpStream};
//! use weir_units::Rate;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = DcudpConfig::new(Rate::from_gbps(10));
//! let listener: DcudpListener = DcudpListener::bind("127.0.0.1:0".parse()?, config.clone())?;
//! let address = listener.local_address();
//! tokio::spawn(async move {
//!     while let Some(mut stream) = listener.accept().await {
//!         let mut request = Vec::new();
//!         if stream.read_to_end(&mut request).await.is_ok() {
//!             println!("{} bytes", request.len());
//!         }
//!     }
//! });
//!
//! let client = DcudpClient::bind("127.0.0.1:0".parse()?, config)?;
//! let mut stream: DcudpStream = client.connect(address).await?;
//! stream.write_all(b"hello").await?;
//! stream.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | file | what it tells |
//! |---|---|
//! | `config`, `client`, `listener`, `connection`, `stream`, `messages`, `error`, `key_file` | what applications hold |
//! | `endpoint` | what client and listener have in common |
//! | `state` | the engine as the driver sees it, and who waits for what |
//! | `owned_buffers` | where datagrams are received, to be read from there |

mod client;
mod config;
mod connection;
mod endpoint;
mod error;
mod key_file;
mod listener;
mod messages;
mod owned_buffers;
mod state;
mod stream;

pub use client::DcudpClient;
pub use config::DcudpConfig;
pub use connection::{DcudpConnection, DcudpWatch, Messages, ServiceKind, Stream};
pub use error::{DcudpConnectError, DcudpError};
pub use key_file::{KeyFileError, read_key};
pub use listener::DcudpListener;
pub use messages::{DcudpMessages, MessageError};
pub use stream::DcudpStream;
pub use weir_dcudp::{
    ConnectionError, ConnectionStats, EndpointCounters, Feedback, KeyError, Mode, PreSharedKey,
    QuitConfig, TransportConfig, Violation,
};
