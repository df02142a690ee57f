//! The switch: a scenario's network in real time, between the interfaces of its hosts.
//!
//! The network is the one that the simulator drives ([`weir_network::Network`]): hosts' links, queues, switches, faults.
//! Here its packets are segments of real frames and its time is the machine's:
//!
//! host's interface → `intake`: read, look at each segment → `weir_network::Network` → `outlet`: segments
//! that are due together travel together → host's interface
//!
//! A super-packet is never treated as one packet: its segments enter the host's link one by one, are
//! paced at its rate, and each is queued, marked, dropped and counted by itself. Consecutive segments
//! that come out of the last link at the same moment of the thread are handed over as one frame again,
//! if nothing has been done to one and not to the other ([`weir_enforce::segment`]).
//!
//! What a packet does is computed from the time at which it came, not from when the thread got around to
//! it, so that lateness does not add up from link to link or from packet to packet. A host's interface
//! is read only while its link's queue is short, as a network card takes packets: what cannot be sent
//! soon waits in the host, where TCP knows of it.
//!
//! What a scenario puts into the path of a switch is there too: transparent congestion control, and the
//! agents of SED with their controller, which is the simulator's own with its channels
//! ([`weir_network::ControlPlane`]).
//!
//! One thread does all: it sleeps until something is due or comes in, the last microseconds before that
//! awake (`waiter`), and keeps account of how late it was (`fidelity`).
//!
//! | file | what it does |
//! |---|---|
//! | `handle` | the switch as its user sees it: starts it, tells it what to do, takes its report |
//! | `command` | what it is told, and what it answers |
//! | `runner` | the thread's loop |
//! | `intake`, `outlet` | from and to the hosts' interfaces |
//! | `waiter`, `schedule` | sleeping and waking in time |
//! | `copies` | packets for a capture |
//! | `owners` | whose the addresses are |
//! | `fidelity`, `distribution` | how good it was |

mod address_owners;
mod capture;
mod command;
mod distribution;
mod error;
mod fidelity;
mod handle;
mod losses;
mod rx_batch;
mod schedule;
#[cfg(test)]
mod tests;
mod thread;
mod tx_port;
mod wake_up_latency;

pub use address_owners::AddressOwners;
pub use capture::{CaptureBatch, CaptureReceiver, CaptureSender, copies};
pub use command::{HostSocket, PortReading};
pub use error::SwitchError;
pub use handle::{SwitchHandle, SwitchSetup, start};
pub use thread::SwitchReport;
