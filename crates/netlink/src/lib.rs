//! Dialogues with the kernel about links, addresses, routes and queueing disciplines (rtnetlink(7)).
//!
//! A [`Client`] asks for one thing at a time and waits for the answer. Who wants to listen, or must not
//! block, has a [`Socket`] and reads the messages of each [`Datagram`].
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! let mut client = weir_netlink::Client::open()?;
//! println!("{:?}", client.addresses()?);
//! # Ok(())
//! # }
//! ```

mod client;
mod socket;

pub use client::Client;
pub use socket::{BUFFER, Content, Datagram, Message, Socket};
