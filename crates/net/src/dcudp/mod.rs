//! DCUDP on tokio: reliable, ECN-driven UDP as streams and as messages.
//!
//! > **DCUDP is not encrypted.** Without a [`PreSharedKey`] it is not authenticated either: an
//! > attacker who sees its packets can read them, change them and end the connection. Use it in
//! > networks that you trust, or with a key, or use DCQUIC.
//!
//! > **UDP Mode needs switches that mark.** With [`DcudpConfig::new`] only a CE mark slows a sender down
//! > below [`TransportConfig::rate`]. On any other network use [`DcudpConfig::shared`].
//!
//! A [`DcudpListener`] accepts connections at a UDP socket, a [`DcudpClient`] starts them from one;
//! a socket carries any number. A connection is a [`DcudpStream`], with tokio's read and write
//! traits, or a [`DcudpMessages`]. `weir-dcudp` implements the protocol, `docs/dcudp.md` describes
//! it.
//!
//! ```no_run
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use weir_net::dcudp::{DcudpClient, DcudpConfig, DcudpListener, DcudpStream};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = DcudpConfig::shared();
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
//! | file | contents |
//! |---|---|
//! | `config`, `client`, `listener`, `connection`, `stream`, `messages`, `error`, `key_file` | the API for applications |
//! | `interface_rate` | the highest rate towards a peer |
//! | `endpoint` | the common part of client and listener |
//! | `state` | the engine as the driver's protocol, and the waiting tasks |
//! | `owned_buffers` | receive buffers that the application reads from directly |

mod client;
mod config;
mod connection;
mod endpoint;
mod error;
mod interface_rate;
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
pub use interface_rate::interface_rate;
pub use key_file::{KeyFileError, read_key};
pub use listener::DcudpListener;
pub use messages::{DcudpMessages, MessageError};
pub use stream::DcudpStream;
pub use weir_dcudp::{
    ConnectionError, ConnectionStats, EndpointCounters, Feedback, KeyError, Mode, PreSharedKey,
    QuitConfig, TransportConfig, Violation,
};
