//! The switch: a scenario's network in real time, between the interfaces of its hosts.
//!
//! The network is the simulator's own ([`weir_sim::Network`]): hosts' links, queues, switches, faults.
//! Here its packets are segments of real frames and its time is the machine's:
//!
//! host's interface → `intake`: read, look at each segment → `weir_sim::Network` → `outlet`: segments
//! that are due together travel together → host's interface
//!
//! A super-packet is never treated as one packet: its segments enter the host's link one by one, are
//! paced at its rate, and each is queued, marked, dropped and counted by itself. Consecutive segments
//! that come out of the last link at the same moment of the thread are handed over as one frame again,
//! if they carry the same ECN codepoint.
//!
//! What a packet does is computed from the time at which it came, not from when the thread got around to
//! it, so that lateness does not add up from link to link or from packet to packet. A host's interface
//! is read only while its link's queue is short, as a network card takes packets: what cannot be sent
//! soon waits in the host, where TCP knows of it.
//!
//! One thread does all: it sleeps until something is due or comes in, the last microseconds before that
//! awake (`waiter`), and keeps account of how late it was (`fidelity`).
//!
//! | file | what it does |
//! |---|---|
//! | `handle` | the switch as its user sees it: starts it, tells it what to do, takes its report |
//! | `runner` | the thread's loop |
//! | `intake`, `outlet` | from and to the hosts' interfaces |
//! | `segment`, `pool` | segments as packets of the fabric; the buffers that they are in |
//! | `waiter`, `schedule` | sleeping and waking in time |
//! | `copies` | packets for a capture |
//! | `fidelity`, `distribution` | how good it was |

mod copies;
mod distribution;
mod error;
mod fidelity;
mod handle;
mod intake;
mod outlet;
mod pool;
mod runner;
mod schedule;
mod segment;
#[cfg(test)]
mod tests;
mod waiter;

pub use copies::{Batch, Copier, Copies, copies};
pub use error::SwitchError;
pub use handle::{Handle, Sample, Setup, Socket, start};
pub use runner::Report;
