//! What a scenario asks for between its hosts, in virtual time and in real time alike.
//!
//! A [`Network`] is a scenario's topology made of the parts of `weir_fabric`: links, queues, switches.
//! It is generic over the packet, knows no clock and no hosts: the simulator drives it in virtual time
//! with packets of a few words, the live lab in real time with frames. Both take from here as well what
//! has to be the same in both worlds: seeds, random choices, faults, what is measured of ports, and how
//! transports are configured.
//!
//! The way of a packet, from left to right:
//!
//! [`TxPort::send`]: uplink → switch, with its elements → link → … → [`Network::deliver`]
//!
//! | file | what it does |
//! |---|---|
//! | `network` | links and switches of a topology, and who sends next |
//! | `calendar` | whose event is the next one |
//! | `queues` | from a scenario's queue to the fabric's rules |
//! | `tcon` | transparent congestion control in the path of a switch |
//! | `sed` | the controller of SED and its channels |
//! | `faults` | a scenario's faults as changes of links |
//! | `seeds`, `random` | every random choice of a run, from the scenario's seed |
//! | `transports` | from a scenario's options to configurations of DCQUIC and DCUDP |
//! | `meter` | what ports did after the warm-up |
//! | `capture` | the packets of measured ports, for Wireshark |
//! | `deadlines` | which transfers were in time, and how many could have been |
//! | `thresholds` | lengths of queues at which something happens, for plots |

mod capture;
mod deadlines;
mod error;
mod event_queue;
pub mod faults;
mod meter;
mod network;
mod queues;
mod random;
mod sed;
mod seeds;
mod tcon;
mod thresholds;
mod transports;

pub use capture::Capture;
pub use deadlines::{DueTransfer, deadline_summary};
pub use error::NetworkError;
pub use event_queue::EventQueue;
pub use meter::PortMeter;
pub use network::{Network, TxPort};
pub use random::Random;
pub use sed::ControlPlane;
pub use seeds::{RngStream, Seeds, seed_bytes, side_bytes};
pub use tcon::AddressOwner;
pub use thresholds::thresholds;
pub use transports::{dcudp_transport, quic_transport};
