//! The machine's network interfaces and addresses: the kernel's notifications, and the endpoint's
//! reaction.
//!
//! | file | contents |
//! |---|---|
//! | `table` | links and addresses, from the kernel's messages |
//! | `address_tracker` | which of the endpoint's addresses to give up, use again or replace; no I/O |
//! | `dump` | dump requests to the kernel and their answers |
//! | `netlink` | the netlink sockets, for notifications or a single dump |
//! | `watch` | the task that receives notifications and acts on them |

mod address_tracker;
mod dump;
mod netlink;
mod table;
mod watch;

pub(crate) use netlink::{current, interface_of};
pub(crate) use watch::AddressWatcher;
