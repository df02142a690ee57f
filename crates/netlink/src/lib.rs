//! Netlink access to links, addresses, routes and queueing disciplines (rtnetlink(7)).
//!
//! A [`Client`] sends one request at a time and waits for the answer. For notifications, or without
//! blocking, use a [`Socket`] and read the messages of each [`Datagram`].
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! let mut client = weir_netlink::Client::open()?;
//! println!("{:?}", client.addresses()?);
//! # Ok(())
//! # }
//! ```

mod client;
mod interface;
mod socket;

pub use client::Client;
pub use interface::interface_index;
pub use socket::{BUFFER, Content, Datagram, Message, Socket};
