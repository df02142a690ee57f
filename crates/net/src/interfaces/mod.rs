//! What becomes of the machine's network interfaces and addresses, and what the endpoint does then.
//!
//! | file | what it does |
//! |---|---|
//! | `table` | links and addresses as the kernel's messages tell them |
//! | `decision` | which of the endpoint's addresses to give up, take again or replace; no I/O |
//! | `dialogue` | questions to the kernel and its answers |
//! | `netlink` | the sockets on which it tells, continually or once |
//! | `watch` | the task that listens and carries out |

mod address_tracker;
mod dump;
mod netlink;
mod table;
mod watch;

pub(crate) use netlink::current;
pub(crate) use watch::AddressWatcher;
