//! The network of a scenario between its hosts, for virtual time and for real time.
//!
//! A [`Network`] is a scenario's topology built from the parts of `weir_fabric`: links, queues, switches.
//! It is generic over the packet, and has neither clock nor hosts. The simulator drives it in virtual time
//! with small packet records, the live lab in real time with frames. The crate also has the parts that
//! must be the same for both: seeds, random choices, faults, port measurements, and transport
//! configurations.
//!
//! The path of a packet:
//!
//! [`TxPort::send`]: uplink → switch, with its elements → link → … → [`Network::handle`] returns it
//!
//! | file | content |
//! |---|---|
//! | `network` | links and switches of a topology, and their events |
//! | `event_queue` | the next event of each link and switch |
//! | `packets_in_flight` | the packets on the links |
//! | `partition` | which part of a network each of several threads runs |
//! | `queues` | a scenario's queue as the fabric's rules |
//! | `tcon` | transparent congestion control in the path of a switch |
//! | `sed` | the controller of SED and its channels |
//! | `faults` | a scenario's faults as port changes |
//! | `seeds`, `random` | every random choice of a run, from the scenario's seed |
//! | `transports` | a scenario's options as configurations of DCQUIC and DCUDP |
//! | `meter` | port statistics after the warm-up |
//! | `link_loads` | what flows offer to classes of links, and what these carry |
//! | `ideal_times` | how long transfers take on the empty network |
//! | `changes` | changes of settings as results record them |
//! | `capture` | the packets of measured ports, for Wireshark |
//! | `deadlines` | which transfers were in time, and how many could have been |
//! | `thresholds` | the thresholds of queues, for plots |

mod capture;
mod changes;
mod deadlines;
mod error;
mod event_queue;
pub mod faults;
mod ideal_times;
mod instants;
mod link_loads;
mod meter;
mod network;
mod packets_in_flight;
mod partition;
mod queues;
mod random;
mod sed;
mod seeds;
mod tcon;
mod thresholds;
mod transports;

pub use capture::Capture;
pub use changes::change_records;
pub use deadlines::{DueTransfer, deadline_summary};
pub use error::NetworkError;
pub use event_queue::EventQueue;
pub use ideal_times::IdealTimes;
pub use instants::instants;
pub use link_loads::{LinkLoads, MeasuredTime};
pub use meter::PortMeter;
pub use network::{DirectPort, Export, HostArrival, Network, Passage, Stage, Stop, TxPort};
pub use packets_in_flight::SlotIndex;
pub use partition::{Indivisible, Partition};
pub use random::Random;
pub use sed::ControlPlane;
pub use seeds::{RngStream, Seeds, seed_bytes, side_bytes};
pub use tcon::AddressMap;
pub use thresholds::thresholds;
pub use transports::{dcudp_transport, quic_transport};
