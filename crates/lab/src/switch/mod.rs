//! The switch: a scenario's network in real time, between the interfaces of its hosts.
//!
//! The network is the one that the simulator runs ([`weir_network::Network`]): hosts' links, queues,
//! switches, faults. Here its packets are segments of real frames and its time is the machine's:
//!
//! host's interface → `rx_batch`: read, parse each segment → `weir_network::Network` → `tx_port`: merge
//! segments that are due together → host's interface
//!
//! A super-packet is never handled as one packet. Its segments enter the host's link one by one, paced
//! at the link's rate, and each is queued, marked, dropped and counted by itself. Consecutive segments
//! that leave the last link in the same wake-up of the thread are merged into one frame again, if their
//! headers were changed alike ([`weir_enforce::segment`]).
//!
//! The time of each event follows from the packet's arrival, not from when the thread handles it, so
//! lateness does not accumulate over links or packets. A host's interface is read only while its link's
//! queue is short, as by a network card. Other data wait in the host, where TCP accounts for them.
//!
//! The elements of a scenario's switches run here too: transparent congestion control, and SED's agents
//! with their controller, which is the simulator's own with its channels ([`weir_network::ControlPlane`]).
//!
//! One thread runs everything. It sleeps until an event is due or a frame arrives, polls during the last
//! microseconds (`wake_up_latency`), and measures its lateness (`fidelity`).
//!
//! | file | contents |
//! |---|---|
//! | `handle` | starts and controls the switch, and returns its report |
//! | `command` | the commands and their answers |
//! | `thread` | the thread's loop |
//! | `rx_batch`, `tx_port`, `losses` | frames from and to the hosts' interfaces |
//! | `wake_up_latency`, `schedule` | sleeping and waking in time |
//! | `capture` | packets for a capture |
//! | `address_owners` | the hosts' addresses |
//! | `fidelity`, `distribution` | the fidelity of the emulation |

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
pub use capture::{CaptureBatch, CaptureReceiver, CaptureSender, capture_channel};
pub use command::{HostSocket, PortReading};
pub use error::SwitchError;
pub use handle::{SwitchHandle, SwitchSetup, start};
pub use thread::SwitchReport;
